//! `durward pins`: what is said, to whom, with which exit code.

use crate::support::guarded::{LATEST, Place, end};
use serde_json::{Value, json};

fn pins(place: &Place, words: &[&str]) -> (Option<i32>, String, String) {
    pins_at(place, &[&["--state-dir", "state", "pins"], words].concat())
}

fn pins_at(place: &Place, words: &[&str]) -> (Option<i32>, String, String) {
    let output = place.durward(words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn said(place: &Place, words: &[&str]) -> Value {
    let (_, out, err) = pins(place, words);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
}

/// A place where the tool of `victim` waits with another description.
fn waiting() -> Place {
    let place = Place::new();
    let mock = ["hostile", "--behaviour", "rug-pull", "--at", "2"];
    let mut client = place.guard_with(&["--name", "victim"], &mock);
    client.handshake(LATEST).unwrap();
    for _ in 0..2 {
        client.request("tools/list", json!({})).unwrap();
    }
    assert_eq!(end(client).code, Some(0));
    place
}

#[test]
fn without_pins_every_command_says_so() {
    let place = Place::new();
    let (code, out, _) = pins(&place, &["list"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("no pins yet"), "{out}");
    assert_eq!(pins(&place, &["diff"]).0, Some(0));
    for words in [
        &["approve", "x", "--all"][..],
        &["forget", "x"],
        &["diff", "x"],
        &["list", "x"],
    ] {
        let (code, out, err) = pins(&place, words);
        assert_eq!(code, Some(2), "{words:?} {out}");
        assert!(err.contains("there are none yet"), "{err}");
    }
    assert!(!place.path("state/pins").exists());
}

#[test]
fn what_is_named_wrongly_is_told_and_changes_nothing() {
    let place = waiting();
    let before = said(&place, &["list", "victim", "--json"]);
    for (words, says) in [
        (&["list", "victm"][..], "there are pins of: victim"),
        (&["diff", "victim", "nothing"], "never listed a tool named"),
        (&["approve", "victim"], "required"),
        (
            &["approve", "victim", "--all", "echo"],
            "cannot be used with",
        ),
        (&["approve", "victim", "echo", "--digest", "xyz"], "8 to 64"),
        (
            &["approve", "../victim", "--all"],
            "no pins of a server called",
        ),
    ] {
        let (code, out, err) = pins(&place, words);
        assert_eq!(code, Some(2), "{words:?} {out} {err}");
        assert!(err.contains(says), "{words:?}: {err}");
    }
    let (code, out, _) = pins(&place, &["approve", "victim", "nothing"]);
    assert_eq!(code, Some(2), "{out}");
    assert!(out.contains("never listed such a tool"), "{out}");
    assert_eq!(said(&place, &["list", "victim", "--json"]), before);
}

#[test]
fn only_the_definition_that_was_looked_at_is_approved() {
    let place = waiting();
    let diff = said(&place, &["diff", "--json"]);
    let waits = &diff["waiting"][0];
    assert_eq!(waits["server"], "victim");
    assert_eq!(waits["changes"][0]["field"], "description");
    assert_eq!(waits["changes"][0]["old"], "Returns its text.");
    let digest = waits["waiting"].as_str().unwrap();
    let (code, out, _) = pins(
        &place,
        &["approve", "victim", "echo", "--digest", "00000000"],
    );
    assert_eq!(code, Some(2), "{out}");
    assert!(out.contains(&digest[..12]), "{out}");
    let (code, out, _) = pins(
        &place,
        &["approve", "victim", "echo", "--digest", &digest[..12]],
    );
    assert_eq!(code, Some(0), "{out}");
    let (code, out, _) = pins(&place, &["approve", "victim", "echo"]);
    assert_eq!((code, out.as_str()), (Some(0), "echo: nothing waits\n"));
    assert_eq!(
        pins(&place, &["diff"]),
        (Some(0), "nothing waits\n".into(), String::new())
    );
}

#[test]
fn lists_show_what_waits() {
    let place = waiting();
    let (code, out, _) = pins(&place, &["list"]);
    assert_eq!(code, Some(0));
    assert!(
        out.starts_with("victim  1 tool, 1 waiting\n  echo  CHANGED  approved "),
        "{out}"
    );
    assert_eq!(pins(&place, &["approve", "victim", "--all"]).0, Some(0));
    assert_eq!(pins(&place, &["list"]).1, "victim  1 tool, 0 waiting\n");
    assert!(
        pins(&place, &["list", "victim"])
            .1
            .contains("  echo  approved ")
    );
    let (code, out, _) = pins(&place, &["forget", "victim"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(pins(&place, &["list"]).1.contains("no pins yet"));
}

#[test]
fn a_proposal_says_what_each_pinned_tool_seems_to_do() {
    let place = waiting();
    let (code, out, _) = pins(&place, &["propose", "victim"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("servers.victim in durward.yaml"), "{out}");
    assert!(out.contains("\ntools:\n  \"echo\": read\n"), "{out}");
    let proposal = said(&place, &["propose", "victim", "--json"]);
    assert_eq!(proposal["tools"]["echo"], "read", "{proposal}");
    let (code, _, err) = pins(&place, &["propose", "victm"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("there are pins of: victim"), "{err}");
}

#[test]
fn approving_declares_what_the_tools_do_where_that_is_accepted() {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"reads","effect":"allow","conditions":{"operations":["read"]}}]}"#,
    );
    let mock = ["hostile", "--behaviour", "rug-pull", "--at", "9"];
    let mut words = place.mock(&mock).into_iter();
    let program = words.next().unwrap();
    let arguments: Vec<String> = words.collect();
    let text = format!(
        "# mine\npolicy: policy.json\nservers:\n  victim: # a server\n    command: {}\n    args: {}\n",
        json!(program),
        json!(arguments)
    );
    std::fs::write(place.path("durward.yaml"), &text).unwrap();
    let mut client = place.guard_configured("durward.yaml", &[], "victim");
    client.handshake(LATEST).unwrap();
    client.request("tools/list", json!({})).unwrap();
    assert_eq!(end(client).code, Some(0));
    let configured = |words: &[&str]| {
        pins_at(
            &place,
            &[&["--config", "durward.yaml", "--state-dir", "state"], words].concat(),
        )
    };
    // Nothing is asked without a terminal, and nothing declared.
    let (code, out, err) = configured(&["pins", "approve", "victim", "--all"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("echo: approved "), "{out}");
    assert_eq!(
        std::fs::read_to_string(place.path("durward.yaml")).unwrap(),
        text
    );
    let accept = [
        "pins",
        "approve",
        "victim",
        "--all",
        "--accept-classes",
        "--json",
    ];
    let (code, out, err) = configured(&accept);
    assert_eq!(code, Some(0), "{err}");
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(said["classes"]["echo"], "read", "{said}");
    let written = std::fs::read_to_string(place.path("durward.yaml")).unwrap();
    for kept in ["# mine\n", "victim: # a server\n", "echo: read"] {
        assert!(written.contains(kept), "{written}");
    }
    assert_eq!(configured(&["check", "--strict"]).0, Some(0));
    // What is declared is not proposed again.
    let said: Value = serde_json::from_str(&configured(&accept).1).unwrap();
    assert_eq!(said["classes"], json!({}));
    let accept = ["approve", "victim", "--all", "--accept-classes"];
    let (code, _, err) = pins(&place, &[&accept[..], &["--no-config"]].concat());
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("no class was declared: --no-config"), "{err}");
}
