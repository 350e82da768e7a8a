//! Runs that were stopped, killed or failed half-way: what they had is kept, and never passes for a whole.

use crate::support::{self, Directory, begun, document, failed, lab, lines, mock, signal, stderr};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// Arguments of `overhead` with few calls, kept below `runs`.
fn overhead<'a>(direct: &'a str, proxied: &'a str, runs: &'a str) -> Vec<&'a str> {
    vec![
        "overhead",
        "--direct",
        direct,
        "--proxied",
        proxied,
        "--out",
        runs,
        "--quiet",
        "--runs",
        "40",
        "--warmup",
        "2",
    ]
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

fn refused(output: &Output, code: i32, part: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    assert!(stderr(output).contains(part), "{}", stderr(output));
}

#[test]
fn launches_before_a_failing_one_are_kept_and_no_gate_takes_them_for_a_run() {
    let place = Directory::new();
    let runs = place.join("runs");
    // It starts twice; then it is gone for good.
    let echo = mock("echo");
    let count = place.join("count");
    let twice = format!(
        "sh -c 'echo >> \"{count}\"; [ $(wc -l < \"{count}\") -gt 2 ] && exit 3; exec {}'",
        mock("echo").replace('\'', "")
    );
    let args = overhead(&echo, &twice, &runs);
    let output = lab(&[&args[..], &["--launches", "5", "--json"]].concat());
    failed(&output, 1, "broken", "the server ended");
    let run = place.run();
    let summary = json(&run.join("summary.json"));
    assert_eq!(summary["launches"], 2);
    assert!(
        summary["failure"]
            .as_str()
            .unwrap()
            .contains("the server ended")
    );
    assert!(
        summary["warnings"]
            .to_string()
            .contains("it failed after 2 launches")
    );
    assert_eq!(lines(&run.join("ops/w1.jsonl")), 2 * 2 * 40);
    let run = run.to_str().unwrap();
    let gate = ["gate", run, "--baseline", run, "--rule", "p50 <= +1000%"];
    refused(&lab(&gate), 1, "the measurement is not whole");
    assert!(lab(&[&gate[..], &["--force"]].concat()).status.success());
    let page = lab(&["report", run, "--write", "-"]);
    assert!(
        String::from_utf8(page.stdout)
            .unwrap()
            .contains("failed after 2 launches")
    );
}

#[test]
fn a_killed_run_leaves_its_manifest_and_the_calls_of_whole_launches() {
    let place = Directory::new();
    let runs = place.join("runs");
    let echo = mock("echo");
    let args = overhead(&echo, &echo, &runs);
    let mut child = begun(&[&args[..], &["--launches", "1000"]].concat());
    support::until("two launches are kept", || {
        Path::new(&runs).is_dir()
            && std::fs::read_dir(&runs).unwrap().next().is_some()
            && lines(&place.run().join("ops/w1.jsonl")) >= 2 * 2 * 40
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let run = place.run();
    assert_eq!(json(&run.join("manifest.json"))["kind"], "overhead");
    for line in std::fs::read_to_string(run.join("ops/w1.jsonl"))
        .unwrap()
        .lines()
        .take(160)
    {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert!(!run.join("summary.json").exists());
    let run = run.to_str().unwrap();
    refused(&lab(&["report", run]), 1, "the run was not finished");
    refused(&lab(&["compare", run, run]), 1, "the run was not finished");
    let output = lab(&["gate", run, "--rule", "p50 < 1s", "--json"]);
    failed(&output, 1, "path", "the run was not finished");
    refused(&lab(&["report", &runs]), 1, "no run directory");
}

#[test]
fn servers_over_http_do_not_outlive_a_killed_lab() {
    let place = Directory::new();
    // The servers write their own numbers.
    let pids = place.join("pids");
    let server = mock("echo --http 127.0.0.1:0").replace('\'', "");
    let server = format!("sh -c 'echo $$ >> \"{pids}\"; exec {server}'");
    let args = [
        "overhead",
        "--transport",
        "http",
        "--direct",
        &server,
        "--proxied",
        &server,
    ];
    let mut child = begun(&[&args[..], &["--quiet", "--launches", "1000"]].concat());
    support::until("two servers run", || lines(Path::new(&pids)) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    for pid in std::fs::read_to_string(&pids).unwrap().lines() {
        // One that ended and that nobody asked about has a state of its own.
        support::until("the server is gone", || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            state.map_or(true, |stat| stat.contains(") Z "))
        });
    }
}

#[test]
fn ctrl_c_before_a_silent_arm_takes_a_moment_and_keeps_what_there_is() {
    for (after, expect) in [(0, None), (2, Some(2))] {
        let place = Directory::new();
        let (runs, count) = (place.join("runs"), place.join("count"));
        // From some launch on it starts and says nothing.
        let echo = mock("echo");
        let silent = format!(
            "sh -c 'echo >> \"{count}\"; [ $(wc -l < \"{count}\") -gt {after} ] && exec sleep 600; exec {}'",
            echo.replace('\'', "")
        );
        let args = overhead(&echo, &silent, &runs);
        let more = ["--launches", "9", "--timeout-ms", "3600000", "--json"];
        let child = begun(&[&args[..], &more].concat());
        support::until("the silent launch begins", || {
            lines(Path::new(&count)) > after
        });
        signal(child.id(), "-INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(97), "{}", stderr(&output));
        let told = document(&output);
        match expect {
            None => assert_eq!(told["kind"], "aborted"),
            Some(launches) => {
                assert_eq!(
                    (&told["aborted"], &told["launches"]),
                    (&true.into(), &launches.into())
                );
                let run = place.run();
                assert_eq!(json(&run.join("summary.json"))["launches"], launches);
                let rule = ["gate", run.to_str().unwrap(), "--rule", "p50 < 1s"];
                refused(&lab(&rule), 1, "it was stopped");
            }
        }
    }
}

#[test]
fn what_cannot_be_kept_is_told_all_the_same() {
    let place = Directory::new();
    let runs = place.join("runs");
    let echo = mock("echo --delay-us 1000");
    let args = overhead(&echo, &echo, &runs);
    let child = begun(&[&args[..], &["--launches", "4", "--json"]].concat());
    support::until("the run begins", || {
        Path::new(&runs).is_dir() && std::fs::read_dir(&runs).unwrap().next().is_some()
    });
    std::fs::create_dir(place.run().join("latency.hlog")).unwrap();
    let output = child.wait_with_output().unwrap();
    refused(&output, 1, "error: not stored: ");
    assert_eq!(document(&output)["launches"], 4);
    assert!(!place.run().join("summary.json").exists());
}

#[test]
fn a_document_without_arms_passes_no_gate() {
    let place = Directory::new();
    let (echo, runs) = (mock("echo"), place.join("runs"));
    let args = overhead(&echo, &echo, &runs);
    let mut summary = document(&lab(&[&args[..], &["--launches", "2", "--json"]].concat()));
    summary["summary"]["measurement"]["arms"] = Value::Array(Vec::new());
    let empty = place.join("empty.json");
    std::fs::write(&empty, summary.to_string()).unwrap();
    let rule = ["--rule", "p50 < 1s"];
    refused(
        &lab(&[&["gate", &empty][..], &rule].concat()),
        1,
        "nothing was measured",
    );
    refused(
        &lab(&["compare", &empty, &empty]),
        1,
        "no variant in common",
    );
}

#[test]
fn every_command_fails_with_one_document_under_json() {
    let place = Directory::new();
    let none = place.join("none");
    let echo = mock("echo");
    for (args, code, kind) in [
        (&["overhead", "--json"][..], 2, "usage"),
        (
            &[
                "overhead",
                "--direct",
                "/nowhere/x",
                "--proxied",
                "y",
                "--json",
                "--quiet",
            ],
            1,
            "spawn",
        ),
        (
            &[
                "overhead",
                "--direct",
                &echo,
                "--arm",
                "a\u{1b}[31mb=true",
                "--json",
            ],
            2,
            "usage",
        ),
        (
            &[
                "load",
                "tool",
                "--target",
                "/nowhere/x",
                "--json",
                "--quiet",
            ],
            1,
            "spawn",
        ),
        (
            &[
                "load",
                "http",
                "--target",
                "http://127.0.0.1:1/",
                "--json",
                "--quiet",
            ],
            1,
            "broken",
        ),
        (&["compare", &none, &none, "--json"], 1, "path"),
        (&["compare", "--json"], 2, "usage"),
        (&["gate", &none, "--rule", "p50 < 1s", "--json"], 1, "path"),
        (&["audit-latency", &none, "--json"], 1, "path"),
    ] {
        failed(&lab(args), code, kind, "");
    }
}
