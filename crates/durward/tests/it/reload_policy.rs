//! A policy and a configuration that change while a server is guarded.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::guarded::{LATEST, Place, binary, end, eventually, pause};
use mcp::client::Client;
use rustix::process::Signal;
use serde_json::{Value, json};

/// A policy that allows these tools.
fn allowing(tools: &[&str]) -> String {
    json!({"rules": [{"id": "some", "effect": "allow", "conditions": {"tool_name": tools}}]})
        .to_string()
}

/// Guards the file server, which announces that its list may change.
fn guard(place: &Place, flags: &[&str]) -> Client {
    let root = place.path("").to_str().unwrap().to_owned();
    let mut client = place.guard_with(flags, &["files", "--announce-changes", "--root", &root]);
    client.handshake(LATEST).unwrap();
    client
}

fn hang_up(client: &mut Client) {
    client.process().signal(Signal::HUP).unwrap();
}

/// The config records about the policy that are in the journal now.
fn history(place: &Place) -> Vec<Value> {
    let output = place.durward(&[
        "audit",
        "--no-config",
        "--state-dir",
        "state",
        "show",
        "--json",
        "--kind",
        "config",
        "--limit",
        "100000",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn last(place: &Place) -> Value {
    history(place).pop().unwrap_or_default()
}

/// Waits until the last config record is this event and this version.
#[track_caller]
fn until(place: &Place, event: &str, version: &str) -> Value {
    eventually(&format!("{event} {version}"), || {
        let record = last(place);
        record["event"] == event && record["version"] == version
    });
    last(place)
}

/// Replaces the policy as editors do.
fn replace(place: &Place, text: &str) {
    fs::write(place.path("policy.json.new"), text).unwrap();
    fs::rename(place.path("policy.json.new"), place.path("policy.json")).unwrap();
}

fn refused(client: &mut Client, tool: &str) -> bool {
    let reply = client.call_tool(tool, json!({"path": "."})).unwrap();
    reply
        .refusal()
        .is_some_and(|refusal| refusal["reason"] == "no_rule_allows")
}

#[test]
fn sighup_takes_up_a_policy_and_the_journal_says_so() {
    let place = Place::new();
    place.write_policy(&allowing(&["list_files"]));
    let mut client = guard(&place, &["--no-watch"]);
    assert!(!refused(&mut client, "list_files"));
    let before = last(&place);
    replace(&place, &allowing(&["read_file"]));
    hang_up(&mut client);
    let record = until(&place, "updated", "v2");
    assert!(refused(&mut client, "list_files"));
    assert_eq!(record["previous_version"], "v1");
    assert_eq!(record["component"], "policy");
    assert_eq!(record["change_type"], "sighup");
    assert_eq!(
        record["source"],
        place.path("policy.json").to_str().unwrap()
    );
    assert_ne!(record["checksum"], before["checksum"]);
    let ended = end(client);
    assert!(ended.stderr.contains("in force"), "{}", ended.stderr);
    assert_eq!(ended.code, Some(0));
    let journal = place.journal();
    let decisions = journal.decisions();
    assert_eq!(decisions[0]["policy_version"], "v1");
    assert_eq!(decisions[0]["policy_digest"], before["checksum"]);
    assert_eq!(decisions[1]["policy_version"], "v2");
    assert_eq!(decisions[1]["policy_digest"], record["checksum"]);
}

/// A directory above can be renamed by programs that may not write the policy.
#[test]
fn a_policy_in_another_directory_of_the_same_name_is_not_taken_up() {
    let place = Place::new();
    let folder = place.path("above/rules");
    fs::create_dir_all(&folder).unwrap();
    let policy = folder.join("policy.json");
    fs::write(&policy, allowing(&["list_files"])).unwrap();
    let mock = place.mock(&["files", "--root", place.dir.to_str().unwrap()]);
    let words: Vec<&str> = mock.iter().map(String::as_str).collect();
    let mut args = place.run_args(&["--no-watch", "--name", "files"], &words);
    let named = args.iter_mut().find(|arg| arg.ends_with("/policy.json"));
    *named.unwrap() = policy.display().to_string();
    let mut client = Client::spawn_with(binary(), args, &place.options()).unwrap();
    client.handshake(LATEST).unwrap();
    assert!(refused(&mut client, "read_file"));
    fs::rename(place.path("above"), place.path("before")).unwrap();
    fs::create_dir_all(&folder).unwrap();
    fs::write(&policy, allowing(&["list_files", "read_file"])).unwrap();
    let output = place.durward(&[
        "--no-config",
        "--state-dir",
        "state",
        "reload",
        "--server",
        "files",
    ]);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("is another directory"), "{err}");
    assert!(refused(&mut client, "read_file"));
    assert_eq!(last(&place)["event"], "validation_failed");
    // The one that was read first is taken up again.
    fs::remove_dir_all(place.path("above")).unwrap();
    fs::rename(place.path("before"), place.path("above")).unwrap();
    fs::write(&policy, allowing(&["list_files", "read_file"])).unwrap();
    hang_up(&mut client);
    until(&place, "updated", "v2");
    assert!(!refused(&mut client, "read_file"));
    end(client);
}

#[test]
fn a_policy_that_everybody_may_write_is_neither_begun_with_nor_taken_up() {
    let place = Place::new();
    let open = |mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(place.path("policy.json"), mode).unwrap();
    };
    let said = |args: &[&str]| {
        let output = place.durward(&[&["--no-config", "--state-dir", "state"], args].concat());
        let err = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), err)
    };
    place.write_policy(&allowing(&["list_files"]));
    open(0o666);
    let (code, err) = said(&["run", "--policy", "policy.json", "--", "true"]);
    assert_eq!(code, Some(16), "{err}");
    assert!(err.contains("everybody may write to this file"), "{err}");
    open(0o644);
    let mut client = guard(&place, &["--no-watch", "--name", "files"]);
    assert!(refused(&mut client, "read_file"));
    replace(&place, &allowing(&["list_files", "read_file"]));
    open(0o646);
    let (code, err) = said(&["reload", "--server", "files"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("run chmod o-w on it"), "{err}");
    assert!(refused(&mut client, "read_file"));
    end(client);
}

#[test]
fn the_command_reloads_every_instance_of_a_server() {
    let place = Place::new();
    place.write_policy(&allowing(&["list_files"]));
    let mut client = guard(&place, &["--no-watch", "--name", "files"]);
    assert!(!refused(&mut client, "list_files"));
    let reload = |args: &[&str]| {
        let output =
            place.durward(&[&["--no-config", "--state-dir", "state", "reload"], args].concat());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, _, err) = reload(&["--server", "other"]);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("no running instance guards \"other\""),
        "{err}"
    );
    replace(&place, &allowing(&["read_file"]));
    let (code, out, err) = reload(&["--server", "files"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("files: policy v2 in force, digest "), "{out}");
    assert!(refused(&mut client, "list_files"));
    assert_eq!(last(&place)["change_type"], "command");
    replace(&place, "{");
    let (code, _, err) = reload(&["--server", "files"]);
    assert_eq!(code, Some(1));
    assert!(
        err.contains("line 1, column ")
            && err.contains("the earlier rules and settings stay in force"),
        "{err}"
    );
    let (code, out, _) = reload(&["--server", "files", "--json"]);
    assert_eq!(code, Some(1));
    let told: Value = serde_json::from_str(&out).unwrap();
    assert!(told[0]["error"].is_string(), "{told}");
    end(client);
    assert_eq!(reload(&["--server", "files"]).0, Some(2));
}

#[test]
fn a_changed_file_is_taken_up_by_itself() {
    let place = Place::new();
    place.write_policy(&allowing(&["list_files"]));
    let mut client = guard(&place, &[]);
    replace(&place, &allowing(&["read_file"]));
    let record = until(&place, "updated", "v2");
    assert_eq!(record["change_type"], "file");
    assert!(refused(&mut client, "list_files"));
    // Written in place, too.
    place.write_policy(&allowing(&["list_files"]));
    until(&place, "updated", "v3");
    assert!(!refused(&mut client, "list_files"));
    end(client);
    place.verified();
}

#[test]
fn a_broken_policy_keeps_the_last_good() {
    let place = Place::new();
    place.write_policy(&allowing(&["list_files"]));
    let mut client = guard(&place, &[]);
    for (text, says) in [
        ("{", "line 1, column "),
        (
            r#"{"rules":[],
"rulez":1}"#,
            "line 2, column 1: unknown key \"rulez\"",
        ),
    ] {
        replace(&place, text);
        eventually("the fault is recorded", || {
            last(&place)["message"]
                .as_str()
                .is_some_and(|message| message.contains(says))
        });
        let record = last(&place);
        assert_eq!(record["event"], "validation_failed");
        assert_eq!(record["version"], "v1");
        assert_eq!(record["change_type"], "file");
        assert!(!refused(&mut client, "list_files"));
    }
    // Asked for, it is refused just so.
    let before = history(&place).len();
    hang_up(&mut client);
    eventually("refused again", || history(&place).len() > before);
    assert_eq!(last(&place)["change_type"], "sighup");
    replace(&place, &allowing(&["read_file"]));
    until(&place, "updated", "v2");
    assert!(refused(&mut client, "list_files"));
    let ended = end(client);
    assert!(
        ended
            .stderr
            .contains("line 2, column 1: unknown key \"rulez\""),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("hint: did you mean \"rules\"?"),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stderr
            .contains("the earlier rules and settings stay in force"),
        "{}",
        ended.stderr
    );
    place.verified();
}

#[test]
fn a_deleted_policy_keeps_the_last_good_and_is_said_once() {
    let place = Place::new();
    place.write_policy(&allowing(&["list_files"]));
    let mut client = guard(&place, &[]);
    fs::remove_file(place.path("policy.json")).unwrap();
    eventually("the loss is recorded", || {
        last(&place)["message"]
            .as_str()
            .is_some_and(|message| message.contains("the file is gone"))
    });
    // Several looks later it has still been said once.
    pause(2_000);
    let faults = history(&place)
        .iter()
        .filter(|r| r["event"] == "validation_failed")
        .count();
    assert_eq!(faults, 1);
    assert!(!refused(&mut client, "list_files"));
    place.write_policy(&allowing(&["read_file"]));
    until(&place, "updated", "v2");
    assert!(refused(&mut client, "list_files"));
    let ended = end(client);
    assert_eq!(
        ended.stderr.matches("the file is gone").count(),
        1,
        "{}",
        ended.stderr
    );
}

#[test]
fn a_storm_of_changes_becomes_a_few_reloads() {
    let place = Place::new();
    place.write_policy(&allowing(&["list_files"]));
    let mut client = guard(&place, &[]);
    for number in 0..1_000 {
        replace(&place, &allowing(&[&format!("tool_{number}")]));
        if number % 10 == 0 {
            hang_up(&mut client);
        }
    }
    replace(&place, &allowing(&["read_file"]));
    let digest = {
        let output = place.durward(&["policy", "--no-config", "check", "policy.json"]);
        let text = String::from_utf8(output.stdout).unwrap();
        text.split("digest ").nth(1).unwrap().trim().to_owned()
    };
    eventually("the last one is in force", || {
        last(&place)["checksum"] == digest.as_str()
    });
    assert!(refused(&mut client, "list_files"));
    let updates = history(&place)
        .iter()
        .filter(|record| record["event"] == "updated")
        .count();
    assert!(updates < 500, "{updates} reloads");
    assert_eq!(end(client).code, Some(0));
    let versions: Vec<String> = history(&place)
        .iter()
        .filter(|record| record["event"] == "updated")
        .map(|record| record["version"].as_str().unwrap().to_owned())
        .collect();
    let expect: Vec<String> = (2..versions.len() + 2).map(|n| format!("v{n}")).collect();
    assert_eq!(versions, expect);
    place.verified();
}

#[test]
fn a_tool_in_use_ends_normally_and_its_next_call_is_refused() {
    let place = Place::new();
    place.write_policy(&allowing(&["delayed"]));
    let mut client = place.guard_with(&["--no-watch"], &["echo", "--delay-us", "3000000"]);
    client.handshake(LATEST).unwrap();
    let call = json!({"name": "delayed", "arguments": {"text": "slow"}});
    let id = client.send_request("tools/call", call.clone()).unwrap();
    eventually("the call has reached the server", || {
        !place.counted().is_empty()
    });
    replace(&place, &allowing(&["echo"]));
    hang_up(&mut client);
    until(&place, "updated", "v2");
    let next = client.request("tools/call", call).unwrap();
    assert_eq!(next.refusal().unwrap()["reason"], "no_rule_allows");
    let reply = client.response(&id).unwrap();
    assert_eq!(reply.text(), Some("slow"));
    end(client);
    let journal = place.journal();
    let statuses: Vec<&Value> = journal.operations().iter().map(|o| &o["status"]).collect();
    assert_eq!(statuses, ["Success"]);
    let versions: Vec<&Value> = journal
        .decisions()
        .iter()
        .map(|d| &d["policy_version"])
        .collect();
    assert_eq!(versions, ["v1", "v2"]);
}
