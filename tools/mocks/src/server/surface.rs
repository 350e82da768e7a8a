//! What a server offers, apart from the protocol.

use super::Fault;
use std::time::Duration;

/// Who a server says it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Raw text, not JSON.
    pub(crate) instructions: &'static str,
}

/// A tool's answer.
#[derive(Debug)]
pub(crate) struct Called {
    /// The members of the result object, without braces.
    pub(crate) members: String,
    /// How long the tool takes.
    pub(crate) after: Duration,
}

impl Called {
    pub(crate) fn now(members: String) -> Self {
        Self {
            members,
            after: Duration::ZERO,
        }
    }
}

/// Tools, prompts and resources. Lists are JSON arrays; results are members without braces; `arguments`
/// is raw JSON, `{}` when the caller sent none.
pub(crate) trait Surface: Send {
    fn identity(&self) -> Identity;

    fn tools(&mut self) -> String;

    fn call(&mut self, tool: &str, arguments: &str) -> Result<Called, Fault>;

    /// None where the server has no prompts at all.
    fn prompts(&mut self) -> Option<String> {
        None
    }

    fn prompt(&mut self, name: &str, _arguments: &str) -> Result<String, Fault> {
        Err(Fault::InvalidParams(format!("unknown prompt {name}")))
    }

    /// None where the server has no resources at all.
    fn resources(&mut self) -> Option<String> {
        None
    }

    fn templates(&mut self) -> String {
        "[]".into()
    }

    fn read(&mut self, uri: &str) -> Result<String, Fault> {
        Err(Fault::UnknownResource { uri: uri.into() })
    }

    /// The capabilities object, where it is not what tools, prompts and resources make it.
    fn capabilities(&mut self) -> Option<String> {
        None
    }

    /// How long a list may be cached, in milliseconds (Modern only).
    fn ttl_ms(&self) -> u64 {
        60_000
    }

    /// Whether `tools/list` may change within a session.
    fn tools_change(&self) -> bool {
        false
    }
}
