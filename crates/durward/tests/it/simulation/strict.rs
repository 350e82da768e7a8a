//! What callers say in unusual ways: it is read in one way only, and what is not looked at decides nothing.

use std::fs;
use std::io::Read as _;

use mcp::client::Client;
use serde_json::{Value, json};

use super::{call, client, fails, load, place, run};
use crate::support::guarded::end;
use crate::support::serving::{Answer, Served, write_request};

const WEIGHT: &str = "Example|Organism|Weight";

fn post(served: &Served, path: &str, body: &str) -> Answer {
    served.send("POST", path, &[], body)
}

fn cohort(seed: u64, covariate: Value) -> Value {
    json!({"simulationId": "sim", "cohort": {"size": 8, "seed": seed, "covariates": [covariate]}, "confirm": true})
}

/// The figures of a population whose weights are drawn with this seed.
fn figures(client: &mut Client, seed: u64) -> (Value, Value) {
    let weight = json!({"path": WEIGHT, "distribution": "normal", "mean": 70, "sd": 15});
    let name = run(client, cohort(seed, weight));
    let told = call(client, "get_population_results", json!({"resultsId": name}));
    (told["resultsId"].clone(), told["aggregates"].clone())
}

#[test]
fn a_seed_decides_the_individuals_of_a_population() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    // A population's results have a name of the server's.
    let mut named = cohort(1, json!({"path": WEIGHT, "distribution": "uniform(60;80)"}));
    named["runId"] = json!("mine");
    let refused = fails(&mut client, "run_population_simulation", named);
    assert!(
        refused.to_string().contains("does not take 'runId'"),
        "{refused}"
    );
    let (one, first) = figures(&mut client, 1);
    let (other, second) = figures(&mut client, 2);
    assert_ne!(one, other);
    assert_ne!(first, second, "another seed draws other individuals");
    assert_eq!(figures(&mut client, 1).1, first);
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn an_argument_that_a_tool_does_not_take_names_no_simulation() {
    let place = place();
    place.write_policy(
        r#"{"rules":[
            {"id":"read","effect":"allow","conditions":{"tool_name":"get_results","when":"simulation != null || simulation_model != null"}},
            {"id":"rest","effect":"allow","conditions":{"tool_name":["load_simulation","run_simulation","get_job_status"]}}]}"#,
    );
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let name = run(&mut client, json!({}));
    let asked = json!({"resultsId": name, "simulationId": "sim"});
    let reply = client.call_tool("get_results", asked).unwrap();
    let refused = reply.line();
    assert!(refused.contains("no_rule_allows"), "{refused}");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn what_two_readers_may_read_differently_is_refused() {
    let served = Served::start_configured(place());
    assert_eq!(
        post(&served, "/load_simulation", &load().to_string()).status,
        201
    );
    for (path, body) in [
        (
            "/get_parameter_value",
            r#"{"simulationId":"sim","simulationId":"other","parameterPath":"Example|Organism|Weight"}"#,
        ),
        (
            "/get_parameter_value",
            r#"{"simulationId":"sim","simulation\u0049d":"other","parameterPath":"Example|Organism|Weight"}"#,
        ),
        (
            "/run_population_simulation",
            r#"{"simulationId":"sim","cohort":{"size":1,"size":9},"modelPath":"two_compartment.xml","confirm":true}"#,
        ),
        (
            "/set_parameter_value",
            r#"{"simulationId":"sim","parameterPath":"Example|Organism|Weight","value":1e999,"confirm":true}"#,
        ),
        (
            "/set_parameter_value",
            r#"{"simulationId":"sim","parameterPath":"Example|Organism|Weight","value":NaN,"confirm":true}"#,
        ),
        (
            "/mcp/call_tool",
            r#"{"tool":"list_parameters","arguments":{"simulationId":"sim"},"tool":"load_simulation"}"#,
        ),
    ] {
        let answer = post(&served, path, body);
        let told = answer.json();
        assert_eq!(
            (answer.status, &told["error"]["code"]),
            (400, &json!("InvalidInput")),
            "{body}"
        );
        assert_eq!(told["error"]["details"][0]["field"], "body", "{told}");
    }
    let twice = "/get_simulation_snapshot?simulationId=sim&simulation%49d=other";
    let answer = served.send("GET", twice, &[], "");
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.json()["error"]["details"][0]["field"],
        "simulationId"
    );
}

/// All that a connection brings for one request.
fn whole(served: &Served, method: &str, path: &str) -> String {
    let mut stream = served.connect();
    write_request(&mut stream, method, path, &[("Connection", "close")], "");
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn each_path_says_which_methods_it_knows_and_head_is_get_without_a_body() {
    let served = Served::start_configured(place());
    let looks = [
        "/mcp/list_tools",
        "/mcp/resources/models",
        "/get_simulation_snapshot?simulationId=sim",
        "/openapi.json",
    ];
    for path in looks {
        let text = whole(&served, "HEAD", path);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        assert_eq!(body, "", "{path}");
    }
    let head = whole(&served, "HEAD", "/load_simulation").to_lowercase();
    assert!(
        head.starts_with("http/1.1 405 ") && head.contains("\r\nallow: post\r\n"),
        "{head}"
    );
    for (method, path, allowed) in [
        ("PUT", "/load_simulation", "POST"),
        ("DELETE", "/review_signoff", "GET, HEAD, POST"),
        ("POST", "/jobs/x/events", "GET, HEAD"),
        ("PATCH", "/mcp/resources/models", "GET, HEAD"),
        ("OPTIONS", "/mcp/call_tool", "POST"),
    ] {
        let answer = served.send(method, path, &[], "");
        let told = answer.header("allow");
        assert_eq!(
            (answer.status, told),
            (405, Some(allowed)),
            "{method} {path}"
        );
    }
}

#[test]
fn one_request_in_two_spellings_is_one_job() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let job = |client: &mut Client, more: Value| {
        let mut asked = json!({"simulationId": "sim", "idempotencyKey": "k", "confirm": true, "timeoutSeconds": 20});
        let members = asked.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let reply = client.call_tool("run_simulation", asked).unwrap();
        reply.result().unwrap()["structuredContent"]["jobId"].clone()
    };
    let first = job(&mut client, json!({}));
    for same in [
        json!({"timeoutSeconds": 20.0}),
        json!({"runId": null, "maxRetries": null}),
    ] {
        assert_eq!(job(&mut client, same.clone()), first, "{same}");
    }
    for other in [
        json!({"timeoutSeconds": 20.5}),
        json!({"runId": "mine"}),
        json!({"comment": "unknown"}),
    ] {
        assert_eq!(job(&mut client, other.clone()), Value::Null, "{other}");
    }
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn individuals_that_cannot_be_computed_are_told_and_a_population_of_none_fails() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    // Nobody has a negative weight: the solver finds a negative amount.
    let some = json!({"path": WEIGHT, "distribution": "discrete", "values": [70, -5]});
    let name = run(&mut client, cohort(1, some));
    let told = call(
        &mut client,
        "get_population_results",
        json!({"resultsId": name}),
    );
    let failures = &told["metadata"]["failures"];
    let chunk = json!({"resultsId": name, "chunkId": told["chunks"][0]["chunkId"], "outputs": ["**|Concentration"]});
    let left = call(&mut client, "get_population_chunk", chunk)["series"]
        .as_array()
        .unwrap()
        .len() as u64;
    assert_eq!(failures["count"].as_u64().unwrap() + left, 8, "{failures}");
    let why = failures["individuals"][0]["error"].as_str().unwrap();
    assert!(
        left > 0 && left < 8 && why.contains("negative"),
        "{failures}"
    );

    let none = json!({"path": WEIGHT, "distribution": "uniform", "min": -6, "max": -5});
    let job = call(&mut client, "run_population_simulation", cohort(1, none));
    let waits = json!({"jobId": job["jobId"], "waitSeconds": 120});
    let done = call(&mut client, "get_job_status", waits);
    let said = done["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(
        (&done["status"], &done["resultId"]),
        (&json!("failed"), &Value::Null)
    );
    assert!(
        said.starts_with("none of 8 individuals could be computed; individual 0: "),
        "{said}"
    );
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn a_cohort_that_the_model_cannot_take_starts_no_job() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let weight =
        json!({"path": WEIGHT, "unit": "h", "distribution": "normal", "mean": 70, "sd": 1});
    let failure = fails(&mut client, "run_population_simulation", cohort(1, weight));
    assert_eq!(
        failure["details"][0]["field"], "cohort.covariates[0].unit",
        "{failure}"
    );
    let weight = json!({"path": WEIGHT, "distribution": "normal", "mean": 70, "sd": 1});
    let mut twice = cohort(1, weight.clone());
    twice["cohort"]["covariates"] = json!([weight, weight]);
    let failure = fails(&mut client, "run_population_simulation", twice);
    assert_eq!(
        failure["details"][0]["field"], "cohort.covariates[1]",
        "{failure}"
    );
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn a_snapshot_of_another_model_is_not_restored() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let named = json!({"simulationId": "sim"});
    call(&mut client, "snapshot_simulation", named.clone());
    call(&mut client, "restore_simulation", named.clone());
    let file = place.path("models/two_compartment.xml");
    let model = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{model}\n")).unwrap();
    let failure = fails(&mut client, "restore_simulation", named);
    assert_eq!(failure["code"], "Conflict", "{failure}");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn annotations_say_how_far_an_answer_can_be_trusted() {
    let served = Served::start_configured(place());
    let ask = |tool: &str, arguments: Value| {
        let body = json!({"tool": tool, "arguments": arguments}).to_string();
        post(&served, "/mcp/call_tool", &body).json()["annotations"].clone()
    };
    for annotations in [
        ask("discover_models", json!({})),
        ask(
            "validate_model_manifest",
            json!({"filePath": "two_compartment.xml"}),
        ),
    ] {
        let mut names: Vec<&String> = annotations.as_object().unwrap().keys().collect();
        names.sort();
        let expect = [
            "critical",
            "requiresConfirmation",
            "requiresContextualRendering",
            "roles",
            "trustBearing",
            "trustSurfaceContractVersion",
            "trustSurfaceCount",
        ];
        assert_eq!(names, expect);
        assert_eq!(annotations["trustBearing"], false);
    }
    let plain = ask("list_parameters", json!({"simulationId": "none"}));
    assert_eq!(plain, Value::Null);
}

#[test]
fn each_scenario_of_a_sensitivity_analysis_is_its_own_change_of_what_was_set() {
    const CLEARANCE: &str = "Example|Organism|Clearance";
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let set =
        json!({"simulationId": "sim", "parameterPath": CLEARANCE, "value": 0.2, "confirm": true});
    call(&mut client, "set_parameter_value", set);
    let asked = |one: Value| json!({"modelPath": "two_compartment.xml", "simulationId": "sim", "parameters": [one], "confirm": true});
    // A pattern that names one parameter, which was set by its whole path; ids tell thousandths only.
    let changes = asked(json!({"path": "*|Clearance", "deltas": [0.5, 0.0001, 0.0004]}));
    let told = call(&mut client, "run_sensitivity_analysis", changes);
    let scenarios = told["report"]["scenarios"].as_array().unwrap();
    let ids: Vec<&str> = scenarios
        .iter()
        .map(|one| one["scenario_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "baseline",
            "__Clearance_500",
            "__Clearance_0",
            "__Clearance_0-2"
        ]
    );
    let areas: Vec<f64> = scenarios
        .iter()
        .map(|one| one["metrics"][0]["auc"].as_f64().unwrap())
        .collect();
    assert!(
        areas[0] > areas[2] && areas[2] > areas[3] && areas[3] > areas[1],
        "more clearance, less area: {areas:?}"
    );
    for (one, field) in [
        (
            json!({"path": CLEARANCE, "deltas": [0.1], "unit": "h"}),
            "parameters[0].unit",
        ),
        (
            json!({"path": CLEARANCE, "deltas": [0.1], "bounds": [5, 1]}),
            "parameters[0].bounds",
        ),
        (
            json!({"path": CLEARANCE, "deltas": [1e308]}),
            "parameters[0].deltas",
        ),
    ] {
        let failure = fails(&mut client, "run_sensitivity_analysis", asked(one));
        assert_eq!(failure["details"][0]["field"], field, "{failure}");
    }
    assert_eq!(end(client).code, Some(0));
}
