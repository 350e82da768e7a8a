//! The lab as a process, measuring mocks.

use crate::support::{Directory, lab, lab_path, measured, mock, refused, stderr};
use serde_json::Value;
use std::process::{Command, Output};

/// `overhead` of two commands, few calls.
fn overhead(direct: &str, proxied: &str, more: &[&str]) -> Output {
    let mut args = vec![
        "overhead",
        "--direct",
        direct,
        "--proxied",
        proxied,
        "--quiet",
    ];
    args.extend(["--launches", "3", "--runs", "80", "--warmup", "5"]);
    args.extend(more);
    lab(&args)
}

/// What `hostile` answers to its one tool.
fn hostile(behaviour: &str) -> String {
    mock(&format!("hostile --behaviour {behaviour}"))
}

/// The tool of the hostile server.
const BAIT: [&str; 2] = ["--op", "call"];

#[test]
fn a_known_delay_is_found() {
    let slow = mock("echo --delay-us 3000");
    let found = measured(&overhead(&mock("echo"), &slow, &["--json", "--pin", "0"]));
    let overhead = &found["comparisons"][0]["overhead_us"];
    assert!(overhead["point"].as_f64().unwrap() >= 2_500.0, "{overhead}");
    assert_eq!(overhead["n"], 3);
    let (low, high) = (overhead["ci_low"].as_f64(), overhead["ci_high"].as_f64());
    assert!(low.unwrap() <= high.unwrap());
    assert_eq!(found["arms"][0]["calls"], 240);
    assert_eq!(found["pinned_core"], 0);
    assert!(found["arms"][0]["p99_us"].is_null(), "80 calls tell no p99");
    assert!(found["arms"][0]["p95_us"]["point"].is_f64());
    assert!(found["load_average_before"].is_array());
}

#[test]
fn both_operations_and_both_revisions() {
    let relay = mock(&format!("relay -- {}", mock("echo")));
    for more in [
        &["--op", "list"][..],
        &["--op", "call", "--protocol", "2026-07-28"],
        &["--op", "list", "--protocol", "2026-07-28"],
        &["--tool", "sized", "--tool-args", r#"{"bytes":300000}"#],
    ] {
        let output = overhead(&mock("echo"), &relay, more);
        assert!(output.status.success(), "{more:?}: {}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("proxied  added over direct: "), "{text}");
    }
}

#[test]
fn many_arms_and_turns_by_single_calls() {
    let echo = mock("echo");
    let arms = ["a", "b", "c"].map(|name| format!("{name}={echo}"));
    let mut args = vec![
        "overhead",
        "--quick",
        "--json",
        "--delay-us",
        "100",
        "--turn",
        "1",
    ];
    for arm in &arms {
        args.extend(["--arm", arm]);
    }
    let found = measured(&lab(&args));
    assert_eq!(found["comparisons"].as_array().unwrap().len(), 2);
    assert_eq!(found["comparisons"][1]["baseline"], "a");
    assert_eq!(found["turn"], 1);
}

#[test]
fn a_missing_command_is_an_error() {
    refused(
        &overhead(&mock("echo"), "no-such-program-here x", &[]),
        1,
        "cannot start no-such-program-here",
    );
}

#[test]
fn wrong_usage_is_two() {
    let echo = mock("echo");
    refused(
        &lab(&["overhead", "--direct", &echo]),
        2,
        "needs two commands",
    );
    refused(&overhead(&echo, "a 'b", &[]), 2, "quote that is not closed");
    refused(&overhead(&echo, "  ", &[]), 2, "has no command");
    refused(
        &overhead(&echo, &echo, &["--tool-args", "{"]),
        2,
        "--tool-args is not JSON",
    );
    refused(
        &overhead(&echo, &echo, &["--tool-args", "[]"]),
        2,
        "not a JSON object",
    );
    refused(
        &overhead(&echo, &echo, &["--arm", "x"]),
        2,
        "--variant takes NAME=CMD",
    );
    refused(
        &overhead(&echo, &echo, &["--arm", "direct=x"]),
        2,
        "two variants are named direct",
    );
    refused(
        &overhead(&echo, &echo, &["--pin", "4095"]),
        2,
        "core 4095 cannot be used",
    );
    refused(
        &overhead(&echo, &echo, &["--confidence", "2"]),
        2,
        "0.5 to 0.9999",
    );
}

#[test]
fn a_server_that_never_answers_is_ended() {
    let (echo, never) = (hostile("slow --delay-ms 0"), hostile("never"));
    let mut more = BAIT.to_vec();
    more.extend(["--timeout-ms", "1500", "--answers", "any"]);
    refused(
        &overhead(&echo, &never, &more),
        1,
        "no answer to tools/call within 1500 ms",
    );
}

#[test]
fn a_server_that_dies_is_named_with_its_code() {
    refused(
        &overhead(&hostile("slow --delay-ms 0"), &hostile("die"), &BAIT),
        1,
        "variant proxied: the server ended during tools/call",
    );
    refused(
        &overhead(&mock("echo"), "sh -c 'echo it broke >&2; exit 7'", &[]),
        1,
        "it broke",
    );
}

#[test]
fn a_server_that_floods_is_still_measured() {
    let flood = hostile("notify-flood --notifications 50");
    assert!(overhead(&flood, &flood, &BAIT).status.success());
    let flood = hostile("notify-flood --notifications 20000");
    refused(
        &overhead(&flood, &flood, &BAIT),
        1,
        "lines that answer nothing",
    );
}

#[test]
fn wrong_lines_are_invalid_never_fast() {
    for (behaviour, part) in [
        ("wrong-id", "instead of"),
        ("no-id", "answered id null"),
        ("garbage", "not a JSON-RPC message"),
        ("garbage-only", "not a JSON-RPC message"),
        ("not-utf8", "not a JSON-RPC message"),
        ("batch", "not a JSON-RPC message"),
        ("twice", "answered id"),
    ] {
        let output = overhead(&hostile("slow --delay-ms 0"), &hostile(behaviour), &BAIT);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{behaviour}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(part),
            "{behaviour}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_server_that_asks_the_client_gets_an_answer() {
    let asks = hostile("server-request");
    let output = overhead(&asks, &asks, &["--answers", "any"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn an_answer_that_is_an_error_is_invalid() {
    let echo = mock("echo");
    refused(
        &overhead(&echo, &echo, &["--tool-args", r#"{"txt":"x"}"#]),
        1,
        "isError",
    );
    refused(
        &overhead(&echo, &echo, &["--tool", "none"]),
        1,
        "refused: -32602",
    );
}

#[test]
fn answers_that_differ_are_invalid() {
    let (short, long) = (mock("echo --reply-bytes 8"), mock("echo --reply-bytes 9"));
    let sized = ["--tool", "sized", "--tool-args", "{}"];
    refused(
        &overhead(&short, &long, &sized),
        1,
        "not the baseline's (content",
    );
    let any = [&sized[..], &["--answers", "any"]].concat();
    assert!(overhead(&short, &long, &any).status.success());
}

#[test]
fn a_refusal_is_wanted_on_the_deny_path_alone() {
    let echo = mock("echo");
    refused(
        &overhead(&echo, &echo, &["--path", "deny"]),
        1,
        "where a refusal was expected",
    );
}

#[test]
fn stored_runs_compare_and_pass_the_gate() {
    let place = Directory::new();
    let runs = place.join("runs");
    let (echo, slow) = (mock("echo"), mock("echo --delay-us 3000"));
    let fast = place.join("fast.json");
    let output = overhead(&echo, &echo, &["--json", "--out", &runs]);
    measured(&output);
    std::fs::write(&fast, &output.stdout).unwrap();
    let slower = place.join("slow.json");
    std::fs::write(&slower, overhead(&echo, &slow, &["--json"]).stdout).unwrap();
    let run = std::fs::read_dir(&runs)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let calls = std::fs::read_to_string(run.join("ops/w1.jsonl")).unwrap();
    assert_eq!(calls.lines().count(), 2 * 3 * 80);
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["format"], "durward-lab-run/1");
    let run = run.to_str().unwrap();

    let compared = lab(&["compare", run, &slower, "--json"]);
    let rows = measured(&compared);
    assert_eq!(rows["format"], "durward-lab-compare/1");
    let rows = rows["rows"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|r| r["arm"] == "proxied" && r["metric"] == "p50")
        .unwrap();
    assert!(row["change"]["point"].as_f64().unwrap() > 5.0, "{row}");

    let gate = |base: &str, new: &str, more: &[&str]| {
        let output = lab(&[&["gate", "--baseline", base, new][..], more].concat());
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (code, text) = gate(run, &slower, &["--rule", "p50 <= +20%"]);
    assert_eq!(code, Some(99), "{text}");
    assert!(text.starts_with("REGRESSED"), "{text}");
    let (code, text) = gate(
        run,
        &fast,
        &["--rule", "p50 <= +10%", "--rule", "p50 <= 1s"],
    );
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("OK           proxied: p50 <= 1s"), "{text}");
    // A limit at the estimate itself has no verdict.
    let doc: Value = serde_json::from_slice(&std::fs::read(&slower).unwrap()).unwrap();
    let limit = format!("p50 <= {}us", doc["arms"][1]["p50_us"]["point"]);
    let unsure = ["--rule", &limit, "--on-inconclusive", "fail"];
    assert_eq!(gate(run, &slower, &unsure).0, Some(98));
    assert_eq!(gate(run, &slower, &unsure[..2]).0, Some(0));
}

#[test]
fn what_cannot_be_compared_says_so() {
    let place = Directory::new();
    let echo = mock("echo");
    let good = place.join("good.json");
    std::fs::write(&good, overhead(&echo, &echo, &["--json"]).stdout).unwrap();
    let text = std::fs::read_to_string(&good).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(place.join(name), text).unwrap();
        place.join(name)
    };
    let half = write("half.json", &text[..text.len() / 2]);
    let future = write("future.json", &text.replace("summary/1", "summary/9"));
    let other = write(
        "other.json",
        &text.replace("80 calls after", "81 calls after"),
    );
    refused(&lab(&["compare", &good, &half]), 1, "no whole document");
    refused(
        &lab(&["compare", &good, &future]),
        1,
        "durward-lab-summary/9",
    );
    refused(&lab(&["compare", &good, &other]), 1, "differ in calls");
    refused(
        &lab(&["compare", &good, &place.join("none")]),
        1,
        "cannot use",
    );
    assert!(lab(&["compare", &good, &other, "--force"]).status.success());
    refused(
        &lab(&["gate", "--baseline", &good, &good, "--rule", "p95 <= 10"]),
        2,
        "not a limit",
    );
    // Too few calls for a percentile: no verdict, and why.
    let p99 = ["gate", "--baseline", &good, &good, "--rule", "p99 <= +10%"];
    for (more, code) in [
        (&[][..], Some(0)),
        (&["--on-inconclusive", "fail"], Some(98)),
    ] {
        let output = lab(&[&p99[..], more].concat());
        assert_eq!(output.status.code(), code, "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("p99 <= +10%: -, a launch has too few"),
            "{text}"
        );
    }
    let gate = |more: &[&str]| lab(&[&["gate", "--baseline", &good, &good][..], more].concat());
    let unknown = gate(&["--rule", "p50 <= +10%", "--arm", "nobody"]);
    refused(&unknown, 2, "no variant nobody; it has direct, proxied");
    let never = gate(&["--rule", "ttft.p95 < 1s"]);
    refused(&never, 1, "has no ttft.p95 of proxied");
}

#[test]
fn calls_under_way_together_are_all_answered() {
    let echo = mock("echo");
    let found = measured(&overhead(&echo, &echo, &["--json", "--concurrency", "8"]));
    assert_eq!(found["concurrency"], 8);
    assert_eq!(found["arms"][1]["calls"], 240);
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(60_000));
    refused(
        &overhead(&echo, &echo, &["--concurrency", "8", "--tool-args", &large]),
        2,
        "would fill a pipe",
    );
    refused(
        &overhead(&echo, &echo, &["--concurrency", "8", "--delay", "0.1"]),
        2,
        "contradict each other",
    );
}

#[test]
fn an_adaptive_measurement_adds_launches_up_to_its_bound() {
    let echo = mock("echo");
    let more = [
        "--json",
        "--adaptive",
        "--half-width-us",
        "0.000001",
        "--launches-max",
        "5",
    ];
    let found = measured(&overhead(&echo, &echo, &more));
    assert_eq!(found["launches"], 5);
    let more = ["--json", "--adaptive", "--half-width-us", "1000000"];
    let found = measured(&overhead(&echo, &echo, &more));
    assert_eq!(found["launches"], 3);
    assert!(found["comparisons"][0]["hodges_lehmann_us"].is_f64());
    assert!(found["arms"][1]["cold_us"]["point"].is_f64());
    assert!(found["arms"][1]["processes"][0]["resident_kib"].as_u64() > Some(0));
}

#[test]
fn a_person_needs_a_place_to_sit() {
    let echo = mock("echo");
    let there = ["--path", "hitl", "--control", "proxied=/nowhere"];
    for (more, code, part) in [
        (&["--path", "hitl"][..], 2, "give --control proxied=DIR"),
        (&["--path", "hitl", "--control", "x"], 2, "NAME=DIR"),
        (
            &["--path", "hitl", "--control", "x=/y"],
            2,
            "no variant is named x",
        ),
        (&there, 1, "no control socket in /nowhere"),
        (
            &[&there[..], &["--concurrency", "2"]].concat(),
            1,
            "no control socket in /nowhere",
        ),
        (
            &[&there[..], &["--approver-delay-ms", "10000"]].concat(),
            2,
            "slower than --timeout-ms 10000",
        ),
    ] {
        refused(&overhead(&echo, &echo, more), code, part);
    }
}

fn load(target: &str, more: &[&str]) -> Output {
    lab(&[
        &["load", "tool", "--target", target, "--json", "--quiet"][..],
        more,
    ]
    .concat())
}

#[test]
fn a_stall_shows_in_response_times_at_a_rate_and_hides_from_a_closed_loop() {
    let stalls = mock("echo --stall-ms 400 --stall-every-ms 1200");
    let found = measured(&load(
        &stalls,
        &[
            "--rate",
            "100/s",
            "--workers",
            "1",
            "--duration",
            "2400ms",
            "--warm",
            "0",
        ],
    ));
    let phase = &found["phases"][0];
    let p90 = |kind: &str| phase[kind]["p90_us"]["point"].as_f64().unwrap();
    assert_eq!(
        (phase["model"].as_str(), phase["calls"].as_u64()),
        (Some("open"), Some(240))
    );
    // A third of all calls fall due while it stands still; only two of them meet it in service.
    assert!(
        p90("response") > 100_000.0 && p90("response") > p90("service"),
        "{phase}"
    );
}

#[test]
fn failures_are_counted_by_kind() {
    let count = |target: &str, more: &[&str], kind: &str| {
        let args = [
            &["--duration", "300ms", "--warm", "0", "--timeout-ms", "400"][..],
            more,
        ]
        .concat();
        let output = load(target, &args);
        assert_eq!(output.status.code(), Some(1), "{kind}: {}", stderr(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let phase = &found["phases"][0];
        assert_eq!(
            (phase["ok"].as_u64(), phase["service"]["n"].as_u64()),
            (Some(0), Some(0))
        );
        assert!(
            phase["failures"][kind].as_u64() > Some(0),
            "{kind}: {phase}"
        );
        assert!(phase["service"]["missing"]["p50"].is_string());
        assert!(found["complaint"].is_string());
    };
    let echo = mock("echo");
    count(&echo, &["--tool", "none"], "error");
    count(&echo, &["--tool-args", r#"{"txt":1}"#], "tool_error");
    count(&hostile("die"), &[], "broken");
    count(&hostile("never"), &[], "timeout");
}

#[test]
fn load_over_http_counts_statuses_and_other_contents() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (number, stream) in (0..).zip(listener.incoming()) {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let mut turn = number;
                while let Ok(1..) = stream.read(&mut request) {
                    turn += 1;
                    let answer = match turn % 4 {
                        0 => "HTTP/1.1 429 Slow Down\r\ncontent-length: 0\r\n\r\n",
                        1 => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
                        2 => {
                            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
                        }
                        _ => "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad",
                    };
                    stream.write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    });
    let output = lab(&[
        "load",
        "http",
        "--target",
        &url,
        "--duration",
        "200ms",
        "--warm",
        "0",
        "--json",
        "--quiet",
    ]);
    let found = measured(&output);
    let phase = &found["phases"][0];
    for kind in ["throttled", "wrong_content"] {
        assert!(phase["failures"][kind].as_u64() > Some(0), "{phase}");
    }
    assert!(phase["ok"].as_u64() > Some(0));
    let text = lab(&[
        "load",
        "http",
        "--target",
        "http://127.0.0.1:1/",
        "--duration",
        "1s",
    ]);
    refused(&text, 1, "cannot connect");
}

#[test]
fn load_refuses_what_makes_no_sense() {
    let echo = mock("echo");
    for (more, part) in [
        (&["--rate", "0"][..], "not a rate"),
        (&["--duration", "0s"], "not between"),
        (&["--phase", "x"], "not a phase"),
        (&["--threshold", "p95 <= x"], "not a limit"),
        (&["--threshold", "p95 <= +10%"], "baseline"),
        (&["--tool-args", "["], "not JSON"),
        (&["--header", "a\r\nb: c"], "takes NAME: VALUE"),
    ] {
        let target = if more[0] == "--header" {
            "http://127.0.0.1:1/"
        } else {
            &echo
        };
        refused(&load(target, more), 2, part);
    }
    refused(
        &lab(&["load", "http", "--target", &echo]),
        2,
        "needs an http:// address",
    );
    refused(&load("https://127.0.0.1/", &[]), 2, "http:// only");
}

#[test]
fn ctrl_c_writes_what_there_is() {
    let place = Directory::new();
    let runs = place.join("runs");
    let mut child = Command::new(lab_path())
        .args([
            "load",
            "tool",
            "--target",
            &mock("echo"),
            "--duration",
            "60s",
            "--out",
            &runs,
        ])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The first line of progress comes when calls are under way.
    let mut progress = std::io::BufReader::new(child.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut progress, &mut String::new()).unwrap();
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut progress, &mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(97), "{rest}");
    let run = std::fs::read_dir(&runs)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let summary: Value =
        serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary["aborted"], true);
    let calls = std::fs::read_to_string(run.join("ops/w1.jsonl")).unwrap();
    assert_eq!(summary["phases"][0]["calls"], calls.lines().count());
}
