//! A call that a rule wants a person for: it waits, others do not, and a second process answers – against the
//! official filesystem server.

use std::fs;
use std::path::PathBuf;

use crate::support::components;
use crate::support::guarded::{self, Ended, LATEST, Place, end, eventually, line};
use crate::support::refusals::{refusal_text, told};
use mcp::client::Client;
use serde_json::{Value, json};

/// Reads pass, writing waits and may be remembered, making folders waits and may not.
const POLICY: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"reads","effect":"allow","conditions":{"operations":["read"]}},
    {"id":"writes","description":"somebody has to look","effect":"hitl",
     "conditions":{"tool_name":["write_file","move_file"]},"cache_side_effects":["fs_read","fs_write"]},
    {"id":"folders","effect":"hitl","conditions":{"tool_name":"create_directory"}}]}"#;

/// The official server on a folder of its own, guarded.
struct Scene {
    place: Place,
    folder: PathBuf,
    client: Client,
}

impl Scene {
    fn new(flags: &[&str]) -> Option<Self> {
        let program = components::official_filesystem()?;
        let place = Place::new();
        place.write_policy(POLICY);
        let folder = place.path("folder");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("here.txt"), "alpha").unwrap();
        let command = [program.to_str().unwrap(), folder.to_str().unwrap()];
        let mut client = place.guard_command(flags, &command);
        client.handshake(LATEST).unwrap();
        Some(Self {
            place,
            folder,
            client,
        })
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// Sends a call and does not wait for its answer.
    fn send(&mut self, id: u64, tool: &str, arguments: &Value) {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let text = call.to_string();
        self.client.process().send_line(text.as_bytes()).unwrap();
    }

    fn write(&mut self, id: u64, name: &str, content: &str) {
        let arguments = json!({"path": self.path(name), "content": content});
        self.send(id, "write_file", &arguments);
    }

    /// What a second process is shown.
    fn waiting(&self) -> Vec<Value> {
        let output = self.place.durward(&["approvals", "list", "--json"]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Waits until so many calls wait; their ids, oldest first.
    #[track_caller]
    fn until_waiting(&self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        eventually("calls wait", || {
            ids = self
                .waiting()
                .iter()
                .map(|q| q["id"].as_str().unwrap().to_owned())
                .collect();
            ids.len() == count
        });
        ids
    }

    /// A second process answers: its exit code, and what it said on both streams.
    fn answer(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.place.durward(&[&["approvals"], words].concat());
        let mut said = String::from_utf8(output.stdout).unwrap();
        said.push_str(&String::from_utf8(output.stderr).unwrap());
        (output.status.code(), said)
    }

    #[track_caller]
    fn end(self) -> (Place, Ended) {
        let ended = end(self.client);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        (self.place, ended)
    }
}

#[test]
fn a_yes_to_what_is_too_long_to_be_shown_has_to_be_confirmed() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    scene.write(1, "long.txt", &"y".repeat(3_000));
    let ids = scene.until_waiting(1);
    assert_eq!(scene.waiting()[0]["is_cut"], true);
    let (code, said) = scene.answer(&["show", &ids[0]]);
    assert_eq!(code, Some(0));
    assert!(said.contains("has to be confirmed"), "{said}");
    let (code, said) = scene.answer(&["once", &ids[0]]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("too long to be shown"), "{said}");
    assert!(said.contains("--unseen"), "{said}");
    assert!(!scene.folder.join("long.txt").exists());
    let (code, said) = scene.answer(&["once", &ids[0], "--unseen"]);
    assert_eq!(code, Some(0), "{said}");
    passed(&line(&mut scene.client), 1);
    assert!(scene.folder.join("long.txt").exists());
    scene.end();
}

/// The answer is a result of the server's.
#[track_caller]
fn passed(answer: &Value, id: u64) {
    assert_eq!(answer["id"], id, "{answer}");
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    assert!(answer.get("result").is_some(), "{answer}");
}

#[track_caller]
fn refused(answer: &Value, id: u64, reason: &str) {
    assert_eq!(answer["id"], id, "{answer}");
    assert_eq!(told(answer)["reason"], reason, "{answer}");
    assert_eq!(told(answer)["decision"], "hitl", "{answer}");
}

#[test]
fn a_call_waits_while_others_pass_and_goes_through_when_a_second_process_says_yes() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    scene.write(1, "new.txt", "from the call");
    let ids = scene.until_waiting(1);
    let here = json!({"path": scene.path("here.txt")});
    scene.send(2, "read_text_file", &here);
    passed(&line(&mut scene.client), 2);
    assert!(!scene.folder.join("new.txt").exists());

    let question = &scene.waiting()[0];
    assert_eq!(question["tool_name"], "write_file");
    assert_eq!(question["path"], scene.path("new.txt"));
    assert_eq!(question["rule"], "writes");
    assert_eq!(question["can_cache"], true);
    assert_eq!(question["side_effects"], json!(["fs_write"]));
    let arguments = question["arguments"].as_str().unwrap();
    assert!(arguments.contains("from the call"), "{arguments}");

    let (code, said) = scene.answer(&["once", &ids[0][..5]]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("write_file") && said.contains("allowed once"),
        "{said}"
    );
    passed(&line(&mut scene.client), 1);
    let written = fs::read_to_string(scene.folder.join("new.txt")).unwrap();
    assert_eq!(written, "from the call");

    let (place, _) = scene.end();
    let journal = place.journal();
    let decision = journal.decision("1");
    assert_eq!(decision["decision"], "hitl");
    assert_eq!(decision["hitl_outcome"], "user_allowed");
    assert_eq!(decision["hitl_cache_hit"], false);
    assert_eq!(decision["hitl_channel"], "cli");
    assert_eq!(decision["hitl_approver_id"], decision["subject_id"]);
    assert!(decision["policy_hitl_us"].as_f64().unwrap() > 0.0);
    let operation = journal.operation("1");
    assert_eq!(operation["status"], "Success");
    assert!(operation["approval_us"].as_f64().unwrap() > 0.0);
    assert!(!format!("{:?}", journal.0).contains("from the call"));
}

#[test]
fn denied_with_a_reason() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    scene.write(1, "new.txt", "x");
    let ids = scene.until_waiting(1);
    let (code, said) = scene.answer(&["deny", &ids[0], "--reason", "not on a Friday"]);
    assert_eq!(code, Some(0), "{said}");
    let answer = line(&mut scene.client);
    refused(&answer, 1, "approval_denied");
    let message = refusal_text(&answer);
    assert!(message.contains(": not on a Friday. "), "{message}");
    assert!(!scene.folder.join("new.txt").exists());
    let (place, _) = scene.end();
    let decision = place.journal().decision("1").clone();
    assert_eq!(decision["hitl_outcome"], "user_denied");
    assert_eq!(decision["reason"], "approval_denied");
    assert_eq!(place.journal().operations().len(), 0);
}

#[test]
fn nobody_answers_in_time_and_an_answer_after_that_is_late() {
    let Some(mut scene) = Scene::new(&["--approval-timeout", "5"]) else {
        return;
    };
    scene.write(1, "new.txt", "x");
    let ids = scene.until_waiting(1);
    refused(&line(&mut scene.client), 1, "approval_timeout");
    let (code, said) = scene.answer(&["once", &ids[0]]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("not answered in time"), "{said}");
    assert!(!scene.folder.join("new.txt").exists());
    let (place, _) = scene.end();
    assert_eq!(place.journal().decision("1")["hitl_outcome"], "timeout");
}

#[test]
fn answered_twice_the_first_stands_and_the_second_is_told_who() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    scene.write(1, "new.txt", "x");
    let ids = scene.until_waiting(1);
    assert_eq!(scene.answer(&["once", &ids[0]]).0, Some(0));
    passed(&line(&mut scene.client), 1);
    let (code, said) = scene.answer(&["deny", &ids[0]]);
    assert_eq!(code, Some(1));
    assert!(said.contains("already allowed once by"), "{said}");
    assert!(said.contains("channel cli"), "{said}");
    let (code, said) = scene.answer(&["deny", "zzzzzzzz"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("no call with this id"), "{said}");
    let (place, _) = scene.end();
    assert_eq!(
        place.journal().decision("1")["hitl_outcome"],
        "user_allowed"
    );
}

#[test]
fn remembered_for_the_very_same_call_only() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    scene.write(1, "new.txt", "x");
    let ids = scene.until_waiting(1);
    let (code, said) = scene.answer(&["allow", &ids[0]]);
    assert_eq!(code, Some(0));
    assert!(said.contains("passes for 10 min"), "{said}");
    passed(&line(&mut scene.client), 1);
    scene.write(2, "new.txt", "x");
    passed(&line(&mut scene.client), 2);
    // Another path, and other contents at the same path, are other calls.
    scene.write(3, "other.txt", "x");
    scene.write(4, "new.txt", "y");
    for id in scene.until_waiting(2) {
        scene.answer(&["deny", &id]);
    }
    for id in [3, 4] {
        refused(&line(&mut scene.client), id, "approval_denied");
    }
    let (place, _) = scene.end();
    let journal = place.journal();
    let again = journal.decision("2");
    assert_eq!(again["hitl_cache_hit"], true, "{again}");
    assert_eq!(again["hitl_outcome"], "user_allowed");
    assert_eq!(again["hitl_channel"], "cli");
    assert_eq!(journal.operation("2")["status"], "Success");
}

#[test]
fn a_grant_is_listed_and_the_call_asks_again_after_it_is_forgotten() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    let (code, said) = scene.answer(&["granted"]);
    assert_eq!(code, Some(0));
    assert!(said.contains("no calls are allowed for a while"), "{said}");
    scene.write(1, "new.txt", "x");
    let ids = scene.until_waiting(1);
    scene.answer(&["allow", &ids[0]]);
    passed(&line(&mut scene.client), 1);
    let (code, said) = scene.answer(&["granted", "--json"]);
    assert_eq!(code, Some(0));
    let grant: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(grant["id"], ids[0].as_str(), "{grant}");
    assert_eq!(grant["tool_name"], "write_file");
    assert_eq!(grant["rule"], "writes");
    assert_eq!(grant["channel"], "cli");
    assert!(grant["arguments"].as_str().unwrap().contains("new.txt"));
    let left_ms = grant["remaining_ms"].as_u64().unwrap();
    assert!((1..=600_000).contains(&left_ms), "{left_ms}");
    assert_eq!(scene.answer(&["forget", "zzzzzzzz"]).0, Some(1));
    let (code, said) = scene.answer(&["forget", &ids[0][..4]]);
    assert_eq!((code, said.as_str()), (Some(0), "1 grant forgotten\n"));
    // The same call asks again.
    scene.write(2, "new.txt", "x");
    let ids = scene.until_waiting(1);
    scene.answer(&["allow", &ids[0]]);
    passed(&line(&mut scene.client), 2);
    let (code, said) = scene.answer(&["forget", "--all"]);
    assert_eq!((code, said.as_str()), (Some(0), "1 grant forgotten\n"));
    let (place, _) = scene.end();
    let records = place.records();
    let forgotten = records.0.iter();
    let forgotten = forgotten.filter(|record| record["event"] == "approvals_forgotten");
    assert_eq!(forgotten.count(), 2);
}

#[test]
fn effects_that_the_rule_does_not_bear_are_not_remembered() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    let arguments = json!({"path": scene.path("sub")});
    for id in [1, 2] {
        scene.send(id, "create_directory", &arguments);
        let ids = scene.until_waiting(1);
        assert_eq!(scene.waiting()[0]["can_cache"], false);
        let (code, said) = scene.answer(&["allow", &ids[0]]);
        assert_eq!(code, Some(0));
        assert!(said.contains("allowed once: "), "{said}");
        passed(&line(&mut scene.client), id);
    }
    scene.end();
}

#[test]
fn a_cancelled_call_is_withdrawn_and_never_reaches_the_server() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    scene.write(1, "new.txt", "x");
    let ids = scene.until_waiting(1);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    scene.client.process().send_line(cancel.as_bytes()).unwrap();
    scene.until_waiting(0);
    let (code, said) = scene.answer(&["once", &ids[0]]);
    assert_eq!(code, Some(1));
    assert!(said.contains("withdrawn by its caller"), "{said}");
    // The id may be used again, and gets one answer: its own.
    scene.write(1, "second.txt", "y");
    let ids = scene.until_waiting(1);
    assert_eq!(scene.answer(&["once", &ids[0]]).0, Some(0));
    passed(&line(&mut scene.client), 1);
    assert!(!scene.folder.join("new.txt").exists());
    assert!(scene.folder.join("second.txt").exists());
    let (place, ended) = scene.end();
    assert_eq!(ended.rest, Vec::<Value>::new());
    let journal = place.journal();
    let decisions = journal.decisions();
    let asked: Vec<&&Value> = decisions
        .iter()
        .filter(|d| d["mcp_method"] == "tools/call")
        .collect();
    let outcomes: Vec<&Value> = asked.iter().map(|d| &d["hitl_outcome"]).collect();
    assert_eq!(outcomes, ["withdrawn", "user_allowed"]);
    assert_eq!(asked[0]["reason"], "approval_withdrawn");
}

#[test]
fn a_client_that_goes_away_withdraws_what_waits() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    scene.write(1, "new.txt", "x");
    scene.until_waiting(1);
    let folder = scene.folder.clone();
    let (place, ended) = scene.end();
    assert_eq!(ended.rest.len(), 1, "{ended:?}");
    refused(&ended.rest[0], 1, "approval_withdrawn");
    assert!(!folder.join("new.txt").exists());
    assert_eq!(place.journal().decision("1")["hitl_outcome"], "withdrawn");
    let left = place.durward(&["approvals", "list"]);
    assert_eq!(left.stdout, b"no instance of durward is running\n");
}

#[test]
fn told_to_end_it_refuses_what_waits() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    scene.write(1, "new.txt", "x");
    scene.until_waiting(1);
    scene
        .client
        .process()
        .signal(rustix::process::Signal::TERM)
        .unwrap();
    let ended = guarded::wait_for_end(scene.client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    refused(&ended.rest[0], 1, "draining");
    assert_eq!(
        scene.place.journal().decision("1")["hitl_outcome"],
        "withdrawn"
    );
}

#[test]
fn watching_shows_what_comes_and_how_it_ends() {
    let Some(mut scene) = Scene::new(&[]) else {
        return;
    };
    let args = ["approvals", "watch", "--json", "--timeout", "60"];
    let options = scene.place.options();
    let mut watch = Client::spawn_with(guarded::binary(), args, &options).unwrap();
    scene.write(1, "new.txt", "x");
    let asked = line(&mut watch);
    let id = asked["asked"]["id"].as_str().unwrap().to_owned();
    assert_eq!(asked["asked"]["tool_name"], "write_file", "{asked}");
    assert_eq!(scene.answer(&["once", &id]).0, Some(0));
    let ended = line(&mut watch);
    assert_eq!(ended["ended"]["id"], id, "{ended}");
    let outcome = ended["ended"]["outcome"].as_str().unwrap();
    assert!(outcome.starts_with("allowed once by"), "{outcome}");
    passed(&line(&mut scene.client), 1);
    scene.end();
}
