//! A target that fails never looks healthy, and nothing that was measured is lost.

use crate::support::{self, Directory, begun, document, lab, mock, signal, stderr};
use serde_json::Value;
use std::process::Output;

fn load(target: &str, more: &[&str]) -> Output {
    let first = ["load", "tool", "--target", target, "--json", "--quiet"];
    lab(&[&first[..], &["--warm", "0"], more].concat())
}

fn count(phase: &Value, kind: &str) -> u64 {
    phase["failures"][kind].as_u64().unwrap_or_default()
}

#[test]
fn calls_that_were_due_at_a_dead_target_are_failures() {
    let place = Directory::new();
    let output = load(
        &place.mortal(20),
        &[
            "--rate",
            "200/s",
            "--duration",
            "1s",
            "--workers",
            "1",
            "--threshold",
            "error_rate < 20%",
        ],
    );
    let found = document(&output);
    let phase = &found["phases"][0];
    assert_eq!((&phase["calls"], &phase["ok"]), (&200.into(), &20.into()));
    assert_eq!(
        count(phase, "unsent") + count(phase, "broken"),
        180,
        "{phase}"
    );
    assert!(phase["error_rate"]["ci_low"].as_f64().unwrap() > 0.8);
    // Neither the phase nor the run waits for who does not come back.
    assert!(phase["seconds"].as_f64().unwrap() < 5.0, "{phase}");
    assert_eq!(found["thresholds"]["verdict"], "REGRESSED");
    assert_eq!(output.status.code(), Some(99));
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("were due and never left"), "{warnings}");
}

#[test]
fn a_closed_loop_counts_each_attempt_to_come_back() {
    let place = Directory::new();
    let output = load(&place.mortal(5), &["--duration", "1s"]);
    let phase = &document(&output)["phases"][0];
    assert_eq!(phase["ok"], 5);
    assert!(count(phase, "broken") >= 3, "{phase}");
    assert!(phase["seconds"].as_f64().unwrap() < 5.0, "{phase}");
}

#[test]
fn a_phase_ends_although_the_target_is_slower_than_the_rate() {
    // 200 calls are due; at five a second and with a second of overtime few of them leave.
    let slow = mock("echo --delay-us 200000");
    let output = load(
        &slow,
        &[
            "--rate",
            "200/s",
            "--duration",
            "1s",
            "--workers",
            "1",
            "--overtime",
            "1s",
        ],
    );
    let found = document(&output);
    let phase = &found["phases"][0];
    assert_eq!(phase["calls"], 200);
    let (ok, unsent) = (phase["ok"].as_u64().unwrap(), count(phase, "unsent"));
    assert!((1..=20).contains(&ok) && ok + unsent == 200, "{phase}");
    assert!(phase["seconds"].as_f64().unwrap() < 10.0, "{phase}");
}

#[test]
fn a_threshold_without_calls_enough_has_no_verdict_and_loses_nothing() {
    let place = Directory::new();
    let more = [
        "--rate",
        "50/s",
        "--duration",
        "200ms",
        "--out",
        &place.join("runs"),
    ];
    for (rule, said) in [
        ("p99 < 1s", "-, 10 of the 368 calls it needs"),
        ("ttft.p50 < 1s", "-, no answer was streamed"),
    ] {
        let place = &place.0;
        let _ = std::fs::remove_dir_all(place.join("runs"));
        let output = load(&mock("echo"), &[&more[..], &["--threshold", rule]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let told = document(&output)["thresholds"].clone();
        assert_eq!(told["verdict"], "INCONCLUSIVE");
        assert_eq!(told["rules"][0]["observed"], said);
        let run = std::fs::read_dir(place.join("runs"))
            .unwrap()
            .next()
            .unwrap();
        let run = run.unwrap().path();
        let kept = std::fs::read_to_string(run.join("verdict.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), told);
        assert!(run.join("summary.json").exists());
    }
    let usage = load(&mock("echo"), &["--threshold", "overhead < 1ms"]);
    support::failed(&usage, 2, "usage", "a load run does not have");
}

#[test]
fn what_cannot_be_stored_is_told_all_the_same() {
    let place = Directory::new();
    let place_of_runs = place.join("runs");
    let args = [
        "load",
        "tool",
        "--target",
        &mock("echo --delay-us 1000"),
        "--duration",
        "2s",
    ];
    let child = begun(&[&args[..], &["--out", &place_of_runs, "--json", "--quiet"]].concat());
    // A directory where a file is to be: as little room as on a full disk.
    support::until("the run begins", || {
        std::path::Path::new(&place_of_runs).is_dir()
            && std::fs::read_dir(&place_of_runs).unwrap().next().is_some()
    });
    std::fs::create_dir(place.run().join("latency.hlog")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("error: not stored: "),
        "{}",
        stderr(&output)
    );
    assert!(document(&output)["phases"][0]["ok"].as_u64() > Some(0));
}

#[test]
fn a_stop_while_the_target_is_silent_takes_a_moment() {
    let place = Directory::new();
    let begins = place.join("begins");
    let silent = format!("sh -c 'echo >> \"{begins}\"; exec sleep 600'");
    let args = [
        "load",
        "tool",
        "--target",
        &silent,
        "--duration",
        "300s",
        "--json",
        "--quiet",
    ];
    let child = begun(&[&args[..], &["--timeout-ms", "3600000"]].concat());
    support::until("the server runs", || {
        support::lines(std::path::Path::new(&begins)) > 0
    });
    signal(child.id(), "-INT");
    let output = child.wait_with_output().unwrap();
    support::failed(
        &output,
        97,
        "aborted",
        "stopped before anything was measured",
    );
}

#[test]
fn the_lines_on_the_way_tell_the_times_of_the_answers() {
    let target = mock("echo --delay-us 20000");
    let output = lab(&[
        "load",
        "tool",
        "--target",
        &target,
        "--duration",
        "2500ms",
        "--warm",
        "0",
    ]);
    let told = stderr(&output);
    let last = told.lines().rfind(|line| line.contains("p50")).unwrap();
    for name in ["p50 ", "p99 "] {
        let (_, behind) = last.split_once(name).unwrap();
        let us: u64 = behind.split(' ').next().unwrap().parse().unwrap();
        assert!(us >= 20_000, "{last}");
    }
}
