//! The kinds of the protocol's own traffic. A leaf: it imports nothing of ours.

/// The protocol's own traffic, which no rule speaks of. Counted, not journalled one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlKind {
    /// Opening a session or asking what a server can do (`initialize`, `server/discover`).
    Handshake,
    /// `ping`.
    Ping,
    /// Listing; what comes back is filtered by the policy.
    List,
    /// Cancelling an open call.
    Cancel,
    /// News about an open call or a list (progress, list-changed, log messages).
    News,
    /// Setting the log level.
    LogLevel,
    /// The peer's message could not be read; telling it so.
    Complaint,
}

impl ControlKind {
    /// All, in order.
    pub const ALL: [Self; 7] = [
        Self::Handshake,
        Self::Ping,
        Self::List,
        Self::Cancel,
        Self::News,
        Self::LogLevel,
        Self::Complaint,
    ];

    /// The label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Ping => "ping",
            Self::List => "list",
            Self::Cancel => "cancel",
            Self::News => "news",
            Self::LogLevel => "log_level",
            Self::Complaint => "complaint",
        }
    }
}
