//! `durward serve` before servers over HTTP: sessions opened, lost, opened again and ended; streams, questions of
//! the server, cancellation, in both eras; keys and certificates.

use std::fs;
use std::io::{BufRead, BufReader};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};

use crate::support::authority::{Authority, secure};
use crate::support::guarded::{self, Place, eventually};
use crate::support::serving::{Served, call, modern_call, modern_headers, write_request};
use crate::support::web::{
    EVENTS_HEAD, Then, Web, behave, behave_modern, echoed, event, forgetful, reply, send, slow,
};
use serde_json::{Value, json};

const ALLOW_ALL: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;

fn before(web: &Web) -> Served {
    let place = Place::new();
    place.write_policy(ALLOW_ALL);
    Served::start_server(place, &format!("echo={}", web.url()), &[])
}

/// Calls `echo` in a session and expects its text back.
#[track_caller]
fn works(served: &Served, session: &str, id: &str, text: &str) {
    let answer = served.post(Some(session), &call(id, text));
    assert_eq!(answer.json()["result"]["content"][0]["text"], text);
    assert_eq!(answer.json()["id"].to_string(), id);
}

/// The messages of a stream, as they come.
fn messages(reader: impl BufRead) -> impl Iterator<Item = Value> {
    let data = |line: String| line.strip_prefix("data: ").map(str::to_owned);
    let lines = reader.lines().map_while(Result::ok).filter_map(data);
    lines.filter_map(|data| serde_json::from_str(&data).ok())
}

#[test]
fn each_session_has_one_at_the_server_and_ends_it() {
    let web = Web::start(behave);
    let served = before(&web);
    let session = served.open("2025-11-25");
    works(&served, &session, "7", "x");
    let of = |method: &str| web.requests().iter().filter(|r| r.method == method).count();
    let ended = served.send("DELETE", "/mcp/echo", &[("mcp-session-id", &session)], "");
    assert_eq!(ended.status, 204);
    eventually("the server's session is ended", || of("DELETE") == 1);
    for request in web.requests().iter().skip(1) {
        assert_eq!(request.header("mcp-session-id"), Some("s-1"), "{request:?}");
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!(request.header("authorization"), None);
    }
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    journal.assert_ended("7", "Success", None);
    assert_eq!(journal.operation("7")["transport"], "http");
}

#[test]
fn sessions_that_are_open_at_the_end_are_ended_at_the_server() {
    let web = Web::start(behave);
    let served = before(&web);
    let session = served.open("2025-11-25");
    works(&served, &session, "1", "x");
    assert_eq!(served.stop().0, Some(0));
    assert_eq!(web.requests().last().unwrap().method, "DELETE");
}

#[test]
fn a_session_that_the_server_forgot_is_opened_again() {
    let complaint = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
    for (status, body) in [("404 Not Found", ""), ("400 Bad Request", complaint)] {
        let (web, newest) = forgetful(status, body);
        let served = before(&web);
        let session = served.open("2025-11-25");
        works(&served, &session, "1", "first");
        newest.fetch_add(7, Ordering::SeqCst);
        works(&served, &session, "2", "second");
        works(&served, &session, "3", "third");
        assert_eq!(web.of_method("initialize").len(), 2);
        // The one that was refused was not worked on; then it was sent again.
        assert_eq!(web.texts(), ["first", "second", "second", "third"]);
        let journal = served.stop().1.journal();
        assert_eq!(journal.decisions().len(), 3);
        assert_eq!(journal.operations().len(), 3);
    }
}

#[test]
fn what_the_server_says_by_itself_goes_to_the_clients_own_stream() {
    let web = Web::start(|request, wire| {
        if request.method != "GET" {
            return behave(request, wire);
        }
        let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        wire.write_all(EVENTS_HEAD.as_bytes())?;
        wire.write_all(&event("", &news))?;
        guarded::pause(60_000);
        Ok(Then::Close)
    });
    let served = before(&web);
    let session = served.open("2025-11-25");
    let mut stream = served.connect();
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("accept", "text/event-stream"),
    ];
    write_request(&mut stream, "GET", "/mcp/echo", &headers, "");
    let news = messages(BufReader::new(stream)).next().unwrap();
    assert_eq!(news["method"], "notifications/tools/list_changed");
    works(&served, &session, "1", "beside it");
}

#[test]
fn a_question_on_a_calls_stream_is_asked_and_answered_there() {
    let answered = Arc::new((Mutex::new(None::<Value>), Condvar::new()));
    let answers = Arc::clone(&answered);
    let web = Web::start(move |request, wire| {
        let (answer, told) = &*answers;
        if request.rpc_method().is_empty() && request.method == "POST" {
            *answer.lock().unwrap() = Some(request.json());
            told.notify_all();
        }
        if request.text().is_none() {
            return behave(request, wire);
        }
        let question = json!({"jsonrpc": "2.0", "id": "q-1", "method": "roots/list"});
        wire.write_all(EVENTS_HEAD.as_bytes())?;
        wire.write_all(&event("", &question))?;
        let mut waiting = answer.lock().unwrap();
        while waiting.is_none() {
            waiting = told.wait_timeout(waiting, guarded::PATIENCE).unwrap().0;
        }
        wire.write_all(&event("", &echoed(request)))?;
        send(wire, b"0\r\n\r\n", Then::Keep)
    });
    let served = before(&web);
    let session = served.open("2025-11-25");
    let mut stream = served.connect();
    let headers = [("mcp-session-id", session.as_str())];
    write_request(&mut stream, "POST", "/mcp/echo", &headers, &call("5", "x"));
    let mut said = messages(BufReader::new(stream));
    let question = said.next().unwrap();
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    assert_eq!(served.post(Some(&session), &answer.to_string()).status, 202);
    let end = said.next().unwrap();
    assert_eq!(
        (&end["id"], &end["result"]["content"][0]["text"]),
        (&json!(5), &json!("x"))
    );
    let seen = answered.0.lock().unwrap().clone().unwrap();
    assert_eq!(
        seen,
        json!({"jsonrpc": "2.0", "id": "q-1", "result": {"roots": []}})
    );
}

#[test]
fn a_legacy_stream_that_breaks_is_resumed_behind_the_clients_back() {
    let asked = Mutex::new(Value::Null);
    let web = Web::start(move |request, wire| {
        if request.text().is_some() {
            *asked.lock().unwrap() = echoed(request);
            wire.write_all(EVENTS_HEAD.as_bytes())?;
            return send(
                wire,
                &event("id: p-1\nretry: 60\n", &Value::Null),
                Then::Close,
            );
        }
        if request.header("last-event-id") == Some("p-1") {
            wire.write_all(EVENTS_HEAD.as_bytes())?;
            let answer = asked.lock().unwrap().clone();
            return send(wire, &event("id: p-2\n", &answer), Then::Keep);
        }
        behave(request, wire)
    });
    let served = before(&web);
    let session = served.open("2025-11-25");
    works(&served, &session, "1", "x");
    assert_eq!(web.texts(), ["x"], "the call itself is sent once");
}

#[test]
fn cancelling_reaches_the_server_in_both_eras() {
    // Legacy: the client says so, and the server is told as well as hung up on.
    let (web, closed) = slow();
    let served = before(&web);
    let session = served.open("2025-11-25");
    let mut stream = served.connect();
    let headers = [("mcp-session-id", session.as_str())];
    write_request(
        &mut stream,
        "POST",
        "/mcp/echo",
        &headers,
        &call("9", "slow"),
    );
    eventually("the call arrives", || web.texts() == ["slow"]);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#;
    assert_eq!(served.post(Some(&session), cancel).status, 202);
    eventually("the stream is closed", || {
        closed.load(Ordering::SeqCst) == 1
    });
    eventually("the server is told", || {
        web.of_method("notifications/cancelled").len() == 1
    });
    let named = web.of_method("notifications/cancelled")[0].json()["params"]["requestId"].clone();
    assert_eq!(named, web.of_method("tools/call")[0].json()["id"]);
    works(&served, &session, "10", "after");
    let journal = served.stop().1.journal();
    assert_eq!(journal.operation("9")["status"], "Cancelled");

    // Modern: the client hangs up, and so do we.
    let (web, closed) = slow();
    let served = before(&web);
    let mut stream = served.connect();
    let headers = modern_headers("tools/call", "echo");
    write_request(
        &mut stream,
        "POST",
        "/mcp/echo",
        &headers,
        &modern_call("9", "slow"),
    );
    eventually("the call arrives", || web.texts() == ["slow"]);
    drop(stream);
    eventually("the stream is closed", || {
        closed.load(Ordering::SeqCst) == 1
    });
    assert_eq!(web.of_method("notifications/cancelled").len(), 0);
    eventually("it is settled", || {
        let journal = served.place.journal();
        journal.operations().len() == 1 && journal.operation("9")["status"] == "Cancelled"
    });
}

#[test]
fn a_modern_call_goes_on_with_its_headers_and_without_a_session() {
    let web = Web::start(behave_modern);
    let served = before(&web);
    let mut headers = modern_headers("tools/call", "echo");
    headers.push(("mcp-param-region", "north"));
    headers.push(("mcp-session-id", "s-of-nobody"));
    let answer = served.send("POST", "/mcp/echo", &headers, &modern_call("\"m\"", "x"));
    assert_eq!(
        answer.json()["result"]["content"][0]["text"],
        "x",
        "{answer:?}"
    );
    assert_eq!(answer.json()["id"], "m");
    let calls = web.of_method("tools/call");
    for (name, value) in [
        ("mcp-protocol-version", Some("2026-07-28")),
        ("mcp-method", Some("tools/call")),
        ("mcp-name", Some("echo")),
        ("mcp-param-region", Some("north")),
        ("mcp-session-id", None),
    ] {
        assert_eq!(calls[0].header(name), value, "{name}");
    }
}

#[test]
fn eras_that_do_not_meet_are_named() {
    let refuses = |status: &'static str, code: i64, message: &'static str| {
        Web::start(move |_, wire| {
            let error = json!({"code": code, "message": message});
            let body = json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string();
            send(
                wire,
                &reply(status, "", "application/json", &body),
                Then::Keep,
            )
        })
    };
    let web = refuses("400 Bad Request", -32_022, "Unsupported protocol version");
    let served = before(&web);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let answer = served.send("POST", "/mcp/echo", &[], body);
    assert_eq!(answer.json()["error"]["data"]["reason"], "era_mismatch");
    for (status, code) in [("400 Bad Request", -32_600), ("200 OK", -32_601)] {
        let web = refuses(status, code, "Missing session ID");
        let served = before(&web);
        let headers = modern_headers("tools/call", "echo");
        let answer = served.send("POST", "/mcp/echo", &headers, &modern_call("1", "x"));
        let error = &answer.json()["error"];
        assert_eq!((answer.status, &error["code"]), (400, &json!(-32_022)));
        assert_eq!(error["data"]["reason"], "era_mismatch");
        assert_eq!(web.texts().len(), 0, "the call was not sent");
    }
}

#[test]
fn one_session_is_shared_by_those_who_may_share_it() {
    let web = Web::start(behave);
    let place = Place::new();
    place.write_policy(ALLOW_ALL);
    let server = format!("echo={}", web.url());
    let served = Served::start_server(place, &server, &["--share", "caller"]);
    let (one, other) = (served.open("2025-11-25"), served.open("2025-11-25"));
    assert_ne!(one, other);
    // The same id, at the same time in both sessions, is two calls.
    works(&served, &one, "1", "one");
    works(&served, &other, "1", "other");
    assert_eq!(web.of_method("initialize").len(), 1);
    assert_eq!(web.of_method("notifications/initialized").len(), 1);
    let calls = web.of_method("tools/call");
    assert_ne!(calls[0].json()["id"], calls[1].json()["id"]);
}

/// Serves what a configuration names.
fn configured(place: Place, server: &Value) -> Served {
    fs::write(
        place.path("durward.yaml"),
        json!({"servers": {"echo": server}}).to_string(),
    )
    .unwrap();
    Served::start_configured(place)
}

#[test]
fn key_headers_and_certificates_of_the_configuration_are_used() {
    let authority = Authority::new();
    let web = secure(
        &authority.certify("localhost", |_| {}),
        Some(&authority.pem()),
    );
    let (place, own) = (Place::new(), authority.certify("client", |_| {}));
    for (name, text) in [
        ("ca.pem", &authority.pem()),
        ("cert.pem", &own.0),
        ("key.pem", &own.1),
    ] {
        fs::write(place.path(name), text).unwrap();
    }
    let url = format!("https://localhost:{}/mcp", web.port);
    let server = json!({"url": url, "api_key": "s3cret-key", "headers": {"x-team": "blue"},
        "ca": "ca.pem", "client_cert": "cert.pem", "client_key": "key.pem"});
    let served = configured(place, &server);
    let session = served.open("2025-11-25");
    works(&served, &session, "1", "x");
    for request in web.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer s3cret-key"));
        assert_eq!(request.header("x-team"), Some("blue"));
    }
    for segment in served.stop().1.segments() {
        assert!(!fs::read_to_string(segment).unwrap().contains("s3cret"));
    }
}

#[test]
fn a_server_whose_certificate_nobody_vouches_for_gets_nothing() {
    let web = secure(&Authority::new().certify("localhost", |_| {}), None);
    let url = format!("https://localhost:{}/mcp", web.port);
    let served = configured(Place::new(), &json!({"url": url, "api_key": "s3cret-key"}));
    let headers = modern_headers("tools/call", "echo");
    let answer = served.send("POST", "/mcp/echo", &headers, &modern_call("1", "x"));
    let error = &answer.json()["error"];
    assert_eq!(error["data"]["reason"], "upstream_tls", "{answer:?}");
    assert!(!answer.body.contains("s3cret"));
    assert_eq!(web.requests().len(), 0);
}

#[test]
fn where_a_url_and_a_command_are_given_the_command_stands_in() {
    let place = Place::new();
    let web = Web::start(behave);
    let url = web.url();
    drop(web);
    let mock = place.mock(&["echo"]);
    let server = json!({"url": url, "command": mock[0], "args": mock[1..]});
    let served = configured(place, &server);
    let session = served.open("2025-11-25");
    works(&served, &session, "1", "x");
    assert_eq!(served.place.counted().len(), 1);
}

#[test]
fn urls_that_cannot_be_used_are_said_before_anything_begins() {
    let place = Place::new();
    let flags = ["--policy", "policy.json", "--listen", "127.0.0.1:0"];
    let words = ["--no-config", "--state-dir", "state", "serve"];
    for (url, why) in [
        ("http://example.org/mcp", "--insecure-http"),
        ("ftp://example.org/", "https://"),
        ("https://user:word@example.org/", "password"),
        ("http://", "not a URL"),
    ] {
        let server = format!("far={url}");
        let done = place.durward(&[&words[..], &flags, &["--server", &server]].concat());
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(16), "{said}");
        assert!(
            said.contains("the server \"far\"") && said.contains(why),
            "{said}"
        );
    }
    assert!(place.segments().is_empty());
}

/// A monitor asks by HEAD: the head of what GET answers, and no body.
#[test]
fn head_is_answered_as_get_without_the_body() {
    use crate::models::support;
    let mock = "providers: { a: { kind: mock, latency: 0ms, models: [plain] } }";
    let models = support::serve(&format!("models: {{ {mock} }}"), &[]);
    let more = format!("models: {{ {mock}, accounts: {{ register: open }} }}");
    let accounts = support::serve(&more, &[]);
    for (served, path) in [
        (&accounts, "/account"),
        (&models, "/v1/models"),
        (&models, "/v1/models/a/plain"),
        (&models, "/health"),
        (&models, "/metrics"),
    ] {
        let whole = |method: &str| {
            let mut stream = served.connect();
            write_request(&mut stream, method, path, &[("connection", "close")], "");
            let mut text = String::new();
            std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            let status = head.lines().next().unwrap().to_owned();
            (status, body.to_owned())
        };
        let (get, head) = (whole("GET"), whole("HEAD"));
        assert!(get.0.contains(" 200 "), "{path}: {}", get.0);
        assert_eq!(head.0, get.0, "{path}");
        assert!(!head.0.contains("405"), "{path}: {}", head.0);
        assert_eq!(head.1, "", "{path}");
    }
}
