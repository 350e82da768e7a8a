//! How a refusal looks in each dialect: one table, without a row left out.
//!
//! A new reason does not compile until every dialect says how it shows it; a new dialect is another function
//! of this kind, and another column of `docs/reference/reasons.md`.

use gate::{Reason, Refusal};
use http::StatusCode;
use serde_json::Value;

use crate::server::Failure;

/// The code of JSON-RPC for a refusal by the gate: outside of −32768 to −32000, which JSON-RPC reserves, as
/// SDKs give codes in there meanings of their own (−32001 is a request that timed out).
const REFUSED: i32 = -31_001;

/// The error code of JSON-RPC under which MCP clients are refused.
#[must_use]
pub fn mcp_error(reason: Reason) -> i32 {
    match reason {
        Reason::DenyRule
        | Reason::NoRule
        | Reason::ProtectedPath
        | Reason::ArgumentsUnread
        | Reason::Undecidable
        | Reason::ApprovalDenied
        | Reason::ApprovalTimeout
        | Reason::ApprovalWithdrawn
        | Reason::ApprovalQueueFull
        | Reason::ApprovalTooManyWaiting
        | Reason::ApprovalTooManyAsked
        | Reason::ApprovalUnreachable
        | Reason::ApprovalUnfit
        | Reason::ApprovalTooLate
        | Reason::FactsChanged
        | Reason::CallerRevoked
        | Reason::DefinitionChanged
        | Reason::PinsUnreadable
        | Reason::UnseenName
        | Reason::Address
        | Reason::UnknownTool
        | Reason::Inspected
        | Reason::Unchecked
        | Reason::Journal
        | Reason::Draining
        | Reason::RateLimit
        | Reason::ToolRateLimit
        | Reason::JournalBytesLimit
        | Reason::BudgetSpent
        | Reason::BudgetUnavailable
        | Reason::PlaceUnsettled
        | Reason::ReadingQueueFull
        | Reason::UnderWayLimit => REFUSED,
    }
}

/// The status under which clients of faces over plain HTTP are refused (RFC 9110; 429: RFC 6585).
#[must_use]
pub fn http_status(reason: Reason) -> StatusCode {
    match reason {
        Reason::DenyRule
        | Reason::NoRule
        | Reason::ProtectedPath
        | Reason::ArgumentsUnread
        | Reason::Undecidable
        | Reason::ApprovalDenied
        | Reason::ApprovalTimeout
        | Reason::ApprovalWithdrawn
        | Reason::ApprovalUnreachable
        | Reason::ApprovalUnfit
        | Reason::ApprovalTooLate
        | Reason::FactsChanged
        | Reason::DefinitionChanged
        | Reason::UnseenName
        | Reason::Address
        | Reason::UnknownTool
        | Reason::Inspected => StatusCode::FORBIDDEN,
        Reason::ApprovalQueueFull
        | Reason::ApprovalTooManyWaiting
        | Reason::ApprovalTooManyAsked
        | Reason::RateLimit
        | Reason::ToolRateLimit
        | Reason::JournalBytesLimit
        | Reason::BudgetSpent
        | Reason::PlaceUnsettled
        | Reason::ReadingQueueFull
        | Reason::UnderWayLimit => StatusCode::TOO_MANY_REQUESTS,
        Reason::CallerRevoked => StatusCode::UNAUTHORIZED,
        Reason::PinsUnreadable
        | Reason::Unchecked
        | Reason::Journal
        | Reason::BudgetUnavailable
        | Reason::Draining => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The failure that a built-in tool answers with where what became known inside its call was refused; its
/// code is the reason's label.
#[must_use]
pub fn tool_failure(refusal: &Refusal) -> Failure {
    let mut failure = Failure::new(refusal.reason.label(), refusal.to_string());
    failure.retryable = refusal.reason.is_retryable();
    if !refusal.final_rule.is_empty() {
        failure = failure.with("rule", refusal.final_rule.as_str());
    }
    match refusal.retry_after_ms {
        Some(ms) => failure.with("retry_after_ms", Value::from(ms)),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_later_is_no_plain_no() {
        for reason in Reason::ALL {
            let status = http_status(reason);
            let busy = matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            );
            // A person who did not answer may answer the next time, and is no limit.
            let asked = reason == Reason::ApprovalTimeout;
            assert!(!reason.is_retryable() || busy || asked, "{reason:?}");
            assert!(status.is_client_error() || status.is_server_error());
        }
    }
}
