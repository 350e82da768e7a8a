//! A request that is rendered once; only its id changes.

use crate::error::LabError;
use serde_json::{Value, json};
use std::io::Write as _;

/// The protocol revision spoken to every variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProtocolRevision {
    /// `initialize`, then the session.
    #[value(name = "2025-11-25")]
    Legacy,
    /// No handshake; every request carries its revision.
    #[value(name = "2026-07-28")]
    Modern,
}

/// The kind of request that is timed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TimedOperation {
    /// `tools/call` of a tool with arguments.
    Call {
        /// The tool.
        tool: String,
        /// Its arguments, an object.
        arguments: Value,
    },
    /// `tools/list`.
    List,
}

/// A request, rendered but for its id.
#[derive(Debug)]
pub(crate) struct RenderedRequest {
    name: String,
    tail: Vec<u8>,
}

const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

impl ProtocolRevision {
    /// Its name on the wire.
    pub(crate) fn revision(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }

    /// Returns the first request of a connection.
    pub(crate) fn hello(self) -> RenderedRequest {
        match self {
            Self::Legacy => RenderedRequest::new(
                "initialize",
                &json!({
                    "protocolVersion": self.revision(),
                    "capabilities": {},
                    "clientInfo": { "name": "durward-lab", "version": env!("CARGO_PKG_VERSION") },
                }),
            ),
            Self::Modern => {
                RenderedRequest::new("server/discover", &json!({ "_meta": self.meta() }))
            }
        }
    }

    /// Returns the notification that ends a handshake.
    pub(crate) fn ready(self) -> Option<&'static [u8]> {
        match self {
            Self::Legacy => {
                Some(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
            }
            Self::Modern => None,
        }
    }

    fn meta(self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": self.revision(),
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo":
                { "name": "durward-lab", "version": env!("CARGO_PKG_VERSION") },
        })
    }
}

impl TimedOperation {
    /// Returns a call of a tool. Arguments are an object.
    pub(crate) fn call(tool: &str, arguments: Value) -> Result<Self, LabError> {
        if !arguments.is_object() {
            return Err(LabError::Usage("--tool-args is not a JSON object".into()));
        }
        Ok(Self::Call {
            tool: tool.into(),
            arguments,
        })
    }

    /// Returns the same call of a tool by another name.
    pub(crate) fn with_tool(&self, other: &str) -> Self {
        match self {
            Self::Call { arguments, .. } => Self::Call {
                tool: other.into(),
                arguments: arguments.clone(),
            },
            Self::List => Self::List,
        }
    }

    /// Its request in a revision.
    pub(crate) fn question(&self, protocol: ProtocolRevision) -> RenderedRequest {
        let (method, mut params) = match self {
            Self::Call { tool, arguments } => (
                "tools/call",
                json!({ "name": tool, "arguments": arguments }),
            ),
            Self::List => ("tools/list", json!({})),
        };
        if protocol == ProtocolRevision::Modern
            && let Some(members) = params.as_object_mut()
        {
            members.insert("_meta".into(), protocol.meta());
        }
        RenderedRequest::new(method, &params)
    }

    /// Returns the tool, if its name may be in a header unchanged.
    pub(crate) fn tool(&self) -> Option<&str> {
        match self {
            Self::Call { tool, .. } => {
                let plain = tool.bytes().all(|b| b.is_ascii_graphic());
                plain.then_some(tool.as_str())
            }
            Self::List => None,
        }
    }

    /// Its method and tool: what calls of one kind share.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Call { tool, .. } => format!("tools/call {tool}"),
            Self::List => "tools/list".into(),
        }
    }

    /// In words, for reports.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Call { tool, arguments } => format!("tools/call {tool} {arguments}"),
            Self::List => "tools/list".into(),
        }
    }
}

impl RenderedRequest {
    fn new(method: &str, params: &Value) -> Self {
        let tail = format!(r#","method":"{method}","params":{params}}}"#) + "\n";
        Self {
            name: method.into(),
            tail: tail.into_bytes(),
        }
    }

    /// Returns the method.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the length of its frame with the longest id, in bytes.
    pub(super) fn length(&self) -> usize {
        HEAD.len() + 20 + self.tail.len()
    }

    /// Writes the frame with this id over what was in the buffer.
    pub(crate) fn render(&self, id: u64, into: &mut Vec<u8>) {
        into.clear();
        into.extend_from_slice(HEAD);
        // Writing to a vector does not fail.
        let _ = write!(into, "{id}");
        into.extend_from_slice(&self.tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_one_line_of_json_with_the_id() {
        let call = TimedOperation::Call {
            tool: "echo".into(),
            arguments: json!({ "text": "a\nb" }),
        };
        for protocol in [ProtocolRevision::Legacy, ProtocolRevision::Modern] {
            let mut frame = b"old".to_vec();
            call.question(protocol).render(42, &mut frame);
            assert_eq!(frame.iter().filter(|b| **b == b'\n').count(), 1);
            let value: Value = serde_json::from_slice(&frame).unwrap();
            assert_eq!(value["id"], 42);
            assert_eq!(value["params"]["arguments"]["text"], "a\nb");
            assert_eq!(
                value["params"]["_meta"].is_object(),
                protocol == ProtocolRevision::Modern
            );
        }
    }
}
