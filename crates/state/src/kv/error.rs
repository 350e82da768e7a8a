//! Errors of a database.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::directory::DirectoryError;

/// Error of a read or a transaction.
#[derive(Debug)]
#[non_exhaustive]
pub enum KvError {
    /// Another process, or another handle of this one, has the file open.
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a database, or is damaged.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Finding of the storage layer.
        detail: String,
    },
    /// The operating system reports an error. If a write was lost, the handle takes no more transactions.
    Io {
        /// Action that failed, as a verb.
        action: &'static str,
        /// Error of the operating system.
        error: io::Error,
    },
    /// An earlier write failed, so nothing is known of the file any more; open it again.
    Failed,
    /// A key or a value is longer than its bound.
    TooLong {
        /// `key` or `value`.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The bound in bytes.
        bytes_max: usize,
    },
    /// The directory of the file cannot be made.
    Directory(DirectoryError),
}

impl fmt::Display for KvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { path } => write!(
                f,
                "{} is open in another process; stop it, or use another directory",
                path.display()
            ),
            Self::Corrupt { path, detail } => write!(
                f,
                "{} is not a database or is damaged: {detail}; move it away to start with an empty one",
                path.display()
            ),
            Self::Io { action, error } => write!(f, "cannot {action} the database: {error}"),
            Self::Failed => f.write_str(
                "an earlier write to the database failed, nothing more is written; restart when the cause is gone",
            ),
            Self::TooLong {
                what,
                bytes,
                bytes_max,
            } => write!(f, "the {what} has {bytes} bytes, at most {bytes_max} may be stored"),
            Self::Directory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for KvError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Directory(error) => Some(error),
            Self::Busy { .. } | Self::Corrupt { .. } | Self::Failed | Self::TooLong { .. } => None,
        }
    }
}

impl From<DirectoryError> for KvError {
    fn from(error: DirectoryError) -> Self {
        Self::Directory(error)
    }
}

/// Returns the [`KvError`] of an error of the storage layer during `action`.
pub(super) fn storage(action: &'static str) -> impl FnOnce(redb::StorageError) -> KvError {
    move |error| match error {
        redb::StorageError::Io(error) => KvError::Io { action, error },
        redb::StorageError::PreviousIo | redb::StorageError::DatabaseClosed => KvError::Failed,
        redb::StorageError::ValueTooLarge(bytes) => KvError::TooLong {
            what: "value",
            bytes,
            bytes_max: super::VALUE_BYTES_MAX,
        },
        other => KvError::Corrupt {
            path: PathBuf::new(),
            detail: other.to_string(),
        },
    }
}

/// The same for opening a table inside a transaction.
pub(super) fn table(action: &'static str) -> impl FnOnce(redb::TableError) -> KvError {
    move |error| match error {
        redb::TableError::Storage(error) => storage(action)(error),
        other => KvError::Corrupt {
            path: PathBuf::new(),
            detail: other.to_string(),
        },
    }
}
