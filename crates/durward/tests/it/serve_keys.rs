//! API keys while `durward serve` runs: what ends with a key, and that the door stays shut.

use std::thread;

use serde_json::Value;

use crate::support::guarded::{Place, eventually};
use crate::support::refusals::told;
use crate::support::serving::{self, Answer, Events, Served, call, modern, modern_headers};

/// `durward keys` in a place; what it prints.
#[track_caller]
pub fn keys(place: &Place, args: &[&str]) -> String {
    let all = [&["--no-config", "--state-dir", "state", "keys"], args].concat();
    let output = place.durward(&all);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[track_caller]
pub fn bearer(place: &Place, args: &[&str]) -> String {
    format!("Bearer {}", keys(place, args))
}

pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// Opens a session with a key, or without one.
fn open(served: &Served, key: Option<&str>) -> Answer {
    let headers: Vec<(&str, &str)> = key.map(|key| ("authorization", key)).into_iter().collect();
    served.send("POST", "/mcp/echo", &headers, INITIALIZE)
}

#[track_caller]
fn session(served: &Served, key: Option<&str>) -> String {
    let answer = open(served, key);
    let id = answer.header("mcp-session-id");
    id.unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// A call in a session: its status.
fn status(served: &Served, key: &str, session: &str, id: &str) -> u16 {
    let headers = [("authorization", key), ("mcp-session-id", session)];
    let answer = served.send("POST", "/mcp/echo", &headers, &call(id, "x"));
    answer.status
}

#[test]
fn revoking_the_last_key_leaves_the_door_shut() {
    let place = Place::new();
    let only = bearer(&place, &["create", "only"]);
    let served = Served::start_in(place, &[]);
    assert_eq!(open(&served, None).status, 401);
    assert_eq!(open(&served, Some(&only)).status, 200);
    keys(&served.place, &["revoke", "only"]);
    eventually("the key is refused", || {
        open(&served, Some(&only)).status == 401
    });
    assert_eq!(open(&served, None).status, 401, "nobody without a key");
    std::fs::remove_file(served.place.path("state/keys/api_keys.json")).unwrap();
    let another = bearer(&served.place, &["create", "another"]);
    eventually("a new key is taken up", || {
        open(&served, Some(&another)).status == 200
    });
    assert_eq!(open(&served, None).status, 401);
    keys(&served.place, &["revoke", "another"]);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let served = Served::start_in(place, &[]);
    assert_eq!(open(&served, None).status, 401, "after a start as well");
}

#[test]
fn keys_that_are_made_and_taken_back_while_serving_are_recorded() {
    let place = Place::new();
    let first = bearer(&place, &["create", "first"]);
    let served = Served::start_in(place, &[]);
    let made = ["create", "ops", "--group", "admin", "--scope", "echo"];
    let second = bearer(&served.place, &made);
    eventually("the key is taken up", || {
        open(&served, Some(&second)).status == 200
    });
    keys(&served.place, &["revoke", "first"]);
    eventually("the key is refused", || {
        open(&served, Some(&first)).status == 401
    });
    let (_, place) = served.stop();
    let records = place.records();
    let recorded = |event: &str| {
        let found = records.0.iter().filter(|own| own["event"] == event);
        let found = found.map(|own| (own["subject_id"].clone(), own["message"].clone()));
        found.collect::<Vec<_>>()
    };
    let rights = "good for servers echo, in groups admin";
    assert_eq!(recorded("key_begun"), [("key:ops".into(), rights.into())]);
    assert_eq!(recorded("key_ended"), [("key:first".into(), Value::Null)]);
}

#[test]
fn a_missing_key_file_does_not_open_the_door() {
    let place = Place::new();
    let key = bearer(&place, &["create", "a"]);
    let served = Served::start_in(place, &[]);
    std::fs::remove_file(served.place.path("state/keys/api_keys.json")).unwrap();
    eventually("the key is gone", || {
        open(&served, Some(&key)).status == 401
    });
    assert_eq!(open(&served, None).status, 401);
}

#[test]
fn what_a_key_has_opened_ends_with_it_and_with_nobody_elses() {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"test_simple_text"}},
            {"id":"rest","effect":"allow","conditions":{"mcp_method":"*"}}]}"#,
    );
    let (going, staying) = (
        bearer(&place, &["create", "going"]),
        bearer(&place, &["create", "staying"]),
    );
    let mock = place.mock(&["conformance"]).join(" ");
    let served = Served::start_server(place, &format!("echo={mock}"), &[]);
    let stream = |key: &str| {
        let session = session(&served, Some(key));
        let headers = [("authorization", key)];
        let events = served.stream("GET", &session, &headers, "");
        (session, events)
    };
    let subscription = |key: &str| {
        let mut headers = modern_headers("subscriptions/listen", "");
        headers.push(("authorization", key));
        let filter = r#""notifications":{"toolsListChanged":true}"#;
        let body = modern("\"s\"", "subscriptions/listen", filter);
        let mut events = Events::of(&served, "POST", &headers, &body);
        events.message();
        events
    };
    let (_, mut of_going) = stream(&going);
    let (kept, _of_staying) = stream(&staying);
    let mut listening = subscription(&going);
    let mut still_listening = subscription(&staying);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut headers = modern_headers("tools/call", "test_simple_text");
            headers.push(("authorization", going.as_str()));
            let params = r#""name":"test_simple_text","arguments":{}"#;
            let body = modern("9", "tools/call", params);
            served.send("POST", "/mcp/echo", &headers, &body)
        });
        eventually("the question is asked", || {
            let metrics = served.send("GET", "/metrics", &[("authorization", &staying)], "");
            metrics.body.contains("durward_approvals_waiting 1\n")
        });
        keys(&served.place, &["revoke", "going"]);
        let refused = waiting.join().unwrap().json();
        assert_eq!(told(&refused)["reason"], "approval_withdrawn", "{refused}");
    });
    assert!(of_going.next().is_none(), "the stream ends");
    assert!(listening.next().is_none(), "the subscription ends");
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let headers = [
        ("authorization", staying.as_str()),
        ("mcp-session-id", &kept),
    ];
    assert_eq!(served.send("POST", "/mcp/echo", &headers, ping).status, 200);
    let change = modern(
        "8",
        "tools/call",
        r#""name":"test_trigger_tool_change","arguments":{}"#,
    );
    let mut headers = modern_headers("tools/call", "test_trigger_tool_change");
    headers.push(("authorization", staying.as_str()));
    assert_eq!(
        served.send("POST", "/mcp/echo", &headers, &change).status,
        200
    );
    let news = still_listening.message();
    assert_eq!(news["method"], "notifications/tools/list_changed", "{news}");
    let (_, place) = served.stop();
    let journal = place.journal();
    let ended = journal
        .0
        .iter()
        .find(|r| r["event"] == "session_ended" && r["end_reason"] == "auth_expired");
    assert_eq!(ended.unwrap()["subject_id"], "key:going");
}

#[test]
fn a_rotation_is_an_end_unless_the_texts_overlap() {
    let place = Place::new();
    let first = bearer(&place, &["create", "a"]);
    let served = Served::start_in(place, &[]);
    let kept = session(&served, Some(&first));
    let second = bearer(&served.place, &["rotate", "a", "--overlap", "1h"]);
    eventually("the new text is good", || {
        status(&served, &second, &kept, "1") == 200
    });
    assert_eq!(status(&served, &first, &kept, "2"), 200, "both are good");
    let listed = keys(&served.place, &["list"]);
    let mut rows = listed.lines();
    let is_kept = |row: &str| row.starts_with("a ") && row.ends_with('Z');
    assert!(rows.any(is_kept), "when the old text ends: {listed}");
    let third = bearer(&served.place, &["rotate", "a"]);
    eventually("the old texts are refused", || {
        status(&served, &second, &kept, "3") == 401
    });
    assert_eq!(status(&served, &first, &kept, "4"), 401);
    eventually("the session has ended", || {
        status(&served, &third, &kept, "5") == 404
    });
    assert_eq!(open(&served, Some(&third)).status, 200);
}

#[test]
fn a_key_whose_time_is_over_ends_what_it_opened() {
    let place = Place::new();
    let short = bearer(&place, &["create", "short", "--expires", "2s"]);
    let served = Served::start_in(place, &[]);
    let session = session(&served, Some(&short));
    let headers = [("authorization", short.as_str())];
    let mut stream = served.stream("GET", &session, &headers, "");
    assert!(stream.next().is_none(), "the stream ends by itself");
    assert_eq!(open(&served, Some(&short)).status, 401);
    let place = &served.place;
    let args = [
        "--no-config",
        "--state-dir",
        "state",
        "keys",
        "rotate",
        "short",
    ];
    let output = place.durward(&args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(16));
    assert!(
        said.contains("has expired") && said.contains("--expires"),
        "{said}"
    );
    let again = bearer(place, &["rotate", "short", "--expires", "1h"]);
    eventually("it is good again", || {
        open(&served, Some(&again)).status == 200
    });
}

#[test]
fn the_first_key_ends_what_was_opened_without_one() {
    let served = Served::start(&[]);
    let session = session(&served, None);
    let mut stream = served.stream("GET", &session, &[], "");
    keys(&served.place, &["create", "first"]);
    assert!(stream.next().is_none(), "the stream ends");
    assert_eq!(open(&served, None).status, 401);
}

#[test]
fn many_writers_at_once_lose_no_key() {
    const WRITERS: usize = 12;
    let place = Place::new();
    thread::scope(|scope| {
        for number in 0..WRITERS {
            let place = &place;
            scope.spawn(move || keys(place, &["create", &format!("k{number}")]));
        }
    });
    let listed: serde_json::Value =
        serde_json::from_str(&keys(&place, &["list", "--json"])).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), WRITERS, "{listed}");
    assert!(!listed.to_string().contains("dw_"), "{listed}");
}

#[test]
fn spans_that_make_no_sense_are_refused() {
    let place = Place::new();
    for args in [
        &["create", "a", "--expires", "0s"][..],
        &["rotate", "a", "--overlap", "721h"],
        &["rotate", "a", "--overlap", "soon"],
    ] {
        let all = [&["--no-config", "--state-dir", "state", "keys"], args].concat();
        let output = place.durward(&all);
        assert!(!output.status.success(), "{args:?}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn health_and_metrics_know_get_and_head() {
    let served = Served::start(&[]);
    for path in ["/health", "/metrics"] {
        assert_eq!(served.send("GET", path, &[], "").status, 200, "{path}");
        let wrong = served.send("POST", path, &[], "");
        assert_eq!(wrong.status, 405, "{path}");
        assert_eq!(wrong.header("allow"), Some("GET, HEAD"));
        let mut stream = served.connect();
        serving::write_request(&mut stream, "HEAD", path, &[("connection", "close")], "");
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n\r\n"),
            "{text}"
        );
    }
}
