//! Why an operation could not do its work.

use std::io;
use std::path::PathBuf;

use gate::journal::audit::AuditError;

/// Error of an operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// No journal was ever begun in this directory.
    #[error("there is no journal yet at {}", .0.display())]
    NoJournal(PathBuf),
    /// The journal cannot be read, or something in it is malformed.
    #[error(transparent)]
    Journal(#[from] AuditError),
    /// No call with this id, or beginning of an id, waits for approval.
    #[error("no call with this id waits for approval")]
    NotWaiting,
    /// Several waiting calls have an id that begins so.
    #[error("several waiting calls have an id that begins so: {}; give more of the id", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// A running instance refused the request.
    #[error("{message}")]
    Refused {
        /// A closed label.
        label: String,
        /// A sentence.
        message: String,
    },
    /// A running instance did what it was asked for, and its reply cannot be read.
    #[error("{} has done it, but its reply cannot be read: {error}", socket.display())]
    Reply {
        /// Control socket of the instance.
        socket: PathBuf,
        /// Why not.
        error: serde_json::Error,
    },
    /// A text that is no page of the result.
    #[error("\"{0}\" is not the cursor of an earlier page")]
    Cursor(String),
    /// A report would have more rows than this.
    #[error("the report would have more than {0} rows; choose a shorter time or fewer dimensions")]
    TooManyRows(usize),
}

/// Kinds of errors, for exit codes and statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// There is nothing of this name, or nothing yet.
    NotFound,
    /// A file, a directory or an instance cannot be read.
    NotReadable,
    /// It exists and is not as it should be; the message names the place.
    Malformed,
    /// The request was understood and refused.
    Refused,
}

impl AdminError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoJournal(_) | Self::NotWaiting => ErrorKind::NotFound,
            Self::Journal(AuditError::Empty { .. }) => ErrorKind::NotFound,
            Self::Journal(AuditError::Read { error, .. })
                if error.kind() == io::ErrorKind::NotFound =>
            {
                ErrorKind::NotFound
            }
            Self::Journal(AuditError::Altered { .. }) | Self::Reply { .. } | Self::Cursor(_) => {
                ErrorKind::Malformed
            }
            Self::Journal(_) => ErrorKind::NotReadable,
            Self::Ambiguous(_) | Self::Refused { .. } | Self::TooManyRows(_) => ErrorKind::Refused,
        }
    }

    /// Returns the label under which a running instance, or the operation, refused; empty for other kinds.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Refused { label, .. } => label,
            Self::Ambiguous(_) => "ambiguous",
            Self::NotWaiting => "unknown",
            _ => "",
        }
    }
}
