//! Approval at the calling client, where a rule's `approvers` says so: by elicitation, with FastMCP's client and
//! with the raw one; and nowhere else.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::approver::{self, ask, sockets};
use crate::support::components;
use crate::support::guarded::{self, Place, binary, end, eventually, line};
use crate::support::refusals::{is_passed, told};
use mcp::client::Client;
use serde_json::{Value, json};

fn policy(approvers: &str) -> String {
    format!(
        r#"{{"rules":[{{"id":"ask","effect":"hitl","conditions":{{"tool_name":"*"}},
            "cache_side_effects":["fs_write"],"approvers":{approvers}}}]}}"#
    )
}

/// Calls of FastMCP's client on the seed's file server, with these answers of its person.
fn fastmcp(place: &Place, mode: &str, calls: &[Value], answers: &[Value]) -> Option<Vec<Value>> {
    let python = components::fastmcp_python()?;
    let root = place.path("root");
    fs::create_dir_all(&root).unwrap();
    let mock = place.mock(&["files", "--root", root.to_str().unwrap()]);
    let words: Vec<&str> = mock.iter().map(String::as_str).collect();
    let plan = json!({
        "command": binary(), "args": place.run_args(&["--approval-timeout", "5"], &words), "mode": mode,
        "env": {"PATH": std::env::var("PATH").unwrap(), "HOME": place.dir, "XDG_RUNTIME_DIR": place.runtime()},
        "cwd": place.dir, "calls": calls, "answers": answers,
    });
    fs::write(place.path("plan.json"), plan.to_string()).unwrap();
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers/fastmcp_client.py");
    let done = Command::new(python)
        .arg(driver)
        .arg(place.path("plan.json"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let lines = String::from_utf8(done.stdout).unwrap();
    Some(
        lines
            .lines()
            .skip(1)
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

fn write(place: &Place, name: &str) -> Value {
    let path = place.path("root").join(name);
    json!({"tool": "write_file", "arguments": {"path": path, "content": "x\u{202e}y"}})
}

fn accept(answer: &str) -> Value {
    json!({"action": "accept", "answer": answer})
}

#[test]
fn a_fastmcp_client_asks_its_person() {
    let place = Place::new();
    place.write_policy(&policy(r#"["client"]"#));
    let calls = ["a", "a", "a", "b", "c", "d"].map(|name| write(&place, name));
    let answers = [
        accept("allow once"),
        accept("allow for 10 minutes"),
        accept("deny"),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ];
    let Some(seen) = fastmcp(&place, "legacy", &calls, &answers) else {
        return;
    };
    let asked: Vec<usize> = seen
        .iter()
        .map(|s| s["asked"].as_array().unwrap().len())
        .collect();
    assert_eq!(asked, [1, 1, 0, 1, 1, 1], "the third is remembered");
    let question = &seen[0]["asked"][0];
    let choices = json!(["allow once", "allow for 10 minutes", "deny"]);
    assert_eq!(question["choices"], choices);
    let message = question["message"].as_str().unwrap();
    for part in ["write_file", "rule: ask", "x\\u{202e}y", "root/a"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    for passed in &seen[..3] {
        assert_eq!(passed["result"]["isError"], false, "{passed}");
    }
    for refused in &seen[3..] {
        assert_eq!(told(refused)["reason"], "approval_denied", "{refused}");
    }
    assert_eq!(place.counted().len(), 3);
    let journal = place.journal();
    let decisions = journal.decisions();
    for decision in &decisions {
        assert_eq!(decision["hitl_channel"], "client", "{decision}");
        assert_eq!(decision["hitl_approver_id"], decision["subject_id"]);
    }
    let hits: Vec<bool> = decisions
        .iter()
        .map(|d| d["hitl_cache_hit"] == true)
        .collect();
    assert_eq!(hits, [false, false, true, false, false, false]);
}

#[test]
fn a_modern_client_is_asked_by_a_result_that_wants_input() {
    let place = Place::new();
    place.write_policy(&policy(r#"["client"]"#));
    let calls = [write(&place, "a"), write(&place, "b")];
    let answers = [accept("allow once"), accept("deny")];
    let Some(seen) = fastmcp(&place, "auto", &calls, &answers) else {
        return;
    };
    for call in &seen {
        let message = call["asked"][0]["message"].as_str().unwrap();
        assert!(message.contains("rule: ask"), "{message}");
    }
    assert_eq!(seen[0]["result"]["isError"], false, "{}", seen[0]);
    let reason = &told(&seen[1])["reason"];
    assert_eq!(reason, "approval_denied", "{}", seen[1]);
    assert_eq!(place.counted().len(), 1);
    let journal = place.journal();
    assert_eq!(journal.decisions()[0]["era"], "modern");
}

#[test]
fn a_rule_that_does_not_name_the_client_never_asks_it() {
    let place = Place::new();
    place.write_policy(&policy(r#"["cli", "console"]"#));
    let _denier = approver::Denier::start(&place.runtime());
    let calls = [write(&place, "a")];
    let Some(seen) = fastmcp(&place, "legacy", &calls, &[accept("allow once")]) else {
        return;
    };
    assert_eq!(seen[0]["asked"], json!([]));
    assert_eq!(told(&seen[0])["reason"], "approval_denied", "{}", seen[0]);
}

/// A raw Legacy client that says it can elicit, in front of the echo mock.
fn raw(approvers: &str) -> (Place, Client) {
    let place = Place::new();
    place.write_policy(&policy(approvers));
    let mut client = place.guard(&["echo"]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "raw", "version": "1"}}});
    say(&mut client, &hello);
    assert!(is_passed(&line(&mut client)));
    say(
        &mut client,
        &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    );
    (place, client)
}

fn say(client: &mut Client, message: &Value) {
    client
        .process()
        .send_line(message.to_string().as_bytes())
        .unwrap();
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": guarded::echo("x")})
}

/// The question that the client was asked: its id.
#[track_caller]
fn elicited(client: &mut Client) -> Value {
    let question = line(client);
    assert_eq!(question["method"], "elicitation/create", "{question}");
    question["id"].clone()
}

#[test]
fn the_first_of_two_channels_wins_and_the_form_is_closed() {
    let (place, mut client) = raw(r#"["cli", "client"]"#);
    say(&mut client, &call(1));
    let id = elicited(&mut client);
    let waiting = id
        .as_str()
        .unwrap()
        .trim_start_matches("durward-approval-")
        .to_owned();
    let output = place.durward(&["approvals", "once", &waiting]);
    assert!(output.status.success(), "{output:?}");
    let closed = line(&mut client);
    assert_eq!(closed["method"], "notifications/cancelled", "{closed}");
    assert_eq!(closed["params"]["requestId"], id);
    assert_eq!(line(&mut client)["id"], 1);
    // The client answers all the same: nobody minds.
    say(
        &mut client,
        &json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}}),
    );
    guarded::end(client);
    let journal = place.journal();
    assert_eq!(journal.decision("1")["hitl_channel"], "cli");
    journal.assert_event("client_answer_unknown");
    assert_eq!(place.counted().len(), 1);
}

#[test]
fn an_answer_that_is_none_leaves_the_call_to_others_or_refuses_it() {
    for (approvers, refused) in [(r#"["client"]"#, true), (r#"["cli", "client"]"#, false)] {
        let (place, mut client) = raw(approvers);
        say(&mut client, &call(1));
        let id = elicited(&mut client);
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}});
        say(&mut client, &error);
        if refused {
            let answer = line(&mut client);
            assert_eq!(told(&answer)["reason"], "approval_unfit", "{answer}");
        } else {
            let socket = &sockets(&place.runtime().join("durward"))[0];
            let status = ask(socket, &json!({"do": "status"})).unwrap();
            assert_eq!(status["ok"]["approvals_waiting"], 1);
            let _denier = approver::Denier::start(&place.runtime());
            let answer = line(&mut client);
            assert_eq!(told(&answer)["reason"], "approval_denied", "{answer}");
        }
        end(client);
    }
}

#[test]
fn a_form_asks_for_a_confirmation_where_not_all_is_shown() {
    for confirmed in [false, true] {
        let (place, mut client) = raw(r#"["client"]"#);
        let mut long = call(1);
        long["params"]["arguments"]["text"] = "y".repeat(3_000).into();
        say(&mut client, &long);
        let form = line(&mut client);
        let members = &form["params"]["requestedSchema"]["properties"];
        assert_eq!(
            members["although_not_all_is_shown"]["type"], "boolean",
            "{form}"
        );
        let content = json!({"answer": "allow once", "although_not_all_is_shown": confirmed});
        let result = json!({"action": "accept", "content": content});
        say(
            &mut client,
            &json!({"jsonrpc": "2.0", "id": form["id"], "result": result}),
        );
        let answer = line(&mut client);
        if confirmed {
            assert!(is_passed(&answer), "{answer}");
        } else {
            assert_eq!(told(&answer)["reason"], "approval_unfit", "{answer}");
        }
        end(client);
        assert_eq!(place.counted().len(), usize::from(confirmed));
    }
}

#[test]
fn a_cancelled_call_closes_the_form() {
    let (place, mut client) = raw(r#"["client"]"#);
    say(&mut client, &call(1));
    let id = elicited(&mut client);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    say(&mut client, &cancel);
    let closed = line(&mut client);
    assert_eq!(closed["params"]["requestId"], id, "{closed}");
    end(client);
    assert_eq!(place.journal().decision("1")["hitl_outcome"], "withdrawn");
    assert_eq!(place.counted().len(), 0);
}

#[test]
fn the_command_line_may_not_answer_what_is_for_the_client() {
    let (place, mut client) = raw(r#"["client"]"#);
    say(&mut client, &call(1));
    let id = elicited(&mut client);
    let waiting = id
        .as_str()
        .unwrap()
        .trim_start_matches("durward-approval-")
        .to_owned();
    let output = place.durward(&["approvals", "once", &waiting]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("these channels only: client"), "{said}");
    end(client);
    eventually("it ended", || {
        sockets(&place.runtime().join("durward")).is_empty()
    });
}
