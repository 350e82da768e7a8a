//! What real clients need of HTTP: browsers ask before they send, proxies give up on silence, and addresses are
//! written in more than one way.

use crate::support::serving::{Events, Served, call};

const ORIGIN: (&str, &str) = ("origin", "https://app.example");

fn served() -> Served {
    Served::start(&["--allow-origin", ORIGIN.1])
}

#[test]
fn w6_a_page_of_an_allowed_origin_may_connect() {
    let served = served();
    let asks = [
        ORIGIN,
        ("access-control-request-method", "POST"),
        (
            "access-control-request-headers",
            "content-type,mcp-session-id",
        ),
    ];
    let answer = served.send("OPTIONS", "/mcp/echo", &asks, "");
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN.1));
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("content-type,mcp-session-id")
    );
    let methods = answer.header("access-control-allow-methods");
    assert_eq!(methods, Some("GET, POST, DELETE"));
    let session = served.open("2025-11-25");
    let headers = [ORIGIN, ("mcp-session-id", session.as_str())];
    let answer = served.send("POST", "/mcp/echo", &headers, &call("1", "x"));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN.1));
    assert_eq!(answer.header("vary"), Some("Origin"));
    let exposed = answer
        .header("access-control-expose-headers")
        .unwrap_or_default();
    assert!(exposed.contains("mcp-session-id"), "{exposed}");
}

#[test]
fn a_page_of_another_origin_may_not() {
    let served = served();
    let asks = [
        ("origin", "https://other.example"),
        ("access-control-request-method", "POST"),
    ];
    let answer = served.send("OPTIONS", "/mcp/echo", &asks, "");
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

/// What listens at another port of this machine may be anybody's, and the browser is our user's.
#[test]
fn a_page_of_another_port_of_this_machine_may_not_unless_it_is_allowed() {
    let page = ("origin", "http://localhost:3000");
    let asks = [page, ("access-control-request-method", "POST")];
    let served = Served::start(&[]);
    assert_eq!(served.send("OPTIONS", "/mcp/echo", &asks, "").status, 403);
    let session = served.open("2025-11-25");
    let id = ("mcp-session-id", session.as_str());
    // A form's kind of body needs no question before it.
    let form = ("content-type", "text/plain");
    for headers in [vec![id, page], vec![page, form]] {
        for path in ["/mcp/echo", "/mcp", "/v1/chat/completions"] {
            let answer = served.send("POST", path, &headers, &call("1", "x"));
            assert_eq!(answer.status, 403, "{path} {headers:?} {answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    let picture = [
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-mode", "no-cors"),
    ];
    assert_eq!(served.send("GET", "/health", &picture, "").status, 403);
    assert_eq!(served.place.counted().len(), 0);
    let served = Served::start(&["--allow-origin", "http://localhost:*"]);
    let answer = served.send("OPTIONS", "/mcp/echo", &asks, "");
    assert_eq!(answer.status, 204, "{answer:?}");
}

#[test]
fn a_slash_at_the_end_is_no_other_address() {
    let served = served();
    let session = served.open("2025-11-25");
    let headers = [("mcp-session-id", session.as_str())];
    let answer = served.send("POST", "/mcp/echo/", &headers, &call("1", "x"));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["result"]["content"][0]["text"], "x");
}

#[test]
fn an_encoded_body_is_refused_as_such() {
    let served = served();
    let session = served.open("2025-11-25");
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("content-encoding", "gzip"),
    ];
    let answer = served.send("POST", "/mcp/echo", &headers, &call("1", "x"));
    assert_eq!(answer.status, 415, "{answer:?}");
    assert_eq!(answer.json()["error"]["data"]["reason"], "content_encoding");
}

#[test]
fn w1_a_silent_call_is_answered_with_a_stream_that_can_be_resumed() {
    let place = crate::support::guarded::Place::new();
    let mock = place.mock(&["hostile", "--behaviour", "never"]).join(" ");
    let served = Served::start_server(place, &format!("echo={mock}"), &["--call-timeout", "4"]);
    let session = served.open("2025-11-25");
    let headers = [("mcp-session-id", session.as_str())];
    let mut events = Events::of(&served, "POST", &headers, &call("1", "x"));
    // The first event is empty and has an id; the next one is the answer.
    let (id, answer) = events.next().expect("an answer");
    assert_eq!(id, "1-2");
    assert_eq!(answer["error"]["data"]["reason"], "upstream_timeout");
}
