//! What a job is, and which changes it may go through.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where a job is. Six states, three of them ends beside success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It waits for a worker.
    Queued,
    /// A worker has it.
    Running,
    /// It did what it was asked for.
    Succeeded,
    /// It did not.
    Failed,
    /// Its caller gave it up.
    Cancelled,
    /// It took too long.
    Timeout,
}

impl JobState {
    /// All, in the order of a job's life.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::Timeout,
    ];

    /// The word in results and metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
        }
    }

    /// Whether nothing comes after it.
    #[must_use]
    pub fn is_end(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Timeout => true,
        }
    }

    /// Whether a job may go from this state to that one.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Queued, Self::Running | Self::Cancelled | Self::Timeout | Self::Failed) => true,
            // Back to the queue: tried again after a failure, or after a restart.
            (Self::Running, next) => next != Self::Running,
            _ => false,
        }
    }
}

/// A job's name: opaque, and no secret, since only its caller may use it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub(super) String);

impl JobId {
    /// Takes a name as a caller sends it. Whether there is such a job is seen when it is looked for.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(text.chars().take(64).collect())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What becomes of a job that was running when the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// It has failed, with the code `interrupted`: what it did by then is not known.
    Fail,
    /// It is queued again, with its last checkpoint. Only for what may be done twice.
    Retry,
    /// It goes on elsewhere (such as a process on another host), and its server looks for it.
    Adopt,
}

/// Why a job failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobFault {
    /// A closed label.
    pub code: String,
    /// What was wrong and what to do.
    pub message: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

impl JobFault {
    /// A fault.
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            details: Map::new(),
        }
    }
}

/// How far a job has come.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobProgress {
    /// How much is done.
    pub done: f64,
    /// Of how much, where that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
    /// How much was done already when the present attempt began.
    #[serde(default)]
    pub began: f64,
}

/// A job as it stands in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// Whose it is.
    pub caller: String,
    /// Which worker it is for.
    pub kind: String,
    /// Where it is.
    pub state: JobState,
    /// What it was asked for.
    pub request: Value,
    /// When it was asked for, in milliseconds since 1970.
    pub submitted_ms: i64,
    /// When a worker first took it.
    pub started_ms: Option<i64>,
    /// When the present attempt began.
    pub attempt_ms: Option<i64>,
    /// When it ended.
    pub finished_ms: Option<i64>,
    /// How often a worker took it.
    pub attempts: u32,
    /// How often a failure that may go away is tried again.
    pub retries_max: u32,
    /// How often a restart interrupted it.
    pub interruptions: u32,
    /// How long one attempt may take.
    pub timeout_ms: Option<u64>,
    /// What a restart means for it.
    pub recovery: Recovery,
    /// Its caller wants it to end.
    pub cancel_requested: bool,
    /// How far it is.
    pub progress: JobProgress,
    /// Where the next attempt goes on; the worker's own.
    pub checkpoint: Option<Value>,
    /// What its worker has noted; kept after the end, however that came.
    #[serde(default)]
    pub note: Option<Value>,
    /// Its result, or where that is.
    pub result: Option<Value>,
    /// Why it failed.
    pub fault: Option<JobFault>,
    /// The caller's key against doing the same twice.
    pub idempotency_key: Option<String>,
    /// Grows with every change.
    pub version: u64,
}

impl Job {
    /// How long it will still take at the speed of the present attempt, in milliseconds. `None` where it does not run, or
    /// where nothing is known of its speed yet.
    #[must_use]
    pub fn left_ms(&self, now_ms: i64) -> Option<f64> {
        let progress = &self.progress;
        let total = progress.total.filter(|_| self.state == JobState::Running)?;
        #[expect(
            clippy::cast_precision_loss,
            reason = "a span in milliseconds is far below 2^53"
        )]
        let took_ms = now_ms.checked_sub(self.attempt_ms?)?.max(0) as f64;
        let left_ms = took_ms * (total - progress.done) / (progress.done - progress.began);
        (progress.done > progress.began && left_ms.is_finite()).then_some(left_ms.max(0.0))
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// Whose it will be.
    pub caller: String,
    /// Which worker it is for.
    pub kind: &'static str,
    /// What it is asked for, with defaults filled in.
    pub request: Value,
    /// How long one attempt may take.
    pub timeout_ms: Option<u64>,
    /// How often a failure that may go away is tried again.
    pub retries_max: u32,
    /// What a restart means for it.
    pub recovery: Recovery,
    /// The caller's key against doing the same twice.
    pub idempotency_key: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// With this result.
    Succeeded(Value),
    /// With this fault; it may go away by itself, so the job is queued again while it has retries left.
    Retryable(JobFault),
    /// With this fault, which stays.
    Failed(JobFault),
    /// Its worker stopped because the job was cancelled.
    Cancelled,
    /// Its worker stopped because the time was up.
    TimedOut,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_on_disk_and_ends_are_ends() {
        for state in JobState::ALL {
            let json = serde_json::to_value(state).unwrap();
            assert_eq!(json, state.label());
            let onward = JobState::ALL.iter().any(|next| state.may_become(*next));
            assert_eq!(onward, !state.is_end(), "{state:?}");
        }
    }
}
