//! The client of all servers over standard streams: what it answers, and what becomes of one that does not read.

use mocks::client::{Client, Message};
use serde_json::{Value, json};

use super::{Asks as _, configured, echo_mock, run_all, text_of};
use crate::support::guarded::{PATIENCE, Place, end, eventually, line};

/// The mock that asks its client for a name, as a server of a configuration.
fn asks(place: &Place) -> Value {
    let words = place.mock(&[
        "hostile",
        "--behaviour",
        "server-request",
        "--ask",
        "elicitation",
    ]);
    let (command, args) = words.split_first().unwrap();
    json!({"command": command, "args": args})
}

fn opened(place: &Place, configuration: &Value) -> Client {
    configured(place, configuration);
    let mut client = run_all(place, &[]);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"}});
    let opened = client.ask("initialize", params);
    assert!(opened.result().is_ok(), "{}", opened.line());
    client
        .notify("notifications/initialized", &json!({}))
        .unwrap();
    client
}

fn two(place: &Place) -> Value {
    let policy = json!({"version": "1", "rules": [
        {"id": "tools", "effect": "allow", "conditions": {"tool_name": "*"}},
        {"id": "questions", "effect": "allow", "conditions": {"mcp_method": "elicitation/create"}}]});
    place.write_policy(&policy.to_string());
    json!({"servers": {"echo": echo_mock(place), "asks": asks(place)}, "policy": place.path("policy.json")})
}

#[test]
fn what_the_client_answers_is_inspected() {
    let place = Place::new();
    let mut configuration = two(&place);
    configuration["inspect"] =
        json!({"keys": {"secrets": "all", "on": "requests", "action": "mask"}});
    let mut client = opened(&place, &configuration);
    let params = json!({"name": "asks__echo", "arguments": {"text": "asks"}});
    let id = client.send_request("tools/call", params).unwrap();
    // In parts: a scanner is not to take this file for a leak.
    let token = ["ghp_", "0123456789abcdefghij", "ABCDEFGHIJ0123456789"].concat();
    let answer = json!({"action": "accept", "content": {"name": token}});
    let asked = loop {
        if let Message::Request { id, .. } = client.next_message().unwrap() {
            break id;
        }
    };
    client.respond(&asked, &answer).unwrap();
    let learned: Value = serde_json::from_str(client.response(&id).unwrap().line()).unwrap();
    assert!(!learned.to_string().contains(&token), "{learned}");
    assert!(text_of(&learned).contains("[masked: keys]"), "{learned}");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn every_one_of_thousands_of_bad_frames_is_answered() {
    const FRAMES: usize = 3_000;
    let place = Place::new();
    let mut client = opened(&place, &two(&place));
    let frames = vec!["{}"; FRAMES].join("\n");
    client.process().send_line(frames.as_bytes()).unwrap();
    for number in 0..FRAMES {
        let answer = line(&mut client);
        assert_eq!(answer["error"]["code"], -32600, "{number}: {answer}");
    }
    let ended = end(client);
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{ended:?}");
}

#[test]
fn a_client_that_never_reads_ends_with_its_input() {
    let place = Place::new();
    let mut client = opened(&place, &two(&place));
    for _ in 0..16 {
        let params = json!({"name": "echo__sized", "arguments": {"bytes": 1_000_000}});
        client.send_request("tools/call", params).unwrap();
    }
    // All have been answered, so far more waits for the client than its pipe holds.
    eventually("the calls are over", || {
        place.records().operations().len() >= 16
    });
    client.process().close_input();
    let status = client.process().wait_within(PATIENCE).unwrap();
    assert_eq!(status.expect("it ends").code(), Some(0));
    place.journal().assert_event("session_ended");
}
