//! What becomes of a server's reply, whichever way it came.

use gate::journal::{ResponseSummary, Status};
use gate::{Gate, Outcome};
use wire::jsonrpc::member;
use wire::{Bounds, scan_reply, scan_request};

use crate::frames::{self, Failure, UpstreamFault};
use crate::listing::{self, Listed};
use crate::method::List;

/// How a call ended whose reply this is.
#[must_use]
pub fn outcome(gate: &Gate, frame: &[u8], is_error: bool, payload: &str) -> Outcome {
    let tool_error = !is_error && payload.contains("\"isError\"") && says_is_error(payload);
    Outcome {
        status: if is_error || tool_error {
            Status::Failure
        } else {
            Status::Success
        },
        error_code: if is_error {
            frames::error_code(payload)
        } else {
            None
        },
        reason: tool_error.then_some("tool_error"),
        response: Some(ResponseSummary {
            size_bytes: u64::try_from(frame.len()).unwrap_or(u64::MAX),
            body_hash: Some(gate.digest(payload.as_bytes())),
        }),
    }
}

/// Whether a reply may be passed on.
///
/// # Errors
/// What its caller is told where it is longer than the limit in force, and what is recorded of it.
pub fn within_bound(gate: &Gate, frame: &[u8]) -> Result<(), (Failure, ResponseSummary)> {
    let limit_bytes = gate.limits().response_bytes_max;
    let size_bytes = u64::try_from(frame.len()).unwrap_or(u64::MAX);
    if size_bytes <= limit_bytes {
        return Ok(());
    }
    let failure = UpstreamFault::TooLarge.because(format!(
        "{size_bytes} bytes, and at most {limit_bytes} are passed on"
    ));
    let summary = ResponseSummary {
        size_bytes,
        body_hash: None,
    };
    Err((failure, summary))
}

/// A list, checked as strictly as a request: what is shown must be what was judged. `None` where
/// the result holds no list.
///
/// # Errors
/// A sentence, where the reply is not a list of this kind: it is then not passed on.
pub fn list<'p>(
    list: List,
    frame: &[u8],
    payload: &'p str,
) -> Result<Option<Listed<'p>>, &'static str> {
    scan_request(frame, &Bounds::default()).map_err(|fault| fault.message)?;
    listing::read(list, payload)
}

/// Whether a tool's result says of itself that it is an error.
fn says_is_error(payload: &str) -> bool {
    scan_reply(payload.as_bytes(), &Bounds::default())
        .is_ok_and(|scan| member(&scan.members, "isError") == Some("true"))
}
