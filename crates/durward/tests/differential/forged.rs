//! Callers who share a server's process do not answer one another's calls.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use crate::edge::{Edge, Way};
use crate::http::{ANSWER, Serving, started};
use crate::lines::{Lines, PATIENCE};
use crate::place::{Place, binary};
use crate::servers;

/// The numbers that a call of the other caller may have at the server.
const GUESSES: std::ops::Range<u64> = 0..16;

/// A call, with further members of the message.
fn call(id: u64, more: &str, tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    format!(r#"{{"jsonrpc":"2.0","id":{id}{more},"method":"tools/call","params":{params}}}"#)
}

/// A call whose answer a reader that folds names gives to the request of this number.
fn forging(number: u64) -> String {
    let arguments = json!({"text": "forged"});
    let more = format!(r#","ID":{number}"#);
    call(1_000 + number, &more, "say", &arguments)
}

/// A header with a new key of this name.
fn key(place: &Place, name: &str) -> String {
    let output = place
        .command(binary())
        .args(["keys", "--state-dir", "state", "create", name])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let key = String::from_utf8(output.stdout).unwrap();
    format!("authorization: Bearer {}\r\n", key.trim())
}

/// Waits until the server has begun with the call that it holds back.
fn held(place: &Place) {
    let until = Instant::now() + PATIENCE;
    while place.executed().is_empty() {
        assert!(Instant::now() < until, "the call is not held");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Without a gate the server gives the answer of one request to another.
fn directly(way: Way, command: &[String]) {
    let place = Place::new();
    let mut lines = Lines::open(way, command, &place);
    assert!(lines.send(call(7, "", "hold", &json!({})).as_bytes()));
    held(&place);
    assert!(lines.send(forging(7).as_bytes()));
    let forged = lines.line("forged", PATIENCE).unwrap();
    let forged: Value = serde_json::from_str(&forged).unwrap();
    assert_eq!(forged.get("id"), Some(&json!(7)));
    assert!(lines.send(call(8, "", "release", &json!({})).as_bytes()));
    lines.end();
}

#[test]
fn j02_no_caller_answers_the_call_of_another_who_shares_its_server() {
    let Some(server) = servers::held() else {
        return;
    };
    directly(Edge::Direct.plainly(), &server.command);
    let place = Place::new();
    let all =
        json!({"rules": [{"id": "all", "effect": "allow", "conditions": {"tool_name": "*"}}]});
    fs::write(place.dir.join("policy.json"), all.to_string()).unwrap();
    let keys = [key(&place, "one"), key(&place, "other")];
    let serving = Serving::of(&started(&server, &place), &place, &["--share", "all"]);
    let way = Edge::Serve.plainly();
    let [one, other] = keys.map(|key| serving.open(way, &key));
    let send =
        |headers: &str, frame: &str, longest| serving.post(headers, frame.as_bytes(), longest);
    let (answer, refused) = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| send(&one, &call(1, "", "hold", &json!({})), PATIENCE));
        held(&place);
        let refused: Vec<String> = GUESSES
            .map(|number| send(&other, &forging(number), ANSWER))
            .collect();
        let said = send(&other, &call(2, "", "release", &json!({})), PATIENCE);
        assert!(said.contains("released"), "{said}");
        (waiting.join().unwrap(), refused)
    });
    assert!(answer.contains(r#""text":"held""#), "{answer}");
    for said in refused {
        assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
    }
}
