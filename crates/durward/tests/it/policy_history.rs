//! Versions of a policy: recorded by instances, listed, compared, and written back.

use std::fs;

use crate::support::guarded::{LATEST, Place, end, eventually};
use mcp::client::Client;
use serde_json::{Value, json};

/// A policy that allows this tool, with an indentation and an end of its own.
fn allowing(tool: &str) -> String {
    format!(
        "{{\"rules\": [\n   {}]}}\n\n",
        json!({"id": "some", "effect": "allow", "conditions": {"tool_name": tool}})
    )
}

/// Runs an instance until `work` is done.
fn guarded(place: &Place, work: impl FnOnce(&mut Client)) {
    let mut client = place.guard(&["echo"]);
    client.handshake(LATEST).unwrap();
    work(&mut client);
    assert_eq!(end(client).code, Some(0));
}

/// Exit code and both streams of a command about the policy's file.
fn policy(place: &Place, words: &[&str]) -> (i32, String) {
    let words = [&["policy", "--no-config", "--state-dir", "state"], words].concat();
    let output = place.durward(&words);
    let mut said = String::from_utf8(output.stdout).unwrap();
    said.push_str(&String::from_utf8(output.stderr).unwrap());
    (output.status.code().unwrap(), said)
}

fn versions(place: &Place) -> Vec<(u64, String)> {
    let (code, said) = policy(place, &["history", "policy.json", "--json"]);
    assert_eq!(code, 0, "{said}");
    let lines = said.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .map(|version: Value| {
            let change = version["change"].as_str().unwrap().to_owned();
            (version["version"].as_u64().unwrap(), change)
        })
        .collect()
}

/// Version and earlier version of the latest record about the policy.
fn recorded(place: &Place) -> (Value, Value) {
    let records = place.records();
    let of_policy = |record: &&Value| record["kind"] == "config" && record["component"] == "policy";
    let record = records.0.iter().rev().find(of_policy).unwrap();
    (
        record["version"].clone(),
        record["previous_version"].clone(),
    )
}

#[test]
fn versions_go_on_over_restarts_and_a_change_while_stopped_is_found() {
    let place = Place::new();
    place.write_policy(&allowing("one"));
    guarded(&place, |_| {});
    guarded(&place, |_| {});
    assert_eq!(versions(&place), [(1, "created".to_owned())]);
    place.write_policy(&allowing("two"));
    guarded(&place, |_| {
        place.write_policy(&allowing("three"));
        eventually("a version of the running instance", || {
            versions(&place).len() == 3
        });
    });
    let expect = [(1, "created"), (2, "manual_change"), (3, "reloaded")];
    let expect = expect.map(|(number, change)| (number, change.to_owned()));
    assert_eq!(versions(&place), expect);
    assert_eq!(recorded(&place), (json!("v3"), json!("v2")));
    guarded(&place, |_| {});
    assert_eq!(recorded(&place).0, "v3");
}

#[test]
fn a_rollback_writes_the_same_bytes_and_is_a_version_of_its_own() {
    let place = Place::new();
    place.write_policy(&allowing("one"));
    guarded(&place, |_| {});
    place.write_policy(&allowing("two"));
    guarded(&place, |_| {
        let (code, said) = policy(&place, &["rollback", "v1", "--file", "policy.json"]);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("v3 has the text of v1"), "{said}");
        eventually("the rules in force", || {
            recorded(&place) == (json!("v3"), json!("v2"))
        });
    });
    let text = fs::read_to_string(place.path("policy.json")).unwrap();
    assert_eq!(text, allowing("one"));
    assert_eq!(versions(&place).last().unwrap().1, "rolled_back");
    let (code, said) = policy(&place, &["diff", "v1", "v3", "--file", "policy.json"]);
    assert_eq!((code, said.as_str()), (0, ""));
    let (code, said) = policy(&place, &["diff", "v1", "v2", "--file", "policy.json"]);
    assert_eq!(code, 1);
    assert!(said.contains("\"one\"") && said.contains("\n+"), "{said}");
    let (code, said) = policy(&place, &["rollback", "v9", "--file", "policy.json"]);
    assert_eq!(code, 2);
    assert!(said.contains("the latest is v3"), "{said}");
}

#[test]
fn a_forged_snapshot_is_not_written() {
    let place = Place::new();
    place.write_policy(&allowing("one"));
    guarded(&place, |_| {});
    place.write_policy(&allowing("two"));
    for entry in fs::read_dir(place.path("state/history")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "json") {
            fs::write(path, allowing("*")).unwrap();
        }
    }
    let (code, said) = policy(&place, &["rollback", "v1", "--file", "policy.json"]);
    assert_eq!(code, 16, "{said}");
    assert!(said.contains("is not the text that was recorded"), "{said}");
    let text = fs::read_to_string(place.path("policy.json")).unwrap();
    assert_eq!(text, allowing("two"));
}
