//! The worker's side: taking a job, telling how far it is, ending it.

use std::collections::HashMap;

use serde_json::{Map, Value};
use state::kv::Durability;

use super::error::JobError;
use super::job::{End, Job, JobFault, JobId, JobProgress, JobState, Recovery};
use super::{Jobs, index};
use crate::cancel::Cancel;

/// Most waiting jobs that are looked at for one that may run.
const LOOKED_AT_MAX: usize = 1_000;
/// Longest message of a fault or of progress, in bytes; what is longer is cut.
const MESSAGE_BYTES_MAX: usize = 4_096;
const LABEL_BYTES_MAX: usize = 64;
/// Longest details of a fault, in bytes of JSON; longer ones are left out.
const DETAILS_BYTES_MAX: usize = 64 * 1024;

/// One attempt at a job. An attempt that is over changes nothing any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The job.
    pub id: JobId,
    /// Which attempt this is, from 1.
    pub number: u32,
}

/// A job that a worker has.
#[derive(Debug)]
pub struct Claimed {
    /// The job.
    pub job: Job,
    /// Proves that the worker has it.
    pub attempt: Attempt,
    /// Set when the worker is to stop: the job was cancelled, took too long, or is somebody else's by now.
    pub cancel: Cancel,
}

impl Jobs {
    /// Takes a job of these kinds whose caller may have one more running: of the caller who has the fewest running, the one that
    /// has waited longest. However many jobs others have asked for, the next free worker is for who has none.
    ///
    /// # Errors
    /// [`JobError::Store`].
    pub fn claim(&self, kinds: &[&str], now_ms: i64) -> Result<Option<Claimed>, JobError> {
        let looked: Result<Option<Job>, JobError> =
            self.store.kv().read(|s| self.eligible(s, kinds));
        let Some(found) = looked? else {
            return Ok(None);
        };
        // What may be done twice need not be known to have begun; all else is known before it begins.
        let durability = match found.recovery {
            Recovery::Retry => Durability::Deferred,
            Recovery::Fail | Recovery::Adopt => Durability::Synced,
        };
        let taken = self.store.kv().write(durability, |t| {
            // Looked for again: another worker may have been faster.
            let Some(mut job) = self.eligible(t, kinds)? else {
                return Ok(None);
            };
            index::leave_queue(t, &job)?;
            // The worker looked at its clock before it had its turn; the job may have come since.
            let now_ms = now_ms.max(job.submitted_ms);
            job.state = JobState::Running;
            job.attempts += 1;
            job.started_ms.get_or_insert(now_ms);
            job.attempt_ms = Some(now_ms);
            index::store(t, &mut job)?;
            Ok::<_, JobError>(Some(job))
        })?;
        Ok(taken.map(|job| self.claimed(job)))
    }

    pub(super) fn claimed(&self, job: Job) -> Claimed {
        let cancel = self.live.begun(&job.id);
        if job.cancel_requested {
            cancel.cancel();
        }
        self.live.changed(&job);
        Claimed {
            attempt: Attempt {
                id: job.id.clone(),
                number: job.attempts,
            },
            job,
            cancel,
        }
    }

    fn eligible(
        &self,
        view: &impl state::kv::View,
        kinds: &[&str],
    ) -> Result<Option<Job>, JobError> {
        let mut running: HashMap<String, usize> = HashMap::new();
        let mut next: Option<(usize, JobId)> = None;
        for waiting in index::waiting(view, LOOKED_AT_MAX)? {
            if !kinds.contains(&waiting.kind.as_str()) {
                continue;
            }
            let busy = match running.get(&waiting.caller) {
                Some(busy) => *busy,
                None => {
                    let open_max = self.bounds.open_per_caller_max;
                    let open = index::open_of(view, &waiting.caller, open_max)?;
                    let busy = open.iter().filter(|(_, open)| open.runs).count();
                    running.insert(waiting.caller.clone(), busy);
                    busy
                }
            };
            let most = next.as_ref().map(|(least, _)| *least);
            if busy < most.unwrap_or(self.bounds.running_per_caller_max) {
                next = Some((busy, waiting.id));
            }
            if busy == 0 {
                break;
            }
        }
        next.map_or(Ok(None), |(_, id)| index::load(view, &id))
    }

    /// Notes how far an attempt is. Not forced to the disk: a restart may forget it.
    ///
    /// # Errors
    /// [`JobError::Superseded`] where the attempt is over; [`JobError::Store`].
    pub fn progress(&self, attempt: &Attempt, mut progress: JobProgress) -> Result<(), JobError> {
        if let Some(message) = &mut progress.message {
            cut(message, MESSAGE_BYTES_MAX);
        }
        self.running(attempt, Durability::Deferred, |job| {
            job.progress = progress;
        })
    }

    /// Notes where the next attempt is to go on.
    ///
    /// # Errors
    /// As [`Jobs::progress`], and [`JobError::TooLong`].
    pub fn checkpoint(&self, attempt: &Attempt, checkpoint: Value) -> Result<(), JobError> {
        index::fits(Some(&checkpoint), "checkpoint")?;
        self.running(attempt, Durability::Synced, |job| {
            job.checkpoint = Some(checkpoint);
        })
    }

    /// Notes what is to be known of a job after its end too, as where its output is.
    ///
    /// # Errors
    /// As [`Jobs::progress`], and [`JobError::TooLong`].
    pub fn note(&self, attempt: &Attempt, note: Value) -> Result<(), JobError> {
        index::fits(Some(&note), "note")?;
        self.running(attempt, Durability::Synced, |job| {
            job.note = Some(note);
        })
    }

    fn running(
        &self,
        attempt: &Attempt,
        durability: Durability,
        f: impl FnOnce(&mut Job),
    ) -> Result<(), JobError> {
        self.change(durability, |t| {
            let mut job = held(t, attempt)?;
            f(&mut job);
            index::store(t, &mut job)?;
            Ok(job)
        })?;
        Ok(())
    }

    /// Ends an attempt. A retryable failure puts the job back into the queue while it has retries left and
    /// nobody has cancelled it.
    ///
    /// # Errors
    /// As [`Jobs::progress`]; [`JobError::TooLong`] for a result that cannot be kept, and the job then runs on
    /// until it is ended in another way.
    pub fn finish(&self, attempt: &Attempt, end: End, now_ms: i64) -> Result<Job, JobError> {
        if let End::Succeeded(result) = &end {
            index::fits(Some(result), "result")?;
        }
        self.change(Durability::Synced, |t| {
            let mut job = held(t, attempt)?;
            let state = match end {
                End::Succeeded(result) => {
                    job.result = Some(result);
                    JobState::Succeeded
                }
                End::Retryable(fault) => {
                    job.fault = Some(bounded(fault));
                    if job.attempts <= job.retries_max && !job.cancel_requested {
                        job.state = JobState::Queued;
                        job.attempt_ms = None;
                        index::enter_queue(t, &job)?;
                        index::store(t, &mut job)?;
                        return Ok(job);
                    }
                    JobState::Failed
                }
                End::Failed(fault) => {
                    job.fault = Some(bounded(fault));
                    JobState::Failed
                }
                End::Cancelled => JobState::Cancelled,
                End::TimedOut => JobState::Timeout,
            };
            if state != JobState::Failed {
                // What an earlier attempt failed with is not how it ended.
                job.fault = None;
            }
            self.end(t, &mut job, state, now_ms)?;
            Ok(job)
        })
    }
}

/// A fault of a length that can always be kept: a job must not fail to fail.
fn bounded(mut fault: JobFault) -> JobFault {
    cut(&mut fault.code, LABEL_BYTES_MAX);
    cut(&mut fault.message, MESSAGE_BYTES_MAX);
    let details = serde_json::to_string(&fault.details).map_or(0, |text| text.len());
    if details > DETAILS_BYTES_MAX {
        fault.details = Map::from_iter([("omitted_bytes".to_owned(), details.into())]);
    }
    fault
}

fn cut(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

/// The job of an attempt that is not over.
fn held(view: &impl state::kv::View, attempt: &Attempt) -> Result<Job, JobError> {
    let job = index::load(view, &attempt.id)?.ok_or(JobError::NotFound)?;
    if job.state == JobState::Running && job.attempts == attempt.number {
        Ok(job)
    } else {
        Err(JobError::Superseded { state: job.state })
    }
}
