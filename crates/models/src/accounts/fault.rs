//! What can be wrong with a request about accounts, and with what keeps them.

use std::fmt;

use http::StatusCode;
use state::{DirectoryError, KvError};

/// Why a request about accounts is refused: a closed set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountFault {
    /// What was sent cannot be read or is no good value.
    Unfit(String),
    /// The name is in use.
    Taken(&'static str),
    /// There is no such thing.
    Absent(&'static str),
    /// Nobody can register by themselves.
    Closed,
    /// There have been too many registrations this minute.
    TooMany {
        /// When there may be another, in milliseconds.
        retry_after_ms: u64,
    },
    /// The caller is no administrator.
    NotAdmin,
    /// The caller has a key of the operator's and no account.
    NoAccount,
    /// There are as many as there may be.
    Full(&'static str),
    /// Something still depends on it.
    InUse(&'static str),
    /// The database cannot be read or written.
    Store,
    /// The journal cannot be written.
    Journal,
}

impl AccountFault {
    /// The closed label.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Unfit(_) => "request_unreadable",
            Self::Taken(_) => "name_taken",
            Self::Absent(_) => "not_found",
            Self::Closed => "registration_closed",
            Self::TooMany { .. } => "rate_limited",
            Self::NotAdmin => "admin_needed",
            Self::NoAccount => "account_needed",
            Self::Full(_) => "accounts_full",
            Self::InUse(_) => "in_use",
            Self::Store => "store_failed",
            Self::Journal => "journal_failed",
        }
    }

    /// How HTTP says it.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unfit(_) => StatusCode::BAD_REQUEST,
            Self::Taken(_) | Self::Full(_) | Self::InUse(_) => StatusCode::CONFLICT,
            Self::Absent(_) => StatusCode::NOT_FOUND,
            Self::Closed | Self::NotAdmin | Self::NoAccount => StatusCode::FORBIDDEN,
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Store | Self::Journal => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl fmt::Display for AccountFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(why) => f.write_str(why),
            Self::Taken(what) => write!(f, "there is a {what} of this name; choose another name"),
            Self::Absent(what) => write!(f, "there is no such {what}"),
            Self::Closed => f.write_str(
                "nobody can register here; an administrator makes accounts (models.accounts.register)",
            ),
            Self::TooMany { .. } => f.write_str("too many have registered this minute"),
            Self::NotAdmin => f.write_str("only an administrator may do this"),
            Self::NoAccount => f.write_str(
                "the key belongs to the operator and to no account; show an account's token",
            ),
            Self::Full(what) => write!(f, "there are as many {what} as there may be"),
            Self::InUse(what) => write!(f, "{what}"),
            Self::Store => f.write_str("the accounts cannot be read or written"),
            Self::Journal => f.write_str("the change could not be written to the journal"),
        }
    }
}

impl std::error::Error for AccountFault {}

impl From<KvError> for AccountFault {
    fn from(error: KvError) -> Self {
        tracing::error!("the accounts: {error}");
        Self::Store
    }
}

/// Why the accounts cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The database.
    Kv(KvError),
    /// The directory of keys.
    Directory(DirectoryError),
    /// A file of a key.
    Keys(gate::journal::KeysError),
    /// An entry cannot be read.
    Entry(&'static str),
    /// The provider keys were sealed with another master key.
    MasterKey,
    /// There is no randomness.
    Random,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kv(error) => write!(f, "{error}"),
            Self::Directory(error) => write!(f, "{error}"),
            Self::Keys(error) => write!(f, "{error}"),
            Self::Entry(table) => write!(
                f,
                "an entry of the table \"{table}\" cannot be read; it was written by another version, or the file is damaged"
            ),
            Self::MasterKey => f.write_str(
                "the provider keys of the accounts were sealed with another master key\n  hint: start with the DURWARD_MASTER_KEY of then, or without one if there was none",
            ),
            Self::Random => f.write_str("there is no randomness"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<KvError> for OpenError {
    fn from(error: KvError) -> Self {
        Self::Kv(error)
    }
}
