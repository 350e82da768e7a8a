//! How long a client's message may be: raised and lowered, at both edges, while running.

use std::fs;

use serde_json::{Value, json};

use crate::support::guarded::{LATEST, Place, call_works, echo, end, line};
use crate::support::refusals::{is_passed, refusal_text, told};
use crate::support::serving::{Served, call};

/// Longer than what is taken unless it is raised.
const LONG: usize = 17 << 20;

/// A call of a few bytes in a long message: what is long is no argument, which rules would have to read.
fn long_call() -> Value {
    json!({"name": "echo", "arguments": {"text": "x"}, "_meta": {"pad": "x".repeat(LONG)}})
}

/// A call of `echo` with a long argument of this name, which `echo` itself does not know.
fn long_argument(name: &str) -> Value {
    let mut call = json!({"name": "echo", "arguments": {"text": "x"}});
    call["arguments"][name] = "x".repeat(LONG).into();
    call
}

#[test]
fn w4_run_takes_a_longer_message_where_the_limit_is_raised() {
    let place = Place::new();
    let raised = ["--limit-request-bytes", "32MiB"];
    let mut client = place.guard_with(&raised, &["echo"]);
    client.handshake(LATEST).unwrap();
    client.send_request("tools/call", long_call()).unwrap();
    let answer = line(&mut client);
    assert_eq!(answer["result"]["content"][0]["text"], "x");
    assert_eq!(end(client).code, Some(0));
}

/// How often a process has written, whatever it wrote to.
fn writes(pid: u32) -> u64 {
    let counts = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let mut lines = counts.lines();
    let count = lines.find_map(|line| line.strip_prefix("syscw: "));
    count.unwrap().parse().unwrap()
}

#[test]
fn w8_a_long_message_costs_few_writes() {
    const TEXT_BYTES: usize = 5_000_000;
    /// A reader that takes a page at a time from a full pipe lets a page be written at a time, twice here: there and back.
    const WRITES_MAX: u64 = 4_000;
    let place = Place::new();
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "short");
    let pid = client.process().pid();
    let before = writes(pid);
    call_works(&mut client, &"x".repeat(TEXT_BYTES));
    let written = writes(pid) - before;
    assert!(written <= WRITES_MAX, "{written} writes");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn an_argument_that_is_too_long_to_be_looked_through_is_refused_by_a_name_of_its_own() {
    let place = Place::new();
    let raised = ["--limit-request-bytes", "32MiB"];
    let mut client = place.guard_with(&raised, &["echo"]);
    client.handshake(LATEST).unwrap();
    // What is content is judged at any length, and the server has its own opinion of it.
    let content = client.send_request("tools/call", long_argument("content"));
    content.unwrap();
    let answer = line(&mut client);
    let said = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("unknown field `content`"), "{said:.200}");
    client
        .send_request("tools/call", long_argument("data"))
        .unwrap();
    let refused = line(&mut client);
    let told = told(&refused);
    assert_eq!(told["reason"], "arguments_unread", "{told}");
    assert_eq!(told["final_rule"], "built_in_unread_arguments", "{told}");
    let text = refusal_text(&refused);
    assert!(text.contains("servers.NAME.arguments"), "{text}");
    call_works(&mut client, "short");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn run_refuses_a_message_beyond_a_lowered_limit_and_takes_the_next() {
    let place = Place::new();
    let mut client = place.guard_with(&["--limit-request-bytes", "64KiB"], &["echo"]);
    client.handshake(LATEST).unwrap();
    let sent = client.send_request("tools/call", echo(&"x".repeat(64 << 10)));
    sent.unwrap();
    let refused = line(&mut client);
    let error = &refused["error"];
    assert_eq!(error["data"]["reason"], "frame_too_long", "{refused}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("limits.request_bytes"), "{refused}");
    call_works(&mut client, "short");
    assert_eq!(end(client).code, Some(0));
    assert_eq!(place.counted().len(), 1);
}

#[test]
fn w4_serve_takes_what_the_configuration_in_force_allows() {
    let place = Place::new();
    let mock = place.mock(&["echo"]);
    let configured = |limits: &str| {
        let servers = json!({"echo": {"command": mock[0], "args": mock[1..]}});
        format!("servers: {servers}\nlimits: {{ {limits} }}\n")
    };
    let file = place.path("durward.yaml");
    fs::write(&file, configured("request_bytes: 32MiB")).unwrap();
    let served = Served::start_configured(place);
    let session = served.open("2025-11-25");
    let long = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": long_call()});
    let answer = served.post(Some(&session), &long.to_string());
    assert_eq!(answer.status, 200, "{:.200}", answer.body);
    assert_eq!(answer.json()["result"]["content"][0]["text"], "x");

    fs::write(&file, configured("request_bytes: 64KiB")).unwrap();
    let args = ["--config", "durward.yaml", "--state-dir", "state", "reload"];
    let reloaded = served.place.durward(&args);
    assert!(reloaded.status.success(), "{reloaded:?}");
    let answer = served.post(Some(&session), &call("2", &"x".repeat(64 << 10)));
    assert_eq!(answer.status, 413, "{answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(error["data"]["reason"], "body_too_long");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("limits.request_bytes"), "{message}");
    let answer = served.post(Some(&session), &call("3", "short"));
    assert!(is_passed(&answer.json()), "{answer:?}");
}
