//! After a restart, and as time passes.

use std::sync::Arc;

use state::kv::{Durability, Transaction};

use super::error::JobError;
use super::job::{Job, JobFault, JobId, JobState, Recovery};
use super::live::Live;
use super::worker::Claimed;
use super::{Bounds, Jobs, OnEnd, index};
use crate::store::Store;

/// How often a job that is tried again after restarts may be interrupted: one that ends the process each
/// time must not do so for ever.
pub const INTERRUPTIONS_MAX: u32 = 3;
/// Most jobs that one sweep removes.
const REMOVED_MAX: usize = 1_000;

/// What a restart did to the jobs that were running.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Failed, with the code `interrupted`.
    pub failed: Vec<JobId>,
    /// Queued again.
    pub queued: Vec<JobId>,
    /// To be looked for by their servers.
    pub adopted: Vec<Claimed>,
}

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Took too long, or waited too long.
    pub timed_out: Vec<JobId>,
    /// Removed, because they were too old or too many.
    pub removed: Vec<JobId>,
}

/// What a sweep is to end, and what it is to remove.
type Due = (Vec<(JobId, index::Open)>, Vec<JobId>);

impl Jobs {
    /// The jobs of this store, after settling those that were running when the process ended.
    ///
    /// # Errors
    /// [`JobError::Store`].
    pub fn open(
        store: Arc<Store>,
        bounds: Bounds,
        now_ms: i64,
    ) -> Result<(Self, Recovered), JobError> {
        Self::open_telling(store, bounds, None, now_ms)
    }

    /// As [`Jobs::open`], where somebody is to be told of every job that ends.
    ///
    /// # Errors
    /// As [`Jobs::open`].
    pub fn open_telling(
        store: Arc<Store>,
        bounds: Bounds,
        on_end: Option<OnEnd>,
        now_ms: i64,
    ) -> Result<(Self, Recovered), JobError> {
        let open_max = bounds.open_max.min(state::kv::SCAN_ENTRIES_MAX);
        let jobs = Self {
            store,
            bounds: Bounds { open_max, ..bounds },
            live: Live::default(),
            on_end,
        };
        let mut recovered = Recovered::default();
        let mut adopted = Vec::new();
        jobs.store.kv().write(Durability::Synced, |t| {
            for (id, open) in index::open(t, usize::MAX)? {
                if let (true, Some(job)) = (open.runs, index::load(t, &id)?) {
                    jobs.settle(t, job, now_ms, &mut recovered, &mut adopted)?;
                }
            }
            Ok::<_, JobError>(())
        })?;
        recovered.adopted = adopted.into_iter().map(|job| jobs.claimed(job)).collect();
        Ok((jobs, recovered))
    }

    fn settle(
        &self,
        t: &Transaction,
        mut job: Job,
        now_ms: i64,
        recovered: &mut Recovered,
        adopted: &mut Vec<Job>,
    ) -> Result<(), JobError> {
        job.interruptions += 1;
        match job.recovery {
            Recovery::Adopt => {
                // A new attempt, so that what an earlier process left behind cannot write any more.
                job.attempts += 1;
                index::store(t, &mut job)?;
                adopted.push(job);
            }
            Recovery::Retry | Recovery::Fail if job.cancel_requested => {
                self.end(t, &mut job, JobState::Cancelled, now_ms)?;
            }
            Recovery::Retry if job.interruptions <= INTERRUPTIONS_MAX => {
                job.state = JobState::Queued;
                job.attempt_ms = None;
                index::enter_queue(t, &job)?;
                index::store(t, &mut job)?;
                recovered.queued.push(job.id);
            }
            Recovery::Retry | Recovery::Fail => {
                job.fault = Some(JobFault::new(
                    "interrupted",
                    "the process ended while the job was running; what it had done by then is not known",
                ));
                self.end(t, &mut job, JobState::Failed, now_ms)?;
                recovered.failed.push(job.id);
            }
        }
        Ok(())
    }

    /// Ends what took too long and removes what is too old or too much. To be called about once a second.
    ///
    /// # Errors
    /// [`JobError::Store`].
    pub fn sweep(&self, now_ms: i64) -> Result<Swept, JobError> {
        let due: Result<Due, JobError> = self.store.kv().read(|s| {
            let queued_ms_max = self.bounds.queued_ms_max;
            let mut late = index::open(s, usize::MAX)?;
            late.retain(|(_, open)| open.is_late(queued_ms_max, now_ms));
            let kept_ms = i64::try_from(self.bounds.kept_ms).unwrap_or(i64::MAX);
            let before = now_ms.saturating_sub(kept_ms);
            let mut old = index::ended_before(s, Some(before), REMOVED_MAX)?;
            let surplus = index::ended_count(s)?.saturating_sub(self.bounds.kept_max as u64);
            let surplus = usize::try_from(surplus)
                .unwrap_or(REMOVED_MAX)
                .min(REMOVED_MAX);
            if surplus > old.len() {
                old = index::ended_before(s, None, surplus)?;
            }
            Ok((late, old))
        });
        let (late, old) = due?;
        let mut swept = Swept::default();
        for (id, _) in late {
            if self.time_out(&id, now_ms)? {
                swept.timed_out.push(id);
            }
        }
        if !old.is_empty() {
            self.store.kv().write(Durability::Synced, |t| {
                old.iter().try_for_each(|id| index::remove(t, id))
            })?;
        }
        swept.removed = old;
        Ok(swept)
    }

    fn time_out(&self, id: &JobId, now_ms: i64) -> Result<bool, JobError> {
        let mut is_late = false;
        let changed = self.change(Durability::Synced, |t| {
            let mut job = index::load(t, id)?.ok_or(JobError::NotFound)?;
            let open = index::Open::of(&job);
            is_late = !job.state.is_end() && open.is_late(self.bounds.queued_ms_max, now_ms);
            if is_late {
                let wrong = match job.state {
                    JobState::Queued => "no worker took the job in time",
                    _ => "the job did not end in time",
                };
                job.fault = Some(JobFault::new("timeout", wrong));
                self.end(t, &mut job, JobState::Timeout, now_ms)?;
            }
            Ok(job)
        });
        match changed {
            Ok(_) => Ok(is_late),
            Err(JobError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
