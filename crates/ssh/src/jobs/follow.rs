//! Following one job: starting it, fetching its output, writing down its end, killing it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolkit::cancel::Cancel;
use toolkit::jobs::{Attempt, Claimed, End, JobFault, JobProgress};
use toolkit::outputs::{OutputError, OutputWriter};
use toolkit::server::Failure;

use super::script::{self, From, Look, Remote, Stands};
use super::{Keeper, Note, Work, blocking, fault};
use crate::end::{End as Ending, Missing};
use crate::hosts::Host;
use crate::outputs::{STREAMS, now_ms};
use crate::processes::{Aftermath, Whose};
use crate::upstream::{self, Ended, Order};

/// How long after the first look the second comes; then twice as long each time.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Longest time between two looks.
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(5);
/// The same where the host cannot be reached.
const REACH_AGAIN_MAX: Duration = Duration::from_secs(30);
/// Most bytes of each stream that one look fetches.
const PART_BYTES_MAX: usize = 256 * 1024;
/// How often a host is asked to kill a job that nobody waits for any more.
const KILLS_MAX: u32 = 20;

/// A job while it is followed.
struct Followed<'k> {
    keeper: &'k Arc<Keeper>,
    host: Arc<Host>,
    attempt: Attempt,
    remote: Remote,
    submitted_ms: i64,
    whose: Whose,
    /// All that has its variable is gone.
    is_killed: bool,
    note: Note,
    /// Where its output goes; absent while a part is being written.
    writer: Option<OutputWriter>,
}

/// Why a look came to nothing.
enum Unseen {
    /// It may come to something later.
    Later(String),
    /// Its output cannot be kept here, or the job is somebody else's by now.
    Over(Failure),
}

/// Follows a job to its end. An adopted one was taken by an earlier process.
pub(super) async fn follow(keeper: &Arc<Keeper>, claimed: Claimed, is_adopted: bool) {
    let Claimed {
        job,
        attempt,
        cancel,
    } = claimed;
    let over = |failure: Failure| {
        let attempt = attempt.clone();
        keeper.ask(move |jobs| jobs.finish(&attempt, End::Failed(fault(failure)), now_ms()))
    };
    let work: Work = match serde_json::from_value(job.request.clone()) {
        Ok(work) => work,
        Err(error) => {
            let _ = over(Failure::new("internal", error.to_string())).await;
            return;
        }
    };
    let Some(host) = keeper.hosts.named(&work.host) else {
        let wrong = format!(
            "{} is not among the hosts any more; what runs there goes on",
            work.host
        );
        let _ = over(Failure::new("unknown_host", wrong)).await;
        return;
    };
    let mut followed = Followed {
        keeper,
        host: Arc::clone(host),
        remote: Remote::new(job.id.as_str()),
        submitted_ms: job.submitted_ms,
        whose: Whose::of(&work.argv),
        is_killed: false,
        note: Note {
            output: None,
            ..Note::of(&job)
        },
        attempt: attempt.clone(),
        writer: None,
    };
    let ended = match followed.open(&job.caller).await {
        Ok(()) => followed.until_end(work, is_adopted, &cancel).await,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = ended {
        let _ = over(failure).await;
    }
}

impl Followed<'_> {
    /// Makes a place for its output.
    async fn open(&mut self, caller: &str) -> Result<(), Failure> {
        let (outputs, caller) = (Arc::clone(&self.keeper.shelf.outputs), caller.to_owned());
        let (handle, writer) = blocking(move || {
            outputs
                .create(&caller, STREAMS, now_ms())
                .map_err(|error| unkept(&error))
        })
        .await?;
        self.note.output = Some(handle);
        self.writer = Some(writer);
        self.noted().await
    }

    async fn until_end(
        &mut self,
        work: Work,
        is_adopted: bool,
        cancel: &Cancel,
    ) -> Result<(), Failure> {
        if !self.note.begun && !is_adopted && !cancel.is_cancelled() {
            self.start(work).await?;
        }
        let mut wait = LOOK_AGAIN;
        let mut kills = 0;
        loop {
            let is_stopped = cancel.is_cancelled();
            let seen = if is_stopped && !self.is_killed {
                kills += 1;
                if kills > KILLS_MAX {
                    return self.finish(Stands::Running, true).await;
                }
                self.kill().await
            } else {
                self.look().await
            };
            let message = match seen {
                Ok(Some(Stands::Running)) => None,
                Ok(Some(stands)) => return self.finish(stands, is_stopped).await,
                // There is more to be fetched, or it was killed just now.
                Ok(None) => continue,
                Err(Unseen::Later(why)) => Some(why),
                Err(Unseen::Over(failure)) => return Err(failure),
            };
            let most = match message {
                None => LOOK_AGAIN_MAX,
                Some(_) => REACH_AGAIN_MAX,
            };
            // A job that took too long has ended for its caller, and is killed all the same.
            let _ = self.told(message).await;
            tokio::select! {
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(most),
                () = self.keeper.asked.notified() => wait = LOOK_AGAIN,
                () = cancel.cancelled(), if !is_stopped => wait = LOOK_AGAIN,
            }
        }
    }

    /// Starts it. Where it is not known whether it began, that is found out by looking.
    async fn start(&mut self, work: Work) -> Result<(), Failure> {
        let most = self.keeper.hosts.limits.job_stream_bytes_max;
        let order = self
            .remote
            .start(
                &[work.before, work.argv].concat(),
                work.stdin.into_bytes(),
                most,
            )
            .map_err(|fault| Failure::new("unfit_arguments", fault.to_string()))?;
        let ended = self.run(order).await?;
        match &ended.end {
            Ending::Exited(_) | Ending::Untold | Ending::Signalled(_) => {
                if let Err(failure) = script::begun(&ended) {
                    self.clear().await;
                    return Err(failure);
                }
                self.note.begun = true;
                self.noted().await
            }
            Ending::Refused => Err(Failure::new(
                "refused_by_server",
                "the server refused to run a command on this login",
            )),
            Ending::Unsent => Err(Failure::new(
                "connection_lost",
                "the connection was lost before the job was sent; it did not run",
            )),
            Ending::Lost | Ending::TimedOut { .. } | Ending::Cancelled { .. } => Ok(()),
        }
    }

    /// How it is, with what it has written since the last look; `None` where there is more to fetch.
    async fn look(&mut self) -> Result<Option<Stands>, Unseen> {
        let from = From {
            at: self.note.lengths,
            bytes_max: PART_BYTES_MAX,
            claims: !self.note.begun,
        };
        let later = |failure: Failure| Unseen::Later(failure.message);
        let order = self.remote.look(from);
        let order = order.map_err(|fault| Unseen::Later(fault.to_string()))?;
        let ended = self.run(order).await.map_err(later)?;
        let Some(look) = Look::read(&ended.stdout.bytes) else {
            let wrong = String::from_utf8_lossy(&ended.stderr.bytes);
            let wrong = format!("the host did not say how the job is: {}", wrong.trim());
            return Err(Unseen::Later(wrong));
        };
        let has_begun = !matches!(look.stands, Stands::Gone | Stands::Never);
        if has_begun && !self.note.begun {
            self.note.begun = true;
            self.noted().await.map_err(Unseen::Over)?;
        }
        self.note.is_cut |= look.missing == Some(Missing::OverBound);
        self.note.is_open |= look.missing == Some(Missing::StreamsOpen);
        self.keep(look.parts).await?;
        let is_all = self.note.lengths == look.lengths || !has_begun;
        Ok(is_all.then_some(look.stands))
    }

    /// Keeps the next part of each stream.
    async fn keep(&mut self, parts: [Vec<u8>; 2]) -> Result<(), Unseen> {
        let Some(mut writer) = self.writer.take() else {
            return Ok(());
        };
        let lengths = [&parts[0], &parts[1]].map(|part| part.len() as u64);
        if lengths == [0, 0] {
            self.writer = Some(writer);
            return Ok(());
        }
        let written = blocking(move || {
            for (stream, part) in parts.iter().enumerate() {
                let written = writer.append(stream, part);
                written.map_err(|error| unkept(&error))?;
            }
            Ok(writer)
        });
        self.writer = Some(written.await.map_err(Unseen::Over)?);
        for (length, more) in self.note.lengths.iter_mut().zip(lengths) {
            *length += more;
        }
        Ok(())
    }

    /// Kills all that it has started.
    async fn kill(&mut self) -> Result<Option<Stands>, Unseen> {
        let slot = self.keeper.pool.slot_to_run(&self.host, None, None).await;
        let slot = slot.map_err(|fault| Unseen::Later(fault.of(&self.host).message))?;
        let Some((channel, _taken)) = slot.take() else {
            return Err(Unseen::Later("the channel is gone".into()));
        };
        let fit = |order: &mut Order| self.keeper.pool.fit(&self.host, order);
        let submitted = self.submitted_ms;
        let age = || Duration::from_millis(u64::try_from(now_ms() - submitted).unwrap_or(u64::MAX));
        let mark = Some(&self.remote.mark);
        let left = upstream::clean_up(channel, mark, fit, (age, self.whose)).await;
        self.is_killed = left.is_killed;
        (self.note.seen_dead, self.note.pids) = match left.aftermath {
            Aftermath::Dead if left.is_killed => (Some(true), Vec::new()),
            Aftermath::Dead => (None, Vec::new()),
            Aftermath::Unknown { pids, .. } => (None, pids),
        };
        // Its caller may have no job any more to whom that could be told.
        let _ = self.noted().await;
        if left.is_killed {
            return Ok(None);
        }
        let wrong = "it was told to end, and whether it has is not known: it may still run";
        Err(Unseen::Later(wrong.into()))
    }

    async fn finish(&mut self, stands: Stands, is_stopped: bool) -> Result<(), Failure> {
        if let Some(writer) = self.writer.take() {
            blocking(move || writer.finish().map_err(|error| unkept(&error))).await?;
        }
        let _ = self.noted().await;
        let wrong = |code: &str, wrong: &str| End::Failed(JobFault::new(code, wrong));
        let end = match stands {
            Stands::Ended(0) => End::Succeeded(json!({"exit_code": 0})),
            _ if is_stopped => End::Cancelled,
            Stands::Ended(code) => {
                let mut fault = JobFault::new("exit_code", format!("exit code {code}"));
                fault.details.insert("exit_code".into(), code.into());
                End::Failed(fault)
            }
            Stands::Never => wrong(
                "interrupted",
                "the job had not begun when the connection or this program ended; it did not run",
            ),
            Stands::Gone => wrong(
                "job_gone",
                "the job's directory is gone from the host; how the job ended is not known",
            ),
            Stands::Lost | Stands::Running => wrong(
                "job_lost",
                "nothing of the job runs any more, and its exit code was not left: it was killed, the host was restarted, or its disk was full",
            ),
        };
        let attempt = self.attempt.clone();
        let ended = self
            .keeper
            .ask(move |jobs| jobs.finish(&attempt, end, now_ms()))
            .await;
        // Cleared after its end is known here; a name that never began stays taken.
        if stands != Stands::Never {
            self.clear().await;
        }
        ended.map(drop).or(Ok(()))
    }

    async fn clear(&self) {
        if let Ok(order) = self.remote.clear()
            && let Err(failure) = self.run(order).await
        {
            tracing::warn!(wrong = failure.message, "a job's directory was not removed");
        }
    }

    async fn run(&self, mut order: Order) -> Result<Ended, Failure> {
        let slot = self.keeper.pool.slot_to_run(&self.host, None, None).await;
        let slot = slot.map_err(|fault| fault.of(&self.host))?;
        let Some((channel, taken)) = slot.take() else {
            return Err(Failure::new("connection_lost", "the channel is gone").retryable());
        };
        self.keeper.pool.fit(&self.host, &mut order);
        let mut ended = upstream::run(channel, order, Cancel::default()).await;
        taken.settle(&mut ended);
        Ok(ended)
    }

    async fn noted(&self) -> Result<(), Failure> {
        let (attempt, note) = (self.attempt.clone(), self.note.json());
        self.keeper.ask(move |jobs| jobs.note(&attempt, note)).await
    }

    /// Tells how far it is: how much it has written, and what is in the way.
    async fn told(&self, message: Option<String>) -> Result<(), Failure> {
        let [out, err] = self.note.lengths;
        #[expect(
            clippy::cast_precision_loss,
            reason = "outputs are far below 2^53 bytes"
        )]
        let done = out.saturating_add(err) as f64;
        let progress = JobProgress {
            done,
            message,
            ..JobProgress::default()
        };
        let attempt = self.attempt.clone();
        self.keeper
            .ask(move |jobs| jobs.progress(&attempt, progress))
            .await
    }
}

fn unkept(error: &OutputError) -> Failure {
    let wrong = format!("the job's output cannot be kept: {error}; what runs goes on");
    Failure::new("output_not_kept", wrong)
}
