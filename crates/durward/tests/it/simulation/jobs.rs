//! Jobs over crashes, and what belongs to whom.

use std::time::Instant;

use mcp::client::Client;
use serde_json::{Value, json};

use super::{call, client, load, place};
use crate::support::guarded::{PATIENCE, end};

/// Waits until a chunk of a population is kept and others are not; `false` where it has ended before it was seen.
fn half_done(client: &mut Client, job: &Value) -> bool {
    let until = Instant::now() + PATIENCE;
    loop {
        let told = call(client, "get_job_status", json!({"jobId": job}));
        let progress = &told["progress"];
        match told["status"].as_str().unwrap() {
            "queued" => {}
            "running" if progress["done"].as_f64().unwrap() >= 200.0 => {
                assert_eq!(progress["unit"], "individuals");
                assert!(progress["secondsLeft"].as_f64().unwrap() >= 0.0, "{told}");
                assert!(
                    progress["done"].as_f64() <= progress["total"].as_f64(),
                    "{told}"
                );
                return true;
            }
            "running" => {}
            "succeeded" => {
                assert_eq!(told.get("progress"), None, "{told}");
                return false;
            }
            _ => panic!("{told}"),
        }
        assert!(Instant::now() < until, "{told}");
    }
}

#[test]
fn defect_12_a_population_goes_on_after_a_kill_and_gives_the_same_numbers() {
    let place = place();
    let asked = |size: u64| {
        let cohort = json!({
            "size": size, "seed": 3,
            "covariates": [{"path": "Example|Organism|Weight", "distribution": "lognormal", "mean": 70, "sd": 1.2}]
        });
        json!({"simulationId": "sim", "cohort": cohort, "confirm": true,
            "outputs": {"timeSeries": [{"path": "Example|Organism|Central|Drug|Concentration"}]}})
    };
    let mut killed = client(&place);
    call(&mut killed, "load_simulation", load());
    // Of a population that is large enough for this machine one part is done, and another one is not.
    let (size, job) = [2_000, 8_000, 32_000, 128_000]
        .into_iter()
        .find_map(|size| {
            let job = call(&mut killed, "run_population_simulation", asked(size))["jobId"].clone();
            half_done(&mut killed, &job).then_some((size, job))
        })
        .expect("the largest population ended before it was looked at");
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
    let job = call(&mut again, "run_population_simulation", asked(size))["jobId"].clone();
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
    let chunks = recovered["chunks"].as_array().unwrap();
    assert_eq!(
        chunks.len() as u64,
        size.div_ceil(size.div_ceil(1_000).max(100))
    );
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

/// The worker processes of a process.
fn workers(pid: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = |number: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let words = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let parent = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        parent == Some(pid) && String::from_utf8_lossy(&words).contains("__simulate")
    };
    numbers.filter(own).collect()
}

#[test]
fn defect_15_a_worker_that_is_killed_ends_its_own_run_and_no_other() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let long = |retries: u32| json!({"simulationId": "sim", "cohort": {"size": 30_000}, "maxRetries": retries, "confirm": true});
    let job = call(&mut client, "run_population_simulation", long(0))["jobId"].clone();
    let until = Instant::now() + PATIENCE;
    let own = client.process().pid();
    while workers(own).is_empty() {
        assert!(Instant::now() < until);
    }
    for worker in workers(own) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(worker).unwrap()).unwrap();
        // One may have ended between.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    let done = call(
        &mut client,
        "get_job_status",
        json!({"jobId": job, "waitSeconds": 120}),
    );
    assert_eq!(done["status"], "failed", "{done}");
    let said = done["error"]["message"].as_str().unwrap();
    assert!(said.contains("worker process"), "{said}");
    // The server is whole, and the next run gets a worker of its own.
    let name = super::run(&mut client, json!({}));
    call(&mut client, "get_results", json!({"resultsId": name}));
    assert_eq!(end(client).code, Some(0));
    assert_eq!(
        workers(own),
        [] as [u32; 0],
        "no worker outlives its server"
    );
}
