//! The run that a request over the bridge's own paths belongs to.

use serde_json::{Value, json};

use super::{load, place};
use crate::support::serving::Served;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The run in a record, or a dash.
fn run(record: &Value) -> &str {
    record["run_id"].as_str().unwrap_or("-")
}

#[test]
fn a_run_that_a_request_names_is_in_the_records_of_its_call() {
    let served = Served::start_configured(place());
    let named = [("x-durward-run", "nightly-7"), ("traceparent", PARENT)];
    let traced = [("traceparent", PARENT)];
    let malformed = [("x-durward-run", "two words"), ("traceparent", "nonsense")];
    let value = json!({"simulationId": "sim", "parameterPath": "Example|Organism|Weight"});
    let facade = json!({"tool": "get_parameter_value", "arguments": value});
    let post = |path: &str, headers: &[(&str, &str)], body: &Value| {
        let answer = served.send("POST", path, headers, &body.to_string());
        assert!(answer.status < 300, "{path}: {answer:?}");
        answer.json()
    };
    post("/load_simulation", &named, &load());
    post("/get_parameter_value", &traced, &value);
    post("/mcp/call_tool", &named, &facade);
    post("/get_parameter_value", &malformed, &value);
    post("/get_parameter_value", &[], &value);
    let asked = json!({"simulationId": "sim", "confirm": true});
    let job = post("/run_simulation", &named, &asked)["jobId"].clone();
    let events = format!("/jobs/{}/events", job.as_str().unwrap());
    assert_eq!(served.send("GET", &events, &traced, "").status, 200);

    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    let expected = [
        ("load_simulation", "nightly-7"),
        ("get_parameter_value", TRACE),
        ("get_parameter_value", "nightly-7"),
        ("get_parameter_value", "-"),
        ("get_parameter_value", "-"),
        ("run_simulation", "nightly-7"),
        ("get_job_status", TRACE),
    ];
    for records in [journal.decisions(), journal.operations()] {
        let told = records
            .iter()
            .filter_map(|record| Some((record["tool_name"].as_str()?, run(record))));
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
    let logs = [
        "--config",
        "durward.yaml",
        "--state-dir",
        "state",
        "logs",
        "--run",
    ];
    for (id, records) in [("nightly-7", 6), (TRACE, 4), ("two words", 0)] {
        let output = place.durward(&[&logs[..], &[id, "--json"]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), records, "{id}\n{text}");
        for line in text.lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!(run(&record), id);
        }
    }
}
