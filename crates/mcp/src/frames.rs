//! Frames that are ours to write: refusals, errors, and replies under the client's spelling of an id.

use gate::Refusal;
use serde_json::json;
use wire::WireError;
use wire::jsonrpc::member;
use wire::scan::Scan;

/// JSON-RPC error code of a refusal by the gate.
pub const REFUSED_CODE: i32 = -32001;
/// JSON-RPC error code where the server did not do its part.
pub const UPSTREAM_CODE: i32 = -32603;

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
    /// Too many calls are under way.
    Busy,
}

impl UpstreamFault {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 5] = [
        Self::Died,
        Self::Timeout,
        Self::Garbage,
        Self::Oversize,
        Self::Busy,
    ];

    /// The closed reason label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Died => "upstream_died",
            Self::Timeout => "upstream_timeout",
            Self::Garbage => "upstream_garbage",
            Self::Oversize => "upstream_oversize",
            Self::Busy => "too_many_in_flight",
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
            Self::Oversize => "the server's answer was longer than 16 MiB",
            Self::Busy => "too many calls are under way; try again when some have ended",
        }
    }

    /// Whether trying again can help.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Busy => true,
            Self::Died | Self::Timeout | Self::Garbage | Self::Oversize => false,
        }
    }
}

/// The answer to a call that the gate refused.
#[must_use]
pub fn refused(id: &str, refusal: &Refusal) -> Vec<u8> {
    let data = json!({
        "tool_name": refusal.tool_name,
        "path": refusal.path,
        "matched_rules": refusal.matched_rules,
        "final_rule": refusal.final_rule,
        "decision": refusal.decision.label(),
        "reason": refusal.reason.label(),
        "retryable": refusal.reason.is_retryable(),
    });
    error(id, REFUSED_CODE, &refusal.to_string(), Some(&data))
}

/// News for a client whose call waits for a person. `told` counts them: progress may only grow, and a
/// millionth is less than what a server begins with.
#[must_use]
pub fn waiting(token: &str, told: u32, left_s: u64) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":{},\"message\":\"waiting for a person's approval, {left_s} s left\"}}}}",
        f64::from(told) / 1e6
    )
    .into_bytes()
}

/// The answer to a call that its server did not answer.
#[must_use]
pub fn upstream_fault(id: &str, fault: UpstreamFault) -> Vec<u8> {
    let data = json!({ "reason": fault.label(), "retryable": fault.is_retryable() });
    error(id, UPSTREAM_CODE, fault.sentence(), Some(&data))
}

/// The answer to a frame that could not be taken. `id` is `null` where it could not be read.
#[must_use]
pub fn bad_frame(id: &str, fault: &WireError) -> Vec<u8> {
    let data = json!({ "reason": fault.kind.label(), "byte": fault.at });
    error(id, fault.kind.code(), &fault.to_string(), Some(&data))
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
