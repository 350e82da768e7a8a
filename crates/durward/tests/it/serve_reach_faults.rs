//! What a server behind HTTP can do wrong to `durward serve`: the client gets one answer, the journal one outcome,
//! nothing is sent twice that may have been worked on, and the session goes on.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::guarded::{self, Place};
use crate::support::serving::{Served, call};
use crate::support::web::{
    ACCEPTED, EVENTS_HEAD, Request, Then, Web, Wire, behave, cut_off, echoed, events_reply, faulty,
    json_reply, reply, send, whole,
};
use serde_json::{Value, json};

fn before(web: &Web, flags: &[&str]) -> (Served, String) {
    let served = Served::start_server(Place::new(), &format!("echo={}", web.url()), flags);
    let session = served.open("2025-11-25");
    (served, session)
}

fn text(answer: &Value) -> Option<&str> {
    answer["result"]["content"][0]["text"].as_str()
}

/// The faulty call gets this error, the next one works, and each has one outcome.
#[track_caller]
fn faulty_call(
    flags: &[&str],
    reason: &str,
    fault: impl Fn(&Request, &mut dyn Wire) -> io::Result<Then> + Send + Sync + 'static,
) -> Value {
    let web = faulty(fault);
    let (served, session) = before(&web, flags);
    let answer = served.post(Some(&session), &call("1", "faulty")).json();
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["error"]["data"]["reason"], reason, "{answer}");
    let after = served.post(Some(&session), &call("2", "after")).json();
    assert_eq!(text(&after), Some("after"), "{after}");
    assert_eq!(web.texts(), ["faulty", "after"]);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    journal.assert_ended("1", "Failure", Some(reason));
    assert_eq!(
        (journal.decisions().len(), journal.operations().len()),
        (2, 2)
    );
    answer
}

/// Hangs up after each number of bytes of a reply.
fn hang_up_at_every_byte(of: fn(&Request) -> Vec<u8>) {
    let web = cut_off(of);
    let place = Place::new();
    place.never_spare("echo", &web.url());
    let served = Served::start_configured(place);
    let session = served.open("2025-11-25");
    let len = whole(of);
    let mut answered = 0;
    for count in 0..=len {
        let sent = count.to_string();
        let answer = served.post(Some(&session), &call(&sent, &sent)).json();
        if text(&answer) == Some(&sent) {
            answered += 1;
            continue;
        }
        let reason = answer["error"]["data"]["reason"].as_str().unwrap();
        let lost = ["upstream_broken", "upstream_no_answer"].contains(&reason);
        assert!(lost, "{count}: {answer}");
    }
    assert!(answered >= 1, "the whole reply is an answer");
    // Each was sent once: what a server may have worked on is not sent again.
    let expected: Vec<String> = (0..=len).map(|n| n.to_string()).collect();
    assert_eq!(web.texts(), expected);
    let journal = served.stop().1.journal();
    assert_eq!(journal.decisions().len(), len + 1);
    assert_eq!(journal.operations().len(), len + 1);
}

#[test]
fn server_hangs_up_at_every_byte_of_a_reply() {
    hang_up_at_every_byte(|request| json_reply(&echoed(request)));
}

#[test]
fn server_hangs_up_at_every_byte_of_a_stream() {
    hang_up_at_every_byte(|request| events_reply(&[("", echoed(request))]));
}

#[test]
fn redirect() {
    let elsewhere = Web::start(behave);
    let target = elsewhere.url();
    let answer = faulty_call(&[], "upstream_redirected", move |_, wire| {
        let head = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {target}?token=s\r\nContent-Length: 0\r\n\r\n"
        );
        send(wire, head.as_bytes(), Then::Keep)
    });
    assert!(!answer.to_string().contains("token"), "{answer}");
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn huge_header() {
    faulty_call(&[], "upstream_reply_unfit", |_, wire| {
        let big = "x".repeat(70 * 1024);
        let head = format!("HTTP/1.1 200 OK\r\nX-Big: {big}\r\n\r\n");
        send(wire, head.as_bytes(), Then::Keep)
    });
}

#[test]
fn gzip_bomb() {
    let answer = faulty_call(&[], "upstream_reply_unfit", |_, wire| {
        // The head of a gzip member; what it would grow to is never found out.
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n";
        let member = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        send(wire, &[head.as_bytes(), &member].concat(), Then::Keep)
    });
    assert!(answer.to_string().contains("compressed"), "{answer}");
}

#[test]
fn response_splitting() {
    faulty_call(&[], "upstream_reply_unfit", |_, wire| {
        let bytes = b"HTTP/1.1 200 OK\r\nX: a\rHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        send(wire, bytes, Then::Close)
    });
}

#[test]
fn second_reply_behind_the_first_is_nobodys() {
    let web = faulty(|request, wire| {
        let bytes = json_reply(&echoed(request));
        send(wire, &[&bytes[..], &bytes].concat(), Then::Keep)
    });
    let (served, session) = before(&web, &[]);
    for (id, sent) in ["faulty", "a", "b", "c"].iter().enumerate() {
        let answer = served
            .post(Some(&session), &call(&id.to_string(), sent))
            .json();
        assert_eq!(text(&answer), Some(*sent));
    }
}

#[test]
fn endless_event_and_endless_body() {
    for head in [
        "text/event-stream\r\n\r\ndata: ",
        "application/json\r\n\r\n{\"a\":\"",
    ] {
        faulty_call(&[], "upstream_oversize", move |_, wire| {
            write!(wire, "HTTP/1.1 200 OK\r\nContent-Type: {head}")?;
            loop {
                wire.write_all(&[b'x'; 64 * 1024])?;
            }
        });
    }
}

#[test]
fn silence_ends_with_the_calls_time_and_the_server_is_told() {
    let place = Place::new();
    let web = faulty(|_, wire| send(wire, EVENTS_HEAD.as_bytes(), Then::Keep));
    let flags = ["--call-timeout", "1"];
    let served = Served::start_server(place, &format!("echo={}", web.url()), &flags);
    let session = served.open("2025-11-25");
    let answer = served.post(Some(&session), &call("1", "faulty")).json();
    assert_eq!(answer["error"]["data"]["reason"], "upstream_timeout");
    guarded::eventually("the server is told", || {
        web.of_method("notifications/cancelled").len() == 1
    });
    let slow = |_: &Request, _: &mut dyn Wire| -> io::Result<Then> {
        guarded::pause(30_000);
        Ok(Then::Close)
    };
    faulty_call(&flags, "upstream_timeout", slow);
}

#[test]
fn one_tool_may_take_longer() {
    let web = Web::start(|request, wire| {
        if request.text().is_some() {
            guarded::pause(2_000);
        }
        behave(request, wire)
    });
    let (served, session) = before(&web, &["--call-timeout", "1", "--tool-timeout", "echo=30"]);
    let slow = served.post(Some(&session), &call("1", "slow")).json();
    assert_eq!(text(&slow), Some("slow"), "{slow}");
    let other = call("2", "x").replace("\"name\":\"echo\"", "\"name\":\"other\"");
    let answer = served.post(Some(&session), &other).json();
    assert_eq!(answer["error"]["data"]["reason"], "upstream_timeout");
}

#[test]
fn answers_that_are_none() {
    faulty_call(&[], "upstream_no_answer", |_, wire| {
        send(wire, ACCEPTED, Then::Keep)
    });
    faulty_call(&[], "upstream_garbage", |_, wire| {
        let bytes = reply("200 OK", "", "application/json", "hello");
        send(wire, &bytes, Then::Keep)
    });
    faulty_call(&[], "upstream_no_answer", |_, wire| {
        let other = json!({"jsonrpc": "2.0", "id": 4711, "result": {}});
        send(wire, &json_reply(&other), Then::Keep)
    });
}

#[test]
fn error_statuses() {
    let cases = [
        ("500 Internal Server Error", "upstream_http_status"),
        ("401 Unauthorized", "upstream_unauthorized"),
        ("429 Too Many Requests", "upstream_overloaded"),
        ("503 Service Unavailable", "upstream_overloaded"),
    ];
    for (status, reason) in cases {
        let answer = faulty_call(&[], reason, move |_, wire| {
            send(wire, &reply(status, "", "text/plain", "<oops>"), Then::Keep)
        });
        assert!(!answer.to_string().contains("oops"), "{answer}");
    }
}

#[test]
fn session_that_stays_unknown_is_given_up() {
    let web = faulty(|_, wire| {
        send(
            wire,
            &reply("404 Not Here", "", "text/plain", ""),
            Then::Keep,
        )
    });
    let (served, session) = before(&web, &[]);
    let answer = served.post(Some(&session), &call("1", "faulty")).json();
    assert_eq!(answer["error"]["data"]["reason"], "upstream_session_lost");
    assert_eq!(answer["error"]["data"]["retryable"], true);
    assert_eq!(web.of_method("initialize").len(), 2);
    let after = served.post(Some(&session), &call("2", "after")).json();
    assert_eq!(text(&after), Some("after"));
}

#[test]
fn only_what_reads_is_sent_once_more() {
    for (tool, sent) in [("read_echo", 2), ("echo", 1)] {
        let calls = AtomicUsize::new(0);
        let web = faulty(move |request, wire| {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                return Ok(Then::Close);
            }
            behave(request, wire)
        });
        let (served, session) = before(&web, &[]);
        let list = r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#;
        assert_eq!(served.post(Some(&session), list).status, 200);
        let body =
            call("1", "faulty").replace("\"name\":\"echo\"", &format!("\"name\":\"{tool}\""));
        let answer = served.post(Some(&session), &body).json();
        assert_eq!(text(&answer).is_some(), sent == 2, "{answer}");
        assert_eq!(web.texts().len(), sent, "{tool}");
    }
}

#[test]
fn kept_connection_that_the_server_closed_meanwhile() {
    let web = Web::start(behave);
    let (served, session) = before(&web, &[]);
    for n in 0..50 {
        let sent = n.to_string();
        let answer = served.post(Some(&session), &call(&sent, &sent)).json();
        assert_eq!(text(&answer), Some(sent.as_str()));
        web.hang_up();
    }
    assert_eq!(web.texts().len(), 50, "each is sent once");
}

#[test]
fn server_that_is_not_there() {
    let web = Web::start(behave);
    let url = web.url();
    drop(web);
    let served = Served::start_server(Place::new(), &format!("echo={url}"), &[]);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let error = served.send("POST", "/mcp/echo", &[], body).json();
    assert_eq!(error["error"]["data"]["reason"], "upstream_unreachable");
    assert_eq!(error["error"]["data"]["retryable"], true);
}
