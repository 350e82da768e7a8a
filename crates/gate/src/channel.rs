//! Where a person's answer may come from. A leaf: it imports nothing of ours.

use serde::Serialize;

/// Where an answer may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// A person at a terminal of the same user.
    Cli,
    /// The calling client's own person: only where a rule says so, because a client that answers for
    /// itself is no second person.
    Client,
    /// The web console.
    Console,
}

impl Channel {
    /// All, in the order of the reference.
    pub const ALL: [Self; 3] = [Self::Cli, Self::Client, Self::Console];
    /// Who may answer where a rule does not say.
    pub const DEFAULT: [Self; 2] = [Self::Cli, Self::Console];

    /// The word used in policies and in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Client => "client",
            Self::Console => "console",
        }
    }
}
