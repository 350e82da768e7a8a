//! What the logs of others, and our own, tell of latencies.

use crate::support::{Directory, document, lab, stderr};
use serde_json::Value;
use std::process::Output;

fn measured(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    document(output)
}

#[track_caller]
fn refused(output: &Output, code: i32, part: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    assert!(stderr(output).contains(part), "{}", stderr(output));
}

#[test]
fn latencies_of_both_kinds_of_log() {
    let place = Directory::new();
    let write = |name: &str, lines: &[&str]| {
        std::fs::write(place.join(name), lines.join("\n") + "\n").unwrap();
        place.join(name)
    };
    let decisions = write(
        "decisions.jsonl",
        &[
            r#"{"time":"2026-01-01T00:00:00Z","decision":"allow","policy_eval_ms":0.2,"policy_total_ms":0.2,"request_id":"1"}"#,
            r#"{"time":"2026-01-02T00:00:00Z","decision":"hitl","hitl_outcome":"user_allowed","policy_eval_ms":0.4,"policy_hitl_ms":9000,"policy_total_ms":9000.4,"request_id":"2"}"#,
            r#"{"time":"2026-01-02T00:00:01Z","decision":"deny","policy_eval_ms":0.6,"policy_total_ms":0.6,"request_id":"3"}"#,
        ],
    );
    let operations = write(
        "operations.jsonl",
        &[
            r#"{"request_id":"2","duration":{"duration_ms":9100.4}}"#,
            r#"{"request_id":"1","duration":{"duration_ms":100.2}}"#,
        ],
    );
    let audit = |more: &[&str]| {
        let args = [
            &[
                "audit-latency",
                &decisions,
                "--operations",
                &operations,
                "--json",
            ][..],
            more,
        ];
        measured(&lab(&args.concat()))
    };
    let all = audit(&[]);
    assert_eq!(
        (all["decisions"].as_u64(), all["joined"].as_u64()),
        (Some(3), Some(2))
    );
    let row = |found: &Value, at: usize| found["groups"][0]["rows"][at].clone();
    // Three values make neither a median nor a p95, and the reason stands beside the dash.
    assert_eq!(row(&all, 0)["p95_ms"], Value::Null);
    assert_eq!(
        row(&all, 0)["missing"]["p95"],
        "3 of the 72 values it needs"
    );
    assert_eq!(row(&all, 0)["max_ms"], 0.6);
    assert_eq!(row(&all, 4)["max_ms"].as_f64().map(f64::round), Some(100.0));
    let without = audit(&["--exclude", "approval"]);
    assert_eq!(
        (without["excluded"].as_u64(), row(&without, 1)["n"].as_u64()),
        (Some(1), Some(0))
    );
    assert_eq!(
        audit(&["--by-decision"])["groups"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(audit(&["--date", "2026-01-02"])["decisions"], 2);

    let journal = write(
        "segment.jsonl",
        &[
            r#"{"sequence":0,"prev_hash":"","entry_hash":"","body":{"time":"2026-01-01T00:00:00.000Z","kind":"decision","op":"a","decision":"allow","policy_eval_us":2.5}}"#,
            r#"{"sequence":1,"prev_hash":"","entry_hash":"","body":{"time":"2026-01-01T00:00:00.000Z","kind":"operation","op":"a","duration_us":40,"policy_us":2.5,"upstream_us":20}}"#,
        ],
    );
    let found = measured(&lab(&["audit-latency", &journal, "--json"]));
    assert_eq!(row(&found, 4)["mean_ms"], 0.02);
    assert_eq!(row(&found, 3)["mean_ms"], 0.04);

    let jobs = write(
        "jobs.jsonl",
        &[r#"{"job":{"submittedAt":1.0,"startedAt":1.5,"finishedAt":3.5}}"#],
    );
    let found = measured(&lab(&[
        "audit-latency",
        &journal,
        "--jobs",
        &jobs,
        "--json",
    ]));
    assert_eq!(found["jobs"]["rows"][1]["mean_ms"], 2_000.0);
    let broken = write("broken.jsonl", &["{", "}"]);
    refused(
        &lab(&["audit-latency", &broken]),
        1,
        "line 1 is not a decision",
    );
    refused(
        &lab(&["audit-latency", &place.join("none")]),
        1,
        "cannot use",
    );
    refused(
        &lab(&["audit-latency", &journal, "--date", "today"]),
        2,
        "not a day",
    );
    refused(
        &lab(&["audit-latency", &journal, "--date", "1999"]),
        1,
        "left out by --date",
    );
}

const DECISION: &str = r#"{"time":"2026-01-01T00:00:00Z","decision":"D","policy_eval_ms":0.5,"policy_total_ms":0.5,"request_id":"1","session_id":"S"}"#;

/// A decision of a session; all of them about a request of the same id.
fn decision(word: &str, session: &str) -> String {
    DECISION
        .replace("\"D\"", &format!("\"{word}\""))
        .replace("\"S\"", &format!("\"{session}\""))
}

#[test]
fn ids_that_repeat_from_session_to_session_are_not_mixed_up() {
    let place = Directory::new();
    let audit = place.join("audit");
    std::fs::create_dir(&audit).unwrap();
    let write = |name: &str, text: &str| std::fs::write(format!("{audit}/{name}"), text).unwrap();
    // The refused call of the first session has no operation; the second session asks under the same id.
    let both = format!(
        "{}\n{}\n",
        decision("deny", "one"),
        decision("allow", "two")
    );
    write("decisions.jsonl", &both);
    write(
        "operations.jsonl",
        "{\"request_id\":\"1\",\"session_id\":\"two\",\"duration\":{\"duration_ms\":7.5}}\n\
         {\"request_id\":\"9\",\"session_id\":\"two\",\"duration\":{\"duration_ms\":1}}\n",
    );
    write("system.jsonl", "{\"event\":\"started\"}\n");
    // The directory that the access proxy writes is named as a whole; its pair is found.
    let found = measured(&lab(&["audit-latency", &audit, "--by-decision", "--json"]));
    assert_eq!(
        (&found["decisions"], &found["joined"]),
        (&2.into(), &1.into())
    );
    for group in found["groups"].as_array().unwrap() {
        let ends = &group["rows"][3];
        let expect = match group["name"].as_str() {
            Some("allow") => Value::from(7.5),
            _ => Value::Null,
        };
        assert_eq!(ends["mean_ms"], expect, "{group}");
    }
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("1 operations belong to no decision"),
        "{notes}"
    );
    refused(
        &lab(&["audit-latency", &format!("{audit}/operations.jsonl")]),
        1,
        "it holds no decision; name a journal",
    );
}

#[test]
fn an_operation_in_the_next_segment_finds_its_decision() {
    let place = Directory::new();
    let record = |body: &str| {
        format!("{{\"sequence\":0,\"prev_hash\":\"\",\"entry_hash\":\"\",\"body\":{body}}}\n")
    };
    let time = "2026-01-01T00:00:00.000Z";
    let decision = format!(
        r#"{{"time":"{time}","kind":"decision","op":"a","decision":"allow","policy_eval_us":2}}"#
    );
    let operation = format!(
        r#"{{"time":"{time}","kind":"operation","op":"a","duration_us":40,"policy_us":2,"upstream_us":20}}"#
    );
    std::fs::write(place.join("1.jsonl"), record(&decision)).unwrap();
    std::fs::write(place.join("2.jsonl"), record(&operation)).unwrap();
    let found = measured(&lab(&[
        "audit-latency",
        place.0.to_str().unwrap(),
        "--json",
    ]));
    assert_eq!(found["joined"], 1);
    assert_eq!(found["groups"][0]["rows"][3]["mean_ms"], 0.04);
}
