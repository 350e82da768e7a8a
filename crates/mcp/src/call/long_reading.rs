//! Reading of calls that take long to read, by the threads of the edge's [`crate::reading_pool::ReadingPool`].

use gate::facts::Touched;
use gate::inspect::Inspected;
use wire::WireError;

use super::client::Asker;
use super::read::{Asked, Step};
use crate::message::frames::{self, UpstreamFault};

impl Asker {
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
        let id = asked.names.id.as_str();
        let busy = || {
            self.client.note(UpstreamFault::Busy.into());
            frames::upstream_fault(id, UpstreamFault::Busy)
        };
        let pool = self.client.reading_pool().ok_or_else(busy)?;
        let permit = pool.enter(&self.caller.subject).await.ok_or_else(busy)?;
        let bad = |fault: WireError| frames::bad_frame(id, &fault);
        // Not before there is a thread: copies of calls that wait would need as much memory again.
        let copy = frame.try_map_ref(|frame| Ok::<_, WireError>(frame.clone()));
        let (asker, copy) = (self.clone(), copy.map_err(bad)?);
        let when = (asked.received_ns, asked.trace());
        let read = move || asker.step_again(&copy, when, None, may_list);
        let step = permit.run(read).await.ok_or_else(busy)?;
        step.map_err(bad)?.ok_or_else(busy)
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
