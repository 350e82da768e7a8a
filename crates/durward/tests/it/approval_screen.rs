//! The live screen of `durward approvals watch`, in a pseudo-terminal.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::support::components;
use crate::support::guarded::{LATEST, Place, binary, end, line};
use crate::support::refusals::{is_passed, refusal_text};
use mcp::client::Client;
use serde_json::{Value, json};

const ASKS: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"ask-all","effect":"hitl","conditions":{"tool_name":"*"},"cache_side_effects":["fs_write"]}]}"#;

/// Runs `durward approvals watch` in a terminal of this size, through these steps.
fn terminal(place: &Place, size: (u16, u16), flags: &[&str], steps: &Value) -> Option<Child> {
    let driver = components::repository().join("crates/durward/tests/drivers/terminal.py");
    let child = Command::new(components::fastmcp_python()?)
        .arg(driver)
        .args([size.0.to_string(), size.1.to_string(), steps.to_string()])
        .args(["--", binary(), "approvals", "watch"])
        .args(flags)
        .env("XDG_RUNTIME_DIR", place.runtime())
        .env("XDG_STATE_HOME", place.path("state-home"))
        .env("XDG_CONFIG_HOME", place.path("config-home"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Some(child)
}

/// The last screen.
fn screen(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{err}");
    String::from_utf8(output.stdout).unwrap()
}

/// A guarded file server of which every call waits.
fn started(place: &Place) -> Client {
    place.write_policy(ASKS);
    let root = place.path("root");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("a.txt"), "old line\n").unwrap();
    let mut client = place.guard(&["files", "--root", root.to_str().unwrap()]);
    client.handshake(LATEST).unwrap();
    client
}

fn write(place: &Place, client: &mut Client, text: &str) {
    let path = place.path("root/a.txt");
    let arguments = json!({ "path": path.to_str().unwrap(), "content": text });
    client
        .send_request(
            "tools/call",
            json!({ "name": "write_file", "arguments": arguments }),
        )
        .unwrap();
}

#[test]
fn p14_calls_are_allowed_and_denied_with_a_reason_on_the_screen() {
    let place = Place::new();
    let mut client = started(&place);
    write(&place, &mut client, "new line\n");
    let ready = place.path("ready");
    let steps = json!([
        ["wait", "1 call waits"],
        ["wait", "write_file"],
        ["wait", "-old line"],
        ["wait", "+new line"],
        ["pause", 1_100],
        ["keys", "o"],
        ["wait", "allowed once"],
        ["touch", ready.to_str().unwrap()],
        ["wait", "1 call waits"],
        ["wait", "+third line"],
        ["pause", 1_100],
        ["keys", "d"],
        ["wait", "reason (optional)"],
        ["keys", "not on a Friday"],
        ["wait", "not on a Friday"],
        ["keys", "\r"],
        ["wait", "denied"],
        ["wait", "nothing waits"],
        ["keys", "q"],
        ["exit", 0]
    ]);
    let Some(watch) = terminal(&place, (100, 30), &[], &steps) else {
        return;
    };
    let first: Value = line(&mut client);
    assert!(is_passed(&first), "{first}");
    crate::support::guarded::eventually("the screen is ready", || ready.exists());
    write(&place, &mut client, "third line\n");
    let second: Value = line(&mut client);
    assert!(
        refusal_text(&second).contains("not on a Friday"),
        "{second}"
    );
    let last = screen(watch);
    assert!(last.contains("nothing waits"), "{last}");
    end(client);
    assert_eq!(
        fs::read_to_string(place.path("root/a.txt")).unwrap(),
        "new line\n"
    );
}

#[test]
fn p14_a_yes_for_the_session_holds_for_the_same_call_in_it() {
    let place = Place::new();
    let mut client = started(&place);
    write(&place, &mut client, "one\n");
    let steps = json!([
        ["wait", "write_file"],
        ["pause", 1_100],
        ["keys", "s"],
        ["wait", "allowed;"],
        ["keys", "q"],
        ["exit", 0]
    ]);
    // A narrow terminal shows the same.
    let Some(watch) = terminal(&place, (60, 24), &[], &steps) else {
        return;
    };
    for _ in 0..2 {
        let answer: Value = line(&mut client);
        assert!(is_passed(&answer), "{answer}");
        write(&place, &mut client, "one\n");
    }
    let third: Value = line(&mut client);
    assert!(is_passed(&third), "{third}");
    screen(watch);
    end(client);
}

#[test]
fn plain_lines_are_read_where_they_are_asked_for() {
    let place = Place::new();
    let mut client = started(&place);
    write(&place, &mut client, "one\n");
    let steps = json!([
        ["wait", "answer    a, s, o or d"],
        ["pause", 1_100],
        ["keys", "d\n"],
        ["wait", "denied"],
        ["keys", "q\n"],
        ["exit", 0]
    ]);
    let Some(watch) = terminal(&place, (120, 40), &["--plain"], &steps) else {
        return;
    };
    let answer: Value = line(&mut client);
    assert!(!is_passed(&answer), "{answer}");
    screen(watch);
    end(client);
}
