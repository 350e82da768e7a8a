//! Finds out that client and server have no protocol revision in common, from what the server answers. Nothing here
//! bridges them.

use gate::ClosedSet;
use wire::jsonrpc::{member, string};
use wire::{Bounds, Era, scan_reply};

use crate::message::frames::{self, UpstreamFault};

/// An era as records name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spoken(pub Era);

impl ClosedSet for Spoken {
    const EVERY: &'static [Self] = &[Self(Era::Legacy), Self(Era::Modern)];

    fn word(self) -> &'static str {
        self.0.label()
    }
}

/// What was asked, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// `initialize`, how a client of the Legacy era begins.
    Initialize,
    /// `server/discover`, how one of the Modern era begins.
    Discover,
    /// Anything else.
    Other,
}

/// Codes by which a server of the Modern era refuses what it does not understand.
const MODERN_CODES: std::ops::RangeInclusive<i64> = -32_099..=-32_020;
const METHOD_NOT_FOUND: i64 = -32_601;
const INTERNAL_ERROR: i64 = -32_603;

/// Whether this error says that the server speaks the other era than its client.
#[must_use]
pub fn is_mismatch(client: Era, asked: Asked, error: &str) -> bool {
    let bounds = Bounds::default();
    let Ok(scan) = scan_reply(error.as_bytes(), &bounds) else {
        return false;
    };
    let code: Option<i64> = member(&scan.members, "code").and_then(|code| code.parse().ok());
    let Some(code) = code else {
        return false;
    };
    match (client, asked) {
        (Era::Legacy, Asked::Initialize) => {
            code == METHOD_NOT_FOUND
                || MODERN_CODES.contains(&code)
                || error.contains(wire::revision::META_PROTOCOL_VERSION)
        }
        (Era::Modern, Asked::Discover) => code != INTERNAL_ERROR && !MODERN_CODES.contains(&code),
        (Era::Modern, Asked::Other) => {
            let message = member(&scan.members, "message").and_then(string);
            !MODERN_CODES.contains(&code) && message.is_some_and(|text| asks_for_session(&text))
        }
        (Era::Legacy, Asked::Discover | Asked::Other) | (Era::Modern, Asked::Initialize) => false,
    }
}

/// Whether a server complains that no session was opened before.
#[must_use]
pub fn asks_for_session(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    [
        "session id",
        "session-id",
        "missing session",
        "not initialized",
        "before initialization",
    ]
    .iter()
    .any(|complaint| text.contains(complaint))
}

/// The error for the client. It keeps the server's code, by which a client that speaks both eras
/// knows to try the other.
#[must_use]
pub fn refusal(id: &str, client: Era, error: &str) -> Vec<u8> {
    let server: serde_json::Value = serde_json::from_str(error).unwrap_or_default();
    let code = server
        .get("code")
        .and_then(serde_json::Value::as_i64)
        .and_then(|code| i32::try_from(code).ok())
        .unwrap_or(frames::UPSTREAM_CODE);
    let fault = UpstreamFault::EraMismatch;
    let data = serde_json::json!({
        "reason": fault.label(),
        "retryable": fault.is_retryable(),
        "client_era": client.label(),
        "server_error": server,
    });
    frames::error(id, code, &sentence(client), Some(&data))
}

/// What is wrong, and what to do.
#[must_use]
pub fn sentence(client: Era) -> String {
    let what = match client {
        Era::Legacy => {
            "the client opens sessions with initialize (revisions to 2025-11-25), the server speaks only 2026-07-28 and later; use a newer client or an older server"
        }
        Era::Modern => {
            "the client speaks 2026-07-28 and later, but the server needs a session opened with initialize; use an older client or a newer server"
        }
    };
    format!("{}: {what}", UpstreamFault::EraMismatch.sentence())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_tell_the_eras_apart() {
        use Asked::{Discover, Initialize, Other};
        use Era::{Legacy, Modern};
        let not_found = r#"{"code":-32601,"message":"method not found"}"#;
        let version =
            r#"{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28"]}}"#;
        let meta =
            r#"{"code":-32602,"message":"_meta lacks io.modelcontextprotocol/protocolVersion"}"#;
        let params = r#"{"code":-32602,"message":"bad params"}"#;
        let session = r#"{"code":-32600,"message":"Bad Request: Missing session ID"}"#;
        let early =
            r#"{"code":-32602,"message":"Received request before initialization was complete"}"#;
        let internal = r#"{"code":-32603,"message":"oops"}"#;
        let cases = [
            (Legacy, Initialize, not_found, true),
            (Legacy, Initialize, version, true),
            (Legacy, Initialize, meta, true),
            (Legacy, Initialize, params, false),
            (Legacy, Initialize, internal, false),
            (Legacy, Other, not_found, false),
            (Legacy, Other, session, false),
            (Modern, Discover, not_found, true),
            (Modern, Discover, session, true),
            (Modern, Discover, params, true),
            (Modern, Discover, version, false),
            (Modern, Discover, internal, false),
            (Modern, Other, session, true),
            (Modern, Other, early, true),
            (Modern, Other, not_found, false),
            (Modern, Other, version, false),
            (Modern, Other, "garbage", false),
        ];
        for (client, asked, error, expect) in cases {
            assert_eq!(
                is_mismatch(client, asked, error),
                expect,
                "{client:?} {asked:?} {error}"
            );
        }
    }

    #[test]
    fn the_refusal_keeps_the_servers_code_and_names_the_reason() {
        let frame = refusal("7", Era::Modern, r#"{"code":-32601,"message":"x"}"#);
        let value: serde_json::Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(value["id"], 7);
        assert_eq!(value["error"]["code"], -32_601);
        assert_eq!(value["error"]["data"]["reason"], "era_mismatch");
        assert_eq!(value["error"]["data"]["server_error"]["message"], "x");
    }
}
