//! Jobs: work that goes on after the call that asked for it.
//!
//! Simulations, commands on other hosts and tasks of MCP are views of the same records. Every change is one
//! transaction; a caller sees nobody's jobs but its own; an attempt that was given up cannot write any more.
//! Calls here block on the disk.

mod error;
mod index;
mod job;
mod live;
mod recover;
mod worker;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use state::kv::{Durability, Transaction, View};

use crate::store::Store;
pub use error::JobError;
pub use job::{End, Job, JobFault, JobId, JobProgress, JobState, NewJob, Recovery};
use live::Live;
pub use live::{WATCHED_MAX, Watch};
pub use recover::{INTERRUPTIONS_MAX, Recovered, Swept};
pub use worker::{Attempt, Claimed};

/// Longest request, result or checkpoint of a job, in bytes of JSON. What is longer goes into the output store.
pub const PART_BYTES_MAX: usize = 1024 * 1024;
/// Longest idempotency key, in bytes.
pub const KEY_BYTES_MAX: usize = 256;
/// Most jobs of one page of a list.
pub const PAGE_JOBS_MAX: usize = 200;

/// How many jobs there may be, and for how long they are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most jobs of one caller that have not ended.
    pub open_per_caller_max: usize,
    /// Most jobs that have not ended.
    pub open_max: usize,
    /// Most jobs of one caller that run at a time.
    pub running_per_caller_max: usize,
    /// Longest wait for a worker, in milliseconds.
    pub queued_ms_max: u64,
    /// How long a job is kept after its end, in milliseconds.
    pub kept_ms: u64,
    /// Most ended jobs of one caller; the oldest go first.
    pub kept_per_caller_max: usize,
    /// Most ended jobs; the oldest go first.
    pub kept_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        const DAY_MS: u64 = 24 * 60 * 60 * 1000;
        Self {
            open_per_caller_max: 100,
            open_max: 1_000,
            running_per_caller_max: 4,
            queued_ms_max: DAY_MS,
            kept_ms: 7 * DAY_MS,
            kept_per_caller_max: 1_000,
            kept_max: 10_000,
        }
    }
}

/// Is told of a job that ends, before anybody can know that it has. It must not ask for jobs.
pub type OnEnd = Box<dyn Fn(&Job) + Send + Sync>;

/// All jobs of a process.
pub struct Jobs {
    store: Arc<Store>,
    bounds: Bounds,
    live: Live,
    on_end: Option<OnEnd>,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs")
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

/// A job that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Submitted {
    /// It, or the one that was asked for before under the same key.
    pub job: Job,
    /// Whether it is new.
    pub is_new: bool,
}

/// One page of a caller's jobs, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Where the next page begins; absent on the last.
    pub next: Option<Vec<u8>>,
}

impl Jobs {
    /// Asks for a job. Under a key that was used for the same request before, gives that job as it is now.
    ///
    /// # Errors
    /// [`JobError::Conflict`], [`JobError::CallerFull`], [`JobError::Full`], [`JobError::TooLong`] or
    /// [`JobError::Store`].
    pub fn submit(&self, new: NewJob, now_ms: i64) -> Result<Submitted, JobError> {
        let digest = digest(new.kind, &new.request);
        self.submit_under(digest, new, now_ms)
    }

    /// As [`Jobs::submit`], where what the caller wrote is less than what the job is asked for: the key stands
    /// for `written`.
    ///
    /// # Errors
    /// As [`Jobs::submit`].
    pub fn submit_as(
        &self,
        new: NewJob,
        written: &Value,
        now_ms: i64,
    ) -> Result<Submitted, JobError> {
        self.submit_under(digest(new.kind, written), new, now_ms)
    }

    fn submit_under(
        &self,
        digest: [u8; 32],
        new: NewJob,
        now_ms: i64,
    ) -> Result<Submitted, JobError> {
        fits("request", &new.request)?;
        let key_bytes = new.idempotency_key.as_ref().map_or(0, String::len);
        bounded("idempotency key", key_bytes, KEY_BYTES_MAX)?;
        self.store.kv().write(Durability::Synced, |t| {
            if let Some(key) = &new.idempotency_key
                && let Some((id, before)) = index::keyed(t, &new.caller, key)?
            {
                let Some(job) = index::load(t, &id)? else {
                    return Err(JobError::NotFound);
                };
                if before != digest {
                    return Err(JobError::Conflict { job: id });
                }
                return Ok(Submitted { job, is_new: false });
            }
            let open_max = self.bounds.open_per_caller_max;
            if index::open_of(t, &new.caller, open_max)?.len() >= open_max {
                return Err(JobError::CallerFull { open_max });
            }
            let open_max = self.bounds.open_max;
            if index::open_count(t)? >= open_max as u64 {
                return Err(JobError::Full { open_max });
            }
            let job = self.fresh(new, now_ms);
            index::insert(t, &job, &digest)?;
            Ok(Submitted { job, is_new: true })
        })
    }

    fn fresh(&self, new: NewJob, now_ms: i64) -> Job {
        Job {
            id: JobId(self.store.name("job")),
            caller: new.caller,
            kind: new.kind.to_owned(),
            state: JobState::Queued,
            request: new.request,
            submitted_ms: now_ms,
            started_ms: None,
            attempt_ms: None,
            finished_ms: None,
            attempts: 0,
            retries_max: new.retries_max,
            interruptions: 0,
            timeout_ms: new.timeout_ms,
            recovery: new.recovery,
            cancel_requested: false,
            progress: JobProgress::default(),
            checkpoint: None,
            note: None,
            result: None,
            fault: None,
            idempotency_key: new.idempotency_key,
            version: 0,
        }
    }

    /// A caller's job.
    ///
    /// # Errors
    /// [`JobError::NotFound`], also for another caller's; [`JobError::Store`].
    pub fn get(&self, caller: &str, id: &JobId) -> Result<Job, JobError> {
        self.store.kv().read(|s| own(s, caller, id))
    }

    /// A page of a caller's jobs, oldest first, from where the page before it ended.
    ///
    /// # Errors
    /// [`JobError::Store`].
    pub fn list(
        &self,
        caller: &str,
        from: Option<&[u8]>,
        jobs_max: usize,
    ) -> Result<Page, JobError> {
        let jobs_max = jobs_max.clamp(1, PAGE_JOBS_MAX);
        self.store.kv().read(|s| {
            let mut found = index::owned(s, caller, from, jobs_max + 1)?;
            let next = (found.len() > jobs_max)
                .then(|| found.pop().map(|(position, _)| position))
                .flatten();
            let jobs: Result<Vec<Option<Job>>, JobError> =
                found.iter().map(|(_, id)| index::load(s, id)).collect();
            Ok(Page {
                jobs: jobs?.into_iter().flatten().collect(),
                next,
            })
        })
    }

    /// Cancels a caller's job: one that waits has ended at once, one that runs is told to stop. One that has
    /// ended stays as it is.
    ///
    /// # Errors
    /// [`JobError::NotFound`] or [`JobError::Store`].
    pub fn cancel(&self, caller: &str, id: &JobId, now_ms: i64) -> Result<Job, JobError> {
        let job = self.change(Durability::Synced, |t| {
            let mut job = own(t, caller, id)?;
            match job.state {
                JobState::Queued => self.end(t, &mut job, JobState::Cancelled, now_ms)?,
                JobState::Running if !job.cancel_requested => {
                    job.cancel_requested = true;
                    index::store(t, &mut job)?;
                }
                _ => {}
            }
            Ok(job)
        })?;
        self.live.cancel(&job.id);
        Ok(job)
    }

    /// Cancels all jobs of a caller that have not ended, as [`Self::cancel`] does.
    ///
    /// # Errors
    /// [`JobError::Store`].
    pub fn cancel_all(&self, caller: &str, now_ms: i64) -> Result<(), JobError> {
        let open_max = self.bounds.open_per_caller_max;
        let open = self
            .store
            .kv()
            .read(|s| index::open_of(s, caller, open_max))?;
        for (id, _) in open {
            match self.cancel(caller, &id, now_ms) {
                // It has ended meanwhile, and was too old to be kept.
                Ok(_) | Err(JobError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for changes of a caller's job.
    ///
    /// # Errors
    /// [`JobError::NotFound`], [`JobError::Full`] where too many jobs are watched, or [`JobError::Store`].
    pub fn watch(&self, caller: &str, id: &JobId) -> Result<Watch, JobError> {
        let watch = self.live.watch(id).ok_or(JobError::Full {
            open_max: WATCHED_MAX,
        })?;
        // Looked for after the watch stands, so that no change falls between.
        self.get(caller, id)?;
        Ok(watch)
    }

    /// Runs a change of one job and tells who watches it.
    fn change(
        &self,
        durability: Durability,
        f: impl FnOnce(&Transaction) -> Result<Job, JobError>,
    ) -> Result<Job, JobError> {
        let job = self.store.kv().write(durability, f)?;
        self.live.changed(&job);
        Ok(job)
    }

    /// Moves a job to its end, inside a transaction.
    fn end(
        &self,
        t: &Transaction,
        job: &mut Job,
        state: JobState,
        now_ms: i64,
    ) -> Result<(), JobError> {
        index::leave_queue(t, job)?;
        job.state = state;
        job.finished_ms = Some(now_ms.max(job.started_ms.unwrap_or(job.submitted_ms)));
        job.checkpoint = None;
        index::store(t, job)?;
        index::ended(t, job)?;
        if let Some(on_end) = &self.on_end {
            on_end(job);
        }
        let kept_max = self.bounds.kept_per_caller_max;
        let kept = index::ended_of(t, &job.caller, kept_max + 1)?;
        if let (true, Some(oldest)) = (kept.len() > kept_max, kept.first()) {
            index::remove(t, oldest)?;
        }
        Ok(())
    }
}

fn own(view: &impl View, caller: &str, id: &JobId) -> Result<Job, JobError> {
    let job = index::load(view, id)?.filter(|job| job.caller == caller);
    job.ok_or(JobError::NotFound)
}

/// What tells one request from another. Members of objects are sorted, so their order does not matter.
fn digest(kind: &str, request: &Value) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(kind.len() as u64).to_be_bytes());
    hasher.update(kind.as_bytes());
    hasher.update(request.to_string().as_bytes());
    hasher.finalize().into()
}

fn fits(what: &'static str, value: &Value) -> Result<(), JobError> {
    bounded(what, value.to_string().len(), PART_BYTES_MAX)
}

fn bounded(what: &'static str, bytes: usize, bytes_max: usize) -> Result<(), JobError> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(JobError::TooLong {
        what,
        bytes,
        bytes_max,
    })
}

#[cfg(test)]
mod tests;
