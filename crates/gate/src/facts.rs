//! The vocabulary in which a face states what a call is about.
//!
//! A fact is [`Fact::Known`], [`Fact::Absent`] (the call has no such thing) or [`Fact::Unknown`]
//! (it may have one, nobody can say). Listing a tool is judging a call whose arguments are unknown.

use std::sync::Arc;

use crate::identity::Caller;
use crate::paths::PathArgument;
use crate::pins::Quarantine;

/// A fact in three-valued logic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fact<T> {
    /// It is this.
    Known(T),
    /// It may be anything.
    Unknown,
    /// There is none.
    #[default]
    Absent,
}

impl<T> Fact<T> {
    /// The value, where it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown | Self::Absent => None,
        }
    }

    /// Whether nobody can say.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

impl<T> From<Option<T>> for Fact<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Known)
    }
}

/// Who asks whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// A client asks a server.
    #[default]
    ToServer,
    /// A server asks the client (sampling, elicitation, roots).
    ToClient,
}

impl Direction {
    /// The word used in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ToServer => "to_server",
            Self::ToClient => "to_client",
        }
    }
}

/// What a call reaches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceType {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A prompt.
    Prompt,
    /// The server itself.
    Server,
}

impl ResourceType {
    /// All, in the order of the reference.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Resource, Self::Prompt, Self::Server];

    /// The word used in policies and in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Server => "server",
        }
    }
}

/// What is known of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Who asks whom.
    pub direction: Direction,
    /// The protocol's method, as on the wire.
    pub method: String,
    /// The tool's raw name.
    pub tool_name: Fact<String>,
    /// The server that the call goes to.
    pub backend_id: String,
    /// What the call reaches for.
    pub resource_type: Option<ResourceType>,
    /// The resource's URI.
    pub uri: Fact<String>,
    /// Who calls.
    pub subject_id: String,
    /// Everything in the arguments that is or may be a path.
    pub paths: Fact<Vec<PathArgument>>,
    /// The digest of the tool's definition, as its server listed it last.
    pub definition: Fact<Arc<str>>,
    /// Set where the tool may not be shown or called, whatever the policy says.
    pub quarantine: Option<Quarantine>,
}

impl Facts {
    /// States who calls: what an authenticator has found, not what a face has written.
    pub(crate) fn state_caller(&mut self, caller: &Caller) {
        if *self.subject_id != *caller.subject {
            caller.subject.as_ref().clone_into(&mut self.subject_id);
        }
    }
}
