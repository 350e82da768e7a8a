//! `durward serve` as clients meet it: sessions, both eras, keys, what is wrong, the end.

use std::io::BufReader;
use std::net::Shutdown;

use crate::support::guarded::{Place, eventually};
use crate::support::serving::{self, Served, call, modern_call};

const MODERN: [(&str, &str); 3] = [
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "echo"),
];

#[test]
fn a_legacy_session_opens_calls_and_ends() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    let answer = served.post(Some(&session), &call("3.0", "hello"));
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("\"id\":3.0"), "{answer:?}");
    assert_eq!(answer.json()["result"]["content"][0]["text"], "hello");
    let ended = served.send("DELETE", "/mcp/echo", &[("mcp-session-id", &session)], "");
    assert_eq!(ended.status, 204);
    assert_eq!(served.post(Some(&session), &call("4", "late")).status, 404);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    journal.assert_ended("3.0", "Success", None);
    assert_eq!(journal.decisions().len(), 1);
    assert_eq!(place.counted().len(), 1);
}

#[test]
fn who_sends_on_and_closes_its_own_side_gets_every_answer() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    let headers = [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-session-id", session.as_str()),
    ];
    let mut stream = served.connect();
    for number in 1..=3 {
        let body = call(&number.to_string(), &format!("text {number}"));
        serving::write_request(&mut stream, "POST", "/mcp/echo", &headers, &body);
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let mut reader = BufReader::new(stream);
    for number in 1..=3 {
        let answer = serving::read_answer(&mut reader).json();
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, &format!("text {number}"), "{answer}");
    }
}

#[test]
fn a_modern_request_needs_no_session_and_gets_none() {
    let served = Served::start(&[]);
    let answer = served.send("POST", "/mcp/echo", &MODERN, &modern_call("\"m\"", "hi"));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("mcp-session-id"), None);
    assert_eq!(answer.json()["result"]["resultType"], "complete");
    assert_eq!(answer.json()["id"], "m");
    let other = [MODERN[0], ("mcp-method", "tools/list"), MODERN[2]];
    let refused = served.send("POST", "/mcp/echo", &other, &modern_call("1", "x"));
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (400, &(-32020).into())
    );
    let doubled = [MODERN[0], MODERN[1], MODERN[2], MODERN[2]];
    let refused = served.send("POST", "/mcp/echo", &doubled, &modern_call("1", "x"));
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (400, &(-32020).into())
    );
    let unknown = modern_call("1", "x").replace("2026-07-28", "2099-01-01");
    let headers = [("mcp-protocol-version", "2099-01-01"), MODERN[1], MODERN[2]];
    let refused = served.send("POST", "/mcp/echo", &headers, &unknown);
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (400, &(-32022).into())
    );
    assert_eq!(
        refused.json()["error"]["data"]["supported"][0],
        "2026-07-28"
    );
    assert_eq!(served.place.counted().len(), 1);
}

#[test]
fn a_modern_client_before_a_legacy_server_is_told_what_to_do() {
    let place = Place::new();
    let mock = place.mock(&["echo", "--eras", "legacy"]).join(" ");
    let served = Served::start_server(place, &format!("echo={mock}"), &[]);
    let refused = served.send("POST", "/mcp/echo", &MODERN, &modern_call("1", "x"));
    let error = &refused.json()["error"];
    assert_eq!(
        (refused.status, &error["data"]["reason"]),
        (400, &"era_mismatch".into())
    );
    assert_eq!(served.place.counted().len(), 0);
}

#[test]
fn foreign_hosts_and_origins_and_unfit_messages_are_refused() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    let id = ("mcp-session-id", session.as_str());
    let good = call("1", "x");
    type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str, u16);
    let cases: [Case<'_>; 9] = [
        ("POST", vec![id, ("host", "evil.example")], &good, 403),
        (
            "POST",
            vec![id, ("origin", "http://evil.example")],
            &good,
            403,
        ),
        ("POST", vec![id, ("content-type", "text/plain")], &good, 415),
        ("POST", vec![id, ("accept", "text/html")], &good, 406),
        (
            "POST",
            vec![id, ("mcp-protocol-version", "1999-01-01")],
            &good,
            400,
        ),
        ("POST", vec![id, id], &good, 400),
        ("POST", vec![id], "{", 400),
        ("POST", vec![id], "[]", 400),
        ("PUT", vec![id], &good, 405),
    ];
    for (method, headers, body, status) in cases {
        let answer = served.send(method, "/mcp/echo", &headers, body);
        assert_eq!(answer.status, status, "{headers:?} {body} {answer:?}");
    }
    assert_eq!(served.post(None, &good).status, 400);
    assert_eq!(served.send("POST", "/mcp/other", &[], &good).status, 404);
    assert_eq!(served.place.counted().len(), 0);
    assert_eq!(served.post(Some(&session), &good).status, 200);
}

#[test]
fn batches_are_answered_where_the_revision_has_them() {
    let served = Served::start(&[]);
    let body = format!("[{},{}]", call("1", "a"), call("2", "b"));
    let new = served.open("2025-11-25");
    assert_eq!(served.post(Some(&new), &body).status, 400);
    let old = served.open("2025-03-26");
    let answer = served.post(Some(&old), &body);
    assert_eq!(answer.json().as_array().unwrap().len(), 2, "{answer:?}");
}

#[test]
fn a_handshake_in_a_batch_reached_a_server_that_was_already_in_use() {
    let served = Served::start(&[]);
    let session = served.open("2025-03-26");
    let handshake = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let body = format!("[{handshake},{}]", call("2", "b"));
    let answers = served.post(Some(&session), &body).json();
    let of = |id: u64| {
        let mut answers = answers.as_array().unwrap().iter();
        answers.find(|answer| answer["id"] == id).unwrap().clone()
    };
    assert_eq!(of(1)["error"]["data"]["reason"], "batch_not_allowed");
    let said = of(1)["error"]["message"].to_string();
    assert!(said.contains("must not be in a batch"), "{said}");
    assert_eq!(of(2)["result"]["content"][0]["text"], "b");
}

#[test]
fn keys_open_what_they_are_for_and_sessions_are_their_callers_own() {
    let place = Place::new();
    let keys = |args: &[&str]| {
        let all = [&["--no-config", "--state-dir", "state", "keys"], args].concat();
        let output = place.durward(&all);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let bearer = |key: String| format!("Bearer {key}");
    let first = bearer(keys(&["create", "first"]));
    let second = bearer(keys(&["create", "second"]));
    let elsewhere = bearer(keys(&["create", "elsewhere", "--scope", "files"]));
    let served = Served::start_in(
        Place {
            dir: place.dir.clone(),
        },
        &[],
    );
    let open = |key: Option<&str>| {
        let headers: Vec<(&str, &str)> =
            key.map(|key| ("authorization", key)).into_iter().collect();
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        served.send("POST", "/mcp/echo", &headers, body)
    };
    let missing = open(None);
    assert_eq!(missing.status, 401);
    assert!(
        missing
            .header("www-authenticate")
            .unwrap()
            .starts_with("Bearer")
    );
    assert_eq!(open(Some("Bearer dw_00")).status, 401);
    assert_eq!(open(Some(&elsewhere)).status, 403);
    let session = open(Some(&first))
        .header("mcp-session-id")
        .unwrap()
        .to_owned();
    let with = |key: &str, id: &str| {
        let headers = [("authorization", key), ("mcp-session-id", &session)];
        served
            .send("POST", "/mcp/echo", &headers, &call(id, "x"))
            .status
    };
    assert_eq!(with(&first, "10"), 200);
    assert_eq!(with(&second, "11"), 404, "a session is its caller's own");
    assert_eq!(served.send("GET", "/metrics", &[], "").status, 401);
    // They tell of every server: a key for one of them does not open them.
    let metrics = |key: &str| {
        let headers = [("authorization", key)];
        served.send("GET", "/metrics", &headers, "").status
    };
    assert_eq!((metrics(&first), metrics(&elsewhere)), (200, 403));
    assert_eq!(served.send("GET", "/health", &[], "").status, 200);
    keys(&["revoke", "first"]);
    eventually("the revoked key is refused", || with(&first, "12") == 401);
    let mut served = served;
    std::mem::forget(std::mem::replace(&mut served.place, Place::new()));
    assert_eq!(served.stop().0, Some(0));
    let journal = place.journal();
    assert_eq!(journal.decision("10")["subject_id"], "key:first");
    journal.assert_event("key_refused");
}

#[test]
fn metrics_count_what_was_decided() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    served.post(Some(&session), &call("1", "x"));
    let answer = served.send("GET", "/metrics", &[], "");
    for line in [
        "durward_decisions_total{effect=\"allow\",reason=\"\"} 1",
        "durward_operations_total{outcome=\"Success\"} 1",
        "durward_call_time_seconds_count 1",
        "durward_sessions 1",
        "durward_servers 1",
        "# TYPE durward_decisions counter",
        "# EOF",
    ] {
        assert!(answer.body.contains(line), "{line}\n{}", answer.body);
    }
}

#[test]
fn the_news_stream_opens_once_and_resumes() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    let id = ("mcp-session-id", session.as_str());
    let mut held = served.connect();
    serving::write_request(&mut held, "GET", "/mcp/echo", &[id], "");
    let mut held = std::io::BufReader::new(held);
    let answer = serving::read_head(&mut held);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(served.send("GET", "/mcp/echo", &[id], "").status, 409);
    let unknown = [id, ("last-event-id", "9-9")];
    assert_eq!(served.send("GET", "/mcp/echo", &unknown, "").status, 400);
    drop(held);
    eventually("the stream is free again", || {
        let mut next = served.connect();
        serving::write_request(&mut next, "GET", "/mcp/echo", &[id], "");
        serving::read_head(&mut std::io::BufReader::new(next)).status == 200
    });
}

#[test]
fn a_server_that_is_killed_is_started_again_for_the_next_call() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    assert_eq!(served.post(Some(&session), &call("1", "a")).status, 200);
    let own = served.process.id().to_string();
    let children = || {
        let found = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        found.unwrap_or_default()
    };
    // The watcher may hang below any thread of ours.
    let watcher = std::fs::read_dir(format!("/proc/{own}/task"))
        .unwrap()
        .flatten()
        .find_map(|task| {
            let text = std::fs::read_to_string(task.path().join("children")).ok()?;
            text.split_whitespace().next()?.parse::<i32>().ok()
        });
    let watcher = watcher.unwrap_or_else(|| panic!("no watcher: {}", children()));
    let pid = rustix::process::Pid::from_raw(watcher).unwrap();
    rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).unwrap();
    let mut id = 10;
    eventually("a call is answered again", || {
        id += 1;
        let answer = served.post(Some(&session), &call(&id.to_string(), "again"));
        assert_eq!(answer.status, 200);
        answer.json()["result"]["content"][0]["text"] == "again"
    });
}

#[test]
fn what_cannot_be_served_is_said_before_anything_begins() {
    let place = Place::new();
    let run = |args: &[&str]| {
        let all = [&["--no-config", "--state-dir", "state", "serve"], args].concat();
        let output = place.durward(&all);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text)
    };
    let (code, text) = run(&[]);
    assert_eq!(code, Some(16), "{text}");
    assert!(text.contains("there is no server to serve"), "{text}");
    let (code, text) = run(&["--server", "a=true", "--listen", "0.0.0.0:0"]);
    assert_eq!(code, Some(16), "{text}");
    assert!(text.contains("other machines"), "{text}");
    let (code, text) = run(&["--server", "a=true", "--server", "a=true"]);
    assert_eq!(code, Some(16), "{text}");
    let (code, _) = run(&["--server", "a='x"]);
    assert_eq!(code, Some(2));
    assert!(!place.path("state/journal").exists());
}
