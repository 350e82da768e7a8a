//! Reading of calls and answers that take long to read, by the threads of the edge's [`crate::reading_pool::ReadingPool`].

use gate::facts::{Facts, Touched};
use gate::inspect::Inspected;
use gate::{Origin, Reason, Refusal};
use wire::WireError;

use super::client::Asker;
use super::read::{Asked, Step};
use crate::message::frames::{self, UpstreamFault};

/// When a call that found no thread may be made again, in milliseconds.
const RETRY_MS: u64 = 1_000;

impl Asker {
    /// Runs a reading on a thread of the pool; `None` if there is none for it. `prepare` makes the reading once there is a
    /// thread: copies of what waits would need as much memory again.
    pub(super) async fn read_elsewhere<T, R>(&self, prepare: impl FnOnce() -> R) -> Option<T>
    where
        T: Send + 'static,
        R: FnOnce() -> T + Send + 'static,
    {
        let pool = self.client.reading_pool()?;
        let permit = pool.enter(&self.caller.subject).await?;
        permit.run(prepare()).await
    }

    /// Refuses what no thread is free to read, and records that.
    pub(super) fn refuse_unread(&self, facts: &Facts, origin: &Origin) -> Box<Refusal> {
        let gate = &self.server.gate;
        gate.refuse(facts, origin, Reason::ReadingQueueFull, Some(RETRY_MS))
    }

    /// Reads a request whole that its edge read for a few steps only. It is refused if there is no thread for it.
    pub(super) async fn read_whole(
        &self,
        frame: &Inspected<Vec<u8>>,
        asked: &mut Asked,
        may_list: bool,
    ) {
        let seen = self.settled();
        asked.step = match self.step_elsewhere(frame, asked, may_list).await {
            Ok(step) => step,
            Err(answer) => Step::Refuse(answer),
        };
        asked.seen = seen;
    }

    async fn step_elsewhere(
        &self,
        frame: &Inspected<Vec<u8>>,
        asked: &Asked,
        may_list: bool,
    ) -> Result<Step, Vec<u8>> {
        let prepare = || {
            let copy = frame.try_map_ref(|frame| Ok::<_, WireError>(frame.clone()));
            let (asker, when) = (self.clone(), (asked.received_ns, asked.trace()));
            move || asker.step_again(&copy?, when, None, may_list)
        };
        match self.read_elsewhere(prepare).await {
            Some(Ok(Some(step))) => Ok(step),
            Some(Err(fault)) => Err(frames::bad_frame(&asked.names.id, &fault)),
            Some(Ok(None)) | None => Err(self.unread(asked)),
        }
    }

    /// The answer to a request that no thread is free to read.
    fn unread(&self, asked: &Asked) -> Vec<u8> {
        match &asked.step {
            Step::Judge(facts, origin) | Step::Unlisted(facts, origin) => {
                let refusal = self.refuse_unread(facts, origin);
                self.refused(&asked.names, &refusal)
            }
            _ => {
                self.client.note(UpstreamFault::Busy.into());
                frames::upstream_fault(&asked.names.id, UpstreamFault::Busy)
            }
        }
    }

    /// Reads a long call again that has waited for others. Its places may be others than those that it has waited for;
    /// then they are unsettled.
    pub(super) async fn read_whole_again(&self, frame: &Inspected<Vec<u8>>, asked: &mut Asked) {
        let before = asked.step.facts().and_then(Touched::of);
        self.read_whole(frame, asked, false).await;
        if let Step::Judge(facts, _) | Step::Unlisted(facts, _) = &mut asked.step {
            facts.unsettled |= Touched::of(facts) != before;
        }
    }
}
