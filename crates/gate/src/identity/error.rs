//! What can be wrong with a key, and with the file of keys.

use std::fmt;
use std::io;
use std::path::PathBuf;

use state::DirectoryError;

use super::token_fault::TokenFault;
use crate::journal::KeysError;
use crate::label::{ClosedSet, Explained};

/// Why nobody is let in: a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdentityFault {
    /// A key is needed and none was given.
    Missing,
    /// What was given is no key of ours.
    Unknown,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
    /// It is good, but not for this server.
    OutOfScope,
    /// Without keys: another user of this machine.
    OtherUser,
    /// Without keys: it cannot be known whose process calls.
    UserUnknown,
    /// More than one credential, or one that is not readable.
    Ambiguous,
    /// An access token of an issuer is not accepted.
    Token(TokenFault),
}

impl IdentityFault {
    /// All but those of tokens, in the order of the reference page; tokens have [`TokenFault::ALL`].
    pub const ALL: [Self; 8] = [
        Self::Missing,
        Self::Unknown,
        Self::Expired,
        Self::Revoked,
        Self::OutOfScope,
        Self::OtherUser,
        Self::UserUnknown,
        Self::Ambiguous,
    ];

    /// The closed label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Missing => "key_missing",
            Self::Unknown => "key_unknown",
            Self::Expired => "key_expired",
            Self::Revoked => "key_revoked",
            Self::OutOfScope => "key_out_of_scope",
            Self::OtherUser => "other_user",
            Self::UserUnknown => "user_unknown",
            Self::Ambiguous => "credential_ambiguous",
            Self::Token(fault) => fault.label(),
        }
    }

    /// One sentence for the caller. It does not say whether a key that is no longer good once was.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Missing => {
                "a key is needed: send Authorization: Bearer KEY with a key of `durward keys create`"
            }
            Self::Unknown | Self::Expired | Self::Revoked => {
                "the key is not valid here; ask the operator of this server for another"
            }
            Self::OutOfScope => "the key is not valid for this server",
            Self::OtherUser => {
                "this server answers only processes of its own user; others need a key (durward keys create)"
            }
            Self::UserUnknown => {
                "a key is needed: it is not known which user's process calls, and without keys only processes of this server's own user are answered"
            }
            Self::Ambiguous => {
                "the request has more than one Authorization header, or one that cannot be read; send exactly one"
            }
            Self::Token(fault) => fault.sentence(),
        }
    }
}

impl ClosedSet for IdentityFault {
    const EVERY: &'static [Self] = &Self::ALL;

    fn word(self) -> &'static str {
        self.label()
    }
}

impl Explained for IdentityFault {
    fn sentence(self) -> &'static str {
        Self::sentence(self)
    }
}

/// Why the keys cannot be read or changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RingError {
    /// The key directory.
    Directory(DirectoryError),
    /// The secret of the digests.
    Secret(KeysError),
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The refusal.
        error: io::Error,
    },
    /// Other users can read the file.
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The file is not what it should be.
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The name is in use.
    Taken(String),
    /// There is no key of this name.
    NoSuchKey(String),
    /// The key was revoked; it cannot be used again.
    Revoked(String),
    /// The key's time is over; another text would be as little good.
    Expired(String),
    /// There are too many keys.
    Full,
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(error) => write!(f, "keys: {error}"),
            Self::Secret(error) => write!(f, "{error}"),
            Self::Read { path, error } => {
                write!(f, "keys: cannot read {}: {error}", path.display())
            }
            Self::Exposed { path } => write!(
                f,
                "keys: {0} is readable by other users; run chmod 600 {0}",
                path.display()
            ),
            Self::Malformed { path } => write!(
                f,
                "keys: {} is not a list of keys; restore it, or remove it to start without keys",
                path.display()
            ),
            Self::Taken(name) => write!(
                f,
                "a key called \"{name}\" exists already; revoke or rotate it, or choose another name"
            ),
            Self::NoSuchKey(name) => {
                write!(
                    f,
                    "no key is called \"{name}\"; `durward keys list` shows all"
                )
            }
            Self::Revoked(name) => {
                write!(f, "the key \"{name}\" was revoked; create a new one")
            }
            Self::Expired(name) => {
                write!(
                    f,
                    "the key \"{name}\" has expired; rotate it with --expires SPAN"
                )
            }
            Self::Full => f.write_str("there are 1,000 keys already; revoke some first"),
        }
    }
}

impl std::error::Error for RingError {}

impl From<DirectoryError> for RingError {
    fn from(error: DirectoryError) -> Self {
        Self::Directory(error)
    }
}

impl From<KeysError> for RingError {
    fn from(error: KeysError) -> Self {
        Self::Secret(error)
    }
}
