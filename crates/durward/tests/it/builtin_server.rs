//! `builtin: echo` as a user meets it; what clients receive and the journal records is in the scenario table.

use std::fs;

use crate::support::guarded::{LATEST, Place, end};
use serde_json::{Value, json};

const READS: &str =
    r#"{"rules":[{"id":"reads","effect":"allow","conditions":{"operations":["read"]}}]}"#;

fn configured() -> Place {
    let place = Place::new();
    fs::write(
        place.path("durward.yaml"),
        "servers: { talk: { builtin: echo } }\n",
    )
    .unwrap();
    place
}

#[test]
fn check_shows_it() {
    let place = configured();
    let output = place.durward(&["--config", "durward.yaml", "check"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    let line = shown.lines().find(|line| line.contains("talk")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["talk", "builtin", "echo", "line", "1"]);
    let output = place.durward(&["--config", "durward.yaml", "check", "--json"]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["servers"][0]["transport"], "builtin");
    assert_eq!(shown["servers"][0]["reached_by"], "echo");
}

#[test]
fn what_its_tools_do_is_stated_and_not_read_off_their_names() {
    let place = configured();
    place.write_policy(READS);
    let mut client = place.guard_configured("durward.yaml", &[], "talk");
    client.handshake(LATEST).unwrap();
    let listed = client.request("tools/list", json!({})).unwrap();
    let tools = listed.result().unwrap()["tools"]
        .as_array()
        .unwrap()
        .clone();
    let names: Vec<&str> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "add", "wait"]);
    let sum = client.call_tool("add", json!({"a": 2, "b": 3})).unwrap();
    assert_eq!(
        sum.result().unwrap()["structuredContent"],
        json!({"sum": 5.0})
    );
    // What does not fit is answered by the server, once it was let through.
    let unfit = client.call_tool("add", json!({"a": 2})).unwrap();
    assert_eq!(unfit.result().unwrap()["isError"], true);
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.journal().operations().len(), 2);
}

#[test]
fn policy_explain_knows_what_its_tools_do() {
    let place = configured();
    place.write_policy(READS);
    let explained = |backend: &str| {
        let output = place.durward(&[
            "--config",
            "durward.yaml",
            "policy",
            "explain",
            "--policy",
            "policy.json",
            "--backend",
            backend,
            "--tool",
            "add",
            "--args",
            r#"{"a":1,"b":2}"#,
            "--json",
        ]);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        told["decision"].as_str().unwrap().to_owned()
    };
    assert_eq!(explained("talk"), "allow");
    assert_eq!(explained("other"), "deny");
}
