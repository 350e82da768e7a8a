//! What was wrong with the bridge, one test each; the numbers are those of its list of defects. `defects_rest` says where the
//! test of each one stands.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{call, client, fails, load, place, run};
use crate::support::components::repository;

const CURVE: &str = "Example|Organism|Central|Drug|Concentration";
const WEIGHT: &str = "Example|Organism|Weight";
const DOSE: &str = "Example|Applications|Infusion|DrugMass";

fn set(path: &str, value: f64) -> Value {
    json!({"simulationId": "sim", "parameterPath": path, "value": value, "confirm": true})
}

fn value(client: &mut mcp::client::Client, path: &str) -> f64 {
    let asked = json!({"simulationId": "sim", "parameterPath": path});
    call(client, "get_parameter_value", asked)["parameter"]["value"]
        .as_f64()
        .unwrap()
}

fn curve(client: &mut mcp::client::Client, results: &str) -> Vec<f64> {
    let asked = json!({"resultsId": results, "outputs": [CURVE]});
    let told = call(client, "get_results", asked);
    let points = told["series"][0]["values"].as_array().unwrap().clone();
    points
        .iter()
        .map(|point| point["value"].as_f64().unwrap())
        .collect()
}

#[test]
fn defect_01_models_and_doses_give_different_curves() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let first = run(&mut client, json!({}));
    let first = curve(&mut client, &first);
    call(&mut client, "set_parameter_value", set(DOSE, 350.0));
    let second = run(&mut client, json!({}));
    let second = curve(&mut client, &second);
    assert!(first.len() > 100 && first != second && first.iter().any(|value| *value > 1.0));
    let highest = |curve: &[f64]| curve.iter().copied().fold(0.0, f64::max);
    assert!((highest(&first) / highest(&second) - 2.0).abs() < 1e-3);
    // Another model at the same dose.
    let file = place.path("models/two_compartment.xml");
    let model = fs::read_to_string(&file).unwrap();
    let other = model.replacen("value=\"0.1\"", "value=\"0.3\"", 1);
    assert_ne!(model, other);
    fs::write(place.path("models/other.xml"), other).unwrap();
    let loaded = json!({"filePath": "other.xml", "simulationId": "other", "confirm": true});
    call(&mut client, "load_simulation", loaded);
    let third = run(&mut client, json!({"simulationId": "other"}));
    let third = curve(&mut client, &third);
    let last = |curve: &[f64]| curve.last().copied().unwrap();
    assert!(last(&third) < last(&first) / 2.0, "it is cleared faster");
}

#[test]
fn defect_03_an_empty_model_is_no_success() {
    let place = place();
    let mut client = client(&place);
    let empty = json!({"filePath": "empty.xml", "confirm": true});
    let failure = fails(&mut client, "load_simulation", empty);
    assert_eq!(failure["code"], "UnsupportedModel");
    assert!(
        failure["message"]
            .as_str()
            .unwrap()
            .contains("nothing to simulate")
    );
}

fn cohort(size: u64, seed: u64, sampling: &str, sd: f64) -> Value {
    json!({
        "cohort": {"size": size, "seed": seed, "sampling": sampling, "covariates": [
            {"path": WEIGHT, "unit": "kg", "distribution": "normal", "mean": 70, "sd": sd}
        ]},
        "outputs": {"timeSeries": [{"path": CURVE}], "aggregates": ["meanCmax", "sdCmax"]}
    })
}

#[test]
fn defects_06_and_07_a_population_is_what_was_asked_for_and_its_figures_are_its_curves() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let mut figures = Vec::new();
    for asked in [
        cohort(250, 1, "random", 10.0),
        cohort(250, 1, "random", 10.0),
        cohort(250, 2, "random", 10.0),
        cohort(250, 1, "latin-hypercube", 10.0),
        cohort(250, 1, "random", 5.0),
    ] {
        let name = run(&mut client, asked);
        let told = call(
            &mut client,
            "get_population_results",
            json!({"resultsId": name}),
        );
        let mut highest: Vec<f64> = Vec::new();
        for chunk in told["chunks"].as_array().unwrap() {
            let asked = json!({"resultsId": name, "chunkId": chunk["chunkId"]});
            let curves = call(&mut client, "get_population_chunk", asked);
            for one in curves["series"].as_array().unwrap() {
                let values = one["concentration"].as_array().unwrap();
                highest.push(
                    values
                        .iter()
                        .map(|v| v.as_f64().unwrap())
                        .fold(0.0, f64::max),
                );
            }
        }
        assert_eq!(highest.len(), 250);
        let mean = highest.iter().sum::<f64>() / 250.0;
        let stated = told["aggregates"]["meanCmax"].as_f64().unwrap();
        assert!((mean - stated).abs() < 1e-9 * mean, "{mean} {stated}");
        figures.push(told["aggregates"].clone());
    }
    assert_eq!(
        figures[0], figures[1],
        "the same seed gives the same numbers"
    );
    for other in &figures[2..] {
        assert_ne!(&figures[0], other);
    }
}

#[test]
fn defect_08_units_are_converted_and_wrong_ones_refused() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let path = "Example|Applications|Infusion|Infusion time";
    for (value, unit) in [(1.0, "h"), (60.0, "min"), (3600.0, "s")] {
        let asked = json!({"simulationId": "sim", "parameterPath": path, "value": value, "unit": unit, "confirm": true});
        let told = call(&mut client, "set_parameter_value", asked);
        assert!(
            (told["parameter"]["value"].as_f64().unwrap() - 60.0).abs() < 1e-9,
            "{told}"
        );
        assert_eq!(told["parameter"]["unit"], "min");
    }
    let asked = json!({"simulationId": "sim", "parameterPath": path, "value": 1, "unit": "kg", "confirm": true});
    assert_eq!(
        fails(&mut client, "set_parameter_value", asked)["details"][0]["field"],
        "unit"
    );
}

#[test]
fn defect_09_what_depends_on_a_parameter_is_computed_anew() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let volume = "Example|Organism|Central|Volume";
    let before = value(&mut client, volume);
    call(&mut client, "set_parameter_value", set(WEIGHT, 140.0));
    assert!((value(&mut client, volume) / before - 2.0).abs() < 1e-12);
}

#[test]
fn defect_10_the_whole_catalogue_is_computed_when_it_is_asked_for() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let name = run(&mut client, json!({}));
    let asked = json!({"resultsId": name, "outputPath": CURVE, "catalogue": true});
    let told = call(&mut client, "calculate_pk_parameters", asked);
    let catalogue = &told["metrics"][0]["catalogue"];
    assert_eq!(catalogue["C_max"], told["metrics"][0]["cmax"]);
    assert!(catalogue["Thalf"].as_f64().unwrap() > 0.0);
    // The dose is the model's own: 700 µmol for 70 kg, cleared at 0.1 l/min.
    let clearance = catalogue["CL"].as_f64().unwrap() * 70.0;
    assert!((clearance / 0.1 - 1.0).abs() < 0.01, "{clearance}");
    // One dose: those that need several are not defined, and the other way round.
    let names = |catalogue: &Value| -> BTreeSet<String> {
        catalogue.as_object().unwrap().keys().cloned().collect()
    };
    let single = names(catalogue);
    // 14 of the suite, and those with the observed last value.
    assert_eq!(single.len(), 16, "{catalogue}");
    let file = place.path("models/two_compartment.xml");
    let model = fs::read_to_string(&file).unwrap();
    let again = r#"<P id="910" entityId="start2" name="Start time" path="Example|Applications|Again|Start time" unit="min" value="720" persistable="0"/>
        <P id="911" entityId="dose2" name="DrugMass" path="Example|Applications|Again|DrugMass" unit="µmol" value="700" persistable="0"/></ParameterList>"#;
    fs::write(
        place.path("models/twice.xml"),
        model.replacen("</ParameterList>", again, 1),
    )
    .unwrap();
    let twice = json!({"filePath": "twice.xml", "simulationId": "twice", "confirm": true});
    call(&mut client, "load_simulation", twice);
    let name = run(&mut client, json!({"simulationId": "twice"}));
    let asked = json!({"resultsId": name, "outputPath": CURVE, "catalogue": true});
    let told = call(&mut client, "calculate_pk_parameters", asked);
    let several = names(&told["metrics"][0]["catalogue"]);
    assert!(several.contains("C_max_tD1_tD2"), "{several:?}");
    assert_eq!(single.union(&several).count(), 31 + 11);
}

#[test]
fn defect_11_a_cancelled_run_has_ended_when_its_caller_is_told() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let asked = json!({"simulationId": "sim", "cohort": {"size": 500_000}, "confirm": true});
    let job = call(&mut client, "run_population_simulation", asked)["jobId"].clone();
    let status = |client: &mut mcp::client::Client| {
        call(client, "get_job_status", json!({"jobId": job}))["status"].clone()
    };
    let until = Instant::now() + Duration::from_secs(30);
    while status(&mut client) == "queued" {
        assert!(Instant::now() < until);
    }
    assert_eq!(
        call(&mut client, "cancel_job", json!({"jobId": job}))["status"],
        "cancelled"
    );
    assert_eq!(status(&mut client), "cancelled");
    // Its place is free at once.
    run(&mut client, json!({}));
}

#[test]
fn defect_13_a_sensitivity_analysis_sees_what_was_set_and_leaves_nothing_behind() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    call(&mut client, "set_parameter_value", set(DOSE, 1400.0));
    let own = run(&mut client, json!({}));
    let highest = curve(&mut client, &own).into_iter().fold(0.0, f64::max);
    let asked = |deltas: Value| {
        json!({"modelPath": "two_compartment.xml", "simulationId": "sim", "confirm": true,
            "parameters": [{"path": WEIGHT, "deltas": deltas}]})
    };
    let mut reports = Vec::new();
    for _ in 0..2 {
        let told = call(
            &mut client,
            "run_sensitivity_analysis",
            asked(json!([-0.2, 0.2])),
        );
        let of = |list: &Value| {
            let metrics = list.as_array().unwrap();
            metrics
                .iter()
                .find(|one| one["parameter"] == CURVE)
                .unwrap()["cmax"]
                .as_f64()
                .unwrap()
        };
        let report = &told["report"];
        assert!((of(&report["baseline_metrics"]) - highest).abs() < 1e-9 * highest);
        reports.push(
            report["scenarios"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| of(&one["metrics"]))
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(reports[0], reports[1]);
    assert!(
        reports[0][1] > reports[0][0] && reports[0][2] < reports[0][0],
        "{reports:?}"
    );
    // A value that the model does not take is refused before anything runs.
    let wrong = fails(
        &mut client,
        "run_sensitivity_analysis",
        json!({"modelPath": "two_compartment.xml",
        "simulationId": "sim", "confirm": true, "parameters": [{"path": "Example|Nowhere", "deltas": [0.1]}]}),
    );
    assert_eq!(wrong["code"], "NotFound");
    assert_eq!(value(&mut client, WEIGHT), 70.0);
}

#[test]
fn defect_17_results_are_given_a_page_at_a_time() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let name = run(&mut client, json!({}));
    let told = call(
        &mut client,
        "get_results",
        json!({"resultsId": name, "page": 2, "limit": 2}),
    );
    assert_eq!(told["total"], 3);
    assert_eq!(told["series"].as_array().unwrap().len(), 1);
}

#[test]
fn a_mutated_model_fails_the_reviewers_tools_with_path_and_reason() {
    let place = place();
    let model = repository().join("crates/pbpk/examples/two_compartment.xml");
    let model = fs::read_to_string(model).unwrap();
    let clearance = "Example|Organism|Clearance";
    let mutated = model.replace(
        "unit=\"l/min\" value=\"0.1\"",
        "unit=\"l/min\" value=\"NaN\"",
    );
    assert_ne!(model, mutated);
    fs::write(place.path("models/mutated.xml"), mutated).unwrap();
    let mut client = client(&place);
    let file = json!({"filePath": "mutated.xml"});
    let told = call(&mut client, "validate_model_manifest", file);
    let said = told["manifest"].to_string();
    assert!(
        told["manifest"]["status"] == "invalid"
            && said.contains(clearance)
            && said.contains("not a number"),
        "{said}"
    );
    call(
        &mut client,
        "load_simulation",
        json!({"filePath": "mutated.xml", "simulationId": "sim", "confirm": true}),
    );
    let asked = json!({"simulationId": "sim"});
    for (tool, part) in [
        ("validate_simulation_request", "validation"),
        ("run_verification_checks", "verification"),
        ("export_oecd_report", "report"),
        ("run_parameter_consistency_check", "violations"),
    ] {
        let told = call(&mut client, tool, asked.clone());
        let said = told[part].to_string();
        assert!(
            said.contains(clearance) && said.contains("not a number"),
            "{tool}: {said}"
        );
        let failed = match part {
            "violations" => told["ok"] == false,
            _ => said.contains("failed"),
        };
        assert!(failed, "{tool}: {told}");
    }
    // So does a dossier that has the model in it; a file that is not what its checksum says is another fault.
    let bundle = |path: &str, checksum: Value| {
        json!({"sourcePlatform": "Elsewhere",
        "rawArtifacts": [{"type": "model", "path": path, "checksum": checksum}]})
    };
    let tool = "ingest_external_pbpk_bundle";
    let failure = fails(&mut client, tool, bundle("mutated.xml", Value::Null));
    let detail = &failure["details"][0];
    assert_eq!(detail["field"], "rawArtifacts[0].path", "{failure}");
    let said = detail["issue"].as_str().unwrap();
    assert!(
        said.contains("mutated.xml") && said.contains(clearance) && said.contains("not a number"),
        "{said}"
    );
    let other = bundle("two_compartment.xml", json!("0".repeat(64)));
    let said = fails(&mut client, tool, other)["message"].to_string();
    assert!(said.contains("its SHA-256 is"), "{said}");
}

#[test]
fn what_was_set_is_reset_and_what_was_loaded_is_forgotten() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    call(&mut client, "set_parameter_value", set(WEIGHT, 90.0));
    let asked = json!({"simulationId": "sim", "parameterPath": WEIGHT, "confirm": true});
    let told = call(&mut client, "reset_parameter_value", asked);
    assert_eq!(
        (
            told["parameter"]["value"].as_f64(),
            &told["parameter"]["source"]
        ),
        (Some(70.0), &json!("file"))
    );
    call(
        &mut client,
        "unload_simulation",
        json!({"simulationId": "sim", "confirm": true}),
    );
    assert_eq!(
        fails(
            &mut client,
            "list_parameters",
            json!({"simulationId": "sim"})
        )["code"],
        "NotFound"
    );
    call(&mut client, "load_simulation", load());
}

#[test]
fn defect_21_relative_is_added_and_absolute_is_a_value() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let with = |mode: &str, value: f64| json!({"simulationId": "sim", "parameterPath": WEIGHT, "value": value, "updateMode": mode, "confirm": true});
    call(&mut client, "set_parameter_value", with("Relative", 1.5));
    assert_eq!(value(&mut client, WEIGHT), 71.5);
    call(&mut client, "set_parameter_value", with("ABSOLUTE", 1.5));
    assert_eq!(value(&mut client, WEIGHT), 1.5);
    assert_eq!(
        fails(&mut client, "set_parameter_value", with("other", 1.0))["code"],
        "InvalidInput"
    );
}

#[test]
fn defect_22_the_outputs_that_are_asked_for_are_those_that_are_returned() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let name = run(&mut client, json!({"outputs": [CURVE]}));
    let told = call(&mut client, "get_results", json!({"resultsId": name}));
    let paths: Vec<&str> = told["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["parameter"].as_str().unwrap())
        .collect();
    assert_eq!(paths, [CURVE]);
    let asked = json!({"simulationId": "sim", "outputs": ["Example|Nowhere"], "confirm": true});
    assert_eq!(
        fails(&mut client, "run_simulation", asked)["code"],
        "NotFound"
    );
}

#[test]
fn defect_23_wildcards_match_and_a_list_that_is_cut_says_so() {
    let place = place();
    // 600 parameters.
    let model = repository().join("crates/pbpk/examples/two_compartment.xml");
    let model = fs::read_to_string(model).unwrap();
    let more: String = (0..600)
        .map(|n| format!("<P id=\"{}\" entityId=\"more{n}\" name=\"P{n:03}\" path=\"Example|More|P{n:03}\" unit=\"\" value=\"1\" persistable=\"0\"/>", 1000 + n))
        .collect();
    fs::write(
        place.path("models/large.xml"),
        model.replacen("<ParameterList>", &format!("<ParameterList>{more}"), 1),
    )
    .unwrap();
    let mut client = client(&place);
    call(
        &mut client,
        "load_simulation",
        json!({"filePath": "large.xml", "simulationId": "sim", "confirm": true}),
    );
    let list = |client: &mut mcp::client::Client, more: Value| {
        let mut asked = json!({"simulationId": "sim"});
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        call(client, "list_parameters", asked)
    };
    let all = list(&mut client, json!({}));
    assert_eq!(all["parameters"].as_array().unwrap().len(), 500);
    let total = all["total"].as_u64().unwrap();
    assert!(total >= 610, "{total}");
    let rest = list(&mut client, json!({"page": 2}));
    assert_eq!(
        rest["parameters"].as_array().unwrap().len() as u64,
        total - 500
    );
    for (pattern, count) in [
        ("*Weight*", 1),
        ("Example|More|P00?", 10),
        ("**|Weight", 1),
        ("nothing", 0),
    ] {
        let found = list(&mut client, json!({"searchPattern": pattern}));
        assert_eq!(
            found["parameters"].as_array().unwrap().len(),
            count,
            "{pattern}"
        );
        assert_eq!(found.get("total"), None);
    }
}

#[test]
fn defect_24_bad_input_is_the_callers_fault() {
    let place = place();
    let mut client = client(&place);
    for (tool, arguments) in [
        ("load_simulation", json!({"filePath": " ", "confirm": true})),
        ("load_simulation", json!({"filePath": "", "confirm": true})),
        ("validate_model_manifest", json!({"filePath": ""})),
        (
            "load_simulation",
            json!({"filePath": "two_compartment.xml", "simulationId": "x".repeat(65), "confirm": true}),
        ),
    ] {
        let failure = fails(&mut client, tool, arguments.clone());
        let code = failure["code"].as_str().unwrap();
        assert!(
            matches!(code, "InvalidInput" | "unfit_arguments"),
            "{arguments}: {failure}"
        );
    }
}
