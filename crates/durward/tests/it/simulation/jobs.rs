//! Jobs over crashes, and what belongs to whom.

use std::time::{Duration, Instant};

use mocks::client::Client;
use serde_json::{Value, json};

use super::{load, place};
use crate::support::guarded::{LATEST, PATIENCE, Place, end};

fn client(place: &Place) -> Client {
    let mut client = place.guard_configured("durward.yaml", &[], "pbpk");
    client.handshake(LATEST).unwrap();
    client
}

#[track_caller]
fn call(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let reply = client.call_tool(tool, arguments).unwrap();
    let result = reply
        .result()
        .unwrap_or_else(|_| panic!("{}", reply.line()));
    assert_eq!(result.get("isError"), None, "{}", reply.line());
    result["structuredContent"].clone()
}

/// The chunks that the job has computed, by its progress in the store: seen through how far the population is.
fn status(client: &mut Client, job: &Value) -> String {
    let told = call(client, "get_job_status", json!({"jobId": job}));
    told["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_population_goes_on_after_a_kill_and_gives_the_same_numbers() {
    let place = place();
    let cohort = json!({
        "size": 4000, "seed": 3,
        "covariates": [{"path": "Example|Organism|Weight", "distribution": "lognormal", "mean": 70, "sd": 1.2}]
    });
    let asked = json!({"simulationId": "sim", "cohort": cohort, "confirm": true,
        "outputs": {"timeSeries": [{"path": "Example|Organism|Central|Drug|Concentration"}]}});
    let mut killed = client(&place);
    call(&mut killed, "load_simulation", load());
    let job = call(&mut killed, "run_population_simulation", asked.clone())["jobId"].clone();
    let until = Instant::now() + PATIENCE;
    while status(&mut killed, &job) == "queued" {
        assert!(Instant::now() < until);
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(status(&mut killed, &job), "running");
    killed
        .process()
        .signal(rustix::process::Signal::KILL)
        .unwrap();
    drop(killed);

    let mut again = client(&place);
    // The place of the process that was killed is taken up by the next one, with its jobs.
    let done = call(
        &mut again,
        "get_job_status",
        json!({"jobId": job, "waitSeconds": 120}),
    );
    assert_eq!(done["status"], "succeeded", "{done}");
    let recovered = call(
        &mut again,
        "get_population_results",
        json!({"resultsId": done["resultId"]}),
    );
    call(&mut again, "load_simulation", load());
    let job = call(&mut again, "run_population_simulation", asked)["jobId"].clone();
    let done = call(
        &mut again,
        "get_job_status",
        json!({"jobId": job, "waitSeconds": 120}),
    );
    let fresh = call(
        &mut again,
        "get_population_results",
        json!({"resultsId": done["resultId"]}),
    );
    assert_eq!(recovered["aggregates"], fresh["aggregates"]);
    assert_eq!(recovered["chunks"].as_array().unwrap().len(), 40);
    assert_eq!(end(again).code, Some(0));
}

#[test]
fn two_processes_of_one_server_keep_their_jobs_apart() {
    let place = place();
    let (mut one, mut other) = (client(&place), client(&place));
    for client in [&mut one, &mut other] {
        call(client, "load_simulation", load());
    }
    let run = json!({"simulationId": "sim", "confirm": true});
    let job = call(&mut one, "run_simulation", run.clone())["jobId"].clone();
    call(&mut other, "run_simulation", run);
    let reply = other
        .call_tool("get_job_status", json!({"jobId": job}))
        .unwrap();
    assert_eq!(reply.result().unwrap()["isError"], true);
    let done = call(
        &mut one,
        "get_job_status",
        json!({"jobId": job, "waitSeconds": 60}),
    );
    assert_eq!(done["status"], "succeeded");
    assert_eq!(end(one).code, Some(0));
    assert_eq!(end(other).code, Some(0));
}

#[test]
fn a_run_ends_at_its_time_and_says_so() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let asked = json!({"simulationId": "sim", "cohort": {"size": 500_000}, "timeoutSeconds": 1, "confirm": true});
    let job = call(&mut client, "run_population_simulation", asked)["jobId"].clone();
    let done = call(
        &mut client,
        "get_job_status",
        json!({"jobId": job, "waitSeconds": 60}),
    );
    assert_eq!(done["status"], "timeout", "{done}");
    let took = done["finishedAt"].as_f64().unwrap() - done["startedAt"].as_f64().unwrap();
    assert!(took >= 1.0, "{took}");
    assert_eq!(end(client).code, Some(0));
}
