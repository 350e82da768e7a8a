//! What scripts read: the `--json` of commands that change or check something.

use std::fs;

use serde_json::{Value, json};

use crate::support::world::World;

/// The exit code and the one object on standard output.
fn object(world: &World, words: &[&str]) -> (Option<i32>, Value) {
    let output = world.durward(words);
    let told = serde_json::from_slice(&output.stdout);
    let told = told.unwrap_or_else(|error| panic!("{words:?}: {error}: {output:?}"));
    (output.status.code(), told)
}

#[test]
fn keys_are_made_and_changed_as_the_objects_that_list_has() {
    let world = World::new(None);
    let output = world.durward(&["keys", "create", "other", "--scope", "nosuch"]);
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(
        note.contains("the scope \"nosuch\" was not checked"),
        "{note}"
    );
    let words = ["keys", "create", "ci", "--group", "a", "--json"];
    let (code, mut made) = object(&world, &words);
    let first = made.as_object_mut().unwrap().remove("key").unwrap();
    assert!(first.as_str().unwrap().starts_with("dw_"), "{first}");
    let (_, listed) = object(&world, &["keys", "list", "--json"]);
    assert_eq!((code, &listed[1]), (Some(0), &made));
    let (_, rotated) = object(
        &world,
        &["keys", "rotate", "ci", "--overlap", "1d", "--json"],
    );
    assert!(rotated["key"] != first && rotated["overlap_until_ms"].is_i64());
    let (_, revoked) = object(&world, &["keys", "revoke", "ci", "--json"]);
    assert_eq!(revoked["state"], "revoked");
    assert_eq!(revoked.get("key"), None);
}

#[test]
fn ssh_check_tells_decision_and_rule() {
    let world = World::new(None);
    for (line, code, decision) in [
        ("cat /etc/hostname", 0, "allow"),
        ("mkfs /dev/sda", 4, "deny"),
        ("a; b", 4, "deny"),
    ] {
        let words = ["ssh", "check", "--json", "--host", "web1", line];
        let (found, told) = object(&world, &words);
        assert_eq!((found, &told["decision"]), (Some(code), &json!(decision)));
        assert_eq!(told["command"], line);
        assert_eq!(told["host"], "web1");
        assert_eq!(told["final_rule"].is_null(), line == "a; b", "{told}");
    }
}

#[test]
fn ssh_hosts_check_names_hosts_and_what_will_fail() {
    let world = World::new(None);
    let file = world.home().join("hosts.yaml");
    let text = "credentials:\n  me: { user: me, key: /nosuch/key }\nhosts:\n  web1: { address: 127.0.0.1, credential: me }\n";
    fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let (code, told) = object(&world, &["ssh", "hosts", "check", "--json", &file]);
    assert_eq!(code, Some(1), "{told}");
    let host = &told["hosts"][0];
    assert_eq!(host["name"], "web1");
    assert_eq!((&host["user"], &host["port"]), (&json!("me"), &json!(22)));
    let faults = host["faults"].as_array().unwrap();
    assert!(
        faults
            .iter()
            .any(|fault| fault.as_str().unwrap().contains("/nosuch/key"))
    );
}

#[test]
fn wrap_and_install_tell_what_they_wrote_and_where_the_backup_is() {
    let world = World::new(None);
    let path = world.home().join("mcp.json");
    let before = r#"{"mcpServers":{"a":{"command":"cat"}}}"#;
    fs::write(&path, before).unwrap();
    let file = path.display().to_string();
    let refused = world.durward(&["wrap", "cursor", "--file", &file, "--json"]);
    assert_eq!(refused.status.code(), Some(16), "{refused:?}");
    let (_, looked) = object(
        &world,
        &["wrap", "cursor", "--file", &file, "--json", "--dry-run"],
    );
    assert_eq!(
        (&looked["written"], &looked["servers"]),
        (&json!(false), &json!(["a"]))
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let (_, wrapped) = object(
        &world,
        &["wrap", "cursor", "--file", &file, "--json", "--yes"],
    );
    assert_eq!(
        (&wrapped["client"], &wrapped["written"]),
        (&json!("cursor"), &json!(true))
    );
    let backup = wrapped["backup"].as_str().unwrap();
    assert_eq!(fs::read_to_string(backup).unwrap(), before);
    let (_, again) = object(
        &world,
        &["wrap", "cursor", "--file", &file, "--json", "--yes"],
    );
    assert_eq!(
        (&again["written"], &again["skipped"][0]["server"]),
        (&json!(false), &json!("a"))
    );
    object(
        &world,
        &["unwrap", "cursor", "--file", &file, "--json", "--yes"],
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), before);

    let install = [
        "install", "cursor", "--file", &file, "--json", "--name", "b",
    ];
    let with = |more: &[&str]| object(&world, &[&install[..], more, &["--", "cat"]].concat()).1;
    let printed = with(&[]);
    assert_eq!(
        (&printed["status"], &printed["backup"]),
        (&json!("printed"), &Value::Null)
    );
    let added = with(&["--write"]);
    assert_eq!(
        (&added["status"], &added["entry"]),
        (&json!("added"), &printed["entry"])
    );
    assert!(fs::exists(added["backup"].as_str().unwrap()).unwrap());
    assert_eq!(with(&["--write"])["status"], "unchanged");
}
