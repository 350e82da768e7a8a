//! How commands end.

use crate::processes::Aftermath;

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
    /// It was stopped at its time; what it has left.
    TimedOut(Aftermath),
    /// It was stopped because nobody waits for it; what it has left.
    Cancelled(Aftermath),
}

impl End {
    /// What a command that was stopped has left.
    pub fn left(&self) -> Option<&Aftermath> {
        match self {
            Self::TimedOut(left) | Self::Cancelled(left) => Some(left),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn left_mut(&mut self) -> Option<&mut Aftermath> {
        match self {
            Self::TimedOut(left) | Self::Cancelled(left) => Some(left),
            _ => None,
        }
    }
}

/// Why output of a command may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The command was stopped at its time.
    TimedOut,
    /// The command was stopped because nobody waits for it.
    Cancelled,
    /// The connection was lost before the channel was closed.
    ConnectionLost,
    /// The command has ended within its time, and something that it started still has its streams open.
    StreamsOpen,
    /// There was more than is kept.
    OverBound,
}

impl Missing {
    /// As answers name it.
    pub fn label(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::ConnectionLost => "connection_lost",
            Self::StreamsOpen => "streams_open",
            Self::OverBound => "over_bound",
        }
    }

    /// The same as a person reads it.
    pub fn about(self) -> &'static str {
        match self {
            Self::TimedOut => "the command was stopped at its time",
            Self::Cancelled => "the command was cancelled",
            Self::ConnectionLost => "the connection was lost before all output had come",
            Self::StreamsOpen => {
                "the command has ended, and a process that it started still has its output open"
            }
            Self::OverBound => "there was more than is kept",
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "signal {signal}"),
            Self::TimedOut(_) => f.write_str("its time was over"),
            Self::Cancelled(_) => f.write_str("it was closed"),
            Self::Refused => f.write_str("the server refused it a terminal"),
            Self::Unsent => f.write_str("the connection was lost; it did not run"),
            Self::Lost => f.write_str("the connection was lost; it may still run"),
            Self::Untold => f.write_str("the server did not say how"),
        }
    }
}
