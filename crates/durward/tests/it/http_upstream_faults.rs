//! What a server behind HTTP can do wrong: the client gets one answer, the journal one outcome, nothing is sent
//! twice that may have been worked on, and the session goes on.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::guarded::{
    self, Journal, LATEST, Place, call_works, echo, end, eventually, line,
};
use crate::support::web::{
    self, ACCEPTED, EVENTS_HEAD, Request, Then, Web, Wire, behave, cut_off, echoed, events_reply,
    faulty, json_reply, reply, send, whole,
};
use mcp::client::Era;
use serde_json::{Value, json};

/// The faulty call gets this error, the next one works, and each has one outcome.
#[track_caller]
fn faulty_call(
    flags: &[&str],
    reason: &str,
    fault: impl Fn(&Request, &mut dyn Wire) -> io::Result<Then> + Send + Sync + 'static,
) -> (Value, Journal) {
    let place = Place::new();
    let web = faulty(fault);
    let url = web.url();
    let mut client = place.guard_reached(&[&["--url", &url], flags].concat());
    client.handshake(LATEST).unwrap();
    let id = client.send_request("tools/call", echo("faulty")).unwrap();
    let answer = line(&mut client);
    assert_eq!(answer["id"].to_string(), id);
    assert_eq!(answer["error"]["data"]["reason"], reason, "{answer}");
    call_works(&mut client, "after");
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
    assert_eq!(web.texts(), ["faulty", "after"]);
    let journal = place.journal();
    journal.assert_ended(&id, "Failure", Some(reason));
    assert_eq!(journal.decisions().len(), 2);
    (answer, journal)
}

/// The faulty call is answered all the same; gives the texts that reached the server.
#[track_caller]
fn borne(
    tool: &str,
    fault: impl Fn(&Request, &mut dyn Wire) -> io::Result<Then> + Send + Sync + 'static,
) -> (Vec<String>, Journal, Web) {
    let place = Place::new();
    let web = faulty(fault);
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    client.request("tools/list", json!({})).unwrap();
    let params = json!({"name": tool, "arguments": {"text": "faulty"}});
    let answer = client.request("tools/call", params).unwrap();
    assert_eq!(answer.text(), Some("faulty"), "{}", answer.line());
    call_works(&mut client, "after");
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), 2);
    for operation in journal.operations() {
        assert_eq!(operation["status"], "Success");
    }
    (web.texts(), journal, web)
}

/// Hangs up after so many bytes of the reply as the call's text says.
fn hang_up_at_every_byte(of: fn(&Request) -> Vec<u8>) {
    let place = Place::new();
    let web = cut_off(of);
    place.never_spare("web", &web.url());
    let mut client = place.guard_configured("durward.yaml", &[], "web");
    client.handshake(LATEST).unwrap();
    let len = whole(of);
    let mut answered = 0;
    for count in 0..=len {
        let reply = client
            .request("tools/call", echo(&count.to_string()))
            .unwrap();
        if reply.text() == Some(count.to_string().as_str()) {
            answered += 1;
        } else {
            let reason = reply.error().unwrap()["data"]["reason"].as_str().unwrap();
            let lost = ["upstream_broken", "upstream_no_answer"].contains(&reason);
            assert!(lost, "{count}: {}", reply.line());
        }
    }
    assert!(answered >= 1, "the whole reply is an answer");
    call_works(&mut client, "after");
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
    // Each was sent once: what a server may have worked on is not sent again.
    let expected: Vec<String> = (0..=len).map(|n| n.to_string()).collect();
    assert_eq!(web.texts()[..=len], expected);
    let journal = place.journal();
    assert_eq!(journal.decisions().len(), len + 2);
    assert_eq!(journal.operations().len(), len + 2);
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
fn read_only_call_is_sent_once_more() {
    let calls = AtomicUsize::new(0);
    let (texts, ..) = borne("read_echo", move |request, wire| {
        if calls.fetch_add(1, Ordering::SeqCst) == 0 {
            return Ok(Then::Close);
        }
        behave(request, wire)
    });
    assert_eq!(texts, ["faulty", "faulty", "after"]);
}

#[test]
fn read_only_call_is_not_sent_a_third_time() {
    let place = Place::new();
    let web = faulty(|_, _| Ok(Then::Close));
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    client.request("tools/list", json!({})).unwrap();
    let params = json!({"name": "read_echo", "arguments": {"text": "faulty"}});
    let answer = client.request("tools/call", params).unwrap();
    assert_eq!(answer.error().unwrap()["data"]["reason"], "upstream_broken");
    assert_eq!(web.texts(), ["faulty", "faulty"]);
}

#[test]
fn endless_event() {
    faulty_call(&[], "upstream_oversize", |_, wire| {
        wire.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ")?;
        loop {
            wire.write_all(&[b'x'; 64 * 1024])?;
        }
    });
}

#[test]
fn endless_body() {
    faulty_call(&[], "upstream_oversize", |_, wire| {
        wire.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"a\":\"")?;
        loop {
            wire.write_all(&[b'x'; 64 * 1024])?;
        }
    });
}

#[test]
fn body_announced_longer_than_any_may_be() {
    faulty_call(&[], "upstream_oversize", |_, wire| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{";
        send(wire, head.as_bytes(), Then::Keep)
    });
}

#[test]
fn endless_silence_in_a_stream() {
    let flags = ["--call-timeout", "1"];
    faulty_call(&flags, "upstream_timeout", |_, wire| {
        send(wire, EVENTS_HEAD.as_bytes(), Then::Keep)
    });
}

#[test]
fn endless_comments() {
    let flags = ["--call-timeout", "1"];
    faulty_call(&flags, "upstream_timeout", |_, wire| {
        wire.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
        loop {
            wire.write_all(b": still here\n\n")?;
            guarded::pause(1);
        }
    });
}

#[test]
fn slow_server() {
    let flags = ["--call-timeout", "1"];
    let (_, journal) = faulty_call(&flags, "upstream_timeout", |_, _| {
        guarded::pause(30_000);
        Ok(Then::Close)
    });
    assert_eq!(journal.operations().len(), 2);
}

#[test]
fn one_tool_may_take_longer() {
    let place = Place::new();
    let web = Web::start(|request, wire| {
        if request.text().is_some() {
            guarded::pause(1_500);
        }
        behave(request, wire)
    });
    let flags = ["--call-timeout", "1", "--tool-timeout", "echo=30"];
    let mut client = place.guard_reached(&[&["--url", &web.url()][..], &flags].concat());
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "slow");
    let params = json!({"name": "other", "arguments": {"text": "x"}});
    let answer = client.request("tools/call", params).unwrap();
    assert_eq!(
        answer.error().unwrap()["data"]["reason"],
        "upstream_timeout"
    );
}

#[test]
fn huge_header() {
    faulty_call(&[], "upstream_reply_unfit", |_, wire| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nX-Big: {}\r\n\r\n",
            "x".repeat(70 * 1024)
        );
        send(wire, head.as_bytes(), Then::Keep)
    });
}

#[test]
fn too_many_headers() {
    faulty_call(&[], "upstream_reply_unfit", |_, wire| {
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Many: x\r\n".repeat(101));
        send(wire, head.as_bytes(), Then::Keep)
    });
}

#[test]
fn compressed_reply() {
    let (answer, _) = faulty_call(&[], "upstream_reply_unfit", |request, wire| {
        let body = echoed(request).to_string();
        let bytes = reply(
            "200 OK",
            "Content-Encoding: gzip\r\n",
            "application/json",
            &body,
        );
        send(wire, &bytes, Then::Keep)
    });
    assert!(answer.to_string().contains("compressed"), "{answer}");
}

#[test]
fn wrong_content_type() {
    let (answer, _) = faulty_call(&[], "upstream_reply_unfit", |_, wire| {
        send(
            wire,
            &reply("200 OK", "", "text/html", "<p>hello"),
            Then::Keep,
        )
    });
    assert!(answer.to_string().contains("text/html"), "{answer}");
}

#[test]
fn no_content_type() {
    faulty_call(&[], "upstream_reply_unfit", |_, wire| {
        send(
            wire,
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            Then::Keep,
        )
    });
}

#[test]
fn doubled_content_type() {
    faulty_call(&[], "upstream_reply_unfit", |request, wire| {
        let body = echoed(request).to_string();
        let twice = "Content-Type: text/event-stream\r\n";
        send(
            wire,
            &reply("200 OK", twice, "application/json", &body),
            Then::Keep,
        )
    });
}

#[test]
fn not_http_at_all() {
    faulty_call(&[], "upstream_reply_unfit", |_, wire| {
        send(wire, b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n\r\n", Then::Close)
    });
}

#[test]
fn reply_that_is_split_by_a_line_end_in_a_header() {
    faulty_call(&[], "upstream_reply_unfit", |_, wire| {
        let bytes = b"HTTP/1.1 200 OK\r\nX: a\rHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        send(wire, bytes, Then::Close)
    });
}

#[test]
fn two_replies_to_one_request() {
    let place = Place::new();
    let web = faulty(|request, wire| {
        let bytes = json_reply(&echoed(request));
        send(wire, &[&bytes[..], &bytes].concat(), Then::Keep)
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "faulty");
    for n in 0..5 {
        // The smuggled reply is nobody's answer: its connection is not used again.
        call_works(&mut client, &n.to_string());
    }
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
}

#[test]
fn accepted_without_an_answer() {
    faulty_call(&[], "upstream_no_answer", |_, wire| {
        send(wire, ACCEPTED, Then::Keep)
    });
}

#[test]
fn garbage_in_json() {
    faulty_call(&[], "upstream_garbage", |_, wire| {
        send(
            wire,
            &reply("200 OK", "", "application/json", "hello"),
            Then::Keep,
        )
    });
}

#[test]
fn answer_to_another_id() {
    let (_, journal) = faulty_call(&[], "upstream_no_answer", |_, wire| {
        let other = json!({"jsonrpc": "2.0", "id": 4711, "result": {}});
        send(wire, &json_reply(&other), Then::Keep)
    });
    journal.assert_event("server_answer_unknown");
}

#[test]
fn answer_to_another_id_beside_the_right_one() {
    let (_, journal, _) = borne("echo", |request, wire| {
        let other = json!({"jsonrpc": "2.0", "id": 4711, "result": {}});
        let events = [("", other), ("", echoed(request)), ("", echoed(request))];
        send(wire, &events_reply(&events), Then::Keep)
    });
    journal.assert_event("server_answer_unknown");
}

#[test]
fn stream_that_ends_without_an_answer() {
    faulty_call(&[], "upstream_no_answer", |_, wire| {
        let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        wire.write_all(&events_reply(&[("event: other\n", news)]))?;
        Ok(Then::Keep)
    });
}

#[test]
fn error_status_without_a_message() {
    let cases = [
        ("500 Internal Server Error", "upstream_http_status", false),
        ("404 Not Here", "upstream_session_lost", true),
        ("401 Unauthorized", "upstream_unauthorized", false),
        ("403 Forbidden", "upstream_unauthorized", false),
        ("429 Too Many Requests", "upstream_overloaded", true),
        ("503 Service Unavailable", "upstream_overloaded", true),
    ];
    for (status, reason, retryable) in cases {
        let place = Place::new();
        let web = faulty(move |_, wire| {
            send(wire, &reply(status, "", "text/plain", "<oops>"), Then::Keep)
        });
        let mut client = place.guard_reached(&["--url", &web.url()]);
        client.handshake(LATEST).unwrap();
        let answer = client.request("tools/call", echo("faulty")).unwrap();
        let data = &answer.error().unwrap()["data"];
        assert_eq!(data["reason"], reason, "{}", answer.line());
        assert_eq!(data["retryable"], retryable, "{}", answer.line());
        assert!(!answer.line().contains("oops"), "{}", answer.line());
        call_works(&mut client, "after");
    }
}

#[test]
fn error_status_with_a_message() {
    let place = Place::new();
    let web = faulty(|_, wire| {
        let error = json!({"jsonrpc": "2.0", "id": "server-error",
            "error": {"code": -32_007, "message": "its own words"}});
        let bytes = reply(
            "400 Bad Request",
            "",
            "application/json",
            &error.to_string(),
        );
        send(wire, &bytes, Then::Keep)
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    let answer = client.request("tools/call", echo("faulty")).unwrap();
    assert_eq!(answer.error_code(), Some(-32_007), "{}", answer.line());
    call_works(&mut client, "after");
}

#[test]
fn redirects_are_not_followed_and_no_key_goes_there() {
    let elsewhere = Web::start(behave);
    let target = elsewhere.url();
    let (answer, _) = faulty_call(&[], "upstream_redirected", move |_, wire| {
        let head = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {target}?token=s\r\nContent-Length: 0\r\n\r\n"
        );
        send(wire, head.as_bytes(), Then::Keep)
    });
    let text = answer.to_string();
    assert!(
        text.contains(&elsewhere.url()) && !text.contains("token"),
        "{text}"
    );
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn session_id_given_twice() {
    let place = Place::new();
    let web = Web::start(|request, wire| {
        if request.rpc_method() != "initialize" {
            return behave(request, wire);
        }
        let body = web::initialized(request).to_string();
        let ids = "Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\n";
        send(
            wire,
            &reply("200 OK", ids, "application/json", &body),
            Then::Keep,
        )
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    let answer = client.handshake(LATEST).unwrap_err().to_string();
    assert!(answer.contains("upstream_reply_unfit"), "{answer}");
}

#[test]
fn server_that_is_not_there() {
    let place = Place::new();
    let web = Web::start(behave);
    let url = web.url();
    drop(web);
    let mut client = place.guard_reached(&["--url", &url]);
    let id = client.send_request("tools/call", echo("x")).unwrap();
    let answer = line(&mut client);
    assert_eq!(answer["id"].to_string(), id);
    assert_eq!(answer["error"]["data"]["reason"], "upstream_unreachable");
    assert_eq!(answer["error"]["data"]["retryable"], true);
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // It was asked for its tools first; of a call that no schema explains nothing is let pass.
    let journal = place.journal();
    assert_eq!(journal.decision(&id)["reason"], "unknown_tool");
    assert_eq!(journal.operations().len(), 0);
}

#[test]
fn kept_connection_that_the_server_closed_meanwhile() {
    let place = Place::new();
    let web = Web::start(behave);
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    for n in 0..50 {
        call_works(&mut client, &n.to_string());
        web.hang_up();
    }
    let expected: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(web.texts(), expected, "each is sent once");
}

#[test]
fn more_notifications_than_may_be_under_way() {
    // The server takes none of them for a while: the client's side is not read further, nothing is lost.
    let place = Place::new();
    let web = Web::start(|request, wire| {
        if request.rpc_method() == "notifications/progress" {
            guarded::pause(1);
        }
        behave(request, wire)
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(LATEST).unwrap();
    for n in 0..2_000 {
        client
            .notify("notifications/progress", &json!({"n": n}))
            .unwrap();
    }
    call_works(&mut client, "after");
    eventually("all notifications arrive", || {
        web.of_method("notifications/progress").len() == 2_000
    });
}

#[test]
fn batch_as_a_reply_in_a_revision_that_has_none() {
    let era = Era::Legacy("2025-03-26");
    let place = Place::new();
    let web = faulty(|request, wire| {
        let news = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        send(
            wire,
            &json_reply(&json!([news, echoed(request)])),
            Then::Keep,
        )
    });
    let mut client = place.guard_reached(&["--url", &web.url()]);
    client.handshake(era).unwrap();
    client.send_request("tools/call", echo("faulty")).unwrap();
    assert_eq!(line(&mut client)["method"], "notifications/message");
    assert_eq!(line(&mut client)["result"]["content"][0]["text"], "faulty");
}
