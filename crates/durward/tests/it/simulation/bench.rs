//! The measurement of simulations runs, says what it has measured, and is held against another one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::place;
use crate::support::components::{self, repository};
use crate::support::guarded::{Place, binary};

fn script(place: &Place, args: &[&str]) -> Option<Output> {
    python(place, "bench_simulation.py", args)
}

fn python(place: &Place, script: &str, args: &[&str]) -> Option<Output> {
    let python = components::fastmcp_python()?;
    let mut command = Command::new(python);
    command
        .arg(repository().join("scripts").join(script))
        .args(args)
        .current_dir(&place.dir);
    Some(command.output().unwrap())
}

/// Measures a scenario at a reduced size; gives the artefact's file.
fn measured(place: &Place, scenario: &str) -> Option<PathBuf> {
    measured_with(place, scenario, &[])
}

fn measured_with(place: &Place, scenario: &str, more: &[&str]) -> Option<PathBuf> {
    let size = [
        "--iterations",
        "2",
        "--load-mb",
        "0.05",
        "--subjects",
        "4",
        "--replicates",
        "2",
    ];
    let run = ["run", "--durward", binary(), "--scenario", scenario];
    let output = script(place, &[&run[..], &size, more].concat())?;
    assert!(output.status.success(), "{output:?}");
    let file = String::from_utf8(output.stdout).unwrap();
    Some(place.path(file.trim()))
}

fn artefact(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn defects_04_and_26_a_measurement_says_what_was_solved_and_a_slower_one_fails() {
    let place = place();
    let Some(file) = measured(&place, "smoke") else {
        return;
    };
    let told = artefact(&file);
    assert_eq!(told["engine"]["name"], "native", "{told}");
    assert!(told["model"]["states"].as_u64().unwrap() >= 100);
    assert!(
        told["solver"]["stepsOfOneRun"].as_u64().unwrap() > 100,
        "{told}"
    );
    // Eight individuals are more work than one run.
    assert!(
        told["solver"]["stepsOfPopulation"].as_u64() > told["solver"]["stepsOfOneRun"].as_u64()
    );
    for step in [
        "load_simulation_0_05mb",
        "get_parameter_value",
        "set_parameter_value",
        "submission_to_running",
        "run_to_results",
        "cancelled_to_rest",
        "timed_out_to_rest",
    ] {
        assert_eq!(told["steps"][step]["count"], 2, "{step}: {told}");
    }
    assert_eq!(
        told["phases"]["cold"],
        json!(["cold_load_simulation_0_05mb"])
    );
    // A page of what there is; what says nothing of what it solved is left out, and named.
    let folder = file.parent().unwrap();
    fs::write(folder.join("x.json"), r#"{"scenario": "smoke"}"#).unwrap();
    let report = ["--folder", folder.to_str().unwrap(), "--out", "page.md"];
    let reported = python(&place, "bench_report.py", &report).unwrap();
    assert!(reported.status.success(), "{reported:?}");
    let page = fs::read_to_string(place.path("page.md")).unwrap();
    for part in ["| run_to_results |", "**steady**", "x.json: engine.name"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let file = file.to_str().unwrap();
    let check = |changed: &dyn Fn(&mut Value)| {
        let mut other = told.clone();
        changed(&mut other);
        fs::write(place.path("other.json"), other.to_string()).unwrap();
        script(&place, &["check", "other.json", "--baseline", file]).unwrap()
    };
    let same = check(&|_| {});
    assert_eq!(same.status.code(), Some(0), "{same:?}");
    let times = |factor: f64| {
        move |told: &mut Value| {
            let p95 = &mut told["steps"]["run_to_results"]["p95"];
            *p95 = json!(p95.as_f64().unwrap() * factor);
        }
    };
    assert_eq!(check(&times(1.05)).status.code(), Some(0));
    let slower = check(&times(1.2));
    assert_eq!(slower.status.code(), Some(1), "{slower:?}");
    assert!(String::from_utf8_lossy(&slower.stdout).contains("run_to_results"));
    let missing = check(&|told| {
        told["steps"]
            .as_object_mut()
            .unwrap()
            .remove("set_parameter_value");
    });
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    // An artefact that does not say what was solved is no evidence, and neither is one of another model.
    for (at, part) in [
        ("engine", "name"),
        ("model", "sha256"),
        ("model", "states"),
        ("solver", "stepsOfOneRun"),
        ("journal", "jobs"),
    ] {
        let refused = check(&|told| {
            told[at].as_object_mut().unwrap().remove(part);
        });
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(&format!("{at}.{part}")), "{said}");
    }
    // What clients were told of waits for a worker is what the journal has.
    assert_eq!(told["journal"]["jobs"], 3, "{told}");
    let apart = check(&|told| told["journal"]["queueWaitOffMs"] = json!(1.5));
    assert_eq!(apart.status.code(), Some(2), "{apart:?}");
    compared_in_pairs(&place, &told);
    let other = check(&|told| told["model"]["sha256"] = json!("0".repeat(64)));
    assert!(
        String::from_utf8_lossy(&other.stderr).contains("not of the same model"),
        "{other:?}"
    );
}

/// Nine measurements in turn with nine others, of which each is as slow as the machine is busy at its time.
fn compared_in_pairs(place: &Place, told: &Value) {
    // How busy the machine is in each round, and how much its two halves differ in that.
    let load = [1.0, 2.5, 1.2, 3.0, 0.9, 1.7, 1.1, 4.0, 1.4];
    let halves = [1.3, 0.8, 1.05, 0.75, 1.2, 0.9, 1.25, 0.7, 1.1];
    let measured = |arm: &str, number: usize, factor: f64| {
        let mut one = told.clone();
        for step in one["steps"].as_object_mut().unwrap().values_mut() {
            step["p95"] = json!(step["p95"].as_f64().unwrap() * factor);
        }
        for time in ["seconds", "workerCpuSeconds"] {
            let seconds = one["population"][time].as_f64().unwrap();
            one["population"][time] = json!(seconds * factor);
        }
        let name = format!("{arm}-{number}.json");
        fs::write(place.path(&name), one.to_string()).unwrap();
        name
    };
    let pairs = |rounds: usize, slower: f64| {
        let mut words = vec!["check".to_owned()];
        let halves = load.iter().zip(halves).take(rounds).enumerate();
        words.extend(halves.map(|(n, (load, half))| measured("now", n, load * half * slower)));
        words.push("--baseline".to_owned());
        let loads = load.iter().take(rounds).enumerate();
        words.extend(loads.map(|(number, load)| measured("was", number, *load)));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        script(place, &words).unwrap()
    };
    let same = pairs(9, 1.0);
    assert_eq!(same.status.code(), Some(0), "{same:?}");
    let slower = pairs(9, 1.6);
    let said = String::from_utf8_lossy(&slower.stdout).into_owned();
    assert_eq!(slower.status.code(), Some(1), "{said}");
    assert!(said.contains("short  population"), "{said}");
    let few = pairs(3, 1.6);
    let said = String::from_utf8_lossy(&few.stderr).into_owned();
    assert!(
        few.status.code() == Some(2) && said.contains("3 pairs cannot tell"),
        "{said}"
    );
}

#[test]
fn defect_05_the_larger_scenarios_exist_and_run_at_a_reduced_size() {
    let place = place();
    let Some(baseline) = measured(&place, "baseline") else {
        return;
    };
    assert_eq!(artefact(&baseline)["scenario"], "baseline");
    let stress = artefact(&measured(&place, "stress").unwrap());
    for clients in [4, 8] {
        let step = format!("get_parameter_value_{clients}_clients");
        assert_eq!(stress["steps"][&step]["count"], 2 * clients, "{stress}");
    }
    assert_eq!(stress["population"]["individuals"], 8);
    assert!(stress["chunks"]["bytes"].as_u64().unwrap() > 0);
    // The largest one has a page of its own, with a row for each of the plan's bounds.
    let extreme = measured(&place, "extreme").unwrap();
    let folder = extreme.parent().unwrap().to_str().unwrap();
    let report = ["--folder", folder, "--summary", "extreme"];
    let reported = python(&place, "bench_report.py", &report).unwrap();
    assert!(reported.status.success(), "{reported:?}");
    let page = fs::read_to_string(place.path("bench/reports/extreme.md")).unwrap();
    for part in [
        "run_to_results_8_clients |",
        "| run_to_results <= 30000 ms |",
        "| load_simulation_10mb <= 2500 ms | was not measured | short |",
        "| chunks >= 50 MB/s |",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let none = ["--folder", folder, "--summary", "smoke"];
    let none = python(&place, "bench_report.py", &none).unwrap();
    assert_eq!(none.status.code(), Some(1), "{none:?}");
}

#[test]
fn the_same_is_measured_over_both_ways_of_mcp() {
    let place = place();
    for way in ["mcp-http", "mcp-stdio"] {
        let more = ["--transport", way, "--concurrency", "1", "2"];
        let Some(file) = measured_with(&place, "smoke", &more) else {
            return;
        };
        let told = artefact(&file);
        assert_eq!(told["config"]["transport"], way);
        for (step, count) in [
            ("load_simulation_0_05mb", 2),
            ("run_to_results", 2),
            ("run_to_results_2_clients", 4),
            ("cancelled_to_rest", 2),
        ] {
            assert_eq!(told["steps"][step]["count"], count, "{way} {step}: {told}");
        }
        assert_eq!(told["chunks"]["form"], "json");
        assert!(told["chunks"]["bytes"].as_u64().unwrap() > 1_000, "{told}");
        // A row for each bound, met or not; the plan's are those of seconds.
        let held = script(&place, &["check", file.to_str().unwrap(), "--plan"]).unwrap();
        let said = String::from_utf8_lossy(&held.stdout).into_owned();
        assert!(said.contains("pass   run_to_results"), "{said}");
        assert!(
            said.contains("short  load_simulation_10mb") && said.contains("was not measured"),
            "{said}"
        );
        assert_eq!(held.status.code(), Some(1));
    }
}

#[test]
fn flags_of_the_bridges_benchmark_are_taken_or_refused_with_their_reason() {
    let place = place();
    let model = repository().join("crates/pbpk/examples/two_compartment.xml");
    let own = [
        "--simulation-file",
        model.to_str().unwrap(),
        "--parameter-path",
        "Example|Organism|Weight",
        "--transport",
        "http",
    ];
    let Some(file) = measured_with(&place, "smoke", &own) else {
        return;
    };
    assert_eq!(artefact(&file)["model"]["states"], 2);
    // It has too few states for a comparison to say anything.
    let held = script(&place, &["check", file.to_str().unwrap(), "--plan"]).unwrap();
    let said = String::from_utf8_lossy(&held.stderr).into_owned();
    assert!(
        held.status.code() == Some(2) && said.contains("model.states is 2"),
        "{said}"
    );
    for (flag, reason) in [
        ("--base-url=http://127.0.0.1", "one of the benchmark's own"),
        ("--dev-secret=hunter2", "no sign-in"),
        ("--celery-broker-url=memory://", "not in Celery"),
        ("--job-backend=celery", "invalid choice"),
        ("--transport=asgi", "invalid choice"),
    ] {
        let refused = script(&place, &["run", "--durward", binary(), flag]).unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{flag}: {said}");
        assert!(
            said.contains(reason) && !said.contains("hunter2"),
            "{flag}: {said}"
        );
    }
}

#[test]
fn the_models_to_measure_on_are_no_placeholders_and_give_the_exact_curves() {
    let place = place();
    let only = ["--folder", "models", "--only", "chain-100kb.xml"];
    let verify = [&["verify", "--durward", binary()], &only[..]].concat();
    let Some(verified) = python(&place, "bench_models.py", &verify) else {
        return;
    };
    assert!(verified.status.success(), "{verified:?}");
    // Another number in the manifest is another expectation.
    let manifest = fs::read_to_string(repository().join("workloads/models.json")).unwrap();
    let mut told: Value = serde_json::from_str(&manifest).unwrap();
    let auc = &mut told["models"][0]["expected"]["Bench|Chain|A10"]["auc"];
    *auc = json!(auc.as_f64().unwrap() * 1.01);
    fs::write(place.path("other.json"), told.to_string()).unwrap();
    let other = [&verify[..], &["--manifest", "other.json"]].concat();
    let wrong = python(&place, "bench_models.py", &other).unwrap();
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        wrong.status.code() == Some(1) && said.contains("auc of Bench|Chain|A10"),
        "{said}"
    );
    // So is a file that is not the model.
    let make = [&["make"], &only[..]].concat();
    for (content, said) in [
        ("x".repeat(200_000), "SHA-256"),
        ("27 bytes".to_owned(), "placeholder"),
    ] {
        fs::write(place.path("models/chain-100kb.xml"), content).unwrap();
        let wrong = python(&place, "bench_models.py", &make).unwrap();
        let told = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert!(
            wrong.status.code() == Some(1) && told.contains(said),
            "{told}"
        );
    }
}
