//! What a Modern request must say of itself, in its body and once more in its headers.
//!
//! Whoever routes or judges by the headers must be sure that the server reads the same in the body:
//! every mirror that is missing, doubled or different refuses the request (2026-07-28, SEP-2243).

use std::borrow::Cow;
use std::sync::Arc;

use ::http::{HeaderMap, HeaderName, StatusCode};
use net::http::server::Response;
use serde_json::json;
use wire::jsonrpc::{member, string};
use wire::revision::META_PROTOCOL_VERSION;
use wire::scan::Scan;
use wire::{Bounds, Era, Revision, scan_reply};

use super::answer;
use crate::message::request::META_CAPABILITIES;
use crate::message::{frames, method, request};

/// The revision is none that is spoken here.
const UNSUPPORTED_VERSION: i32 = -32022;
/// The parameters lack something.
const INVALID_PARAMS: i32 = -32602;
/// The method does not exist.
const UNKNOWN_METHOD: i32 = -32601;

/// The `_meta` of a request, as far as it matters here.
#[derive(Debug, Default)]
pub(super) struct Meta {
    /// The revision it names.
    pub version: Option<String>,
    /// Whether it says what the client can do.
    pub capabilities: bool,
    /// The client program.
    pub client_id: Option<Arc<str>>,
}

impl Meta {
    /// Reads it out of a scanned request.
    pub fn of(scan: &Scan<'_>) -> Self {
        let Some(raw) = member(&scan.params, "_meta") else {
            return Self::default();
        };
        let Ok(meta) = scan_reply(raw.as_bytes(), &Bounds::default()) else {
            return Self::default();
        };
        let get = |name| member(&meta.members, name);
        Self {
            version: get(META_PROTOCOL_VERSION)
                .and_then(string)
                .map(Cow::into_owned),
            capabilities: get(META_CAPABILITIES).is_some_and(|raw| raw.starts_with('{')),
            client_id: get(request::META_CLIENT).and_then(request::client_name),
        }
    }
}

/// Checks a request; `Err` is the answer to one that is not what the revision demands.
pub(super) fn check(
    id: &str,
    method: &str,
    scan: &Scan<'_>,
    meta: &Meta,
    headers: &HeaderMap,
) -> Result<(), Box<Response>> {
    let refuse = |status, code, message: &str, data: Option<&serde_json::Value>| {
        Err(Box::new(answer::json(
            status,
            frames::error(id, code, message, data),
        )))
    };
    let bad = StatusCode::BAD_REQUEST;
    let Some(version) = meta.version.as_deref() else {
        let message = format!("_meta lacks {META_PROTOCOL_VERSION}; name the revision there");
        return refuse(bad, INVALID_PARAMS, &message, None);
    };
    let mirrored = mirror(headers, &answer::PROTOCOL_VERSION, Some(version))
        .and_then(|()| mirror(headers, &answer::METHOD, Some(method)))
        .and_then(|()| mirror(headers, &answer::NAME, named(method, scan).as_deref()));
    if let Err(message) = mirrored {
        return Err(header_mismatch(id, &message));
    }
    if Revision::parse(version).map(Revision::era) != Some(Era::Modern) {
        let supported: Vec<&str> = Revision::ALL
            .into_iter()
            .filter(|revision| revision.era() == Era::Modern)
            .map(Revision::name)
            .collect();
        let data = json!({ "supported": supported, "requested": version });
        let message = "this protocol revision is not supported here";
        return refuse(bad, UNSUPPORTED_VERSION, message, Some(&data));
    }
    if !meta.capabilities {
        let message =
            format!("_meta lacks {META_CAPABILITIES}, an object; send {{}} if there are none");
        return refuse(bad, INVALID_PARAMS, &message, None);
    }
    if !method::of(method).is_modern {
        let message = format!("{method} is not a method of {version}");
        return refuse(StatusCode::NOT_FOUND, UNKNOWN_METHOD, &message, None);
    }
    Ok(())
}

/// The answer to a request whose headers do not repeat its body.
pub(super) fn header_mismatch(id: &str, message: &str) -> Box<Response> {
    let frame = frames::header_mismatch(id, message);
    Box::new(answer::json(StatusCode::BAD_REQUEST, frame))
}

/// What the header for the name must say: only some methods have one.
fn named<'s>(method: &str, scan: &Scan<'s>) -> Option<Cow<'s, str>> {
    let key = method::of(method).named_by?;
    member(&scan.params, key).and_then(string)
}

/// Whether a header says, once, what the body says. A header that nothing in the body stands for
/// may be there and is not looked at, but not twice.
fn mirror(headers: &HeaderMap, name: &HeaderName, body: Option<&str>) -> Result<(), String> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(format!("the header {name} is given more than once"));
    }
    let Some(body) = body else {
        return Ok(());
    };
    let Some(value) = first else {
        return Err(format!("the header {name} is missing; it repeats the body"));
    };
    match wire::header::decode(value.as_bytes()) {
        Ok(said) if said == body => Ok(()),
        Ok(_) => Err(format!("the header {name} differs from the body")),
        Err(_) => Err(format!("the header {name} cannot be read")),
    }
}

/// The HTTP status of an answer of a Modern server, by its error's code.
pub(super) fn status(code: Option<i64>) -> StatusCode {
    match code {
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(-32022..=-32020) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The answer to a Modern client of all servers at once, none of which speaks that era: one that speaks both learns from
/// it what to do.
pub(super) fn none_is_modern(id: &str, requested: &str) -> Vec<u8> {
    let message = "the client speaks protocol revision 2026-07-28, and no server here does: open a session with initialize";
    legacy_wanted(id, requested, message)
}

/// The answer to a Modern client whose server only speaks the Legacy era: one that speaks both
/// learns from it what to do.
pub(super) fn era_mismatch(id: &str, requested: &str) -> Vec<u8> {
    let message = "the client speaks protocol revision 2026-07-28, the server only earlier ones: open a session with initialize";
    legacy_wanted(id, requested, message)
}

fn legacy_wanted(id: &str, requested: &str, message: &str) -> Vec<u8> {
    let supported: Vec<&str> = Revision::ALL
        .into_iter()
        .filter(|revision| revision.era() == Era::Legacy)
        .map(Revision::name)
        .collect();
    let fault = frames::UpstreamFault::EraMismatch;
    let data = json!({
        "supported": supported,
        "requested": requested,
        "reason": fault.label(),
        "retryable": fault.is_retryable(),
    });
    frames::error(id, UNSUPPORTED_VERSION, message, Some(&data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::HeaderValue;
    use wire::scan_request;

    const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é x","_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},
        "io.modelcontextprotocol/clientInfo":{"name":"c"}}}}"#;

    fn outcome(body: &str, headers: &[(&'static str, &str)]) -> (u16, String) {
        let scan = scan_request(body.as_bytes(), &Bounds::default()).unwrap();
        let method = member(&scan.members, "method").and_then(string).unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        match check("1", &method, &scan, &Meta::of(&scan), &map) {
            Ok(()) => (200, String::new()),
            Err(response) => (response.status().as_u16(), format!("{:?}", response.body())),
        }
    }

    #[test]
    fn headers_repeat_the_body_or_the_request_is_refused() {
        let version = ("mcp-protocol-version", "2026-07-28");
        let method = ("mcp-method", "tools/call");
        let name = ("mcp-name", "=?base64?w6kgeA==?=");
        assert_eq!(outcome(BODY, &[version, method, name]).0, 200);
        let faults: [&[(&str, &str)]; 9] = [
            &[version, method],
            &[version, name],
            &[method, name],
            &[version, version, method, name],
            &[version, method, method, name],
            &[version, method, name, name],
            &[version, ("mcp-method", "tools/list"), name],
            &[version, method, ("mcp-name", "other")],
            &[("mcp-protocol-version", "2025-11-25"), method, name],
        ];
        for headers in faults {
            let (status, text) = outcome(BODY, headers);
            assert_eq!(status, 400, "{headers:?}");
            assert!(text.contains("-32020"), "{headers:?} {text}");
        }
    }

    #[test]
    fn what_a_request_must_say_is_named() {
        let version = |v: &'static str| ("mcp-protocol-version", v);
        let list = ("mcp-method", "tools/list");
        let body = |meta: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{meta}}}}}"#
            )
        };
        let cases = [
            (body("{}"), version("2026-07-28"), 400, "-32602"),
            (
                body(r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#),
                version("2026-07-28"),
                400,
                "-32602",
            ),
            (
                body(
                    r#"{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}"#,
                ),
                version("2099-01-01"),
                400,
                "-32022",
            ),
            (
                body(
                    r#"{"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}"#,
                ),
                version("2025-11-25"),
                400,
                "-32022",
            ),
        ];
        for (body, header, status, code) in cases {
            let (found, text) = outcome(&body, &[header, list]);
            assert_eq!(found, status, "{body}");
            assert!(text.contains(code), "{body} {text}");
        }
    }
}
