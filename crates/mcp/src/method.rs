//! What each method is: the protocol's own traffic, or something to be judged.

use gate::ControlKind;
use gate::facts::ResourceType;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Passes uncontested.
    Control(ControlKind),
    /// Passes, and its reply is filtered.
    List(List),
    /// Is judged, as reaching for this.
    Judged(Option<ResourceType>),
}

/// The four lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum List {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `prompts/list`
    Prompts,
}

impl List {
    /// The member of the result that holds the list.
    #[must_use]
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// What one entry is called in messages.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Resources => "resource",
            Self::Templates => "resource template",
            Self::Prompts => "prompt",
        }
    }
}

/// Classifies a request of a client. What is not known to be the protocol's own traffic is judged,
/// so that a new method is refused until a rule names it.
#[must_use]
pub fn of_client_request(method: &str) -> Class {
    match method {
        "initialize" | "server/discover" => Class::Control(ControlKind::Handshake),
        "ping" => Class::Control(ControlKind::Ping),
        "logging/setLevel" => Class::Control(ControlKind::LogLevel),
        "tools/list" => Class::List(List::Tools),
        "resources/list" => Class::List(List::Resources),
        "resources/templates/list" => Class::List(List::Templates),
        "prompts/list" => Class::List(List::Prompts),
        "tools/call" => Class::Judged(Some(ResourceType::Tool)),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            Class::Judged(Some(ResourceType::Resource))
        }
        "prompts/get" => Class::Judged(Some(ResourceType::Prompt)),
        "completion/complete" => Class::Judged(None),
        _ => Class::Judged(Some(ResourceType::Server)),
    }
}

/// Classifies a notification of a client. `None`: no notification of MCP, not passed on (a call
/// without an id would otherwise slip by).
#[must_use]
pub fn of_client_notification(method: &str) -> Option<ControlKind> {
    match method {
        "notifications/initialized" => Some(ControlKind::Handshake),
        "notifications/cancelled" => Some(ControlKind::Cancel),
        other => other
            .starts_with("notifications/")
            .then_some(ControlKind::News),
    }
}

/// Classifies a request of a server to its client.
#[must_use]
pub fn of_server_request(method: &str) -> Class {
    match method {
        "ping" => Class::Control(ControlKind::Ping),
        _ => Class::Judged(None),
    }
}

/// Whether a notification may be dropped when the client reads too slowly.
#[must_use]
pub fn is_droppable(method: &str) -> bool {
    matches!(method, "notifications/progress" | "notifications/message")
}
