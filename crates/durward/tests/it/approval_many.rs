//! A thousand calls that wait: the bounds hold, nothing else is held up, and every one gets its answer.

use std::collections::BTreeMap;

use crate::support::approver::{Denier, ask, sockets};
use crate::support::guarded::{LATEST, Place, echo, end, eventually, line};
use crate::support::refusals::told;
use mcp::client::Client;
use serde_json::{Value, json};

const POLICY: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"ask","effect":"hitl","conditions":{"tool_name":"echo"}},
    {"id":"pass","effect":"allow","conditions":{"tool_name":"sized"}}]}"#;

fn guard(flags: &[&str]) -> (Place, Client) {
    let place = Place::new();
    place.write_policy(POLICY);
    let mut client = place.guard_with(flags, &["echo"]);
    client.handshake(LATEST).unwrap();
    (place, client)
}

fn send(client: &mut Client, id: usize) {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": echo(&id.to_string())});
    let line = call.to_string();
    client.process().send_line(line.as_bytes()).unwrap();
}

fn waiting(place: &Place) -> u64 {
    let socket = &sockets(&place.runtime().join("durward"))[0];
    let status = ask(socket, &json!({"do": "status"})).unwrap();
    status["ok"]["approvals_waiting"].as_u64().unwrap()
}

#[test]
fn a_thousand_wait_the_next_is_refused_and_all_are_answered() {
    let flags = [
        "--approval-waiting-max",
        "5000",
        "--approval-per-minute",
        "5000",
    ];
    let (place, mut client) = guard(&[&flags[..], &["--approval-timeout", "300"]].concat());
    for id in 0..1_000 {
        send(&mut client, id);
    }
    eventually("a thousand wait", || waiting(&place) == 1_000);
    send(&mut client, 1_000);
    let answer = line(&mut client);
    assert_eq!(answer["id"], 1_000, "{answer}");
    assert_eq!(told(&answer)["reason"], "approval_queue_full");
    assert_eq!(told(&answer)["retryable"], true);
    // Who needs nobody's yes is not held up.
    let sized = json!({"name": "sized", "arguments": {"bytes": 10}});
    let call = json!({"jsonrpc": "2.0", "id": 2_000, "method": "tools/call", "params": sized});
    client
        .process()
        .send_line(call.to_string().as_bytes())
        .unwrap();
    assert_eq!(line(&mut client)["id"], 2_000);

    let output = place.durward(&["approvals", "list", "--json"]);
    assert!(output.status.success());
    let listed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(listed.lines().count(), 1_000);

    let denier = Denier::start(&place.runtime());
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen = vec![false; 1_000];
    for _ in 0..1_000 {
        let answer = line(&mut client);
        let id = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
        assert!(!std::mem::replace(&mut seen[id], true), "{id} twice");
        let reason = told(&answer)["reason"].as_str().unwrap();
        *reasons.entry(reason.to_owned()).or_default() += 1;
    }
    drop(denier);
    assert_eq!(
        reasons,
        BTreeMap::from([("approval_denied".to_owned(), 1_000)])
    );
    assert_eq!(waiting(&place), 0);
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    let asked = journal
        .decisions()
        .into_iter()
        .filter(|d| d["final_rule"] == "ask");
    assert_eq!(asked.count(), 1_001);
    assert_eq!(
        place.counted().len(),
        1,
        "only the call that needed nobody arrived"
    );
}

#[test]
fn one_caller_cannot_wear_the_approver_out() {
    let (place, mut client) = guard(&[]);
    for id in 0..21 {
        send(&mut client, id);
    }
    let answer = line(&mut client);
    assert_eq!(answer["id"], 20, "{answer}");
    assert_eq!(told(&answer)["reason"], "approval_too_many_waiting");
    let denier = Denier::start(&place.runtime());
    for _ in 0..20 {
        assert_eq!(told(&line(&mut client))["reason"], "approval_denied");
    }
    let reasons: Vec<Value> = (0..45)
        .map(|id| {
            send(&mut client, 100 + id);
            told(&line(&mut client))["reason"].clone()
        })
        .collect();
    assert!(
        reasons[..40].iter().all(|r| r == "approval_denied"),
        "{reasons:?}"
    );
    assert!(
        reasons[40..].iter().all(|r| r == "approval_too_many_asked"),
        "{reasons:?}"
    );
    drop(denier);
    end(client);
}

#[test]
fn what_hides_in_arguments_is_shown() {
    let (place, mut client) = guard(&[]);
    let text = "rm \u{202e}gpj.exe p\u{430}ypal\u{200b} tail";
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": text, "long": "y".repeat(3_000)}}});
    client
        .process()
        .send_line(call.to_string().as_bytes())
        .unwrap();
    eventually("it waits", || waiting(&place) == 1);
    let listed = place.durward(&["approvals", "list", "--json"]);
    let question: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let id = question["id"].as_str().unwrap();
    let output = place.durward(&["approvals", "show", &id[..3]]);
    let shown = String::from_utf8(output.stdout).unwrap();
    for part in [
        "rm \\u{202e}gpj.exe p\\u{430}ypal\\u{200b} tail",
        "…[2000 more characters not shown]",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains(['\u{202e}', '\u{430}', '\u{200b}']));
    end(client);
    assert!(!format!("{:?}", place.journal().0).contains("gpj"));
}

#[test]
fn the_list_is_a_line_for_each_call_and_show_has_the_whole_call() {
    let (place, mut client) = guard(&[]);
    let text = "y".repeat(800);
    for id in [1, 2] {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": text}}});
        client
            .process()
            .send_line(call.to_string().as_bytes())
            .unwrap();
    }
    eventually("both wait", || waiting(&place) == 2);
    let output = place.durward(&["approvals", "list"]);
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(!listed.contains("yyyy"), "arguments are for show: {listed}");
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("id "), "{listed}");
    assert!(lines[0].contains("  tool or method "), "{listed}");
    for line in &lines[1..3] {
        assert!(line.contains("  echo "), "{listed}");
    }
    let id = lines[1].split_whitespace().next().unwrap();
    let output = place.durward(&["approvals", "show", id]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains(&text), "{shown}");
    let output = place.durward(&["approvals", "show", "zzzzzzzz"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    end(client);
}
