//! `inspect:` on what the bridge's paths send beside the answers to calls: chunks of populations and events of jobs.

use std::fs;
use std::io::BufReader;

use serde_json::{Value, json};

use super::{load, place};
use crate::support::guarded::{Place, eventually};
use crate::support::serving::{Answer, Served, read_answer, write_request};

const CURVE: &str = "Example|Organism|Central|Drug|Concentration";

fn write(place: &Place, rules: &str) {
    let text = format!(
        "servers: {{ pbpk: {{ builtin: simulation, models: [models] }} }}\ninspect: {{ {rules} }}\n"
    );
    fs::write(place.path("durward.yaml"), text).unwrap();
}

fn served(rules: &str) -> Served {
    let place = place();
    write(&place, rules);
    let served = Served::start_configured(place);
    good(&served, "/load_simulation", load());
    served
}

#[track_caller]
fn good(served: &Served, path: &str, body: Value) -> Value {
    let answer = served.send("POST", path, &[], &body.to_string());
    assert!(answer.status < 300, "{path}: {answer:?}");
    answer.json()
}

fn get(served: &Served, path: &str) -> Answer {
    served.send("GET", path, &[], "")
}

/// The job of a population of three that has ended, and the address of its chunk.
fn chunk(served: &Served) -> (String, String) {
    let asked = json!({"simulationId": "sim", "cohort": {"size": 3}, "modelPath": "two_compartment.xml", "confirm": true,
        "outputs": {"timeSeries": [{"path": CURVE}]}});
    let job = good(served, "/run_population_simulation", asked)["jobId"].clone();
    let waits = json!({"tool": "get_job_status", "arguments": {"jobId": job, "waitSeconds": 120}});
    let done = good(served, "/mcp/call_tool", waits)["structuredContent"].clone();
    assert_eq!(done["status"], "succeeded", "{done}");
    let told = good(
        served,
        "/get_population_results",
        json!({"resultsId": done["resultId"]}),
    );
    let uri = told["chunks"][0]["uri"].as_str().unwrap().to_owned();
    (job.as_str().unwrap().to_owned(), uri)
}

#[test]
fn what_is_found_in_a_chunk_is_masked_and_columns_that_cannot_be_are_refused() {
    let served = served(
        r#"names: { patterns: ["Organism.Central"], on: results, action: mask },
           third: { patterns: ["^3$"], on: results, action: mask }"#,
    );
    let (_, uri) = chunk(&served);
    let csv = get(&served, &format!("{uri}?format=csv")).body;
    assert!(csv.contains("\"Example|[masked: names]|Drug"), "{csv}");
    assert!(!csv.contains("Central"), "{csv}");
    // In JSON each number is looked at by itself.
    let told = get(&served, &uri).json();
    assert_eq!(told["totalSubjects"], "[masked: third]", "{told}");
    assert_eq!(told["series"].as_array().unwrap().len(), 3);
    for range in [None, Some(("range", "bytes=0-15"))] {
        let columns = format!("{uri}?format=columns");
        let answer = served.send("GET", &columns, range.as_slice(), "");
        assert_eq!(answer.status, 403, "{answer:?}");
        assert_eq!(
            answer.json()["error"]["details"][0]["code"],
            "inspection_denied"
        );
        assert!(!answer.body.contains("DWCOLS"), "{answer:?}");
    }
}

#[test]
fn a_chunk_that_a_rule_denies_is_not_sent() {
    let served = served("");
    let (_, uri) = chunk(&served);
    let csv = format!("{uri}?format=csv");
    assert_eq!(get(&served, &csv).status, 200);
    // The head of the table stands in no result of a tool.
    write(
        &served.place,
        r#"tables: { patterns: ["IndividualId,Output"], on: results, action: deny }"#,
    );
    eventually("the rule is in force", || get(&served, &csv).status == 403);
    let refused = get(&served, &csv);
    assert_eq!(refused.json()["error"]["code"], "Forbidden", "{refused:?}");
    assert!(refused.body.contains("inspect:tables"), "{refused:?}");
    assert!(!refused.body.contains("IndividualId"), "{refused:?}");
    assert_eq!(get(&served, &format!("{uri}?format=columns")).status, 403);
    assert_eq!(get(&served, &uri).status, 200);
}

#[test]
fn what_is_found_in_an_event_of_a_job_is_masked() {
    let served = served(
        r#"times: { patterns: ["20[0-9]{2}-[0-9-]+T[0-9:.]+Z"], on: results, action: mask }"#,
    );
    let (job, _) = chunk(&served);
    // The stream ends with the job.
    let mut stream = served.connect();
    write_request(&mut stream, "GET", &format!("/jobs/{job}/events"), &[], "");
    let events = read_answer(&mut BufReader::new(stream));
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    let last = events.body.trim_end().rsplit("\n\n").next().unwrap();
    let told: Value = serde_json::from_str(last.trim_start_matches("data: ")).unwrap();
    assert_eq!(told["status"], "succeeded", "{told}");
    for time in ["submittedAt", "startedAt", "finishedAt"] {
        assert_eq!(told[time], "[masked: times]", "{told}");
    }
}
