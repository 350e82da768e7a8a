//! What is answered over HTTP.

use ::http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use net::http::server::{BodyFault, Response, ResponseBody, single};

use super::refused::Refused;
use super::streams::StreamFault;
use crate::message::frames;

/// The Legacy session.
pub(super) static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The revision that a request speaks.
pub(super) static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The Modern mirror of the method.
pub(super) static METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The Modern mirror of the name or URI.
pub(super) static NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Where a Legacy stream was lost.
pub(super) static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
static ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A message as the whole answer.
pub(super) fn json(status: StatusCode, frame: Vec<u8>) -> Response {
    let mut response = ::http::Response::new(ResponseBody::from(frame));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A stream of events as the answer.
pub(super) fn events(body: ResponseBody) -> Response {
    let mut response = ::http::Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(&ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// A stream that a client asks for.
pub(super) fn stream(opened: Result<ResponseBody, StreamFault>) -> Response {
    match opened {
        Ok(body) => events(body),
        Err(StreamFault::Taken) => fault(Refused::StreamTaken),
        Err(StreamFault::UnknownEvent) => fault(Refused::EventUnknown),
        Err(StreamFault::TooMany) => fault(Refused::TooManyStreams),
    }
}

/// The message was taken; there is nothing to answer.
pub(super) fn accepted() -> Response {
    let mut response = ::http::Response::new(ResponseBody::default());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// A refusal of a request that belongs to no message.
pub(super) fn fault(refused: Refused) -> Response {
    fault_with(refused, refused.sentence())
}

/// The same in words about this case.
pub(super) fn fault_with(refused: Refused, message: &str) -> Response {
    refusal("null", refused, message)
}

/// A refusal of one request.
pub(super) fn refusal(id: &str, refused: Refused, message: &str) -> Response {
    if refused.is_retryable() {
        let data = serde_json::json!({ "reason": refused.label(), "retryable": true });
        return full(frames::error(id, refused.code(), message, Some(&data)));
    }
    let data = serde_json::json!({ "reason": refused.label() });
    let frame = frames::error(id, refused.code(), message, Some(&data));
    json(refused.status(), frame)
}

/// The answer to a body that was not taken.
pub(super) fn body_fault(fault: BodyFault) -> Response {
    let data = serde_json::json!({ "reason": fault.label() });
    let message = match fault {
        BodyFault::TooLong => "the body is longer than limits.request_bytes",
        BodyFault::TooSlow
        | BodyFault::Broken
        | BodyFault::BudgetExhausted
        | BodyFault::Revoked => fault.sentence(),
    };
    let frame = frames::error("null", -32600, message, Some(&data));
    json(fault.status(), frame)
}

/// As many as there may be are there already; it is worth while to ask again.
pub(super) fn full(frame: Vec<u8>) -> Response {
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, frame);
    response
        .headers_mut()
        .insert(RETRY_AFTER, frames::RETRY_AFTER_S.into());
    response
}

/// The method is none that is known here.
pub(super) fn not_allowed(allowed: &'static str) -> Response {
    let mut response = fault(Refused::MethodNotAllowed);
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Whether the body is said to be JSON.
pub(super) fn says_json(headers: &HeaderMap) -> bool {
    matches!(single(headers, &CONTENT_TYPE), Ok(Some(value)) if {
        let essence = value.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("application/json")
    })
}

/// Whether the client takes all of these types. No `Accept` means anything.
pub(super) fn accepts(headers: &HeaderMap, types: &[&str]) -> bool {
    let Some(first) = headers.get(ACCEPT) else {
        return true;
    };
    if is_list_of(first.as_bytes(), types) {
        return true;
    }
    let takes = |wanted: &str| {
        let group = wanted.split('/').next().unwrap_or_default();
        headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|range| range.split(';').next().unwrap_or_default().trim())
            .any(|range| {
                range == "*/*"
                    || range.eq_ignore_ascii_case(wanted)
                    || range
                        .strip_suffix("/*")
                        .is_some_and(|g| g.eq_ignore_ascii_case(group))
            })
    };
    types.iter().all(|wanted| takes(wanted))
}

/// Whether a value is these types as most clients write them.
fn is_list_of(value: &[u8], types: &[&str]) -> bool {
    let mut rest = Some(value);
    for (place, wanted) in types.iter().enumerate() {
        let between: &[u8] = if place == 0 { b"" } else { b", " };
        rest = rest
            .and_then(|rest| rest.strip_prefix(between))
            .and_then(|rest| rest.strip_prefix(wanted.as_bytes()));
    }
    rest.is_some_and(<[u8]>::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_http_writes_them() {
        let both = ["application/json", "text/event-stream"];
        let cases: [(&[&str], bool); 8] = [
            (&[], true),
            (&["application/json, text/event-stream"], true),
            (&["application/json", "text/event-stream"], true),
            (&["Application/JSON;q=0.9,Text/Event-Stream; q=1"], true),
            (&["*/*"], true),
            (&["application/*, text/*"], true),
            (&["application/json"], false),
            (&["text/html"], false),
        ];
        for (values, expect) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ACCEPT, HeaderValue::from_static(value));
            }
            assert_eq!(accepts(&headers, &both), expect, "{values:?}");
        }
        for (value, expect) in [
            ("application/json", true),
            ("application/json; charset=utf-8", true),
            ("APPLICATION/JSON", true),
            ("text/plain", false),
            ("application/json-rpc", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
            assert_eq!(says_json(&headers), expect, "{value}");
        }
        assert!(!says_json(&HeaderMap::new()));
    }
}
