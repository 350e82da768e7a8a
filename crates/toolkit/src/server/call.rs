//! A call that was let through, as its tool gets it.

use std::sync::Arc;

use gate::journal::OpId;
use serde_json::{Map, Value};

use super::arguments::Args;

/// The session that a call belongs to. Two are the same where id and caller are: the rest is what was known of the caller
/// when it called.
#[derive(Debug, Clone)]
pub struct SessionRef {
    /// Its id.
    pub id: Arc<str>,
    /// Who calls, by the name in rules and records. What is kept between calls belongs to this name.
    pub caller: Arc<str>,
    /// The groups that an authenticator has found the caller in. What a server keeps for one of them stays theirs, whatever the
    /// rules let through.
    pub groups: Arc<[Arc<str>]>,
    /// Whether its caller has to leave room for others, who may have keys as well.
    pub shares: bool,
}

impl PartialEq for SessionRef {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.caller == other.caller
    }
}

impl Eq for SessionRef {}

/// A tool call that the gate has let through. Nobody but this crate makes one, and only out of a spent pass;
/// it cannot be copied.
///
/// ```
/// fn answer(call: toolkit::server::ToolCall) -> String {
///     call.tool().to_owned()
/// }
/// ```
///
/// It is not made outside:
///
/// ```compile_fail,E0451
/// fn make(session: toolkit::server::SessionRef) -> toolkit::server::ToolCall {
///     toolkit::server::ToolCall {
///         tool: "echo",
///         arguments: Default::default(),
///         session,
///         op: gate::journal::OpId(0),
///     }
/// }
/// ```
///
/// And it is used once:
///
/// ```compile_fail,E0382
/// fn twice(call: toolkit::server::ToolCall) {
///     drop(call);
///     drop(call);
/// }
/// ```
#[must_use = "a call that is dropped is not made"]
#[derive(Debug)]
pub struct ToolCall {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) session: SessionRef,
    pub(crate) op: OpId,
    pub(crate) shown: Option<String>,
    pub(crate) bound: Option<Arc<str>>,
}

impl ToolCall {
    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        self.tool
    }

    /// Its arguments, as they were judged, with defaults.
    #[must_use]
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.arguments)
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionRef {
        &self.session
    }

    /// The `digest` of what a person was shown of this very call ([`super::ToolServer::preview`]); none where nobody was
    /// asked.
    #[must_use]
    pub fn shown(&self) -> Option<&str> {
        self.shown.as_deref()
    }

    /// What was judged of the fact that the tool's definition [binds](super::ToolDef::binds); none where it was absent or
    /// not known.
    #[must_use]
    pub fn bound(&self) -> Option<&str> {
        self.bound.as_deref()
    }

    /// The call's name in the journal.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.op
    }
}
