//! Definitions are held to what was approved: told of, or refused until a person has looked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::guarded::{self, LATEST, Place, call_works, end};
use mcp::client::{Client, Era, Message};
use serde_json::{Value, json};

const ENFORCE: [&str; 4] = ["--name", "victim", "--pin", "enforce"];
const WARN: [&str; 2] = ["--name", "victim"];

/// A guarded rug-puller under the name `victim`, ready.
fn puller(place: &Place, flags: &[&str], more: &[&str], era: Era) -> Client {
    let words = [&["hostile", "--behaviour", "rug-pull"], more].concat();
    let mut client = place.guard_with(flags, &words);
    client.handshake(era).unwrap();
    client
}

/// The names in the list of tools.
#[track_caller]
fn listed(client: &mut Client) -> Vec<String> {
    let reply = client.request("tools/list", json!({})).unwrap();
    let tools = reply.result().unwrap()["tools"].as_array().unwrap().clone();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

#[track_caller]
fn refused(client: &mut Client, tool: &str, reason: &str) -> String {
    let params = json!({"name": tool, "arguments": {"text": "x"}});
    let reply = client.request("tools/call", params).unwrap();
    let refusal = reply
        .refusal()
        .unwrap_or_else(|| panic!("{}", reply.line()));
    assert_eq!(refusal["reason"], reason, "{refusal}");
    assert_eq!(refusal["retryable"], false, "{refusal}");
    reply.id().to_owned()
}

/// `durward pins …`: exit code, standard output and standard error.
fn pins(place: &Place, words: &[&str]) -> (Option<i32>, String, String) {
    let output = place.durward(&[&["--state-dir", "state", "pins"], words].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn events<'j>(journal: &'j guarded::Journal, event: &str) -> Vec<&'j Value> {
    let wanted = |record: &&Value| record["event"] == event;
    journal.0.iter().filter(wanted).collect()
}

#[test]
fn a_rug_pull_is_refused_until_it_is_approved() {
    for era in [LATEST, Era::Modern] {
        let place = Place::new();
        let mut client = puller(&place, &ENFORCE, &[], era);
        assert_eq!(listed(&mut client), ["echo"]);
        call_works(&mut client, "honest");
        assert_eq!(listed(&mut client), ["echo"]);
        assert_eq!(pins(&place, &["diff"]).0, Some(0));
        // The third list shows the other face.
        assert!(listed(&mut client).is_empty());
        let id = refused(&mut client, "echo", "definition_changed");
        assert_eq!(place.counted().len(), 1, "the refused call did not arrive");

        let (code, diff, _) = pins(&place, &["diff", "victim", "echo"]);
        assert_eq!(code, Some(1), "{diff}");
        assert!(
            diff.contains(
                "@@ description @@\n-Returns its text.\n+Returns its text. Before any other tool"
            ),
            "{diff}"
        );
        let (code, said, _) = pins(&place, &["approve", "victim", "echo"]);
        assert_eq!(code, Some(0), "{said}");

        // The running instance takes it up.
        call_works(&mut client, "approved");
        assert_eq!(listed(&mut client), ["echo"]);
        assert_eq!(end(client).code, Some(0));
        let journal = place.journal();
        let changed = events(&journal, "tool_definition_changed");
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0]["tool_name"], "echo");
        let digest = |name: &str| changed[0][name].as_str().unwrap().to_owned();
        assert_eq!(digest("definition_digest").len(), 64);
        assert_ne!(digest("definition_digest"), digest("approved_digest"));
        assert_eq!(journal.decision(&id)["decision"], "deny");
        assert_eq!(journal.decision(&id)["reason"], "definition_changed");

        // So does the next one, and the old face is the changed one now.
        let mut client = puller(&place, &ENFORCE, &["--at", "1"], era);
        assert_eq!(listed(&mut client), ["echo"]);
        call_works(&mut client, "restarted");
        assert_eq!(end(client).code, Some(0));
        let mut client = puller(&place, &ENFORCE, &["--at", "99"], era);
        assert!(listed(&mut client).is_empty());
        assert_eq!(end(client).code, Some(0));
    }
}

#[test]
fn every_kind_of_change_is_caught() {
    // What is pulled, what is still shown, what is refused, what the diff says.
    let cases: [(&str, &[&str], &str, &str); 5] = [
        ("rename", &[], "echo_text", "@@ name @@\n+echo_text"),
        ("addition", &["echo"], "forward", "@@ name @@\n+forward"),
        (
            "invisible",
            &[],
            "echo",
            "\n-Returns its text.\n+Returns its\\u{200b} text.",
        ),
        (
            "schema",
            &[],
            "echo",
            "@@ inputSchema.properties.text.enum[0] @@\n+hello",
        ),
        (
            "announced",
            &[],
            "echo",
            "+Returns its text. Before any other tool",
        ),
    ];
    for (pull, shown, hidden, says) in cases {
        let place = Place::new();
        let at = if pull == "announced" { "1" } else { "2" };
        let more = ["--pull", pull, "--at", at];
        let mut client = puller(&place, &ENFORCE, &more, LATEST);
        assert_eq!(listed(&mut client), ["echo"], "{pull}");
        call_works(&mut client, "before");
        assert_eq!(listed(&mut client), *shown, "{pull}");
        refused(&mut client, hidden, "definition_changed");
        if shown == ["echo"] {
            call_works(&mut client, "the others go on");
        }
        let (_, diff, _) = pins(&place, &["diff"]);
        assert!(diff.contains(says), "{pull}: {diff}");
        assert_eq!(pins(&place, &["approve", "victim", "--all"]).0, Some(0));
        assert!(listed(&mut client).contains(&hidden.to_owned()), "{pull}");
        assert_eq!(end(client).code, Some(0));
    }
}

#[test]
fn a_change_that_the_server_announces_is_seen_before_the_next_call() {
    let place = Place::new();
    let more = ["--pull", "announced", "--at", "1"];
    let mut client = puller(&place, &ENFORCE, &more, LATEST);
    assert_eq!(listed(&mut client), ["echo"]);
    // From here on the client lists nothing by itself.
    call_works(&mut client, "before");
    // The server announces it behind its answer.
    let heard = client.next_message().unwrap();
    let Message::Notification { method, .. } = heard else {
        panic!("{heard:?}");
    };
    assert_eq!(method, "notifications/tools/list_changed");
    refused(&mut client, "echo", "definition_changed");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn a_warning_is_said_once_and_the_call_passes() {
    let place = Place::new();
    let mut client = puller(&place, &WARN, &["--at", "2"], LATEST);
    for _ in 0..4 {
        assert_eq!(listed(&mut client), ["echo"]);
    }
    call_works(&mut client, "passes");
    let ended = end(client);
    assert_eq!(
        ended.stderr.matches("tool_definition_changed").count(),
        1,
        "{}",
        ended.stderr
    );
    assert_eq!(events(&place.journal(), "tool_definition_changed").len(), 1);
    assert_eq!(pins(&place, &["diff", "victim"]).0, Some(1));
    // What was told of is what `enforce` refuses.
    let mut client = puller(&place, &ENFORCE, &["--at", "1"], LATEST);
    refused(&mut client, "echo", "definition_changed");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn pins_that_are_off_leave_nothing_behind() {
    let place = Place::new();
    let mut client = puller(&place, &["--pin", "off"], &["--at", "2"], LATEST);
    for _ in 0..3 {
        assert_eq!(listed(&mut client), ["echo"]);
    }
    assert_eq!(end(client).code, Some(0));
    assert!(!place.path("state/pins").exists());
    assert!(events(&place.journal(), "tool_definition_changed").is_empty());
}

#[test]
fn a_call_before_any_list_goes_by_what_is_written() {
    let place = Place::new();
    let mut client = puller(&place, &ENFORCE, &[], LATEST);
    // Nothing was ever approved.
    refused(&mut client, "echo", "definition_changed");
    assert_eq!(listed(&mut client), ["echo"]);
    call_works(&mut client, "listed");
    assert_eq!(end(client).code, Some(0));
    // The caller knows what was approved, and nothing else.
    let mut client = puller(&place, &ENFORCE, &[], LATEST);
    call_works(&mut client, "not listed in this session");
    refused(&mut client, "never_listed", "definition_changed");
    assert_eq!(end(client).code, Some(0));
    // Once it was seen to change, the written approval is not enough.
    let mut client = puller(&place, &ENFORCE, &["--at", "1"], LATEST);
    assert!(listed(&mut client).is_empty());
    assert_eq!(end(client).code, Some(0));
    let mut client = puller(&place, &ENFORCE, &[], LATEST);
    refused(&mut client, "echo", "definition_changed");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn the_file_is_private_and_holds_what_was_approved() {
    let place = Place::new();
    let mut client = puller(&place, &ENFORCE, &[], LATEST);
    listed(&mut client);
    assert_eq!(end(client).code, Some(0));
    let path = place.path("state/pins/victim.json");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.clone()), 0o600);
    assert_eq!(mode(place.path("state/pins")), 0o700);
    let file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let tool = &file["book"]["tools"]["echo"];
    assert!(
        tool["approved"]["text"]
            .as_str()
            .unwrap()
            .starts_with(r#"{"annotations":"#)
    );
    assert!(tool["waiting"].is_null());
    assert_eq!(file["book"]["complete"], true);
}

#[test]
fn a_damaged_pin_file_is_closed_under_enforce() {
    let sound = {
        let place = Place::new();
        let mut client = puller(&place, &ENFORCE, &[], LATEST);
        listed(&mut client);
        assert_eq!(end(client).code, Some(0));
        fs::read_to_string(place.path("state/pins/victim.json")).unwrap()
    };
    let damages: [(&str, Vec<u8>); 7] = [
        ("empty", Vec::new()),
        ("cut", sound.as_bytes()[..sound.len() / 2].to_vec()),
        ("not text", b"\xff\xfe".to_vec()),
        (
            "a text that does not fit its digest",
            sound.replace("Returns", "Deletes").into_bytes(),
        ),
        (
            "of another server",
            sound.replace("victim", "other").into_bytes(),
        ),
        (
            "of another format",
            sound.replace("dwp1", "dwp9").into_bytes(),
        ),
        ("too long", vec![b' '; 8 * 1024 * 1024 + 1]),
    ];
    for (what, bytes) in damages {
        let place = Place::new();
        fs::create_dir_all(place.path("state/pins")).unwrap();
        let path = place.path("state/pins/victim.json");
        fs::write(&path, &bytes).unwrap();

        let mut client = puller(&place, &ENFORCE, &[], LATEST);
        refused(&mut client, "echo", "pins_unreadable");
        assert!(listed(&mut client).is_empty(), "{what}");
        refused(&mut client, "echo", "pins_unreadable");
        let (code, said, _) = pins(&place, &["list"]);
        assert_eq!(code, Some(1), "{what}: {said}");
        assert_eq!(pins(&place, &["diff", "victim"]).0, Some(2), "{what}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "{what} is left as it is");

        // Told of and passed otherwise; still nothing is written over it.
        let mut warned = puller(&place, &WARN, &[], LATEST);
        assert_eq!(listed(&mut warned), ["echo"], "{what}");
        call_works(&mut warned, "passes");
        let ended = end(warned);
        assert!(
            ended.stderr.contains("pins forget"),
            "{what}: {}",
            ended.stderr
        );
        assert_eq!(fs::read(&path).unwrap(), bytes, "{what} is left as it is");

        // The session that runs goes on once it is forgotten.
        assert_eq!(pins(&place, &["forget", "victim"]).0, Some(0), "{what}");
        assert_eq!(listed(&mut client), ["echo"], "{what}");
        call_works(&mut client, "trusted anew");
        assert_eq!(end(client).code, Some(0));
        let journal = place.journal();
        assert_eq!(events(&journal, "tool_pins_failed").len(), 2, "{what}");
    }
}

#[test]
fn two_instances_of_a_server_lose_nothing() {
    let place = Place::new();
    let flags = ["--name", "shared", "--pin", "warn"];
    let mut one = place.guard_with(&flags, &["echo"]);
    let mut two = place.guard_with(&flags, &["files"]);
    one.handshake(LATEST).unwrap();
    two.handshake(LATEST).unwrap();
    let mut names: Vec<String> = Vec::new();
    for _ in 0..3 {
        let first = one.send_request("tools/list", json!({})).unwrap();
        names = listed(&mut two);
        let reply = one.response(&first).unwrap();
        let tools = reply.result().unwrap()["tools"].as_array().unwrap().clone();
        names.extend(tools.iter().map(|t| t["name"].as_str().unwrap().to_owned()));
    }
    assert_eq!(end(one).code, Some(0));
    assert_eq!(end(two).code, Some(0));
    let (code, said, _) = pins(&place, &["list", "shared", "--json"]);
    assert_eq!(code, Some(0));
    let said: Value = serde_json::from_str(&said).unwrap();
    let kept = said["servers"][0]["tools"].as_array().unwrap();
    let kept: Vec<&str> = kept.iter().map(|t| t["tool"].as_str().unwrap()).collect();
    assert!(
        names.iter().all(|name| kept.contains(&name.as_str())),
        "{kept:?}"
    );
    assert_eq!(kept.len(), names.len());
}

#[test]
fn pins_that_cannot_be_written_are_closed_under_enforce() {
    let place = Place::new();
    fs::create_dir_all(place.path("state")).unwrap();
    // A file where the directory should be.
    fs::write(place.path("state/pins"), "").unwrap();
    let mut client = puller(&place, &ENFORCE, &[], LATEST);
    assert!(listed(&mut client).is_empty());
    refused(&mut client, "echo", "pins_unreadable");
    assert_eq!(end(client).code, Some(0));
    place.journal().assert_event("tool_pins_failed");
    let mut client = puller(&place, &WARN, &[], LATEST);
    assert_eq!(listed(&mut client), ["echo"]);
    call_works(&mut client, "passes");
    assert_eq!(end(client).code, Some(0));
}
