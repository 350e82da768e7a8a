//! A configuration that changes while `durward serve` runs: rules, servers, and what waits for a restart.

use std::fs;

use crate::support::guarded::{Place, binary, eventually};
use crate::support::refusals::is_passed;
use crate::support::serving::{Answer, Served, call};
use serde_json::json;

/// Writes the file at once, with echo mocks under these names and what comes behind them.
fn write(place: &Place, servers: &[(&str, &str)], rest: &str) {
    let mut text = "servers:\n".to_owned();
    for (name, more) in servers {
        text.push_str(&format!(
            "  {name}: {{ command: {}, args: [lab, mock, echo]{more} }}\n",
            binary()
        ));
    }
    text.push_str(rest);
    let file = place.path("durward.yaml");
    fs::write(file.with_extension("new"), text).unwrap();
    fs::rename(file.with_extension("new"), file).unwrap();
}

fn allowing(place: &Place, file: &str, tool: &str) {
    let rules =
        json!({"rules": [{"id": tool, "effect": "allow", "conditions": {"tool_name": tool}}]});
    fs::write(place.path(file), rules.to_string()).unwrap();
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

fn initialize(served: &Served, server: &str) -> Answer {
    served.send("POST", &format!("/mcp/{server}"), &[], INITIALIZE)
}

fn open(served: &Served, server: &str) -> String {
    let answer = initialize(served, server);
    let id = answer.header("mcp-session-id");
    id.unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

fn calls(served: &Served, server: &str, session: &str) -> Answer {
    let headers = [("mcp-session-id", session)];
    served.send("POST", &format!("/mcp/{server}"), &headers, &call("7", "x"))
}

fn passes(served: &Served, server: &str, session: &str) -> bool {
    is_passed(&calls(served, server, session).json())
}

/// `durward reload`: what it prints, and whether it worked.
fn reload(place: &Place) -> (String, bool) {
    let args = ["--config", "durward.yaml", "--state-dir", "state", "reload"];
    let output = place.durward(&args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.success())
}

#[test]
fn another_policy_in_the_file_is_in_force_and_not_only_said_to_be() {
    let place = Place::new();
    allowing(&place, "a.json", "echo");
    allowing(&place, "b.json", "none");
    write(
        &place,
        &[("echo", ""), ("own", ", policy: a.json")],
        "policy: a.json\n",
    );
    let served = Served::start_ruled(place);
    let (echo, own) = (open(&served, "echo"), open(&served, "own"));
    assert!(passes(&served, "echo", &echo) && passes(&served, "own", &own));
    write(
        &served.place,
        &[("echo", ""), ("own", "")],
        "policy: b.json\n",
    );
    let (said, done) = reload(&served.place);
    assert!(done, "{said}");
    assert!(!passes(&served, "echo", &echo), "{said}");
    assert!(!passes(&served, "own", &own), "{said}");
    write(
        &served.place,
        &[("echo", ""), ("own", "")],
        "policy: gone.json\n",
    );
    let (said, done) = reload(&served.place);
    assert!(!done && said.contains("gone.json"), "{said}");
    assert!(!passes(&served, "echo", &echo));
}

#[test]
fn servers_come_go_and_are_started_anew() {
    let place = Place::new();
    let rest = "policy: policy.json\n";
    write(&place, &[("kept", ""), ("gone", ""), ("other", "")], rest);
    let served = Served::start_ruled(place);
    let (kept, gone) = (open(&served, "kept"), open(&served, "gone"));
    let other = open(&served, "other");
    let changed = ", env: { NO_COLOR: \"1\" }";
    write(
        &served.place,
        &[("kept", ""), ("new", ""), ("other", changed)],
        rest,
    );
    let (said, done) = reload(&served.place);
    assert!(done && !said.contains("restart"), "{said}");
    assert!(passes(&served, "kept", &kept), "who did not change goes on");
    assert_eq!(calls(&served, "gone", &gone).status, 404);
    assert_eq!(initialize(&served, "gone").status, 404);
    let new = open(&served, "new");
    assert!(passes(&served, "new", &new));
    assert_eq!(calls(&served, "other", &other).status, 404, "opened before");
    let anew = open(&served, "other");
    assert!(passes(&served, "other", &anew));
    // And back again, by the file alone.
    write(&served.place, &[("kept", ""), ("gone", "")], rest);
    eventually("it is served again", || {
        initialize(&served, "gone").status == 200
    });
    assert_eq!(initialize(&served, "new").status, 404);
    assert!(passes(&served, "kept", &kept));
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    for (event, server) in [("server_removed", "gone"), ("server_added", "new")] {
        assert!(
            journal
                .0
                .iter()
                .any(|r| r["event"] == event && r["backend_id"] == server),
            "{event} {server}"
        );
    }
}

#[test]
fn what_waits_for_a_restart_is_named() {
    let place = Place::new();
    let policy = "policy: policy.json\n";
    write(&place, &[("echo", "")], policy);
    allowing(&place, "own.json", "echo");
    let served = Served::start_ruled(place);
    write(
        &served.place,
        &[
            ("echo", ", call_timeout: 9s, tool_timeout: { a: 5s }"),
            ("ruled", ", policy: own.json"),
        ],
        &format!("{policy}listen: 127.0.0.1:1\nallowed_hosts: [example.org]\n"),
    );
    let (said, done) = reload(&served.place);
    assert!(done, "{said}");
    for key in [
        "listen",
        "allowed_hosts",
        "servers.echo.call_timeout",
        "servers.echo.tool_timeout",
        "servers.ruled",
    ] {
        assert!(said.contains(key), "{key}: {said}");
    }
    assert_eq!(initialize(&served, "ruled").status, 404);
    assert!(passes(&served, "echo", &open(&served, "echo")));
}

#[test]
fn servers_that_would_part_their_rules_keep_what_they_have() {
    let place = Place::new();
    allowing(&place, "own.json", "none");
    let policy = "policy: policy.json\n";
    write(&place, &[("one", ""), ("two", "")], policy);
    let served = Served::start_ruled(place);
    let one = open(&served, "one");
    write(
        &served.place,
        &[("one", ""), ("two", ", policy: own.json")],
        policy,
    );
    let (said, done) = reload(&served.place);
    assert!(!done && said.contains("one, two had one policy"), "{said}");
    assert!(passes(&served, "one", &one));
}

#[test]
fn a_file_that_could_not_be_served_changes_nothing() {
    let place = Place::new();
    let policy = "policy: policy.json\n";
    write(&place, &[("echo", "")], policy);
    let served = Served::start_ruled(place);
    let session = open(&served, "echo");
    for (rest, said_of) in [
        ("servers: {}\n", "no server to serve"),
        (
            "servers: { docs: { url: \"http://198.51.100.1/mcp\" } }\n",
            "docs",
        ),
    ] {
        fs::write(served.place.path("durward.yaml"), format!("{rest}{policy}")).unwrap();
        let (said, done) = reload(&served.place);
        assert!(!done && said.contains(said_of), "{said}");
        assert!(passes(&served, "echo", &session), "{rest}");
    }
}

#[test]
fn tools_have_times_of_their_own_in_the_file() {
    let place = Place::new();
    let mock = format!(
        "command: {}, args: [lab, mock, hostile, --behaviour, never]",
        binary()
    );
    let text = format!(
        "servers:\n  echo: {{ {mock}, call_timeout: 20m, tool_timeout: {{ echo: 1s }} }}\npolicy: policy.json\n"
    );
    fs::write(place.path("durward.yaml"), text).unwrap();
    let checked = place.durward(&["--config", "durward.yaml", "check"]);
    let shown = String::from_utf8(checked.stdout).unwrap();
    assert!(shown.contains("tool_timeout echo 1s"), "{shown}");
    let served = Served::start_ruled(place);
    let session = open(&served, "echo");
    let answer = calls(&served, "echo", &session).json();
    assert_eq!(
        answer["error"]["data"]["reason"], "upstream_timeout",
        "{answer}"
    );
}
