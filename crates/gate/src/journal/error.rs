//! Why the journal refuses, and what that means for the call at hand.

use std::fmt;
use std::io;
use std::path::PathBuf;

use state::{DirectoryError, LogError};

/// Why the journal could not be opened or a record not be written. A call whose record is refused does not go through.
#[derive(Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// The log beneath has failed; the journal takes nothing more.
    Log(LogError),
    /// The directory could not be prepared or locked.
    Directory(DirectoryError),
    /// A segment could not be read while looking for one to continue.
    Read {
        /// The segment's file.
        path: PathBuf,
        /// The refusal.
        error: io::Error,
    },
    /// The directory holds more segments than one journal takes.
    TooManySegments {
        /// Largest number of segments taken.
        segments_max: usize,
    },
    /// The head beside the keys could not be kept.
    Head {
        /// The head's file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The witness did not take the first head.
    Witness {
        /// What it is called.
        name: String,
        /// The refusal.
        error: io::Error,
    },
    /// The record is larger than a line may be; the journal itself is unharmed.
    TooLarge {
        /// Size of the record's body, in bytes.
        body_bytes: usize,
        /// Largest size taken, in bytes.
        body_bytes_max: usize,
    },
    /// The record's event is one that only the journal itself writes; the journal itself is unharmed.
    ReservedEvent,
    /// The record could not be turned into JSON; the journal itself is unharmed.
    Unwritable,
    /// The journal was closed.
    Closed,
    /// An earlier failure ended this journal.
    Failed {
        /// That failure, in words.
        cause: String,
    },
}

impl JournalError {
    /// Whether the journal is over: nothing will be written any more, so nothing may be forwarded any more (exit 10).
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        !matches!(
            self,
            JournalError::TooLarge { .. } | JournalError::ReservedEvent | JournalError::Unwritable
        )
    }

    /// The closed reason label of this error: metric label, journal field and documented code at once.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            JournalError::Log(error) => match error.root() {
                LogError::Full => "journal_full",
                LogError::Unlinked => "journal_unlinked",
                LogError::Replaced => "journal_replaced",
                LogError::Truncated { .. } => "journal_truncated",
                LogError::Grown { .. } => "journal_foreign_write",
                LogError::Edited => "journal_edited",
                LogError::Locked => "journal_locked",
                _ => "journal_io",
            },
            JournalError::Directory(_) | JournalError::Read { .. } => "journal_directory",
            JournalError::TooManySegments { .. } => "journal_segments",
            JournalError::Head { .. } => "journal_head",
            JournalError::Witness { .. } => "journal_witness",
            JournalError::TooLarge { .. } => "journal_record_too_large",
            JournalError::ReservedEvent => "journal_reserved_event",
            JournalError::Unwritable => "journal_record_unwritable",
            JournalError::Closed => "journal_closed",
            JournalError::Failed { .. } => "journal_failed",
        }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalError::Log(error) => write!(f, "journal: {error}"),
            JournalError::Directory(error) => write!(f, "journal: {error}"),
            JournalError::Read { path, error } => {
                write!(f, "journal: cannot read {}: {error}", path.display())
            }
            JournalError::TooManySegments { segments_max } => write!(
                f,
                "journal: the directory has more than {segments_max} segments; move old ones away"
            ),
            JournalError::Head { path, problem } => {
                write!(f, "journal: its head {} {problem}", path.display())
            }
            JournalError::Witness { name, error } => {
                write!(f, "journal: the witness {name} takes no head: {error}")
            }
            JournalError::TooLarge {
                body_bytes,
                body_bytes_max,
            } => write!(
                f,
                "journal: a record of {body_bytes} bytes is larger than the {body_bytes_max} that fit a line"
            ),
            JournalError::ReservedEvent => {
                f.write_str("journal: this event name is reserved for the journal itself")
            }
            JournalError::Unwritable => {
                f.write_str("journal: the record cannot be written as json")
            }
            JournalError::Closed => f.write_str("journal: closed"),
            JournalError::Failed { cause } => {
                write!(
                    f,
                    "journal: it failed earlier and accepts nothing more: {cause}"
                )
            }
        }
    }
}

impl std::error::Error for JournalError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JournalError::Log(error) => Some(error),
            JournalError::Directory(error) => Some(error),
            JournalError::Read { error, .. } | JournalError::Witness { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<LogError> for JournalError {
    fn from(error: LogError) -> Self {
        JournalError::Log(error)
    }
}

impl From<DirectoryError> for JournalError {
    fn from(error: DirectoryError) -> Self {
        JournalError::Directory(error)
    }
}
