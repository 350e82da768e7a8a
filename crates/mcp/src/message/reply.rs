//! What becomes of a server's reply, whichever way it came.

use std::ops::Range;

use gate::journal::{ResponseSummary, Status};
use gate::{ClosedSet, Gate, Outcome};
use wire::jsonrpc::{Envelope, Kind, member};
use wire::{Bounds, scan_reply};

use super::frames::{self, Failure, UpstreamFault};
use super::splice;

/// The member of a tool's result that says that it failed.
pub const IS_ERROR: &str = "isError";

/// An answer and where its parts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The frame as it came.
    pub frame: Vec<u8>,
    /// Where its id stands.
    pub id: Range<usize>,
    /// Where `result` or `error` stands.
    pub payload: Range<usize>,
    /// Whether it is an error.
    pub is_error: bool,
    /// Whether it is a tool's result that says of itself that it is an error.
    pub is_tool_error: bool,
}

impl Reply {
    /// Finds the parts; `None` where the frame is no answer with an id.
    #[must_use]
    pub fn read(frame: Vec<u8>) -> Option<Self> {
        let (id, payload, is_error, is_tool_error) = {
            let scan = scan_reply(&frame, &Bounds::default()).ok()?;
            let envelope = Envelope::of(&scan).ok()?;
            let Kind::Response { id, is_error } = envelope.kind else {
                return None;
            };
            let is_tool_error = !is_error && member(&scan.reply, IS_ERROR) == Some("true");
            (
                place(&frame, id?.raw())?,
                place(&frame, envelope.payload?)?,
                is_error,
                is_tool_error,
            )
        };
        Some(Self {
            frame,
            id,
            payload,
            is_error,
            is_tool_error,
        })
    }

    /// The frame with its id as its client spelled it, and another result where one is given; a copy only where it changes.
    #[must_use]
    pub fn respelled(self, id: &str, result: Option<&str>) -> Vec<u8> {
        let spelled = self.frame.get(self.id.clone()) == Some(id.as_bytes());
        if spelled && result.is_none() {
            return self.frame;
        }
        let mut edits = vec![(self.id.clone(), id.as_bytes())];
        if let Some(result) = result {
            edits.push((self.payload.clone(), result.as_bytes()));
        }
        splice::edited(&self.frame, &mut edits)
    }

    /// `result` or `error` as it came.
    #[must_use]
    pub fn payload(&self) -> &str {
        self.frame
            .get(self.payload.clone())
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .unwrap_or_default()
    }
}

/// Where a slice of a frame stands in it.
#[must_use]
pub fn place(frame: &[u8], part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(frame.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (end <= frame.len()).then_some(start..end)
}

/// What a reply may say against itself, beyond an error of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unhappy {
    /// The tool says that it failed.
    ToolError,
}

impl ClosedSet for Unhappy {
    const EVERY: &'static [Self] = &[Self::ToolError];

    fn word(self) -> &'static str {
        match self {
            Self::ToolError => "tool_error",
        }
    }
}

/// How a call ended whose reply this is.
#[must_use]
pub fn outcome(gate: &Gate, reply: &Reply) -> Outcome {
    let payload = reply.payload();
    Outcome {
        status: if reply.is_error || reply.is_tool_error {
            Status::Failure
        } else {
            Status::Success
        },
        error_code: if reply.is_error {
            frames::error_code(payload)
        } else {
            None
        },
        reason: reply.is_tool_error.then(|| Unhappy::ToolError.into()),
        response: Some(ResponseSummary {
            size_bytes: u64::try_from(reply.frame.len()).unwrap_or(u64::MAX),
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
        "{size_bytes} bytes; at most {limit_bytes} are passed on"
    ));
    let summary = ResponseSummary {
        size_bytes,
        body_hash: None,
    };
    Err((failure, summary))
}
