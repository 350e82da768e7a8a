//! Why a command ends otherwise than it was meant to, and with which exit code.

use admin::ErrorKind;
use gate::identity::RingError;

/// Wrong configuration.
pub const EXIT_CONFIGURATION: u8 = 16;
/// The journal failed, or the state directory cannot be used; nothing was forwarded after that.
pub const EXIT_JOURNAL: u8 = 10;

/// The issuer at which people sign in cannot be reached.
pub const EXIT_ISSUER_UNREACHABLE: u8 = 12;
/// Nobody is signed in, or the sign-in has ended.
pub const EXIT_NOT_SIGNED_IN: u8 = 13;
/// Another person has signed in than the one whom the session belongs to.
pub const EXIT_IDENTITY_CHANGED: u8 = 15;

/// Commands that end with the same exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandFamily {
    /// `logs` and `audit`.
    Journal,
    /// `approvals`.
    Approvals,
    /// `status`.
    Status,
    /// `pins`.
    Pins,
    /// `keys`.
    Keys,
    /// `reload`.
    Reload,
    /// `policy`.
    Policy,
    /// `servers`.
    Servers,
}

/// Returns the exit code of a command for an error of an operation: the one table of them.
pub const fn exit_code(family: CommandFamily, kind: ErrorKind) -> u8 {
    use CommandFamily::{Approvals, Journal, Keys, Pins, Policy, Reload, Servers, Status};
    use ErrorKind::{Cancelled, InUse, Malformed, NotFound, NotReadable, Refused};
    match (family, kind) {
        (Approvals, NotFound | Refused) | (Servers, NotFound | Refused | InUse) => 1,
        (Keys, NotReadable) => EXIT_JOURNAL,
        (Keys, NotFound | Malformed | InUse | Refused | Cancelled)
        | (Policy, Malformed | Refused)
        | (Servers, Malformed) => EXIT_CONFIGURATION,
        (Approvals, NotReadable | Malformed | InUse | Cancelled)
        | (Policy, NotFound | NotReadable | InUse | Cancelled)
        | (Servers, NotReadable | Cancelled)
        | (
            Journal | Status | Pins | Reload,
            NotFound | NotReadable | Malformed | InUse | Refused | Cancelled,
        ) => 2,
    }
}

/// Why a run could not start or had to end.
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// For people.
    pub message: String,
}

impl Failure {
    pub fn configuration(message: impl Into<String>) -> Self {
        Self {
            code: EXIT_CONFIGURATION,
            message: message.into(),
        }
    }

    /// The same, saying first what it is about.
    pub fn about(self, what: &str) -> Self {
        Self {
            code: self.code,
            message: format!("{what}: {}", self.message),
        }
    }

    pub fn journal(message: impl std::fmt::Display) -> Self {
        Self {
            code: EXIT_JOURNAL,
            message: message.to_string(),
        }
    }

    /// Keys that cannot be opened: where they have no place, the journal has none either.
    pub fn of_keys(error: &RingError) -> Self {
        match error {
            RingError::Directory(_) | RingError::Secret(_) | RingError::Read { .. } => {
                Self::journal(error)
            }
            _ => Self::configuration(error.to_string()),
        }
    }

    pub fn other(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            message: message.into(),
        }
    }
}
