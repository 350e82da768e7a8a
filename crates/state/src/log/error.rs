//! Why a log no longer takes records.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Why an append, a check or a sync failed. Every variant but [`LogError::TooLarge`] is final for its log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogError {
    /// No room: the disk, the quota or the file size limit is exhausted. The partial record was cut off again.
    Full,
    /// The path no longer names a file.
    Unlinked,
    /// The path names another file than the one that was opened.
    Replaced,
    /// The file is shorter than its records.
    Truncated {
        /// Length that the file should have, in bytes.
        expected_bytes: u64,
        /// Length that it has, in bytes.
        found_bytes: u64,
    },
    /// The file is longer than its records: another process wrote to it.
    Grown {
        /// Length that the file should have, in bytes.
        expected_bytes: u64,
        /// Length that it has, in bytes.
        found_bytes: u64,
    },
    /// The file has the right length and other contents than were written to it.
    Edited,
    /// Another writer holds the file.
    Locked,
    /// The record is larger than a log takes; the log itself is unharmed.
    TooLarge {
        /// Size of the record, in bytes.
        record_bytes: usize,
        /// Largest size taken, in bytes.
        record_bytes_max: usize,
    },
    /// A write failed half-way and the part could not be cut off again: the last line of the file is torn.
    Torn {
        /// Error of the write.
        cause: Arc<LogError>,
    },
    /// An earlier failure ended this log.
    Poisoned {
        /// That failure.
        cause: Arc<LogError>,
    },
    /// The operating system refused.
    Io {
        /// Action that failed, as a verb.
        action: &'static str,
        /// The kind of refusal.
        kind: io::ErrorKind,
        /// Error number of the operating system, if there is one.
        code: Option<i32>,
    },
}

impl LogError {
    /// The error that a later append meets because of this one.
    #[must_use]
    pub fn poison(&self) -> LogError {
        match self {
            LogError::Poisoned { .. } => self.clone(),
            other => LogError::Poisoned {
                cause: Arc::new(other.clone()),
            },
        }
    }

    /// The first failure, looking through [`LogError::Poisoned`] and [`LogError::Torn`].
    #[must_use]
    pub fn root(&self) -> &LogError {
        match self {
            LogError::Poisoned { cause } | LogError::Torn { cause } => cause.root(),
            other => other,
        }
    }

    pub(crate) fn from_io(action: &'static str, error: &io::Error) -> LogError {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => LogError::Full,
            kind => LogError::Io {
                action,
                kind,
                code: error.raw_os_error(),
            },
        }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Full => f.write_str(
                "no room left for the log: free disk space or raise the file size limit",
            ),
            LogError::Unlinked => {
                f.write_str("the log file was removed while it was being written")
            }
            LogError::Replaced => {
                f.write_str("the log file was replaced by another file while it was being written")
            }
            LogError::Truncated {
                expected_bytes,
                found_bytes,
            } => {
                write!(
                    f,
                    "the log file was cut from {expected_bytes} to {found_bytes} bytes by somebody else"
                )
            }
            LogError::Grown {
                expected_bytes,
                found_bytes,
            } => {
                write!(
                    f,
                    "the log file grew from {expected_bytes} to {found_bytes} bytes by another writer"
                )
            }
            LogError::Edited => {
                f.write_str("the log file was edited by somebody else while it was being written")
            }
            LogError::Locked => f.write_str("another process is writing this log file"),
            LogError::TooLarge {
                record_bytes,
                record_bytes_max,
            } => {
                write!(
                    f,
                    "a record of {record_bytes} bytes is larger than the {record_bytes_max} that a log takes"
                )
            }
            LogError::Torn { cause } => write!(f, "the last line of the log is torn: {cause}"),
            LogError::Poisoned { cause } => {
                write!(f, "the log has failed and takes nothing more: {cause}")
            }
            LogError::Io { action, kind, code } => {
                write!(f, "cannot {action} the log file: {kind}")?;
                code.map_or(Ok(()), |code| write!(f, " (os error {code})"))
            }
        }
    }
}

impl std::error::Error for LogError {}
