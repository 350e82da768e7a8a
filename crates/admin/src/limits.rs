//! Limits on the calls of a caller.

use gate::limits::Limits;
use serde::Serialize;

/// Limits in force, each of one caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LimitsEntry {
    /// Calls and lists, as `50/s`.
    pub requests: String,
    /// How many may come at once.
    pub requests_burst: u32,
    /// Calls of one tool within the window.
    pub tool_calls_max: u32,
    /// The window, in milliseconds.
    pub tool_window_ms: u64,
    /// What happens to a call beyond that: `hitl` or `refuse`.
    pub tool_then: String,
    /// Concurrent calls.
    pub concurrency_max: u32,
    /// Concurrent calls of one tool; null: no bound of its own.
    pub tool_concurrency_max: Option<u32>,
    /// Longest reply that is passed on.
    pub response_bytes_max: u64,
    /// Longest message that is accepted.
    pub request_bytes_max: u64,
    /// Bytes of journal records in a minute; null: derived from `requests`.
    pub journal_bytes_max: Option<u64>,
}

impl From<&Limits> for LimitsEntry {
    fn from(limits: &Limits) -> Self {
        Self {
            requests: limits.requests.to_string(),
            requests_burst: limits.requests_burst,
            tool_calls_max: limits.tool_calls_max,
            tool_window_ms: limits.tool_window_ms,
            tool_then: limits.tool_then.label().to_owned(),
            concurrency_max: limits.under_way_max,
            tool_concurrency_max: limits.tool_under_way_max,
            response_bytes_max: limits.response_bytes_max,
            request_bytes_max: limits.request_bytes_max,
            journal_bytes_max: limits.journal_bytes_max,
        }
    }
}
