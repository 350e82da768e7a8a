//! Recordings of terminals have an end, however their client or Durward ends.

use std::fs;

use serde_json::{Value, json};

use crate::ssh_serve::{call_at, opened};
use crate::ssh_server::{has_sshd, output, target};
use crate::support::guarded::{LATEST, Place, end};
use crate::support::serving::Served;

/// A place with hosts whose terminals are recorded, under a policy that allows everything.
fn recorded_place() -> (Place, crate::ssh_server::Sshd) {
    let place = Place::new();
    let sshd = target(&place);
    fs::create_dir(place.path("casts")).unwrap();
    let hosts = fs::read_to_string(place.path("ssh_hosts.yaml")).unwrap();
    fs::write(
        place.path("ssh_hosts.yaml"),
        format!("recordings: casts\n{hosts}"),
    )
    .unwrap();
    place.write_policy(
        r#"{"version":"1","default_action":"deny","rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#,
    );
    (place, sshd)
}

/// Arguments that open a terminal which never ends by itself.
fn terminal(session: &Value) -> Value {
    json!({"session_id": session, "command": "tail -f /etc/hostname", "wait_for": output("cat", &["/etc/hostname"]), "wait_ms": 20_000})
}

/// Checks the only recording by `durward ssh replay --check`.
fn check_recording(place: &Place) {
    let casts: Vec<_> = fs::read_dir(place.path("casts"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(casts.len(), 1);
    let file = casts[0].path();
    let replay = place.durward(&["ssh", "replay", "--check", &file.display().to_string()]);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(replay.status.code(), Some(0), "{replay:?}\n{text}");
    assert!(text.contains(&output("cat", &["/etc/hostname"])), "{text}");
}

#[test]
fn a_client_on_standard_streams_that_ends_leaves_a_whole_recording() {
    if !has_sshd() {
        return;
    }
    let (place, _sshd) = recorded_place();
    let mut client = place.guard_configured("durward.yaml", &[], "ssh");
    client.handshake(LATEST).unwrap();
    let connected = client
        .call_tool("ssh_connect", json!({"host": "web"}))
        .unwrap();
    let session = connected.result().unwrap()["structuredContent"]["session_id"].clone();
    let shown = client
        .call_tool("ssh_terminal_open", terminal(&session))
        .unwrap();
    assert_eq!(
        shown.result().unwrap()["structuredContent"]["running"],
        true,
        "{shown:?}"
    );
    end(client);
    check_recording(&place);
}

#[test]
fn a_server_that_is_stopped_leaves_a_whole_recording() {
    if !has_sshd() {
        return;
    }
    let (place, _sshd) = recorded_place();
    let served = Served::start_configured(place);
    let session = opened(&served, "/mcp/ssh");
    let call =
        |tool: &str, arguments: Value| call_at(&served, "/mcp/ssh", &session, tool, arguments);
    let connected = call("ssh_connect", json!({"host": "web"}));
    let ssh = &connected["result"]["structuredContent"]["session_id"];
    let shown = call("ssh_terminal_open", terminal(ssh));
    assert_eq!(
        shown["result"]["structuredContent"]["running"], true,
        "{shown}"
    );
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    check_recording(&place);
}
