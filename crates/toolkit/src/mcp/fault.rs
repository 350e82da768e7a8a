//! Requests that get an error of the protocol instead of a result.

use serde_json::{Value, json};
use wire::{Revision, WireError};

use super::Dialect;
use super::exchange::Reply;
use crate::server::ResourceFault;

/// The revision of the Modern era that is spoken.
pub(super) const MODERN: Revision = Revision::V2026_07_28;

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fault {
    Unreadable(WireError),
    NotOpened,
    UnknownMethod(String),
    UnknownTool(String),
    Params(String),
    Revision(String),
    /// A resource, by its URI, that could not be listed or read.
    Resource(ResourceFault, String),
}

impl Fault {
    /// JSON-RPC 2.0 section 5.1; -32022 is MCP's (2026-07-28).
    fn code(&self) -> i32 {
        match self {
            Self::Unreadable(error) => error.kind.code(),
            Self::NotOpened => -32_600,
            Self::UnknownMethod(_) => -32_601,
            Self::UnknownTool(_) | Self::Params(_) => -32_602,
            Self::Revision(_) => -32_022,
            Self::Resource(ResourceFault::Missing(_) | ResourceFault::Unfit(_), _) => -32_602,
            Self::Resource(ResourceFault::Failed(_), _) => -32_603,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Unreadable(error) => error.to_string(),
            Self::NotOpened => "the session is not initialized; send initialize first".into(),
            Self::UnknownMethod(method) => format!("unknown method {method}"),
            Self::UnknownTool(tool) => format!("unknown tool {tool}"),
            Self::Params(wrong) => wrong.clone(),
            Self::Revision(asked) => {
                format!(
                    "unsupported protocol version {asked}; use {}",
                    MODERN.name()
                )
            }
            Self::Resource(ResourceFault::Missing(wrong) | ResourceFault::Unfit(wrong), _) => {
                wrong.clone()
            }
            Self::Resource(ResourceFault::Failed(failure), _) => failure.message.clone(),
        }
    }

    /// The whole error response to a request in this dialect: a resource that is not there has a code of its own in the
    /// Legacy era, and that of wrong parameters since 2026-07-28 (SEP-2164).
    pub(super) fn frame_for(&self, id: &str, dialect: Dialect) -> Reply {
        let code = match self {
            Self::Resource(ResourceFault::Missing(_), _) if !dialect.is_modern() => -32_002,
            _ => self.code(),
        };
        let mut error = json!({"code": code, "message": self.message()});
        if let Some(members) = error.as_object_mut() {
            members.extend(self.data().map(|data| ("data".to_owned(), data)));
        }
        Reply::new(id, "error", &error)
    }

    /// What programs read of it beside its code.
    fn data(&self) -> Option<Value> {
        match self {
            Self::Revision(asked) => {
                Some(json!({"supported": [MODERN.name()], "requested": asked}))
            }
            Self::Resource(ResourceFault::Failed(failure), _) => Some(failure.json()),
            Self::Resource(_, uri) if !uri.is_empty() => Some(json!({"uri": uri})),
            _ => None,
        }
    }

    /// The whole error response; `id` is raw JSON.
    pub(super) fn frame(&self, id: &str) -> Reply {
        self.frame_for(id, Dialect(MODERN))
    }
}

/// A whole response with this result; `id` is raw JSON.
pub(super) fn result(id: &str, result: &Value) -> Reply {
    Reply::new(id, "result", result)
}

impl Dialect {
    /// Whether this revision has titles, output schemas and structured results (since 2025-06-18).
    pub(super) fn is_structured(self) -> bool {
        self.0 >= Revision::V2025_06_18
    }

    /// Whether this revision has tool annotations (since 2025-03-26).
    pub(super) fn is_annotated(self) -> bool {
        self.0 >= Revision::V2025_03_26
    }

    /// Whether this is the Modern era.
    pub(super) fn is_modern(self) -> bool {
        self.0.era() == wire::Era::Modern
    }
}
