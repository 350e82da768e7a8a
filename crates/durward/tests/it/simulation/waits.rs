//! How long a job waited and ran, in the journal and in `/metrics`.

use std::fs;

use serde_json::{Value, json};

use super::{load, place};
use crate::support::serving::Served;

#[track_caller]
fn good(served: &Served, path: &str, body: Value) -> Value {
    let answer = served.send("POST", path, &[], &body.to_string());
    assert!(answer.status < 300, "{path}: {answer:?}");
    answer.json()
}

/// A job as it is told at its end.
fn ended(served: &Served, job: &Value) -> Value {
    let waits = json!({"jobId": job, "waitSeconds": 120});
    let waits = json!({"tool": "get_job_status", "arguments": waits});
    let told = good(served, "/mcp/call_tool", waits)["structuredContent"].clone();
    assert!(told["finishedAt"].is_number(), "{told}");
    told
}

/// Microseconds between two times that a job is told with.
fn span_us(job: &Value, from: &str, to: &str) -> f64 {
    let at = |name: &str| job[name].as_f64().unwrap();
    (at(to) - at(from)) * 1e6
}

#[test]
fn what_a_job_waited_for_a_worker_is_in_the_journal_beside_what_it_ran() {
    let place = place();
    // What comes second waits for what came first.
    fs::write(
        place.path("durward.yaml"),
        "servers: { pbpk: { builtin: simulation, models: [models], workers: 1 } }\n",
    )
    .unwrap();
    let served = Served::start_configured(place);
    good(&served, "/load_simulation", load());
    let population = |size: u64| json!({"simulationId": "sim", "cohort": {"size": size}, "modelPath": "two_compartment.xml", "confirm": true});
    let run = json!({"simulationId": "sim", "confirm": true});
    let started = |path: &str, body: &Value| good(&served, path, body.clone())["jobId"].clone();
    let first = started("/run_population_simulation", &population(2_000));
    let second = started("/run_simulation", &run);
    let endless = started("/run_population_simulation", &population(500_000));
    let never = started("/run_simulation", &run);
    let jobs = [&first, &second].map(|job| ended(&served, job));
    for job in [&never, &endless] {
        good(&served, "/cancel_job", json!({"jobId": job}));
    }
    let cancelled = [&endless, &never].map(|job| ended(&served, job));
    let metrics = served.send("GET", "/metrics", &[], "").body;

    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    let op = |tool: &str| {
        let decisions = journal.decisions();
        let of = decisions.iter().filter(|one| one["tool_name"] == tool);
        of.map(|one| one["op"].clone()).collect::<Vec<_>>()
    };
    let (runs, populations) = (op("run_simulation"), op("run_population_simulation"));
    let asked = [&populations[0], &runs[0], &populations[1], &runs[1]];
    for (job, op) in jobs.iter().chain(&cancelled).zip(asked) {
        let is_its_end =
            |one: &&Value| one["event"] == "job_ended" && one["job_id"] == job["jobId"];
        let told: Vec<&Value> = journal.0.iter().filter(is_its_end).collect();
        let [told] = told[..] else {
            panic!("{job}: {told:?}")
        };
        assert_eq!(
            (&told["op"], &told["backend_id"]),
            (op, &json!("pbpk")),
            "{told}"
        );
        assert_eq!(told["job_status"], job["status"], "{told}");
        let was_taken = job["startedAt"].is_number();
        let until = if was_taken { "startedAt" } else { "finishedAt" };
        let waited = told["queue_wait_us"].as_f64().unwrap();
        let off = (waited - span_us(job, "submittedAt", until)).abs();
        assert!(off < 1_000.0, "{told} {job}");
        assert_eq!(told["ran_us"].is_number(), was_taken, "{told}");
        if was_taken {
            let ran = told["ran_us"].as_f64().unwrap();
            assert!(
                (ran - span_us(job, "startedAt", "finishedAt")).abs() < 1_000.0,
                "{told} {job}"
            );
        }
    }
    // With one worker the second has waited for the whole of the first, but for the time between the two requests.
    let overlap = span_us(
        &json!({"a": jobs[1]["submittedAt"], "b": jobs[0]["finishedAt"]}),
        "a",
        "b",
    );
    assert!(
        span_us(&jobs[1], "submittedAt", "startedAt") >= overlap,
        "{jobs:?}"
    );
    assert!(!cancelled[1]["startedAt"].is_number(), "{cancelled:?}");
    for line in [
        "mcp_simulation_jobs_total{kind=\"run\",status=\"succeeded\",server=\"pbpk\"} 1",
        "mcp_simulation_jobs_total{kind=\"run\",status=\"cancelled\",server=\"pbpk\"} 1",
        "mcp_simulation_jobs_total{kind=\"population\",status=\"cancelled\",server=\"pbpk\"} 1",
        "mcp_simulation_job_queue_wait_seconds_count{kind=\"run\",server=\"pbpk\"} 2",
        "mcp_simulation_job_duration_seconds_count{kind=\"run\",server=\"pbpk\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[test]
fn requests_and_calls_of_tools_are_counted_under_the_bridges_names() {
    let served = Served::start_configured(place());
    good(&served, "/load_simulation", load());
    let get = json!({"simulationId": "sim", "parameterPath": "Example|Organism|Weight"});
    for _ in 0..3 {
        good(&served, "/get_parameter_value", get.clone());
    }
    let missing = json!({"simulationId": "sim", "parameterPath": "none"}).to_string();
    let post = |path: &str, body: &str| served.send("POST", path, &[], body).status;
    assert_eq!(post("/get_parameter_value", &missing), 404);
    // What callers ask for by name is not what is counted by name.
    for path in ["/jobs/canary/events", "/jobs/other/events"] {
        assert_eq!(served.send("GET", path, &[], "").status, 404);
    }
    let metrics = served.send("GET", "/metrics", &[], "").body;
    for line in [
        "mcp_tool_invocations_total{tool=\"get_parameter_value\",status=\"success\",server=\"pbpk\"} 3",
        "mcp_tool_invocations_total{tool=\"get_parameter_value\",status=\"error\",server=\"pbpk\"} 1",
        "mcp_tool_invocations_in_progress{tool=\"load_simulation\",server=\"pbpk\"} 0",
        "mcp_tool_duration_seconds_count{tool=\"load_simulation\",status=\"success\",server=\"pbpk\"} 1",
        "mcp_http_requests_total{method=\"POST\",route=\"/get_parameter_value\",status_code=\"200\",server=\"pbpk\"} 3",
        "mcp_http_requests_total{method=\"POST\",route=\"/get_parameter_value\",status_code=\"404\",server=\"pbpk\"} 1",
        "mcp_http_requests_total{method=\"GET\",route=\"/jobs/{jobId}/events\",status_code=\"404\",server=\"pbpk\"} 2",
        "mcp_http_request_duration_seconds_count{method=\"POST\",route=\"/load_simulation\",status_code=\"201\",server=\"pbpk\"} 1",
        "mcp_http_requests_in_progress{method=\"POST\",route=\"/load_simulation\",server=\"pbpk\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    assert!(!metrics.contains("canary"), "{metrics}");
}
