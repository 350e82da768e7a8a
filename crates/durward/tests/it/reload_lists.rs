//! After a reload the client is told which lists are no longer true: those, and no others.

use crate::support::guarded::{self, LATEST, Place, end, eventually};
use mcp::client::{Client, Message};
use rustix::process::Signal;
use serde_json::{Value, json};

const CHANGED: &str = "notifications/tools/list_changed";

fn policy(rules: &Value) -> String {
    json!({ "rules": rules }).to_string()
}

fn allowing(tools: &[&str]) -> String {
    policy(&json!([{"id": "some", "effect": "allow", "conditions": {"tool_name": tools}}]))
}

fn spawn(place: &Place, server: &[&str]) -> Client {
    let root = place.path("").to_str().unwrap().to_owned();
    let words = [&["files", "--root", &root], server].concat();
    place.guard_with(&["--no-watch"], &words)
}

fn tools(client: &mut Client) -> Vec<String> {
    let reply = client.request("tools/list", json!({})).unwrap();
    let tools = reply.result().unwrap()["tools"].as_array().unwrap().clone();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

/// Puts a policy in force and waits until a session has noticed it.
fn reload(place: &Place, client: &mut Client, text: &str) {
    let updates = || {
        let output = place.durward(&[
            "--no-config",
            "--state-dir",
            "state",
            "audit",
            "show",
            "--json",
            "--kind",
            "config",
        ]);
        String::from_utf8(output.stdout)
            .unwrap()
            .matches("\"updated\"")
            .count()
    };
    let before = updates();
    place.write_policy(text);
    client.process().signal(Signal::HUP).unwrap();
    eventually("the policy is in force", || updates() > before);
}

/// Waits until the client is told that its list has changed; nothing else may come with it.
#[track_caller]
fn is_told(client: &mut Client) {
    match client.next_message().unwrap() {
        Message::Notification { method, .. } => assert_eq!(method, CHANGED),
        other => panic!("{other:?}"),
    }
    assert_eq!(told(client), [""; 0]);
}

/// What the client was told since.
fn told(client: &mut Client) -> Vec<String> {
    // Four looks of the session: what it had to say, it has said.
    guarded::pause(1_000);
    let id = client.send_request("ping", json!({})).unwrap();
    let mut told = Vec::new();
    loop {
        match client.next_message().unwrap() {
            Message::Response(reply) if reply.id() == id => return told,
            Message::Notification { method, .. } => told.push(method),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_client_is_told_exactly_when_its_list_differs() {
    let place = Place::new();
    place.write_policy(&allowing(&["read_file"]));
    let mut client = spawn(&place, &["--announce-changes"]);
    client.handshake(LATEST).unwrap();
    assert_eq!(tools(&mut client), ["read_file"]);
    // Another policy that shows the same.
    reload(
        &place,
        &mut client,
        &policy(&json!([
            {"id": "other", "effect": "hitl", "conditions": {"tool_name": ["read_file", "no_such_tool"]}}
        ])),
    );
    assert!(told(&mut client).is_empty());
    // One tool more.
    reload(&place, &mut client, &allowing(&["read_file", "write_file"]));
    is_told(&mut client);
    assert_eq!(tools(&mut client), ["read_file", "write_file"]);
    // The same number of others.
    reload(&place, &mut client, &allowing(&["read_file", "copy_path"]));
    is_told(&mut client);
    assert_eq!(tools(&mut client), ["read_file", "copy_path"]);
    // None.
    reload(&place, &mut client, "{}");
    is_told(&mut client);
    assert!(tools(&mut client).is_empty());
    reload(&place, &mut client, "{\"rules\": []}");
    assert!(told(&mut client).is_empty());
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn a_broken_policy_tells_nobody() {
    let place = Place::new();
    place.write_policy(&allowing(&["read_file"]));
    let mut client = spawn(&place, &["--announce-changes"]);
    client.handshake(LATEST).unwrap();
    tools(&mut client);
    place.write_policy("{");
    client.process().signal(Signal::HUP).unwrap();
    assert!(told(&mut client).is_empty());
    assert_eq!(tools(&mut client), ["read_file"]);
    end(client);
}

#[test]
fn who_has_never_listed_is_not_told() {
    let place = Place::new();
    place.write_policy(&allowing(&["read_file"]));
    let mut client = spawn(&place, &["--announce-changes"]);
    client.handshake(LATEST).unwrap();
    reload(&place, &mut client, &allowing(&["write_file"]));
    assert!(told(&mut client).is_empty());
    assert_eq!(tools(&mut client), ["write_file"]);
    end(client);
}

#[test]
fn a_server_that_announces_nothing_is_not_spoken_for() {
    let place = Place::new();
    place.write_policy(&allowing(&["read_file"]));
    let mut client = spawn(&place, &[]);
    client.handshake(LATEST).unwrap();
    tools(&mut client);
    reload(&place, &mut client, &allowing(&["write_file"]));
    assert!(told(&mut client).is_empty());
    assert_eq!(tools(&mut client), ["write_file"]);
    end(client);
}

#[test]
fn nobody_is_told_before_it_has_said_that_it_is_initialized() {
    let place = Place::new();
    place.write_policy(&allowing(&["read_file"]));
    let mut client = spawn(&place, &["--announce-changes"]);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    client.request("initialize", hello).unwrap();
    tools(&mut client);
    reload(&place, &mut client, &allowing(&["write_file"]));
    assert!(told(&mut client).is_empty());
    client
        .notify("notifications/initialized", &json!({}))
        .unwrap();
    reload(&place, &mut client, &allowing(&["copy_path"]));
    is_told(&mut client);
    end(client);
}
