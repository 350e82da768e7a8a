//! The program itself.

use serde::Serialize;

use super::OpId;

/// A record about the program: start, stop, a child that died, a backend that is gone. The events of the journal itself
/// (`segment_opened`, `segment_closed`, `segment_retired`, `checkpoint`) are refused here.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct System<'a> {
    /// What happened.
    pub event: &'a str,
    /// `info`, `warning` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<&'a str>,
    /// The part of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<&'a str>,
    /// A sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    /// The closed label of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// The sort of error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<&'a str>,
    /// The error in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<&'a str>,
    /// The call concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<OpId>,
    /// The session concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    /// The server concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_id: Option<&'a str>,
    /// Exit code, where something ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}
