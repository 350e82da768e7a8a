//! Frames that are ours to write: refusals, errors, and replies under the client's spelling of an id.

use gate::{ClosedSet, Explained};
use serde_json::json;
use wire::WireError;
use wire::jsonrpc::member;
use wire::scan::Scan;

/// JSON-RPC error code where the server did not do its part.
pub const UPSTREAM_CODE: i32 = -32603;
/// A mirrored header is missing, doubled or differs from the body.
const HEADER_MISMATCH: i32 = -32020;

/// Why a call that was sent has no answer of its server's: a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamFault {
    /// The server ended.
    Died,
    /// No answer in time.
    Timeout,
    /// The answer was no message.
    Garbage,
    /// The answer was longer than a frame may be.
    Oversize,
    /// The answer was longer than the limit in force.
    TooLarge,
    /// Too many calls are under way.
    Busy,
    /// No connection to the server; nothing was sent.
    Unreachable,
    /// No secure connection to the server.
    Tls,
    /// The connection broke after the call was sent.
    Broken,
    /// The server wants other credentials.
    Unauthorized,
    /// The server says that it is overloaded.
    Overloaded,
    /// The server answered with an error of HTTP instead of a message.
    HttpStatus,
    /// The server sends us elsewhere.
    Redirected,
    /// The reply is not what the transport asks for.
    UnfitReply,
    /// The reply ended without an answer to the call.
    NoAnswer,
    /// The server forgot the session and does not open it again.
    SessionLost,
    /// No process of the server became free in time.
    NoPlace,
    /// The server failed so often in a row that it is left alone for a while; nothing was sent.
    CircuitOpen,
    /// The client and the server have no protocol revision in common.
    EraMismatch,
    /// We end, and the call had not ended in time.
    Stopping,
}

impl UpstreamFault {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 20] = [
        Self::Died,
        Self::Timeout,
        Self::Garbage,
        Self::Oversize,
        Self::TooLarge,
        Self::Busy,
        Self::Unreachable,
        Self::Tls,
        Self::Broken,
        Self::Unauthorized,
        Self::Overloaded,
        Self::HttpStatus,
        Self::Redirected,
        Self::UnfitReply,
        Self::NoAnswer,
        Self::SessionLost,
        Self::NoPlace,
        Self::CircuitOpen,
        Self::EraMismatch,
        Self::Stopping,
    ];

    /// The closed reason label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Died => "upstream_died",
            Self::Timeout => "upstream_timeout",
            Self::Garbage => "upstream_garbage",
            Self::Oversize => "upstream_oversize",
            Self::TooLarge => "response_too_large",
            Self::Busy => "too_many_in_flight",
            Self::Unreachable => "upstream_unreachable",
            Self::Tls => "upstream_tls",
            Self::Broken => "upstream_broken",
            Self::Unauthorized => "upstream_unauthorized",
            Self::Overloaded => "upstream_overloaded",
            Self::HttpStatus => "upstream_http_status",
            Self::Redirected => "upstream_redirected",
            Self::UnfitReply => "upstream_reply_unfit",
            Self::NoAnswer => "upstream_no_answer",
            Self::SessionLost => "upstream_session_lost",
            Self::NoPlace => "too_many_servers",
            Self::CircuitOpen => "circuit_open",
            Self::EraMismatch => "era_mismatch",
            Self::Stopping => "stopping",
        }
    }

    /// One sentence for the caller.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Died => {
                "the server ended before it answered; what it had done by then is not known"
            }
            Self::Timeout => "the server did not answer in time; what it has done is not known",
            Self::Garbage => "the server's answer was not a valid message",
            Self::Oversize => {
                "the server's answer is too long; raise limits.response_bytes to accept it"
            }
            Self::TooLarge => {
                "the server's answer was longer than the limit on replies; ask for less at a time"
            }
            Self::Busy => "too many calls are under way; try again when some have ended",
            Self::Unreachable => {
                "the server cannot be reached and nothing was sent; try again when it is up"
            }
            Self::Tls => {
                "no secure connection to the server; check its certificate and the one of Durward"
            }
            Self::Broken => {
                "the connection broke before the server answered; what it has done is not known"
            }
            Self::Unauthorized => "the server rejected the credentials; check the configured key",
            Self::Overloaded => "the server is overloaded and did nothing; try again later",
            Self::HttpStatus => "the server answered with an http error instead of a message",
            Self::Redirected => {
                "the server redirects elsewhere, and redirects are not followed; configure the new URL if it is right"
            }
            Self::UnfitReply => "the server's reply does not follow the rules of the transport",
            Self::NoAnswer => {
                "the server's reply ended without an answer; what it has done is not known"
            }
            Self::SessionLost => "the server forgot the session and did not open it again",
            Self::NoPlace => {
                "all processes of the server are in use; try again when a session has ended"
            }
            Self::CircuitOpen => {
                "the server failed too often in a row and gets no calls for a while; nothing was sent"
            }
            Self::EraMismatch => {
                "the client and the server have no protocol revision in common: one needs initialize, the other speaks only 2026-07-28; use a client or a server with a common revision"
            }
            Self::Stopping => {
                "durward stopped before the call ended; the call was cancelled, and what the server has done is not known"
            }
        }
    }

    /// Whether trying again can help.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Busy
            | Self::NoPlace
            | Self::Unreachable
            | Self::Overloaded
            | Self::CircuitOpen
            | Self::SessionLost => true,
            Self::Died
            | Self::Timeout
            | Self::Garbage
            | Self::Oversize
            | Self::TooLarge
            | Self::Tls
            | Self::Broken
            | Self::Unauthorized
            | Self::HttpStatus
            | Self::Redirected
            | Self::UnfitReply
            | Self::NoAnswer
            | Self::EraMismatch
            | Self::Stopping => false,
        }
    }
}

/// A fault, and what is known about it beyond its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub fault: UpstreamFault,
    /// What exactly, in words that leak nothing; for the caller.
    pub detail: Option<String>,
    /// The status of HTTP that it came with.
    pub status: Option<u16>,
}

impl From<UpstreamFault> for Failure {
    fn from(fault: UpstreamFault) -> Self {
        Self {
            fault,
            detail: None,
            status: None,
        }
    }
}

impl ClosedSet for UpstreamFault {
    const EVERY: &'static [Self] = &Self::ALL;

    fn word(self) -> &'static str {
        self.label()
    }
}

impl Explained for UpstreamFault {
    fn sentence(self) -> &'static str {
        Self::sentence(self)
    }
}

impl UpstreamFault {
    /// The fault with what is known about it.
    #[must_use]
    pub fn because(self, detail: impl Into<String>) -> Failure {
        Failure {
            fault: self,
            detail: Some(detail.into()),
            status: None,
        }
    }
}

/// News for a client whose call waits for a person. `told` counts them: progress may only grow, and a
/// millionth is less than what a server begins with.
#[must_use]
pub fn waiting(token: &str, told: u32, left_s: u64) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":{},\"message\":\"waiting for a person's approval, {left_s} s left; answer with: durward approvals watch\"}}}}",
        f64::from(told) / 1e6
    )
    .into_bytes()
}

/// Tells a server that nobody waits for this call any more; `id` as the server knows it.
#[must_use]
pub fn cancel(id: &str, reason: &str) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id},\"reason\":\"{reason}\"}}}}"
    )
    .into_bytes()
}

/// After how many seconds it is worth while to ask again for a place that was not free.
pub const RETRY_AFTER_S: u64 = 5;

/// The answer to a call that its server did not answer.
#[must_use]
pub fn upstream_fault(id: &str, fault: UpstreamFault) -> Vec<u8> {
    error(
        id,
        UPSTREAM_CODE,
        fault.sentence(),
        Some(&data_of(fault, None)),
    )
}

/// What a program reads of a fault. When to try again stands here too: a batch, or a stream that has begun, has no
/// status of its own for it.
fn data_of(fault: UpstreamFault, detail: Option<&str>) -> serde_json::Value {
    let mut data = serde_json::Map::new();
    data.insert("reason".into(), fault.label().into());
    data.insert("retryable".into(), fault.is_retryable().into());
    if fault == UpstreamFault::NoPlace {
        data.insert("retry_after_ms".into(), (RETRY_AFTER_S * 1_000).into());
    }
    if let Some(detail) = detail {
        data.insert("detail".into(), detail.into());
    }
    data.into()
}

/// As [`upstream_fault`], with what is known beyond the kind of fault.
#[must_use]
pub fn upstream_failure(id: &str, failure: &Failure) -> Vec<u8> {
    let fault = failure.fault;
    let Some(detail) = &failure.detail else {
        return upstream_fault(id, fault);
    };
    let data = data_of(fault, Some(detail));
    let message = format!("{}: {detail}", fault.sentence());
    error(id, UPSTREAM_CODE, &message, Some(&data))
}

/// The answer to a frame that could not be taken. `id` is `null` where it could not be read.
#[must_use]
pub fn bad_frame(id: &str, fault: &WireError) -> Vec<u8> {
    let data = json!({ "reason": fault.kind.label(), "byte": fault.at });
    error(id, fault.kind.code(), &fault.to_string(), Some(&data))
}

/// The answer to a Modern request whose headers do not repeat its body.
#[must_use]
pub fn header_mismatch(id: &str, message: &str) -> Vec<u8> {
    error(id, HEADER_MISMATCH, message, None)
}

/// An error response.
#[must_use]
pub fn error(id: &str, code: i32, message: &str, data: Option<&serde_json::Value>) -> Vec<u8> {
    let mut out =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":")
            .into_bytes();
    wire::text::push_string(&mut out, message);
    if let Some(data) = data {
        out.extend_from_slice(b",\"data\":");
        out.extend_from_slice(data.to_string().as_bytes());
    }
    out.extend_from_slice(b"}}");
    out
}

/// The same message with its id spelled as given, everything else as it came.
#[must_use]
pub fn with_id(scan: &Scan<'_>, id: &str) -> Vec<u8> {
    rebuilt(scan, "id", id)
}

/// The same message with another result, everything else as it came.
#[must_use]
pub fn with_result(scan: &Scan<'_>, result: &str) -> Vec<u8> {
    rebuilt(scan, "result", result)
}

fn rebuilt(scan: &Scan<'_>, name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (key, raw) in &scan.members {
        if out.len() > 1 {
            out.push(b',');
        }
        wire::text::push_string(&mut out, key);
        out.push(b':');
        out.extend_from_slice(if key == name {
            value.as_bytes()
        } else {
            raw.as_bytes()
        });
    }
    out.push(b'}');
    out
}

/// The id of a frame that could not be taken, where its beginning still shows one: the text
/// after `"id":` if that is a number or a string.
#[must_use]
pub fn salvage_id(frame: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(frame);
    let value = value_of_own_id(&text)?;
    let end = if value.starts_with('"') {
        1 + value.get(1..)?.find('"')? + 1
    } else {
        value
            .find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c))
            .unwrap_or(value.len())
    };
    let raw = value.get(..end)?;
    let read: serde_json::Value = serde_json::from_str(raw).ok()?;
    (read.is_number() || read.is_string()).then(|| raw.to_owned())
}

/// What follows `"id":` among the members of the outermost object; an `id` deeper inside belongs to
/// whatever the peer chose to put there.
fn value_of_own_id(text: &str) -> Option<&str> {
    // A message that came in an array where none may be is still that message.
    let own_depth = if text.trim_start().starts_with('[') {
        2
    } else {
        1
    };
    let mut depth = 0_usize;
    let mut string_from = None;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match (string_from, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(from), b'"') => {
                string_from = None;
                let after = || text.get(at + 1..)?.trim_start().strip_prefix(':');
                if depth == own_depth
                    && text.get(from..at) == Some("id")
                    && let Some(value) = after()
                {
                    return Some(value.trim_start());
                }
            }
            (Some(_), _) => {}
            (None, b'"') => string_from = Some(at + 1),
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth = depth.checked_sub(1)?,
            (None, _) => {}
        }
    }
    None
}

/// The error code of an error response's payload.
#[must_use]
pub fn error_code(payload: &str) -> Option<i64> {
    let bounds = wire::Bounds::default();
    let scan = wire::scan_reply(payload.as_bytes(), &bounds).ok()?;
    member(&scan.members, "code")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_salvaged_from_broken_frames() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"x":"#, Some("7")),
            (r#"{"id" : "a-1" ,"#, Some("\"a-1\"")),
            (r#"{"id":null}"#, None),
            ("hello", None),
            (r#"{"id":"#, None),
            (r#"{"result":{"id":3},"id":7"#, Some("7")),
            (r#"{"result":{"id":3},"#, None),
            (r#"{"result":"\"id\":3","id" : 8,"#, Some("8")),
            (r#"{"result":["id":3],"method":"id""#, None),
            (r#"}{"id":3"#, None),
            (r#" [{"id":3}]"#, Some("3")),
        ];
        for (frame, id) in cases {
            assert_eq!(salvage_id(frame.as_bytes()).as_deref(), id, "{frame}");
        }
    }

    #[test]
    fn rebuilding_keeps_everything_else() {
        let frame = br#"{"x":1e5,"id":1.0,"jsonrpc":"2.0","result":{"a" : [1]}}"#;
        let scan = wire::scan_reply(frame, &wire::Bounds::default()).unwrap();
        assert_eq!(
            with_id(&scan, "1"),
            br#"{"x":1e5,"id":1,"jsonrpc":"2.0","result":{"a" : [1]}}"#
        );
    }
}
