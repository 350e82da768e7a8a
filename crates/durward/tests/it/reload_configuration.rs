//! A configuration that changes while one of its servers is guarded.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::refusals::told;
use crate::support::world::{World, binary};
use mcp::client::Client;
use rustix::process::Signal;
use serde_json::{Value, json};

fn allowing(tool: &str) -> String {
    json!({"rules": [{"id": tool, "effect": "allow", "conditions": {"tool_name": tool}}]})
        .to_string()
}

/// The file, with one mock and what comes behind it.
fn write(world: &World, rest: &str) {
    let server = format!("{{ command: {}, args: [lab, mock, echo] }}", binary());
    let text = format!("servers:\n  echo: {server}\n{rest}\n");
    let file = world.config().join("durward.yaml");
    fs::write(file.with_extension("new"), text).unwrap();
    fs::rename(file.with_extension("new"), file).unwrap();
}

fn guard(world: &World, flags: &[&str]) -> Client {
    let args = [&["run", "echo"], flags].concat();
    let mut client = Client::spawn_with(binary(), args, &world.options()).unwrap();
    client.initialize("2025-11-25").unwrap();
    client
}

fn history(world: &World) -> Vec<Value> {
    let output = world.durward(&["--no-config", "audit", "show", "--json", "--kind", "config"]);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits for a config record with these members; gives it.
#[track_caller]
fn until(world: &World, members: &[(&str, &str)]) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = history(world)
            .into_iter()
            .find(|record| members.iter().all(|(name, value)| record[*name] == *value));
        if let Some(record) = found {
            return record;
        }
        assert!(
            Instant::now() < deadline,
            "never: {members:?} in {:#?}",
            history(world)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn passes(client: &mut Client) -> bool {
    client
        .call_tool("echo", json!({"text": "x"}))
        .unwrap()
        .refusal()
        .is_none()
}

/// Closes the client's side; gives what was said on standard error.
fn ends(mut client: Client) -> String {
    client.process().close_input();
    let status = client
        .process()
        .wait_within(Duration::from_secs(60))
        .unwrap()
        .unwrap();
    let said = client.process().stderr();
    assert!(status.success(), "{said}");
    said
}

#[test]
fn another_policy_in_the_file_is_taken_up_and_watched() {
    let world = World::new(None);
    fs::write(world.config().join("a.json"), allowing("echo")).unwrap();
    fs::write(world.config().join("b.json"), allowing("none")).unwrap();
    write(&world, "policy: a.json");
    let mut client = guard(&world, &[]);
    assert!(passes(&mut client));
    let loaded = until(
        &world,
        &[("event", "loaded"), ("component", "configuration")],
    );
    assert_eq!(loaded["version"], "v1");
    write(&world, "policy: b.json");
    let updated = until(&world, &[("event", "updated"), ("component", "policy")]);
    assert_eq!(
        (&updated["version"], &updated["previous_version"]),
        (&json!("v2"), &json!("v1"))
    );
    let config = until(
        &world,
        &[("event", "updated"), ("component", "configuration")],
    );
    assert_eq!(config["version"], "v2");
    assert_ne!(config["checksum"], loaded["checksum"]);
    assert!(!passes(&mut client));
    // Now b.json is the one that counts.
    fs::write(world.config().join("b.json"), allowing("echo")).unwrap();
    until(&world, &[("component", "policy"), ("version", "v3")]);
    assert!(passes(&mut client));
    ends(client);
}

#[test]
fn the_policy_of_the_command_line_stays() {
    let world = World::new(Some(&allowing("echo")));
    fs::write(world.config().join("b.json"), allowing("none")).unwrap();
    write(&world, "");
    let policy = world.policy.clone().unwrap();
    let mut client = guard(&world, &["--policy", policy.to_str().unwrap()]);
    write(&world, "policy: b.json");
    until(
        &world,
        &[("event", "updated"), ("component", "configuration")],
    );
    assert!(passes(&mut client));
    assert!(
        !history(&world)
            .iter()
            .any(|r| r["event"] == "updated" && r["component"] == "policy")
    );
    ends(client);
}

#[test]
fn a_broken_file_keeps_what_was_in_force() {
    let world = World::new(None);
    fs::write(world.config().join("a.json"), allowing("echo")).unwrap();
    write(&world, "policy: a.json");
    let mut client = guard(&world, &[]);
    write(&world, "polcy: a.json");
    let failed = until(
        &world,
        &[
            ("event", "validation_failed"),
            ("component", "configuration"),
        ],
    );
    let message = failed["message"].as_str().unwrap();
    assert!(
        message.contains("line 3, column 1: unknown key \"polcy\""),
        "{message}"
    );
    assert_eq!(
        (&failed["version"], &failed["change_type"]),
        (&json!("v1"), &json!("file"))
    );
    assert!(passes(&mut client));
    // The server that is running was taken out: that is a mistake too, as long as it runs.
    fs::write(world.config().join("durward.yaml"), "servers: {}").unwrap();
    client.process().signal(Signal::HUP).unwrap();
    let failed = until(
        &world,
        &[("event", "validation_failed"), ("change_type", "sighup")],
    );
    assert!(
        failed["message"]
            .as_str()
            .unwrap()
            .contains("no server is called \"echo\""),
        "{failed}"
    );
    assert!(passes(&mut client));
    let said = ends(client);
    assert!(said.contains("unknown key \"polcy\""), "{said}");
}

#[test]
fn what_cannot_be_taken_up_is_named() {
    let world = World::new(None);
    fs::write(world.config().join("a.json"), allowing("echo")).unwrap();
    write(&world, "policy: a.json");
    let mut client = guard(&world, &[]);
    write(
        &world,
        "policy: a.json\ncall_timeout: 2s\njournal: { sync: every }",
    );
    until(
        &world,
        &[("event", "updated"), ("component", "configuration")],
    );
    assert!(passes(&mut client));
    // Told before the next reload, which is the last thing that is waited for.
    client.process().signal(Signal::HUP).unwrap();
    until(&world, &[("event", "updated"), ("component", "policy")]);
    let said = ends(client);
    assert!(said.contains("call_timeout, journal.sync"), "{said}");
    assert!(said.contains("needs a restart"), "{said}");
}

/// The bounds of approval are in force with the reload that brings them.
#[test]
fn bounds_of_approval_change_while_running_and_who_waits_is_asked_about_anew() {
    let world = World::new(None);
    let asking =
        json!({"rules": [{"id": "ask", "effect": "hitl", "conditions": {"tool_name": "echo"}}]});
    fs::write(world.config().join("a.json"), asking.to_string()).unwrap();
    write(&world, "policy: a.json");
    let mut client = guard(&world, &["--approval-waiting-max", "1"]);
    let call = |client: &mut Client, id: u64| {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "x"}}});
        client
            .process()
            .send_line(call.to_string().as_bytes())
            .unwrap();
    };
    let waiting = || {
        let output = world.durward(&["--no-config", "approvals", "list", "--json"]);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect::<Vec<Value>>()
    };
    let asked = || {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(question) = waiting().pop() {
                return question;
            }
            assert!(Instant::now() < deadline, "nothing waits");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    call(&mut client, 71);
    let before = asked();
    assert_eq!(before["timeout_seconds"], 50);
    // Who waits is asked about anew: the same text under another version.
    write(
        &world,
        "policy: a.json\napproval: { timeout: 5s, waiting_max: 7 }",
    );
    client.process().signal(Signal::HUP).unwrap();
    until(&world, &[("event", "updated"), ("component", "policy")]);
    let after = asked();
    assert_ne!(after["id"], before["id"]);
    assert!(after["remaining_ms"].as_u64().unwrap() > 5_000, "{after}");
    let id = after["id"].as_str().unwrap();
    let denied = world.durward(&["--no-config", "approvals", "deny", id]);
    assert!(denied.status.success(), "{denied:?}");
    let reason = |client: &mut Client| {
        let line = client.process().read_line().unwrap();
        let answer: Value = serde_json::from_slice(&line).unwrap();
        told(&answer)["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(reason(&mut client), "approval_denied");
    call(&mut client, 72);
    assert_eq!(asked()["timeout_seconds"], 5);
    // A flag outranks the file, reloaded or not.
    call(&mut client, 73);
    assert_eq!(reason(&mut client), "approval_too_many_waiting");
    assert_eq!(reason(&mut client), "approval_timeout");
    let said = ends(client);
    assert!(!said.contains("needs a restart"), "{said}");
}

#[test]
fn without_watching_only_the_signal_counts() {
    let world = World::new(None);
    fs::write(world.config().join("a.json"), allowing("echo")).unwrap();
    write(&world, "policy: a.json");
    let mut client = guard(&world, &["--no-watch"]);
    fs::write(world.config().join("a.json"), allowing("none")).unwrap();
    client.process().signal(Signal::HUP).unwrap();
    let updated = until(&world, &[("event", "updated"), ("component", "policy")]);
    assert_eq!(updated["change_type"], "sighup");
    assert!(!passes(&mut client));
    ends(client);
}
