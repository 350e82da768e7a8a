//! Tools, prompts and resources of a server, without the protocol.

use super::RequestFault;
use std::time::Duration;

/// Who a server says it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerIdentity {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Raw text, not JSON.
    pub(crate) instructions: &'static str,
}

/// A tool's answer.
#[derive(Debug)]
pub(crate) struct ToolResult {
    /// The members of the result object, without braces.
    pub(crate) members: String,
    /// How long the tool takes.
    pub(crate) after: Duration,
}

impl ToolResult {
    pub(crate) fn now(members: String) -> Self {
        Self {
            members,
            after: Duration::ZERO,
        }
    }
}

/// Tools, prompts and resources. Lists are JSON arrays; results are members without braces; `arguments`
/// is raw JSON, `{}` when the caller sent none.
pub(crate) trait ServerSurface: Send {
    fn identity(&self) -> ServerIdentity;

    fn tools(&mut self) -> String;

    fn call(&mut self, tool: &str, arguments: &str) -> Result<ToolResult, RequestFault>;

    /// Returns `None` if the server has no prompts at all.
    fn prompts(&mut self) -> Option<String> {
        None
    }

    fn prompt(&mut self, name: &str, _arguments: &str) -> Result<String, RequestFault> {
        Err(RequestFault::InvalidParams(format!(
            "unknown prompt {name}"
        )))
    }

    /// Returns `None` if the server has no resources at all.
    fn resources(&mut self) -> Option<String> {
        None
    }

    fn templates(&mut self) -> String {
        "[]".into()
    }

    fn read(&mut self, uri: &str) -> Result<String, RequestFault> {
        Err(RequestFault::UnknownResource { uri: uri.into() })
    }

    /// Returns the capabilities object, if it is not what tools, prompts and resources make it.
    fn capabilities(&mut self) -> Option<String> {
        None
    }

    /// Returns how long a list may be cached, in milliseconds (Modern only).
    fn ttl_ms(&self) -> u64 {
        60_000
    }

    /// Returns whether `tools/list` may change within a session.
    fn tools_change(&self) -> bool {
        false
    }
}
