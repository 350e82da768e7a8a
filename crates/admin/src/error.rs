//! Why an operation could not do its work.

use std::io;
use std::path::PathBuf;

use gate::identity::RingError;
use gate::journal::audit::AuditError;
use gate::journal::{KeysError, RepairError};
use gate::pins::{PinError, PinFault};

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
    /// The public key of the journal cannot be used.
    #[error(transparent)]
    JournalKey(#[from] KeysError),
    /// The journal cannot be repaired.
    #[error(transparent)]
    Repair(RepairError),
    /// No call with this id, or beginning of an id, waits for approval.
    #[error("no call with this id waits for approval")]
    NotWaiting,
    /// Several waiting calls have an id that begins so.
    #[error("several waiting calls have an id that begins so: {}; give more of the id", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// No grant has this id, or beginning of an id.
    #[error("no grant has the id {0}")]
    NoGrant(String),
    /// Several grants have an id that begins so.
    #[error("several grants have an id that begins so: {}; give more of the id", .0.join(", "))]
    AmbiguousGrant(Vec<String>),
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
    /// No running instance could be asked; the sentence says which was meant.
    #[error("{0}")]
    NoInstance(String),
    /// A text that is no page of the result.
    #[error("\"{0}\" is not the cursor of an earlier page")]
    Cursor(String),
    /// A report would have more rows than this.
    #[error("the report would have more than {0} rows; choose a shorter time or fewer dimensions")]
    TooManyRows(usize),
    /// A directory of the state cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The keys of callers cannot be read or changed.
    #[error(transparent)]
    Keys(#[from] RingError),
    /// The kernel gave no random bytes; what was made with them must not be used.
    #[error("no random bytes: {0}")]
    Random(io::Error),
    /// The pins of a server cannot be read or changed.
    #[error(transparent)]
    Pins(#[from] PinError),
    /// No definitions of this server are pinned.
    #[error("no pins of a server called \"{}\"; {}", server.escape_debug(), pinned_servers(known))]
    NoPins {
        /// The server.
        server: String,
        /// Servers with pins.
        known: Vec<String>,
    },
    /// The server never listed this tool.
    #[error("{server} never listed a tool named \"{}\"; see durward pins list {server}", tool.escape_debug())]
    UnknownTool {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// The policy has no such version.
    #[error("there is no version v{number}; {}", latest_version(*latest))]
    NoVersion {
        /// The number.
        number: u64,
        /// The latest one; 0 if there is none.
        latest: u64,
    },
    /// A snapshot is not the text that was recorded.
    #[error("{} is not the text that was recorded", .0.display())]
    Snapshot(PathBuf),
    /// The configuration could not be used, or cannot be edited.
    #[error("{}: {why}", file.display())]
    Configuration {
        /// The file.
        file: PathBuf,
        /// A sentence.
        why: String,
    },
    /// The configuration has no server of this name.
    #[error("durward.yaml has no server \"{0}\"")]
    NoServer(String),
    /// The configuration has a server of this name.
    #[error("durward.yaml has a server \"{0}\" already")]
    ServerExists(String),
    /// No server of this name is archived.
    #[error("no server \"{0}\" is archived; durward servers list --archived shows those that are")]
    NotArchived(String),
    /// Another process uses what the operation would change.
    #[error("{0}")]
    InUse(String),
    /// The caller cancelled the operation.
    #[error("cancelled")]
    Cancelled,
}

fn pinned_servers(known: &[String]) -> String {
    match known {
        [] => "there are none yet; the tools of a server are pinned when a client first lists them"
            .to_owned(),
        known => format!("there are pins of: {}", known.join(", ")),
    }
}

fn latest_version(latest: u64) -> String {
    match latest {
        0 => "none is recorded yet: a start of durward run or durward serve records the first"
            .to_owned(),
        latest => format!("the latest is v{latest}"),
    }
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
    /// Another process uses it; the same request may succeed later.
    InUse,
    /// The request was understood and refused.
    Refused,
    /// The caller ended the operation.
    Cancelled,
}

impl From<RepairError> for AdminError {
    fn from(error: RepairError) -> Self {
        match error {
            RepairError::Audit(error) => Self::Journal(error),
            other => Self::Repair(other),
        }
    }
}

impl AdminError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoJournal(_)
            | Self::NotWaiting
            | Self::NoGrant(_)
            | Self::NoInstance(_)
            | Self::NoVersion { .. }
            | Self::NoServer(_)
            | Self::NotArchived(_)
            | Self::NoPins { .. }
            | Self::UnknownTool { .. }
            | Self::Keys(RingError::NoSuchKey(_))
            | Self::Journal(AuditError::Empty { .. }) => ErrorKind::NotFound,
            Self::Journal(AuditError::Read { error, .. })
                if error.kind() == io::ErrorKind::NotFound =>
            {
                ErrorKind::NotFound
            }
            Self::Journal(AuditError::Cancelled) | Self::Cancelled => ErrorKind::Cancelled,
            Self::Journal(AuditError::Altered { .. })
            | Self::Reply { .. }
            | Self::Cursor(_)
            | Self::Snapshot(_)
            | Self::Configuration { .. }
            | Self::Keys(RingError::Exposed { .. } | RingError::Malformed { .. }) => {
                ErrorKind::Malformed
            }
            Self::Pins(error) => match error.fault() {
                PinFault::Corrupt => ErrorKind::Malformed,
                PinFault::Name => ErrorKind::Refused,
                PinFault::Read | PinFault::Write => ErrorKind::NotReadable,
            },
            Self::Repair(RepairError::InUse { .. }) | Self::InUse(_) => ErrorKind::InUse,
            Self::Journal(_)
            | Self::JournalKey(_)
            | Self::Repair(_)
            | Self::Directory { .. }
            | Self::Write { .. }
            | Self::Keys(RingError::Directory(_) | RingError::Secret(_) | RingError::Read { .. }) => {
                ErrorKind::NotReadable
            }
            Self::Ambiguous(_)
            | Self::AmbiguousGrant(_)
            | Self::ServerExists(_)
            | Self::Refused { .. }
            | Self::TooManyRows(_)
            | Self::Random(_)
            | Self::Keys(_) => ErrorKind::Refused,
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
