//! What a person is shown of a write: the difference between what stands in the file and what would.

use std::fs;
use std::os::unix::fs::symlink;

use mcp::client::Client;
use serde_json::{Value, json};

use crate::support::guarded::{LATEST, Place, end, eventually, line};
use crate::support::refusals::told;

/// The question about a call that writes this, and how `durward approvals show` prints it.
fn asked(place: &Place, client: &mut Client, path: &str, content: &str) -> (Value, String) {
    let arguments = json!({"path": path, "content": content});
    let params = json!({"name": "write_file", "arguments": arguments});
    client.send_request("tools/call", params).unwrap();
    let printed = |words: &[&str]| {
        let output = place.durward(&[&["approvals"], words].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let waiting =
        || serde_json::from_str::<Value>(printed(&["list", "--json"]).lines().next()?).ok();
    eventually("a question waits", || waiting().is_some());
    let question = waiting().unwrap();
    let id = question["id"].as_str().unwrap();
    let printed = printed(&["show", id]);
    assert!(place.durward(&["approvals", "deny", id]).status.success());
    let answer = line(client);
    assert_eq!(told(&answer)["reason"], "approval_denied");
    assert!(!answer.to_string().contains("second"), "{answer}");
    (question, printed)
}

#[test]
fn a_write_is_shown_as_a_difference() {
    let place = Place::new();
    place
        .write_policy(r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"}}]}"#);
    let root = place.path("root");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.txt"), "first\nsecond\nthird\n").unwrap();
    fs::write(root.join("b.bin"), [0, 159, 146, 150]).unwrap();
    symlink(root.join("a.txt"), root.join("link")).unwrap();
    let mut client = place.guard(&["files", "--root", root.to_str().unwrap()]);
    client.handshake(LATEST).unwrap();
    let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let file = at("a.txt");
    let cases = [
        (
            file.clone(),
            "first\n2\nthird\n",
            json!([
                format!("{file}: 1 line removed, 1 added"),
                " first",
                "-second",
                "+2",
                " third"
            ]),
        ),
        // Who writes through a link is shown the file behind it.
        (
            at("link"),
            "first\nsecond\n",
            json!([
                format!("{file}: 1 line removed, 0 added"),
                " first",
                " second",
                "-third"
            ]),
        ),
        (
            at("new.txt"),
            "hello\n",
            json!([
                format!("{}: a new file, 0 lines removed, 1 added", at("new.txt")),
                "+hello"
            ]),
        ),
        (
            at("b.bin"),
            "hello\n",
            json!([format!(
                "{}: what is there is no text, and would be replaced or changed",
                at("b.bin")
            )]),
        ),
    ];
    for (path, content, expected) in cases {
        let (question, printed) = asked(&place, &mut client, &path, content);
        let change = &question["change"];
        assert_eq!(change, &expected, "{path}");
        for part in change.as_array().unwrap() {
            assert!(
                printed.contains(part.as_str().unwrap()),
                "{part}: {printed}"
            );
        }
    }
    assert_eq!(end(client).code, Some(0));
    assert_eq!(
        fs::read_to_string(root.join("a.txt")).unwrap(),
        "first\nsecond\nthird\n"
    );
}
