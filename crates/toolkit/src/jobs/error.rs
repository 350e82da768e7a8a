//! Why something was not done with a job.

use std::fmt;

use state::KvError;

use super::job::{JobId, JobState};

/// Why something was not done with a job.
#[derive(Debug)]
pub enum JobError {
    /// There is no such job, or it is another caller's.
    NotFound,
    /// The key was used for another request before.
    Conflict {
        /// The job that has the key.
        job: JobId,
    },
    /// This caller has as many jobs under way as may be.
    CallerFull {
        /// How many.
        open_max: usize,
    },
    /// All callers together have as many jobs under way as may be.
    Full {
        /// How many.
        open_max: usize,
    },
    /// A part of the job is longer than may be kept.
    TooLong {
        /// Which.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The bound in bytes.
        bytes_max: usize,
    },
    /// The attempt is over: the job is in another state by now, or another worker has it.
    Superseded {
        /// Where the job is.
        state: JobState,
    },
    /// The database.
    Store(KvError),
}

impl JobError {
    /// The closed label.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::NotFound => "job_not_found",
            Self::Conflict { .. } => "idempotency_conflict",
            Self::CallerFull { .. } => "too_many_jobs_of_caller",
            Self::Full { .. } => "too_many_jobs",
            Self::TooLong { .. } => "job_too_long",
            Self::Superseded { .. } => "job_superseded",
            Self::Store(_) => "job_store_failed",
        }
    }

    /// Whether the same may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::CallerFull { .. } | Self::Full { .. } => true,
            Self::NotFound
            | Self::Conflict { .. }
            | Self::TooLong { .. }
            | Self::Superseded { .. }
            | Self::Store(_) => false,
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("there is no such job; it may have been removed since"),
            Self::Conflict { job } => write!(
                f,
                "the idempotency key was used for another request, which is job {job}; use a new key for a new request"
            ),
            Self::CallerFull { open_max } => write!(
                f,
                "{open_max} jobs of this caller are under way, which is as many as may be; wait until one has ended"
            ),
            Self::Full { open_max } => write!(
                f,
                "{open_max} jobs are under way, which is as many as may be; try again later"
            ),
            Self::TooLong {
                what,
                bytes,
                bytes_max,
            } => write!(
                f,
                "the job's {what} has {bytes} bytes, at most {bytes_max} are kept"
            ),
            Self::Superseded { state } => {
                write!(f, "the attempt is over, the job is {}", state.label())
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for JobError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl From<KvError> for JobError {
    fn from(error: KvError) -> Self {
        Self::Store(error)
    }
}
