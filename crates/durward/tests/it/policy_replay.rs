//! `durward policy replay` over journals that the real binary wrote: under the same policy every decision is
//! reproduced; under another, what it lists as changed is what the binary decides when it runs with that policy.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::approver::Denier;
use crate::support::decisions::{Case, Table};
use crate::support::program::lab_binary;
use crate::support::raised::RAISED_LIMITS;
use crate::support::world::{World, binary};
use mcp::client::{Client, Era};
use serde_json::{Value, json};

/// Fewest decisions that a journal of these tests holds.
const DECISIONS_MIN: usize = 1_000;

/// Makes every call of the table once per round through the binary with the world's policy.
fn record(world: &World, calls: &[(String, Value)]) {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let policy = text(world.policy.as_ref().unwrap());
    let root = text(&world.tmp);
    let guard = [
        "run",
        "--approval-per-minute",
        "100000",
        "--policy",
        &policy,
    ];
    let server = ["--", lab_binary(), "mock", "files", "--root", &root];
    let line = [&guard[..], &RAISED_LIMITS, &server].concat();
    let mut client = Client::spawn_with(binary(), line, &world.options()).unwrap();
    client.handshake(Era::ALL[1]).unwrap();
    // Nobody else is there to answer where a rule asks.
    let _denier = Denier::start(&world.runtime());
    for (tool, arguments) in calls {
        client.call_tool(tool, arguments.clone()).unwrap();
    }
    client.process().close_input();
    let ended = client
        .process()
        .wait_within(Duration::from_secs(30))
        .unwrap();
    assert!(ended.is_some_and(|status| status.success()));
}

/// The decision records of a journal by the digest of their policy, in order.
fn decisions(world: &World) -> BTreeMap<String, Vec<Value>> {
    let shown = world.durward(&["audit", "show", "--json", "--limit", "1000000"]);
    assert!(shown.status.success());
    let mut by_policy: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in String::from_utf8(shown.stdout).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        if record["kind"] == "decision" {
            let digest = record["policy_digest"].as_str().unwrap().to_owned();
            by_policy.entry(digest).or_default().push(record);
        }
    }
    by_policy
}

/// Replays; gives the lines that are not the same, and the counts.
fn replay(world: &World, journal: &Path, policy: &Path) -> (Vec<Value>, Value) {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (journal, policy) = (text(journal), text(policy));
    let line = [
        "policy",
        "replay",
        "--json",
        "--journal",
        &journal,
        "--policy",
        &policy,
    ];
    let output = world.durward(&line);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let summary = lines.pop().unwrap();
    assert_eq!(summary["result"], "summary");
    (lines, summary)
}

fn copy_journal(world: &World, name: &str) -> PathBuf {
    let copy = world.far.join(name);
    fs::create_dir_all(&copy).unwrap();
    for entry in fs::read_dir(world.state().join("journal")).unwrap() {
        let entry = entry.unwrap();
        if entry.path().extension().is_some_and(|e| e == "jsonl") {
            fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
    }
    copy
}

/// Calls of the table under every policy, and some whose contents look like paths; of tools that the server
/// has, since a call of any other is not let pass by a rule, and replay leaves it aside.
fn calls(world: &World) -> Vec<(String, Value)> {
    let table = Table::read("seed10");
    let mut calls: Vec<(String, Value)> = table
        .tools_list
        .keys()
        .flat_map(|policy| table.cases(policy, world))
        .filter(|case| table.tools_list["allow-all"].contains(&case.tool))
        .map(
            |Case {
                 tool, arguments, ..
             }| (tool, arguments),
        )
        .collect();
    for content in ["/tmp/k.pem", "~/x", "plain", "/etc/hosts"] {
        let path = world.fill("{TMP}/scratch/draft.txt");
        let arguments = json!({ "path": path, "content": content });
        calls.push(("write_file".into(), arguments));
    }
    let once = calls.clone();
    while calls.len() < DECISIONS_MIN {
        calls.extend_from_slice(&once);
    }
    calls
}

/// Records under one policy, replays under it and under others, and runs the others for real.
fn check(recorded_under: &str, others: &[&str]) {
    let world = World::new(Table::policy(recorded_under).as_deref());
    let calls = calls(&world);
    record(&world, &calls);
    let journal = copy_journal(&world, "recorded");
    let policy = world.policy.clone().unwrap();
    let (lines, summary) = replay(&world, &journal, &policy);
    assert_eq!(lines, [Value::Null; 0], "the same policy");
    assert_eq!(summary["decisions"], calls.len());
    assert_eq!(summary["same"], calls.len());
    assert_eq!(summary["same_by_another_rule"], 0);
    for other in others {
        // In the same place, so that the same paths are protected.
        fs::write(&policy, Table::policy(other).unwrap()).unwrap();
        let (lines, summary) = replay(&world, &journal, &policy);
        record(&world, &calls);
        let by_policy = decisions(&world);
        let now = &by_policy[summary["policy_digest"].as_str().unwrap()];
        let recorded_digest = summary["recorded_policies"].as_object().unwrap();
        assert_eq!(recorded_digest.len(), 1);
        let was = &by_policy[recorded_digest.keys().next().unwrap()];
        assert_eq!((was.len(), now.len()), (calls.len(), calls.len()));
        compare(other, was, now, &lines, &summary);
    }
}

fn compare(other: &str, was: &[Value], now: &[Value], lines: &[Value], summary: &Value) {
    let listed: BTreeMap<&str, &Value> = lines
        .iter()
        .map(|line| (line["op"].as_str().unwrap(), line))
        .collect();
    assert_eq!(listed.len(), lines.len(), "{other}: listed twice");
    let (mut changed, mut undecidable) = (0, 0);
    for (was, now) in was.iter().zip(now) {
        assert_eq!(was["tool_name"], now["tool_name"]);
        let line = listed.get(was["op"].as_str().unwrap());
        match line.map(|line| (&line["result"], &line["now"])) {
            None => assert_eq!(
                was["decision"], now["decision"],
                "{other}, not listed: {was}"
            ),
            Some((result, said)) if result == "changed" => {
                changed += 1;
                assert_ne!(was["decision"], now["decision"], "{other}, listed: {was}");
                assert_eq!(*said, json!([now["decision"]]), "{other}: {was}");
                let rule = &line.unwrap()["now_rule"];
                assert!(
                    *rule == now["final_rule"] || rule.is_null(),
                    "{other}: {now}"
                );
            }
            Some((result, said)) => {
                assert_eq!(result, "undecidable");
                undecidable += 1;
                assert_ne!(was["content_paths"], 0, "{other}: all was recorded: {was}");
                let possible = said.as_array().unwrap();
                assert!(
                    possible.len() > 1 && possible.contains(&now["decision"]),
                    "{other}: {now}"
                );
            }
        }
    }
    assert!(
        changed > 0,
        "{other} changes nothing: the test shows nothing"
    );
    assert_eq!(summary["changed"], changed);
    assert_eq!(summary["undecidable"], undecidable);
    assert_eq!(summary["same"], was.len() - changed - undecidable);
}

#[test]
fn decisions_under_four_rules_replay() {
    check("4-rule", &["50-rule", "allow-all"]);
}

#[test]
fn decisions_under_fifty_rules_replay() {
    check("50-rule", &["4-rule"]);
}

#[test]
fn decisions_by_expressions_replay() {
    check("expressions", &["4-rule"]);
    check("4-rule", &["expressions"]);
}

const OP: &str = "01934c5f2b7a70008000000000000001";

/// Writes a journal of records that are given as they stand, and replays it.
fn replay_records(policy: &str, records: &[Value]) -> (Vec<Value>, Value) {
    let world = World::new(Some(policy));
    let journal = world.far.join("recorded");
    fs::create_dir_all(&journal).unwrap();
    let zeros = "0".repeat(64);
    let lines: String = records
        .iter()
        .zip(0..)
        .map(|(record, sequence): (&Value, u64)| {
            let mut body = json!({ "time": "2026-11-21T03:38:09.123Z", "kind": "decision",
                "event": "policy_decision", "op": OP });
            let members = record.as_object().unwrap().clone();
            body.as_object_mut().unwrap().extend(members);
            format!(
                "{{\"sequence\":{sequence},\"prev_hash\":\"{zeros}\",\"entry_hash\":\"{zeros}\",\"body\":{}}}\n",
                // Time and kind lead, as in every body.
                in_order(&body)
            )
        })
        .collect();
    let file = journal.join(format!("20261121T033809123Z-{}.jsonl", "ab".repeat(16)));
    fs::write(file, lines).unwrap();
    replay(&world, &journal, world.policy.as_ref().unwrap())
}

fn in_order(body: &Value) -> String {
    let mut rest = body.clone();
    let members = rest.as_object_mut().unwrap();
    let (time, kind) = (
        members.remove("time").unwrap(),
        members.remove("kind").unwrap(),
    );
    let rest = rest.to_string();
    format!("{{\"time\":{time},\"kind\":{kind},{}", &rest[1..])
}

fn call(path: &str, extra: &Value) -> Value {
    let mut record = json!({ "decision": "allow", "final_rule": "reads", "mcp_method": "tools/call",
        "resource_type": "tool", "tool_name": "write_file", "path": path, "subject_id": "me",
        "backend_id": "files", "direction": "to_server", "content_paths": 0,
        "path_arguments": [{ "role": "path", "places": [path] }] });
    record
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    record
}

fn policy(rules: &Value) -> String {
    json!({ "version": "1", "rules": rules }).to_string()
}

fn rule(id: &str, effect: &str, conditions: &Value) -> Value {
    json!({ "id": id, "effect": effect, "conditions": conditions })
}

/// Each row: rules, what the record adds, and what the replay says.
#[test]
fn what_was_not_recorded_is_undecidable_only_where_it_matters() {
    let any = rule("any", "allow", &json!({ "tool_name": "*" }));
    let below = rule("below", "allow", &json!({ "path_pattern": "/tmp/**" }));
    let pem = rule("pem", "deny", &json!({ "extension": ".pem" }));
    let ask = rule("ask", "hitl", &json!({ "path_pattern": "/etc/**" }));
    let hidden = json!({ "content_paths": 2 });
    let omitted = json!({ "path_arguments_omitted": 1 });
    let old = json!({ "content_paths": null, "path_arguments": [] });
    let cases = [
        (
            "contents do not matter to allow",
            json!([below.clone()]),
            &hidden,
            "same",
            json!(["allow"]),
        ),
        (
            "contents may be denied",
            json!([below.clone(), pem.clone()]),
            &hidden,
            "undecidable",
            json!(["deny", "allow"]),
        ),
        (
            "contents may be asked about",
            json!([below.clone(), ask.clone()]),
            &hidden,
            "undecidable",
            json!(["hitl", "allow"]),
        ),
        (
            "denied or asked or nothing",
            json!([pem.clone(), ask.clone()]),
            &hidden,
            "undecidable",
            json!(["deny", "hitl"]),
        ),
        (
            "nothing hidden",
            json!([below.clone(), pem.clone()]),
            &json!({}),
            "same",
            json!(["allow"]),
        ),
        ("no rule", json!([]), &hidden, "changed", json!(["deny"])),
        (
            "omitted paths may be elsewhere",
            json!([below.clone()]),
            &omitted,
            "undecidable",
            json!(["allow", "deny"]),
        ),
        (
            "omitted paths, no rule on paths",
            json!([any.clone()]),
            &omitted,
            "same",
            json!(["allow"]),
        ),
        (
            "no paths recorded",
            json!([below.clone()]),
            &old,
            "undecidable",
            json!(["allow", "deny"]),
        ),
        (
            "no paths recorded, none asked",
            json!([any.clone()]),
            &old,
            "same",
            json!(["allow"]),
        ),
        (
            "a certain deny",
            json!([
                rule("d", "deny", &json!({ "tool_name": "write_*" })),
                ask.clone()
            ]),
            &hidden,
            "changed",
            json!(["deny"]),
        ),
        (
            "by the recorded path",
            json!([rule("d", "deny", &json!({ "path_pattern": "/tmp/a*" }))]),
            &hidden,
            "changed",
            json!(["deny"]),
        ),
        (
            "an uncertain path counts against the call",
            json!([any.clone(), pem.clone()]),
            &json!({ "path_arguments": [{ "role": "path", "places": ["/x"], "uncertain": true }] }),
            "changed",
            json!(["deny"]),
        ),
        (
            "by scheme",
            json!([any.clone(), rule("s", "deny", &json!({ "scheme": "ftp" }))]),
            &json!({ "path_arguments": [{ "role": "path", "places": ["ftp://x/y"], "scheme": "ftp" }] }),
            "changed",
            json!(["deny"]),
        ),
        (
            "by role",
            json!([
                any.clone(),
                rule("r", "deny", &json!({ "dest_path": "/tmp/**" }))
            ]),
            &json!({}),
            "same",
            json!(["allow"]),
        ),
        (
            "by the other role",
            json!([
                any.clone(),
                rule("r", "deny", &json!({ "dest_path": "/tmp/**" }))
            ]),
            &json!({ "path_arguments": [{ "role": "destination", "places": ["/tmp/a.txt"] }] }),
            "changed",
            json!(["deny"]),
        ),
        (
            "no caller recorded",
            json!([any.clone()]),
            &json!({ "subject_id": null }),
            "undecidable",
            json!(["allow", "hitl", "deny"]),
        ),
        (
            "another decision by a person",
            json!([any.clone()]),
            &json!({ "hitl_outcome": "user_allowed" }),
            "changed",
            json!(["allow"]),
        ),
        (
            "a protected place",
            json!([any.clone()]),
            &json!({ "decision": "deny", "final_rule": "built_in_protected_path" }),
            "same",
            json!(["deny"]),
        ),
    ];
    for (name, rules, extra, result, now) in cases {
        let (lines, summary) = replay_records(&policy(&rules), &[call("/tmp/a.txt", extra)]);
        assert_eq!(summary[result], 1, "{name}: {lines:?} {summary}");
        if result != "same" {
            assert_eq!(lines[0]["now"], now, "{name}");
            assert_eq!(lines[0]["result"], result, "{name}");
        }
    }
}

#[test]
fn refusals_that_no_policy_gave_are_left_out() {
    let any = policy(&json!([rule("any", "allow", &json!({ "tool_name": "*" }))]));
    let draining = json!({ "decision": "deny", "final_rule": "draining", "reason": "draining" });
    let (lines, summary) = replay_records(&any, &[call("/a", &draining), call("/a", &json!({}))]);
    assert_eq!(lines, [Value::Null; 0]);
    assert_eq!(
        (&summary["not_judged"], &summary["same"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn a_journal_that_is_not_there_is_said_to_be_missing() {
    let world = World::new(Some("{}"));
    let policy = world.policy.as_ref().unwrap().to_str().unwrap().to_owned();
    for journal in [world.far.join("nothing"), world.tmp.clone()] {
        let journal = journal.to_str().unwrap().to_owned();
        let output = world.durward(&[
            "policy",
            "replay",
            "--journal",
            &journal,
            "--policy",
            &policy,
        ]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(&journal), "{said}");
    }
}

#[test]
fn check_makes_a_difference_an_exit_code() {
    let (world, text) = (World::new(Some("{}")), "[]");
    let journal = world.far.join("j");
    fs::create_dir_all(&journal).unwrap();
    let policy = world.policy.as_ref().unwrap().to_str().unwrap().to_owned();
    record(&world, &[("read_file".into(), json!({ "path": text }))]);
    let allow = world.far.join("allow.json");
    fs::write(&allow, Table::policy("allow-all").unwrap()).unwrap();
    let allow = allow.to_str().unwrap().to_owned();
    let run = |policy: &str| world.durward(&["policy", "replay", "--check", "--policy", policy]);
    assert_eq!(run(&policy).status.code(), Some(0));
    let output = run(&allow);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("changed  20"), "{said}");
    assert!(
        said.contains("deny (default) -> allow (allow-all)"),
        "{said}"
    );
    assert!(
        said.contains("1 decisions: 0 the same, 1 changed, 0 undecidable"),
        "{said}"
    );
}
