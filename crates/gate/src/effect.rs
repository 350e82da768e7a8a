//! What becomes of a call. A leaf: it imports nothing of ours.

/// What a rule does with a call that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effect {
    /// Lets it pass.
    Allow,
    /// Refuses it.
    #[default]
    Deny,
    /// Asks a person.
    Hitl,
}

impl Effect {
    /// All, in the order of the reference.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Deny, Self::Hitl];

    /// The word used in policies and in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Hitl => "hitl",
        }
    }
}
