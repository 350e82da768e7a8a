//! Failures of an exchange over a blocking connection.

use std::time::Duration;
use std::{fmt, io};

/// A failed exchange, with the bytes that show why.
#[derive(Debug)]
pub enum ExchangeError {
    /// Reading or writing failed.
    Io(io::Error),
    /// The other side closed the connection.
    Closed {
        /// The unfinished head, lossily decoded and cut to 200 characters.
        rest: String,
    },
    /// Nothing came, or nothing was taken, in time.
    Timeout {
        /// What was awaited.
        waiting_for: String,
        /// The limit.
        after: Duration,
    },
    /// The body is longer than the bound.
    TooLong {
        /// The bound in bytes.
        bytes_max: usize,
    },
    /// The bytes are no HTTP/1.1.
    NotHttp {
        /// What is wrong with them.
        reason: String,
    },
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(source) => write!(f, "talking to the server failed: {source}"),
            Self::Closed { rest } => {
                write!(
                    f,
                    "the server closed the connection; unfinished head {rest:?}"
                )
            }
            Self::Timeout { waiting_for, after } => {
                write!(f, "no {waiting_for} within {} ms", after.as_millis())
            }
            Self::TooLong { bytes_max } => {
                write!(f, "the server sent a body of more than {bytes_max} bytes")
            }
            Self::NotHttp { reason } => write!(f, "no HTTP that can be read: {reason}"),
        }
    }
}

impl std::error::Error for ExchangeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(source) => Some(source),
            _ => None,
        }
    }
}

impl From<io::Error> for ExchangeError {
    fn from(source: io::Error) -> Self {
        Self::Io(source)
    }
}

/// Returns the first `chars` characters of some bytes, for a message.
#[must_use]
pub fn excerpt(bytes: &[u8], chars: usize) -> String {
    let bytes = bytes.get(..chars.saturating_mul(4)).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).chars().take(chars).collect()
}
