//! Why a connection or a channel is not there.

use std::fmt;

/// Why no connection could be made. Without anything secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectFault {
    /// A closed label, in `snake_case`.
    pub code: &'static str,
    /// What was wrong and what to do, lowercase.
    pub wrong: String,
    /// Whether it may succeed later without anybody changing anything.
    pub retryable: bool,
}

impl ConnectFault {
    pub fn new(code: &'static str, wrong: impl Into<String>) -> Self {
        Self {
            code,
            wrong: wrong.into(),
            retryable: false,
        }
    }

    pub fn retryable(self) -> Self {
        Self {
            retryable: true,
            ..self
        }
    }
}

impl fmt::Display for ConnectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.wrong)
    }
}

impl From<russh::Error> for ConnectFault {
    fn from(error: russh::Error) -> Self {
        match error {
            russh::Error::NoCommonAlgo { kind, theirs, .. } => Self::new(
                "no_common_algorithm",
                format!(
                    "the server and this client share no {kind:?} algorithm; it offers {}",
                    theirs.join(", ")
                ),
            ),
            russh::Error::IO(error) => {
                Self::new("unreachable", format!("the connection failed: {error}")).retryable()
            }
            russh::Error::Disconnect | russh::Error::HUP => {
                Self::new("unreachable", "the server closed the connection").retryable()
            }
            russh::Error::KeepaliveTimeout | russh::Error::ConnectionTimeout => {
                Self::new("unreachable", "the server stopped answering").retryable()
            }
            other => Self::new("protocol", format!("the connection failed: {other}")).retryable(),
        }
    }
}

/// Why a connection has no channel for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenFault {
    /// The server takes no more channels on this connection.
    Full,
    /// The connection is gone.
    Lost,
    /// The server says no to every channel.
    Refused(String),
}

impl From<russh::Error> for OpenFault {
    fn from(error: russh::Error) -> Self {
        use russh::ChannelOpenFailure as Failure;
        match error {
            // OpenSSH says `connect failed` (2) where MaxSessions is reached, others `resource shortage`.
            russh::Error::ChannelOpenFailure(
                Failure::ConnectFailed | Failure::ResourceShortage,
            ) => Self::Full,
            russh::Error::ChannelOpenFailure(other) => Self::Refused(format!("{other:?}")),
            _ => Self::Lost,
        }
    }
}
