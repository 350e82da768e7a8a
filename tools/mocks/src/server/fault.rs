//! Errors of requests that a server cannot serve, with the code of each kind of revision.

use super::era::{MODERN_VERSION, RevisionKind};
use crate::json::quote;

/// A request that gets an error instead of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestFault {
    Unreadable(String),
    InvalidRequest(String),
    UnknownMethod(String),
    InvalidParams(String),
    UnknownResource {
        uri: String,
    },
    UnsupportedVersion {
        requested: String,
    },
    /// The request names one thing and the headers that mirror it another.
    HeaderMismatch(String),
    /// The request needs a capability, by name, that the client did not declare.
    MissingCapability(&'static str),
    Internal(String),
}

impl RequestFault {
    /// JSON-RPC 2.0 §5.1; -32002 became -32602 with 2026-07-28, which also brought -32020 to -32022.
    fn code(&self, era: RevisionKind) -> i32 {
        match self {
            Self::Unreadable(_) => -32700,
            Self::InvalidRequest(_) => -32600,
            Self::UnknownMethod(_) => -32601,
            Self::InvalidParams(_) => -32602,
            Self::UnknownResource { .. } => match era {
                RevisionKind::Legacy(_) => -32002,
                RevisionKind::Modern => -32602,
            },
            Self::HeaderMismatch(_) => -32020,
            Self::MissingCapability(_) => -32021,
            Self::UnsupportedVersion { .. } => -32022,
            Self::Internal(_) => -32603,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Unreadable(text)
            | Self::InvalidRequest(text)
            | Self::InvalidParams(text)
            | Self::HeaderMismatch(text)
            | Self::Internal(text) => text.clone(),
            Self::UnknownMethod(method) => format!("unknown method {method}"),
            Self::UnknownResource { uri } => format!("unknown resource {uri}"),
            Self::MissingCapability(name) => {
                format!("the client did not declare the capability {name}")
            }
            Self::UnsupportedVersion { requested } => {
                format!("unsupported protocol version {requested}; use {MODERN_VERSION}")
            }
        }
    }

    fn data(&self) -> Option<String> {
        match self {
            Self::UnsupportedVersion { requested } => Some(format!(
                r#"{{"supported":["{MODERN_VERSION}"],"requested":{}}}"#,
                quote(requested)
            )),
            Self::UnknownResource { uri } => Some(format!(r#"{{"uri":{}}}"#, quote(uri))),
            Self::MissingCapability(name) => {
                Some(format!(r#"{{"requiredCapabilities":{{"{name}":{{}}}}}}"#))
            }
            Self::Unreadable(_)
            | Self::InvalidRequest(_)
            | Self::UnknownMethod(_)
            | Self::InvalidParams(_)
            | Self::HeaderMismatch(_)
            | Self::Internal(_) => None,
        }
    }

    /// Returns the whole error response; `id` is raw JSON.
    pub(crate) fn frame(&self, id: &str, era: RevisionKind) -> Vec<u8> {
        let data = self
            .data()
            .map(|data| format!(r#","data":{data}"#))
            .unwrap_or_default();
        let (code, message) = (self.code(era), quote(&self.message()));
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}{data}}}}}"#
        )
        .into_bytes()
    }
}
