//! The run that a call belongs to: named in headers or `_meta`, recorded, passed on, and found again.

use serde_json::Value;

use crate::support::guarded::Place;
use crate::support::serving::{Served, call, modern, modern_call, modern_headers};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// What a place's records of a kind say of their runs, in order.
fn runs<'r>(records: impl IntoIterator<Item = &'r &'r Value>) -> Vec<String> {
    let run = |record: &&Value| record["run_id"].as_str().unwrap_or("-").to_owned();
    records.into_iter().map(run).collect()
}

fn logs(place: &Place, args: &[&str]) -> String {
    let output = place.durward(&[&["--no-config", "--state-dir", "state", "logs"], args].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_run_is_in_the_records_of_every_durward_that_its_calls_pass() {
    let behind = Served::start(&[]);
    let url = format!("echo=http://{}/mcp/echo", behind.address);
    let front = Served::start_server(Place::new(), &url, &[]);
    let session = front.open("2025-11-25");
    let legacy = |id: &str, more: &[(&str, &str)]| {
        let headers = [&[("mcp-session-id", session.as_str())], more].concat();
        let answer = front.send("POST", "/mcp/echo", &headers, &call(id, "x"));
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    legacy("1", &[]);
    legacy(
        "2",
        &[("X-Durward-Run", "nightly-7"), ("traceparent", PARENT)],
    );
    legacy("3", &[("traceparent", PARENT)]);
    legacy(
        "4",
        &[("x-durward-run", "two words"), ("traceparent", "nonsense")],
    );
    let post = |body: &str, more: &[(&str, &str)]| {
        let headers = [&modern_headers("tools/call", "echo")[..], more].concat();
        let answer = front.send("POST", "/mcp/echo", &headers, body);
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    post(&modern_call("5", "x"), &[("x-durward-run", "nightly-7")]);
    let meta = modern(
        "6",
        "tools/call",
        r#""name":"echo","arguments":{"text":"x"}"#,
    )
    .replace(
        r#""_meta":{"#,
        &format!(r#""_meta":{{"traceparent":"{PARENT}","#),
    );
    post(&meta, &[]);

    let expected = ["-", "nightly-7", TRACE, "-", "nightly-7", TRACE];
    for served in [front, behind] {
        let (code, place) = served.stop();
        assert_eq!(code, Some(0));
        let journal = place.journal();
        let calls = |records: Vec<&Value>| -> Vec<String> {
            let calls: Vec<&Value> = records
                .into_iter()
                .filter(|record| record["tool_name"] == "echo")
                .collect();
            runs(&calls)
        };
        assert_eq!(calls(journal.decisions()), expected);
        assert_eq!(calls(journal.operations()), expected);
        let shown = logs(&place, &["--run", "nightly-7"]);
        let kinds: Vec<&str> = shown
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        assert_eq!(kinds, ["decision", "operation", "decision", "operation"]);
        let whole = logs(&place, &["--run", TRACE, "--json"]);
        for line in whole.lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!(record["run_id"], TRACE);
        }
        assert_eq!(whole.lines().count(), 4);
        let some = logs(&place, &["show", "--type", "operations", "--run", TRACE]);
        assert_eq!(some.lines().count(), 3, "{some}");
    }
}
