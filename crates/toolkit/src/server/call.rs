//! A call that was let through, as its tool gets it.

use std::sync::Arc;

use gate::journal::OpId;
use serde_json::{Map, Value};

use super::arguments::Args;

/// The session that a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRef {
    /// Its id.
    pub id: Arc<str>,
    /// Who calls, by the name in rules and records. What is kept between calls belongs to this name.
    pub caller: Arc<str>,
}

/// A tool call that the gate has let through. Nobody but this crate makes one, and only out of a spent pass;
/// it cannot be copied.
#[must_use = "a call that is dropped is not made"]
#[derive(Debug)]
pub struct ToolCall {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) session: SessionRef,
    pub(crate) op: OpId,
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

    /// The call's name in the journal.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.op
    }
}
