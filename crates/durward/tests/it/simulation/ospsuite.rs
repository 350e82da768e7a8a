//! Models solved over R. The package that R loads here is a stand-in, which has no solver: what is shown is the way there and
//! back, and what becomes of an R that ends in the middle.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use mcp::client::Client;
use serde_json::{Value, json};

use super::{call, client, fails, run};
use crate::support::components::{installed, repository};
use crate::support::guarded::{Place, end, eventually};
use crate::support::serving::Served;

const RSCRIPT: &str = "/usr/bin/Rscript";
/// Above 1000 the stand-in takes so many milliseconds.
const RATE: &str = "R1|k1";
const VOLUME: &str = "Organism|Volume";

/// A place with a model and, where it is wanted, the stand-in; `None` where R or the model is not there.
fn place(has_package: bool) -> Option<Place> {
    let model = repository().join("../shared/pbpk/data/pkml/coreR_simple.pkml");
    if !installed(RSCRIPT) {
        return None;
    }
    if !model.exists() {
        let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        assert!(!is_ci, "{} is absent", model.display());
        let mut err = std::io::stderr();
        let _ = writeln!(
            err,
            "skipped: models over R need ../shared (see CONTRIBUTING.md)"
        );
        return None;
    }
    let place = super::place();
    fs::copy(model, place.path("models/simple.pkml")).unwrap();
    fs::create_dir_all(place.path("packages")).unwrap();
    if has_package {
        let package = repository().join("crates/durward/tests/data/ospsuite");
        let done = Command::new("R")
            .args([
                "CMD",
                "INSTALL",
                "--no-docs",
                "--no-test-load",
                "--library=packages",
            ])
            .arg(package)
            .current_dir(&place.dir)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    let server = "servers: { pbpk: { builtin: simulation, models: [models], adapter: ospsuite, r_libs: [packages] } }\n";
    fs::write(place.path("durward.yaml"), server).unwrap();
    Some(place)
}

fn load() -> Value {
    json!({"filePath": "simple.pkml", "simulationId": "sim", "confirm": true})
}

fn set(client: &mut Client, path: &str, value: f64) {
    let asked =
        json!({"simulationId": "sim", "parameterPath": path, "value": value, "confirm": true});
    call(client, "set_parameter_value", asked);
}

/// The highest value of the first curve.
fn highest(client: &mut Client, results: &str) -> f64 {
    let told = call(
        client,
        "calculate_pk_parameters",
        json!({"resultsId": results}),
    );
    told["metrics"][0]["cmax"].as_f64().unwrap()
}

/// The processes of R below a process.
fn r_below(pid: u32) -> Vec<u32> {
    let mut all: Vec<(u32, u32, bool)> = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let stat = read("stat");
        let parent = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        let own = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let (Some(own), Some(parent)) = (own, parent) {
            all.push((own, parent, read("comm").trim() == "R"));
        }
    }
    let (mut below, mut found) = (vec![pid], Vec::new());
    while let Some(next) = below.pop() {
        for (own, _, is_r) in all.iter().filter(|(_, parent, _)| *parent == next) {
            below.push(*own);
            found.extend(is_r.then_some(*own));
        }
    }
    found
}

/// The process of the R that is in the middle of a run; the stand-in writes it down. Each is told once.
fn met(place: &Place) -> u32 {
    let file = place.path("packages/running");
    let mut told = None;
    eventually("R runs", || {
        told = fs::read_to_string(&file)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        told.is_some()
    });
    fs::remove_file(file).unwrap();
    told.unwrap()
}

fn job(client: &mut Client, more: Value) -> Value {
    let mut asked = json!({"simulationId": "sim", "confirm": true});
    let members = asked.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    call(client, "run_simulation", asked)["jobId"].clone()
}

fn ended(client: &mut Client, job: &Value) -> Value {
    call(
        client,
        "get_job_status",
        json!({"jobId": job, "waitSeconds": 120}),
    )
}

#[test]
fn every_answer_says_what_solves_the_models_and_that_it_is_a_stand_in() {
    const NAME: &str = "ospsuite (stand-in)";
    let Some(place) = place(true) else { return };
    let served = Served::start_configured(place);
    let adapter = served.send_get("/mcp/capabilities")["adapter"].clone();
    let health = &adapter["health"]["environment"];
    assert_eq!(
        (&adapter["name"], &health["available"]),
        (&json!(NAME), &json!(true)),
        "{adapter}"
    );
    assert!(
        health["rVersion"]
            .as_str()
            .unwrap()
            .starts_with("R version "),
        "{health}"
    );
    assert_eq!(health["ospsuiteAvailable"], true);
    let (_, place) = served.stop();
    let mut client = client(&place);
    let loaded = call(&mut client, "load_simulation", load());
    assert_eq!(
        (&loaded["backend"], &loaded["metadata"]["backend"]),
        (&json!(NAME), &json!(NAME))
    );
    let found = call(&mut client, "discover_models", json!({}));
    let items: Vec<(&Value, &Value)> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (&item["modelId"], &item["backend"]))
        .collect();
    assert_eq!(
        items,
        [(&json!("simple"), &json!(NAME))],
        "the package reads .pkml alone"
    );
    let other = json!({"filePath": "two_compartment.xml", "confirm": true});
    assert_eq!(
        fails(&mut client, "load_simulation", other)["code"],
        "UnsupportedModel"
    );
    let name = run(&mut client, json!({}));
    let told = call(&mut client, "get_results", json!({"resultsId": name}));
    assert_eq!(
        (&told["backend"], &told["metadata"]["solver"]["engine"]),
        (&json!(NAME), &json!(NAME))
    );
    let cohort = json!({"cohort": {"size": 3, "covariates": [{"path": VOLUME, "distribution": "discrete", "values": [2]}]}});
    let name = run(&mut client, cohort);
    let told = call(
        &mut client,
        "get_population_results",
        json!({"resultsId": name}),
    );
    assert_eq!(told["metadata"]["solver"]["engine"], NAME);
    // The stand-in's curves begin with the product of what was set.
    assert_eq!(told["aggregates"]["meanCmax"], 2.0, "{told}");
    let fit = json!({"simulationId": "sim", "parameters": [{"path": VOLUME}], "confirm": true,
        "observations": [{"output": "Organism|B", "times": [1], "values": [1]}]});
    assert_eq!(
        fails(&mut client, "fit_parameters", fit)["code"],
        "EnvironmentMissing"
    );
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn what_is_set_is_set_in_r_and_is_not_there_any_more_after_a_reset() {
    let Some(place) = place(true) else { return };
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let seen = |client: &mut Client| {
        let name = run(client, json!({}));
        highest(client, &name)
    };
    let first = seen(&mut client);
    set(&mut client, VOLUME, 3.0);
    let second = seen(&mut client);
    call(
        &mut client,
        "reset_parameter_value",
        json!({"simulationId": "sim", "parameterPath": VOLUME, "confirm": true}),
    );
    let third = seen(&mut client);
    assert_eq!((first, second, third), (1.0, 3.0, 1.0));
    let deltas = json!({"modelPath": "simple.pkml", "simulationId": "sim", "confirm": true, "parameters": [{"path": VOLUME, "deltas": [0.5]}]});
    let told = call(&mut client, "run_sensitivity_analysis", deltas);
    assert_eq!(told["report"]["failures"], json!([]), "{told}");
    // What R cannot run is told in R's words, and R goes on.
    set(&mut client, VOLUME, -1.0);
    let wrong = job(&mut client, json!({}));
    let wrong = ended(&mut client, &wrong);
    assert_eq!(
        (&wrong["status"], &wrong["error"]["message"]),
        (&json!("failed"), &json!("a negative value was set"))
    );
    // R reads the file itself: another content is not taken for what was loaded.
    set(&mut client, VOLUME, 1.0);
    let file = place.path("models/simple.pkml");
    let model = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{model}\n")).unwrap();
    let wrong = job(&mut client, json!({}));
    let wrong = ended(&mut client, &wrong);
    let said = wrong["error"]["message"].as_str().unwrap_or_default();
    assert!(said.contains("has changed since it was loaded"), "{wrong}");
    let kept = r_below(client.process().pid());
    assert!(!kept.is_empty(), "it is kept warm");
    assert_eq!(end(client).code, Some(0));
    let is_gone = |process: &u32| !Path::new(&format!("/proc/{process}")).exists();
    eventually("R ends with its server", || kept.iter().all(is_gone));
}

#[test]
fn an_r_that_is_killed_in_the_middle_fails_its_run_or_is_started_again() {
    let Some(place) = place(true) else { return };
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    set(&mut client, RATE, 3_000.0);
    for (retries, expect, attempts) in [(0, "failed", 1), (1, "succeeded", 2)] {
        let one = job(&mut client, json!({"maxRetries": retries}));
        kill(met(&place));
        let told = ended(&mut client, &one);
        assert_eq!(
            (&told["status"], &told["attempts"]),
            (&json!(expect), &json!(attempts)),
            "{told}"
        );
        if expect == "failed" {
            let said = &told["error"]["message"];
            assert_eq!(said, "R has ended in the middle of a run");
        }
    }
    assert_eq!(end(client).code, Some(0));
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_cancelled_run_and_one_out_of_time_end_their_r() {
    let Some(place) = place(true) else { return };
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let pid = client.process().pid();
    set(&mut client, RATE, 3_600_000.0);
    let one = job(&mut client, json!({}));
    met(&place);
    let told = call(&mut client, "cancel_job", json!({"jobId": one}));
    assert_eq!(told["status"], "cancelled");
    assert_eq!(r_below(pid), [] as [u32; 0]);
    let one = job(&mut client, json!({"timeoutSeconds": 2}));
    assert_eq!(ended(&mut client, &one)["status"], "timeout");
    // The job ends at its time, and R with it as soon as its worker hears of it.
    eventually("R ends", || r_below(pid).is_empty());
    // Another R is there for the next one.
    set(&mut client, RATE, 7.0);
    let name = run(&mut client, json!({}));
    assert_eq!(highest(&mut client, &name), 7.0);
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn without_the_package_nothing_is_loaded_and_health_says_why() {
    let Some(place) = place(false) else { return };
    let served = Served::start_configured(place);
    let adapter = served.send_get("/mcp/capabilities")["adapter"].clone();
    let (health, environment) = (&adapter["health"], &adapter["health"]["environment"]);
    assert_eq!(
        (&adapter["name"], &health["status"]),
        (&json!("ospsuite"), &json!("stopped"))
    );
    assert_eq!(
        (&environment["available"], &environment["ospsuiteAvailable"]),
        (&json!(false), &json!(false))
    );
    let issue = environment["issues"][0].as_str().unwrap();
    assert!(issue.contains("ospsuite"), "{issue}");
    let answer = served.send("POST", "/load_simulation", &[], &load().to_string());
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (503, &json!("EnvironmentMissing"))
    );
}
