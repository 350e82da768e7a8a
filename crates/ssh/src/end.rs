//! How commands end.

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// With this code.
    Exited(u32),
    /// By this signal.
    Signalled(String),
    /// The server closed the channel without saying how.
    Untold,
    /// The server refused to run it: it did not run.
    Refused,
    /// The connection was lost before it was sent: it did not run.
    Unsent,
    /// The connection was lost: it may have run, and may still run.
    Lost,
    /// It was stopped at its time; whether its end was seen.
    TimedOut { seen: bool },
    /// It was stopped because nobody waits for it; whether its end was seen.
    Cancelled { seen: bool },
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "signal {signal}"),
            Self::TimedOut { .. } => f.write_str("its time was over"),
            Self::Cancelled { .. } => f.write_str("it was closed"),
            Self::Refused => f.write_str("the server refused it a terminal"),
            Self::Unsent => f.write_str("the connection was lost; it did not run"),
            Self::Lost => f.write_str("the connection was lost; it may still run"),
            Self::Untold => f.write_str("the server did not say how"),
        }
    }
}
