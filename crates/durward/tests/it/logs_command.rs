//! `durward logs` over a journal that a session has written.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::support::guarded::{self, LATEST, Place, binary, call_works, echo, end};
use serde_json::Value;

/// A place where three calls were allowed and one refused.
fn place() -> Place {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"echo-only","effect":"allow","conditions":{"tool_name":"echo"}}]}"#,
    );
    let mut client = place.guard_with(&["--name", "mock"], &["echo"]);
    client.handshake(LATEST).unwrap();
    for text in ["a", "b", "c"] {
        call_works(&mut client, text);
    }
    let mut other = echo("d");
    other["name"] = Value::from("delayed");
    client.request("tools/call", other).unwrap();
    end(client);
    place
}

fn logs(place: &Place, args: &[&str]) -> (i32, String, String) {
    let output = place.durward(&[&["--no-config", "--state-dir", "state", "logs"], args].concat());
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn list_counts_what_there_is() {
    let place = place();
    let (code, out, err) = logs(&place, &["list"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let count = |sort: &str| {
        let line = out.lines().find(|line| line.starts_with(sort)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(
        (count("decisions"), count("operations")),
        ("4".into(), "3".into())
    );
    assert_eq!(
        (count("auth"), count("policy-history")),
        ("0".into(), "1".into())
    );
    let (_, out, _) = logs(&place, &["list", "--json"]);
    let all: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 6);
    assert_eq!(all[0]["records"], 4);
}

#[test]
fn show_prints_one_sort_as_a_table() {
    let place = place();
    let (code, out, err) = logs(&place, &["show"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 5, "{out}");
    assert!(
        lines[0].starts_with("time ")
            && lines[0].contains("  decision  outcome         tool or method  server  rule "),
        "{out}"
    );
    assert!(
        lines[1].contains("  allow     -               echo "),
        "{out}"
    );
    assert!(
        lines[4].contains("  deny      no_rule_allows  delayed ")
            && lines[4].contains("  default "),
        "{out}"
    );
    // Columns stand below their headings, and nothing is coloured into a pipe.
    assert_eq!(lines[0].find("server"), lines[1].find("mock"), "{out}");
    assert!(!out.contains('\x1b'), "{out:?}");
    let (_, out, _) = logs(&place, &["show", "--type", "operations", "--limit", "2"]);
    assert_eq!(out.lines().count(), 3, "{out}");
    assert!(out.contains("  Success  echo "), "{out}");
    let (_, out, _) = logs(&place, &["show", "--type", "policy-history"]);
    assert!(out.contains("  loaded  v1 "), "{out}");
    let (_, out, _) = logs(&place, &["show", "--type", "system"]);
    assert!(out.contains("session_started"), "{out}");
}

#[test]
fn show_prints_json_and_says_where_there_is_nothing() {
    let place = place();
    let (code, out, _) = logs(&place, &["show", "--json", "--since", "1h"]);
    assert_eq!(code, 0);
    let records: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(|record| record["kind"] == "decision"));
    for args in [
        &["show", "--type", "auth"][..],
        &["show", "--since", "2999-01-01T00:00:00Z"],
    ] {
        let (code, out, err) = logs(&place, args);
        assert_eq!((code, out.as_str()), (0, ""));
        assert!(err.contains("no matching records"), "{err}");
    }
    assert_eq!(logs(&place, &["show", "--type", "nonsense"]).0, 2);
    assert_eq!(logs(&place, &["show", "--limit", "0"]).0, 2);
    for command in [["logs", "list"], ["audit", "verify"], ["audit", "show"]] {
        let nowhere = ["--no-config", "--state-dir", "none"];
        let nowhere = place.durward(&[&nowhere[..], &command].concat());
        assert_eq!(nowhere.status.code(), Some(2), "{nowhere:?}");
        let said = String::from_utf8(nowhere.stderr).unwrap();
        assert!(
            said.contains("no journal yet") && said.contains("durward run"),
            "{command:?}: {said}"
        );
    }
    // A journal that was taken away is not one that never began.
    std::fs::remove_dir_all(place.journal_dir()).unwrap();
    let taken = place.durward(&["--no-config", "--state-dir", "state", "audit", "verify"]);
    assert_eq!(taken.status.code(), Some(1), "{taken:?}");
    let said = String::from_utf8(taken.stdout).unwrap();
    assert!(said.contains("is missing: the head names"), "{said}");
}

/// Whether a person said yes is what `hitl` alone does not tell.
#[test]
fn show_tells_how_a_person_decided() {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"echo"}}]}"#,
    );
    let mut client = place.guard_with(&["--name", "mock"], &["echo"]);
    client.handshake(LATEST).unwrap();
    for (id, answer) in [(11, "once"), (12, "deny")] {
        let call = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": echo("x")});
        let text = call.to_string();
        client.process().send_line(text.as_bytes()).unwrap();
        guarded::eventually("the call waits and is answered", || {
            let listed = place.durward(&["approvals", "list", "--json"]);
            let listed = String::from_utf8(listed.stdout).unwrap();
            let question = listed
                .lines()
                .next()
                .map(|line| serde_json::from_str::<Value>(line).unwrap());
            question.is_some_and(|question| {
                let given = place.durward(&["approvals", answer, question["id"].as_str().unwrap()]);
                given.status.success()
            })
        });
        guarded::line(&mut client);
    }
    end(client);
    let (_, out, _) = logs(&place, &["show"]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        lines[1].contains("  hitl      user_allowed  echo "),
        "{out}"
    );
    assert!(
        lines[2].contains("  hitl      user_denied   echo "),
        "{out}"
    );
}

#[test]
fn tail_prints_what_comes() {
    let place = place();
    let mut tail = Command::new(binary())
        .args([
            "--no-config",
            "--state-dir",
            "state",
            "logs",
            "tail",
            "--limit",
            "1",
        ])
        .current_dir(&place.dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("time "));
    assert!(lines.next().unwrap().contains("  deny "));
    let mut client = place.guard_with(&["--name", "mock"], &["echo"]);
    client.handshake(LATEST).unwrap();
    call_works(&mut client, "new");
    // Waits as long as it takes; the test's own time is bounded by its runner.
    assert!(
        lines
            .next()
            .unwrap()
            .contains("  allow     -               echo ")
    );
    end(client);
    tail.kill().unwrap();
    tail.wait().unwrap();
}

#[test]
fn refusals_of_every_kind_are_found_by_caller_server_rule_and_reason() {
    let place = place();
    let (code, out, err) = logs(&place, &["show", "--refused"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert!(
        lines[0].contains("  caller ") && lines[0].contains("  reason "),
        "{out}"
    );
    assert!(
        lines[1].contains("  delayed ") && lines[1].contains("  no_rule_allows "),
        "{out}"
    );
    for (condition, value, found) in [
        ("--server", "mock", true),
        ("--server", "other", false),
        ("--tool", "delayed", true),
        ("--tool", "echo", false),
        ("--rule", "default", true),
        ("--rule", "echo-only", false),
        ("--reason", "no_rule_allows", true),
        ("--reason", "user_denied", false),
        ("--caller", "nobody-of-this-name", false),
    ] {
        let (code, out, _) = logs(&place, &["show", "--refused", "--json", condition, value]);
        assert_eq!(
            (code, out.lines().count()),
            (0, usize::from(found)),
            "{condition} {value}"
        );
    }
}

#[test]
fn decisions_show_what_became_of_the_calls() {
    let place = place();
    let (_, out, _) = logs(&place, &[]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].contains("  result "), "{out}");
    let at = lines[0].find("result").unwrap();
    let result = |line: &str| line[at..].split_whitespace().next().unwrap().to_owned();
    assert_eq!(result(lines[1]), "Success", "{out}");
    assert_eq!(result(lines[4]), "-", "a refused call has no result: {out}");
    assert!(!lines[0].contains("tokens"), "no model was called: {out}");
}

#[test]
fn calls_of_models_show_model_tokens_and_cost() {
    use crate::models::support::{ENDPOINTS, ask, serve};
    let served = serve(
        "models: { providers: { a: { kind: mock, latency: 0ms } }, prices: { plain: { input: 1, output: 10 } } }",
        &[],
    );
    let answer = ask(&served, ENDPOINTS[0], "a/plain", false);
    let cost = answer.header("x-durward-cost").unwrap().to_owned();
    let usage = answer.json()["usage"].clone();
    let tokens =
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
    let (_, place) = served.stop();
    for kind in [&[][..], &["--type", "operations"]] {
        let (_, out, _) = logs(&place, kind);
        let lines: Vec<&str> = out.lines().collect();
        for (heading, value) in [("tokens", tokens.to_string()), ("cost", cost.clone())] {
            let at = lines[0].find(heading);
            let at = at.unwrap_or_else(|| panic!("no {heading}: {out}"));
            let cell = lines[1][at..].split_whitespace().next();
            assert_eq!(cell, Some(value.as_str()), "{heading}: {out}");
        }
        let has_model = lines[0].contains("model") && lines[1].contains("a/plain");
        assert!(has_model || !kind.is_empty(), "{out}");
    }
}

/// What was refused before its method was read has no tool.
#[test]
fn the_event_of_a_decision_is_no_tool() {
    let place = Place::new();
    let mut client = place.guard_with(
        &["--limit-requests", "1/h", "--limit-burst", "1"],
        &["echo"],
    );
    client.handshake(LATEST).unwrap();
    for text in ["a", "b", "c", "d"] {
        client.request("tools/call", echo(text)).unwrap();
    }
    end(client);
    let (_, out, _) = logs(&place, &["--refused"]);
    assert!(out.contains("rate_limited"), "{out}");
    assert!(!out.contains("policy_decision"), "{out}");
}
