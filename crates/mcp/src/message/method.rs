//! The table of methods: what each is to the gate, what names its target, what happens to its reply.

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

/// What happens to a reply before its client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// It passes.
    Plain,
    /// Revision and capabilities are learned from it, its instructions are screened.
    Initialize,
    /// Its instructions are screened.
    Discover,
}

/// Whether a request may be sent again that may have been worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Never.
    Never,
    /// Working on it twice does no harm.
    Always,
    /// Where its tool says so of itself.
    AsToolSays,
}

/// A method of the protocol.
#[derive(Debug)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// What happens to a request of a client.
    pub class: Class,
    /// The parameter that names what it reaches for; repeated in a header by the Modern era.
    pub named_by: Option<&'static str>,
    /// Whether it may be sent again.
    pub repeat: Repeat,
    /// What happens to its reply.
    pub treatment: Treatment,
    /// Whether the Modern era has it.
    pub is_modern: bool,
    /// Whether it lasts until one side ends it.
    pub is_endless: bool,
}

const BASE: Method = Method {
    name: "",
    class: Class::Judged(Some(ResourceType::Server)),
    named_by: None,
    repeat: Repeat::Never,
    treatment: Treatment::Plain,
    is_modern: true,
    is_endless: false,
};

const fn list(name: &'static str, list: List) -> Method {
    Method {
        name,
        class: Class::List(list),
        repeat: Repeat::Always,
        ..BASE
    }
}

/// What is not in the table is judged as reaching for the server, so that a new method is refused
/// until a rule names it.
const METHODS: [Method; 16] = [
    Method {
        name: "initialize",
        class: Class::Control(ControlKind::Handshake),
        treatment: Treatment::Initialize,
        is_modern: false,
        ..BASE
    },
    Method {
        name: "server/discover",
        class: Class::Control(ControlKind::Handshake),
        repeat: Repeat::Always,
        treatment: Treatment::Discover,
        ..BASE
    },
    Method {
        name: "ping",
        class: Class::Control(ControlKind::Ping),
        repeat: Repeat::Always,
        is_modern: false,
        ..BASE
    },
    Method {
        name: "logging/setLevel",
        class: Class::Control(ControlKind::LogLevel),
        repeat: Repeat::Always,
        is_modern: false,
        ..BASE
    },
    list("tools/list", List::Tools),
    list("resources/list", List::Resources),
    list("resources/templates/list", List::Templates),
    list("prompts/list", List::Prompts),
    Method {
        name: "tools/call",
        class: Class::Judged(Some(ResourceType::Tool)),
        named_by: Some("name"),
        repeat: Repeat::AsToolSays,
        ..BASE
    },
    Method {
        name: "resources/read",
        class: Class::Judged(Some(ResourceType::Resource)),
        named_by: Some("uri"),
        repeat: Repeat::Always,
        ..BASE
    },
    Method {
        name: "resources/subscribe",
        class: Class::Judged(Some(ResourceType::Resource)),
        is_modern: false,
        ..BASE
    },
    Method {
        name: "resources/unsubscribe",
        class: Class::Judged(Some(ResourceType::Resource)),
        is_modern: false,
        ..BASE
    },
    Method {
        name: "prompts/get",
        class: Class::Judged(Some(ResourceType::Prompt)),
        named_by: Some("name"),
        repeat: Repeat::Always,
        ..BASE
    },
    Method {
        name: "completion/complete",
        class: Class::Judged(None),
        repeat: Repeat::Always,
        ..BASE
    },
    Method {
        name: "subscriptions/listen",
        is_endless: true,
        ..BASE
    },
    Method {
        name: "notifications/initialized",
        class: Class::Judged(Some(ResourceType::Server)),
        is_modern: false,
        ..BASE
    },
];

/// What is known of a method; of one that is not in the table, what holds for all of those.
#[must_use]
pub fn of(name: &str) -> &'static Method {
    METHODS
        .iter()
        .find(|method| method.name == name)
        .unwrap_or(&BASE)
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

/// What happens to a notification of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Passes uncontested.
    Control(ControlKind),
    /// Is judged: what a server does on it only the server knows.
    Judged,
    /// It is none, and not passed on: a call without an id would slip by otherwise.
    Foreign,
}

/// Classifies a notification of a client.
#[must_use]
pub fn of_client_notification(method: &str) -> Notice {
    match method {
        "notifications/initialized" => Notice::Control(ControlKind::Handshake),
        CANCELLED => Notice::Control(ControlKind::Cancel),
        PROGRESS | "notifications/roots/list_changed" | "notifications/tasks/status" => {
            Notice::Control(ControlKind::News)
        }
        other if other.starts_with(NEWS) => Notice::Judged,
        _ => Notice::Foreign,
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

/// How the names of notifications begin.
pub const NEWS: &str = "notifications/";
/// Withdraws a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Tells how a call goes on.
pub const PROGRESS: &str = "notifications/progress";

/// Tells that a server's tools are others.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// A resource that somebody has subscribed to is another one.
pub const UPDATED: &str = "notifications/resources/updated";

/// Whether a notification may be dropped when the client reads too slowly.
#[must_use]
pub fn is_droppable(method: &str) -> bool {
    matches!(method, PROGRESS | "notifications/message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_method_is_judged() {
        for name in ["tools/Call", "tools/call ", "", "tasks/get"] {
            let class = of(name).class;
            assert_eq!(class, Class::Judged(Some(ResourceType::Server)), "{name}");
            assert_eq!(of(name).repeat, Repeat::Never, "{name}");
        }
    }

    #[test]
    fn a_notification_that_is_not_of_the_protocol_is_judged() {
        for name in [
            "notifications/vendor/run",
            "notifications/Progress",
            "notifications/cancelled ",
            "notifications/",
        ] {
            assert_eq!(of_client_notification(name), Notice::Judged, "{name}");
        }
        for name in ["tools/call", "", "notification/progress"] {
            assert_eq!(of_client_notification(name), Notice::Foreign, "{name}");
        }
    }

    #[test]
    fn each_method_stands_once() {
        for (at, method) in METHODS.iter().enumerate() {
            let first = METHODS.iter().position(|m| m.name == method.name);
            assert_eq!(first, Some(at), "{}", method.name);
        }
    }
}
