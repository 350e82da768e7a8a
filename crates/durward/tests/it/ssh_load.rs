//! The scenarios of `lab load ssh` against `durward ssh serve` and a real sshd.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::ssh_server::{Sshd, has_sshd, target};
use crate::support::guarded::Place;
use crate::support::program::lab_command;
use crate::support::serving::Served;

/// A server with limits on calls that no test meets, unless it says so.
fn served(calls_per_minute: &str) -> (Served, Sshd) {
    let place = Place::new();
    let sshd = target(&place);
    let words = [
        "--state-dir",
        "state",
        "ssh",
        "serve",
        "--port",
        "0",
        "--hosts",
        "ssh_hosts.yaml",
        "--calls-per-minute",
        calls_per_minute,
    ];
    (Served::spawn(place, &words), sshd)
}

fn load(served: &Served, words: &[&str]) -> Output {
    lab_command()
        .args(["load", "ssh"])
        .args(words)
        .args(["--mcp-port", &served.address.port().to_string()])
        .current_dir(served.place.path("."))
        .output()
        .unwrap()
}

/// The document of a scenario; hosts are called web.
fn told(served: &Served, words: &[&str]) -> (Value, Option<i32>) {
    let output = load(
        served,
        &[words, &["--json", "--target-host", "web"]].concat(),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    let told = serde_json::from_slice(&output.stdout);
    let told = told.unwrap_or_else(|error| panic!("{error}: {said}"));
    (told, output.status.code())
}

/// The report for people has its sections.
fn reported(served: &Served) {
    let text = load(
        served,
        &[
            "--scenario",
            "command_throughput",
            "--duration",
            "1",
            "--workers",
            "1",
            "--warmup",
            "0",
            "--target-host",
            "web",
        ],
    );
    let text = String::from_utf8(text.stdout).unwrap();
    for part in [
        "LOAD TEST RESULTS",
        "Limits:     10 connections to a host",
        "Requests/Second:",
        "EXTRAPOLATION (to 8 CPU)",
        "VERDICT: PASS",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

fn accepted(served: &Served) -> u64 {
    let log = fs::read_to_string(served.place.path("sshd.log")).unwrap();
    log.matches("Accepted publickey").count() as u64
}

#[test]
fn connections_are_as_many_as_sshd_counts() {
    if !has_sshd() {
        return;
    }
    let (served, _sshd) = served("1000000");
    let (told, code) = told(&served, &["connection_rate", "1", "2"]);
    assert_eq!(
        (&told["verdict"]["verdict"], code),
        (&"PASS".into(), Some(0)),
        "{told}"
    );
    let phase = &told["phases"][0];
    let connects = phase["connects"].as_u64().unwrap();
    assert!(connects > 0, "{told}");
    assert_eq!(connects, accepted(&served), "{told}");
    assert_eq!(told["pool"]["creates"], connects as f64);
    assert_eq!(told["limits"]["connections_to_a_host"], 10.0);
    assert_eq!(told["summary"]["kind"], "load");
    // Each call is a line, and the lines are all of the calls.
    let results = served.place.path("loadtest_results");
    let run = results.join(told["test_id"].as_str().unwrap());
    let lines =
        ["w0", "w1"].map(|name| fs::read_to_string(run.join(format!("{name}.jsonl"))).unwrap());
    let count: usize = lines.iter().map(|text| text.lines().count()).sum();
    assert_eq!(count as u64, phase["total"].as_u64().unwrap());
    let first: Value = serde_json::from_str(lines[0].lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["worker"], &first["op"], &first["status"]),
        (&"w0".into(), &"ssh_connect".into(), &"success".into())
    );
    let kept: Value = serde_json::from_slice(&fs::read(run.join("summary.json")).unwrap()).unwrap();
    assert_eq!(kept["test_id"], told["test_id"]);
}

#[test]
fn as_many_connections_are_refused_as_there_is_no_room_for() {
    if !has_sshd() {
        return;
    }
    let (served, _sshd) = served("1000000");
    let (told, code) = told(&served, &["exhaustion_test", "--duration", "1"]);
    assert_eq!(
        (&told["verdict"]["verdict"], code),
        (&"PASS".into(), Some(0)),
        "{told}"
    );
    let phase = &told["phases"][0];
    let count = |name: &str| phase[name].as_u64().unwrap();
    assert_eq!((count("running"), count("failed")), (15, 0), "{told}");
    assert!(
        count("connects") > 0 && count("connects") == 2 * count("rejected"),
        "{told}"
    );
    assert_eq!(phase["errors"]["too_many_connections"], count("rejected"));
    assert_eq!(told["diagnoses"][0]["entry"], "Connection pool saturation");
}

#[test]
fn commands_are_counted_where_their_output_is_right() {
    if !has_sshd() {
        return;
    }
    let (served, _sshd) = served("1000000");
    let words = [
        "command_throughput",
        "1",
        "2",
        "--warmup",
        "0",
        "--target-cpus",
        "8",
        "--server-cpus",
        "4",
    ];
    let (told, code) = told(&served, &words);
    assert_eq!(
        (&told["verdict"]["verdict"], code),
        (&"PASS".into(), Some(0)),
        "{told}"
    );
    let more = &told["extrapolation"];
    let factor = more["factor"].as_f64().unwrap();
    assert!((factor - 1.7).abs() < 1e-9, "{told}");
    assert!(
        more["cpu_percent"].is_number() || more["confidence"] == "LOW",
        "{told}"
    );
    let (told, code) = self::told(&served, &["sustained_load", "1", "2", "--warmup", "0"]);
    assert_ne!(told["verdict"]["verdict"], "INVALID", "{told}");
    assert_eq!(
        (told["phases"][0]["failed"].as_u64(), code),
        (Some(0), Some(0)),
        "{told}"
    );
    let words = ["latency_test", "1", "--latency-hosts", "web,web"];
    let (told, code) = self::told(&served, &words);
    assert_eq!(
        (told["phases"].as_array().unwrap().len(), code),
        (2, Some(0)),
        "{told}"
    );
    let reasons = told["verdict"]["reasons"].to_string();
    assert!(reasons.contains("times the baseline's p50"), "{told}");
    reported(&served);
}

/// Four hosts more, which are the same sshd behind the bad lines of latency_test; they are there as long as the runtime.
fn far_hosts(place: &Place) -> tokio::runtime::Runtime {
    let text = fs::read_to_string(place.path("ssh_hosts.yaml")).unwrap();
    let (_, port) = text.split_once("port: ").unwrap();
    let port: u16 = port.split(',').next().unwrap().parse().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let near = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let lines = runtime.block_on(mocks::ssh_bad_lines(near, 4)).unwrap();
    let known = fs::read_to_string(place.path("known_hosts")).unwrap();
    let (_, key) = known.split_once(' ').unwrap();
    let (mut hosts, mut keys) = (text.trim_end().to_owned(), known.clone());
    for (number, line) in lines.iter().enumerate() {
        let port = line.port();
        hosts.push_str(&format!(
            "\n  far{number}: {{ address: 127.0.0.1, port: {port}, credential: me }}"
        ));
        keys.push_str(&format!("[127.0.0.1]:{port} {key}"));
    }
    fs::write(place.path("ssh_hosts.yaml"), hosts + "\n").unwrap();
    fs::write(place.path("known_hosts"), keys).unwrap();
    runtime
}

/// With `SSH_LOAD=whole` each lasts as long as in the guide, some 23 minutes in all (`make ssh-loadtest-sshd`); else a second.
#[test]
fn the_five_scenarios_run_against_a_real_sshd() {
    if !has_sshd() {
        return;
    }
    let short = ["--duration", "1", "--warmup", "0"];
    let is_whole = std::env::var_os("SSH_LOAD").is_some_and(|value| value == "whole");
    let times = if is_whole { &[][..] } else { &short[..] };
    let place = Place::new();
    let sshd = target(&place);
    let lines = far_hosts(&place);
    let serve = ["--state-dir", "state", "ssh", "serve", "--port", "0"];
    let more = ["--hosts", "ssh_hosts.yaml", "--calls-per-minute", "1000000"];
    let loadtest = [&serve[..], &more, &["--profile", "loadtest"]].concat();
    let mut served = Served::spawn(place, &loadtest);
    let mut before = accepted(&served);
    for scenario in [
        "connection_rate",
        "command_throughput",
        "sustained_load",
        "latency_test",
        "exhaustion_test",
    ] {
        if scenario == "exhaustion_test" {
            // It needs a server that gives ten connections.
            let (_, place) = served.stop();
            served = Served::spawn(place, &[&serve[..], &more].concat());
        }
        let hosts = ["--latency-hosts", "web,far0,far1,far2,far3"];
        let words = [&[scenario][..], times, &hosts].concat();
        let (told, code) = told(&served, &words);
        let after = accepted(&served);
        assert_eq!(code, Some(0), "{told}");
        let phases = told["phases"].as_array().unwrap();
        for phase in phases {
            let count = |name: &str| phase[name].as_u64().unwrap();
            assert_eq!(
                (count("failed"), count("running")),
                (0, count("asked")),
                "{told}"
            );
            let of = |name: &str| phase["latency"][name].as_f64().unwrap_or(f64::NAN);
            eprintln!(
                "{scenario} {} {}: {} in {:.0} s, {:.1}/s, p50 {:.1} p95 {:.1} p99 {:.1} ms, {} connects",
                phase["name"],
                phase["host"],
                phase["total"],
                phase["seconds"].as_f64().unwrap(),
                phase["rps"].as_f64().unwrap(),
                of("p50"),
                of("p95"),
                of("p99"),
                count("connects"),
            );
        }
        if scenario == "connection_rate" {
            let connects = phases
                .iter()
                .map(|phase| phase["connects"].as_u64().unwrap());
            assert_eq!(connects.sum::<u64>(), after - before, "{told}");
        }
        eprintln!(
            "{scenario}: {}, sshd took {} logins",
            told["verdict"]["verdict"],
            after - before
        );
        before = after;
    }
    drop((served, lines, sshd));
}

#[test]
fn a_call_beyond_the_limit_and_a_command_that_is_refused_are_failures_with_a_diagnosis() {
    if !has_sshd() {
        return;
    }
    // The calls before the workers' own use up what there is.
    let (served, _sshd) = served("5");
    let (told, code) = told(&served, &["command_throughput", "1", "2", "--warmup", "0"]);
    assert_ne!(
        (&told["verdict"]["verdict"], code),
        (&"PASS".into(), Some(0)),
        "{told}"
    );
    let entries: Vec<&str> = told["diagnoses"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|of| of["entry"].as_str())
        .collect();
    assert!(entries.contains(&"Rate limit errors"), "{told}");
}

#[test]
fn what_cannot_be_loaded_is_said() {
    let place = Place::new();
    let lab = |words: &[&str]| place.within(lab_command().args(["load", "ssh"]).args(words));
    let listed = lab(&["list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.lines().count(), 5, "{listed}");
    assert_eq!(lab(&["--list-scenarios"]).stdout, listed.as_bytes());
    for (words, code, says) in [
        (
            &["--mcp-port", "1", "--quick"][..],
            1,
            "MCP server not reachable",
        ),
        (&[], 2, "name a scenario"),
        (&["throughput"], 2, "there is no such scenario"),
        (
            &["command_throughput", "--target-port", "22"],
            2,
            "no host of lab mock ssh-target has port 22",
        ),
        (&["command_throughput", "0"], 2, "0"),
        (&["--quick", "--full"], 2, "cannot be used with"),
        (&["--metrics-only", "--mcp-port", "1"], 1, "cannot connect"),
    ] {
        let output = lab(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
    }
}
