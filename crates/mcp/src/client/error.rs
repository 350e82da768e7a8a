//! Why the raw client could not do what it was told.

use std::{fmt, io, time::Duration};

use net::blocking::ExchangeError;

/// A failed exchange, with what was seen.
#[derive(Debug)]
pub enum ClientError {
    /// The program could not be started.
    Spawn {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// Reading from or writing to the server failed.
    Io(io::Error),
    /// The server closed its output.
    Closed {
        /// What it had written of an unfinished line, lossily decoded and cut to 200 characters.
        rest: String,
        /// The end of its standard error, cut to 2,000 characters.
        stderr: String,
    },
    /// Nothing came, or nothing was taken, in time.
    Timeout {
        /// What was awaited.
        waiting_for: String,
        /// How long.
        after: Duration,
    },
    /// The server sent a line longer than the bound.
    LineTooLong {
        /// The bound in bytes.
        bytes_max: usize,
    },
    /// A line is no JSON-RPC message.
    NotAMessage {
        /// What is wrong with it.
        reason: String,
        /// The line, lossily decoded and cut to 200 characters.
        line: String,
    },
    /// A response to something else.
    WrongId {
        /// The id that was sent, as spelled.
        expected: String,
        /// The id that came.
        received: String,
        /// The whole line.
        line: String,
    },
    /// Too many messages came while a response was awaited.
    Flooded {
        /// The bound.
        messages: usize,
    },
    /// A handshake was answered with an error or an unusable result.
    Handshake {
        /// What came.
        line: String,
    },
    /// What came is no HTTP/1.1 as a client can read it.
    NotHttp {
        /// What is wrong with it.
        reason: String,
    },
    /// A status instead of a response.
    Status {
        /// The status.
        status: u16,
        /// The body, lossily decoded and cut to 200 characters.
        body: String,
    },
    /// A second response to one request.
    Twice {
        /// The second.
        line: String,
    },
    /// An error response where a result was needed.
    Refused {
        /// The JSON-RPC code.
        code: i64,
        /// Its message.
        message: String,
    },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawn { program, source } => write!(f, "cannot start {program}: {source}"),
            Self::Io(source) => write!(f, "talking to the server failed: {source}"),
            Self::Closed { rest, stderr } => write!(
                f,
                "the server closed its output; unfinished line {rest:?}; standard error {stderr:?}"
            ),
            Self::Timeout { waiting_for, after } => {
                write!(f, "no {waiting_for} within {} ms", after.as_millis())
            }
            Self::LineTooLong { bytes_max } => {
                write!(f, "the server sent a line of more than {bytes_max} bytes")
            }
            Self::NotAMessage { reason, line } => {
                write!(f, "a line is not a message: {reason}: {line}")
            }
            Self::WrongId {
                expected,
                received,
                line,
            } => write!(
                f,
                "expected the response to {expected}, received one to {received}: {line}"
            ),
            Self::Flooded { messages } => write!(
                f,
                "more than {messages} other messages came before the response"
            ),
            Self::Handshake { line } => write!(f, "the handshake failed: {line}"),
            Self::NotHttp { reason } => write!(f, "no HTTP that can be read: {reason}"),
            Self::Status { status, body } => write!(f, "status {status}: {body}"),
            Self::Twice { line } => write!(f, "a second response came: {line}"),
            Self::Refused { code, message } => write!(f, "error response {code}: {message}"),
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spawn { source, .. } | Self::Io(source) => Some(source),
            _ => None,
        }
    }
}

impl From<io::Error> for ClientError {
    fn from(source: io::Error) -> Self {
        Self::Io(source)
    }
}

impl From<ExchangeError> for ClientError {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Io(source) => Self::Io(source),
            ExchangeError::Closed { rest } => Self::Closed {
                rest,
                stderr: String::new(),
            },
            ExchangeError::Timeout { waiting_for, after } => Self::Timeout { waiting_for, after },
            ExchangeError::TooLong { bytes_max } => Self::LineTooLong { bytes_max },
            ExchangeError::NotHttp { reason } => Self::NotHttp { reason },
        }
    }
}
