//! What rules know of a call, and what no rule changes.

use std::fs;

use mcp::client::Client;
use serde_json::{Value, json};

use super::{client, key, load, place};
use crate::support::guarded::{LATEST, end};
use crate::support::refusals::told;
use crate::support::serving::Served;

fn reason(client: &mut Client, tool: &str, arguments: Value) -> Option<String> {
    let reply = client.call_tool(tool, arguments).unwrap();
    let error: Value = serde_json::from_str(reply.line()).unwrap();
    told(&error)["reason"].as_str().map(str::to_owned)
}

#[test]
fn a_rule_refuses_a_large_cohort_and_a_costly_run_and_lets_small_ones_pass() {
    let place = place();
    place.write_policy(
        r#"{"rules":[
            {"id":"large","effect":"deny","conditions":{"when":"cohort_size != null && cohort_size >= 10000"}},
            {"id":"costly","effect":"deny","conditions":{"when":"estimated_cost != null && estimated_cost > 1000000"}},
            {"id":"weight","effect":"deny","conditions":{"when":"parameters != null && parameters.exists(p, p.endsWith('Weight'))"}},
            {"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#,
    );
    let mut client = client(&place);
    let run = |size: u64| json!({"simulationId": "sim", "cohort": {"size": size}, "confirm": true});
    let tool = "run_population_simulation";
    // What is not loaded yet has no known cost, which counts against the call.
    assert_eq!(
        reason(&mut client, tool, run(1)).as_deref(),
        Some("undecidable")
    );
    assert_eq!(reason(&mut client, "load_simulation", load()), None);
    // Two states over 2,880 minutes: 5,760 for each individual.
    assert_eq!(reason(&mut client, tool, run(100)), None);
    assert_eq!(
        reason(&mut client, tool, run(174)).as_deref(),
        Some("denied_by_rule")
    );
    assert_eq!(
        reason(&mut client, tool, run(10_000)).as_deref(),
        Some("denied_by_rule")
    );
    // The same number in another spelling is no way around the rule.
    let spelled = json!({"simulationId": "sim", "cohort": {"size": 1e4}, "confirm": true});
    assert_eq!(
        reason(&mut client, tool, spelled).as_deref(),
        Some("denied_by_rule")
    );
    // A fit may need 201 runs, which are no less costly.
    let observed = json!([{"output": "Example|Organism|Central|Drug|Concentration", "times": [60], "values": [1]}]);
    let fit = json!({"simulationId": "sim", "parameters": [{"path": "Example|Organism|Clearance"}], "observations": observed, "confirm": true});
    assert_eq!(
        reason(&mut client, "fit_parameters", fit).as_deref(),
        Some("denied_by_rule")
    );
    let get = |path: &str| json!({"simulationId": "sim", "parameterPath": path});
    let tool = "get_parameter_value";
    assert_eq!(
        reason(&mut client, tool, get("Example|Organism|Clearance")),
        None
    );
    assert_eq!(
        reason(&mut client, tool, get("Example|Organism|Weight")).as_deref(),
        Some("denied_by_rule")
    );
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    let sized: Vec<&Value> = journal
        .decisions()
        .into_iter()
        .filter(|d| d["cohort_size"] == 100)
        .collect();
    assert_eq!(sized.len(), 1);
    assert_eq!(sized[0]["estimated_cost"], 576_000);
    assert_eq!(sized[0]["simulation"], "sim");
    assert!(
        sized[0]["simulation_model"]
            .as_str()
            .unwrap()
            .ends_with("two_compartment.xml")
    );
    // The journal has what the rules looked at: a replay decides the same.
    let replayed = place.durward(&[
        "--config",
        "durward.yaml",
        "--state-dir",
        "state",
        "policy",
        "replay",
        "--policy",
        "policy.json",
    ]);
    let said = String::from_utf8_lossy(&replayed.stdout);
    assert!(replayed.status.success(), "{replayed:?}");
    assert!(said.contains("0 changed"), "{said}");
}

#[test]
fn a_number_that_is_stated_by_hand_has_to_be_one() {
    let place = place();
    place.write_policy(r#"{"rules":[{"id":"all","effect":"allow","conditions":{"when":"cohort_size != null && cohort_size < 10"}}]}"#);
    let explained = |fact: &str| {
        place.durward(&[
            "--config",
            "durward.yaml",
            "policy",
            "explain",
            "--policy",
            "policy.json",
            "--tool",
            "run",
            "--fact",
            fact,
        ])
    };
    let said = |fact: &str| String::from_utf8(explained(fact).stdout).unwrap();
    assert!(
        said("cohort_size=9").contains("allow"),
        "{}",
        said("cohort_size=9")
    );
    assert!(
        said("cohort_size=10").contains("deny"),
        "{}",
        said("cohort_size=10")
    );
    let wrong = explained("cohort_size=many");
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    let wrong = String::from_utf8(wrong.stderr).unwrap();
    assert!(wrong.contains("cohort_size is a whole number"), "{wrong}");
}

#[test]
fn confirm_is_no_approval() {
    let place = place();
    place.write_policy(
        r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"operations":["write"]}},
            {"id":"reads","effect":"allow","conditions":{"operations":["read"]}}]}"#,
    );
    let mut client = place.guard_configured("durward.yaml", &["--approval-timeout", "5"], "pbpk");
    client.handshake(LATEST).unwrap();
    assert_eq!(
        reason(&mut client, "load_simulation", load()).as_deref(),
        Some("approval_timeout")
    );
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn the_policy_for_roles_lets_viewers_look_and_operators_act() {
    let place = place();
    let policy =
        crate::support::components::repository().join("docs/policies/simulation-roles.json");
    fs::copy(policy, place.path("policy.json")).unwrap();
    let listed = |group: &str| {
        let tools = [
            "load_simulation",
            "list_parameters",
            "run_simulation",
            "get_results",
            "cancel_job",
        ];
        let passes = |tool: &&str| {
            let output = place.durward(&[
                "--config",
                "durward.yaml",
                "policy",
                "explain",
                "--policy",
                "policy.json",
                "--backend",
                "pbpk",
                "--tool",
                tool,
                "--args",
                r#"{"simulationId":"sim"}"#,
                "--fact",
                &format!("subject_groups={group}"),
                "--json",
            ]);
            let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            assert!(!told.is_null(), "{output:?}");
            told["decision"] == "allow"
        };
        tools
            .into_iter()
            .filter(|tool| passes(tool))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("viewer"), ["list_parameters", "get_results"]);
    assert_eq!(listed("operator").len(), 5);
    assert_eq!(listed("admin").len(), 5);
    assert_eq!(listed("other"), [] as [&str; 0]);
}

#[test]
fn callers_see_their_own_only_and_a_key_for_another_server_opens_nothing() {
    let place = place();
    let bearer = |words: &[&str]| format!("Bearer {}", key(&place, words));
    let (ada, bob) = (bearer(&["ada"]), bearer(&["bob"]));
    let elsewhere = bearer(&["eve", "--scope", "other"]);
    let served = Served::start_configured(place);
    let ask = |who: &str, path: &str, body: Value| {
        let headers = [("Authorization", who), ("Content-Type", "application/json")];
        let answer = served.send("POST", path, &headers, &body.to_string());
        (answer.status, answer.json())
    };
    let loaded = ask(&ada, "/load_simulation", load());
    assert_eq!(loaded.0, 201, "{loaded:?}");
    let get = json!({"simulationId": "sim", "parameterPath": "Example|Organism|Weight"});
    assert_eq!(ask(&ada, "/get_parameter_value", get.clone()).0, 200);
    assert_eq!(ask(&bob, "/get_parameter_value", get.clone()).0, 404);
    let job = ask(
        &ada,
        "/run_simulation",
        json!({"simulationId": "sim", "confirm": true}),
    )
    .1["jobId"]
        .clone();
    assert_eq!(ask(&ada, "/get_job_status", json!({"jobId": job})).0, 200);
    assert_eq!(ask(&bob, "/get_job_status", json!({"jobId": job})).0, 404);
    assert_eq!(ask(&bob, "/cancel_job", json!({"jobId": job})).0, 404);
    let events = format!("/jobs/{}/events", job.as_str().unwrap());
    assert_eq!(
        served
            .send("GET", &events, &[("Authorization", &bob)], "")
            .status,
        404
    );
    // The same id is free for another caller.
    assert_eq!(ask(&bob, "/load_simulation", load()).0, 201);
    for (who, status) in [(elsewhere.as_str(), 403), ("Bearer none", 401)] {
        let (found, told) = ask(who, "/get_parameter_value", get.clone());
        assert_eq!(found, status, "{told}");
        let code = if status == 403 {
            "Forbidden"
        } else {
            "Unauthorized"
        };
        assert_eq!(told["error"]["code"], code);
    }
    // The engine's health is everybody's.
    assert_eq!(served.send("GET", "/mcp/capabilities", &[], "").status, 200);
}

#[test]
fn the_bridges_paths_tell_a_refusal_from_a_failure() {
    let place = place();
    place.write_policy(
        r#"{"rules":[
            {"id":"no-loads","effect":"deny","conditions":{"tool_name":"load_simulation"}},
            {"id":"rest","effect":"allow","conditions":{"tool_name":"*"}}]}"#,
    );
    let served = Served::start_configured(place);
    let post = |path: &str, body: &str| {
        let headers = [("content-type", "application/json")];
        served.send("POST", path, &headers, body)
    };
    let arguments = load().to_string();
    let call = json!({"tool": "load_simulation", "arguments": load(), "critical": true});
    for (path, body) in [
        ("/load_simulation", arguments),
        ("/mcp/call_tool", call.to_string()),
    ] {
        let answer = post(path, &body);
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], "Forbidden", "{answer:?}");
        assert!(
            error["message"].as_str().unwrap().contains("no-loads"),
            "{answer:?}"
        );
        assert_eq!(error["details"][0]["code"], "denied_by_rule", "{answer:?}");
        let hint = error["details"][0]["hint"].as_str();
        assert_eq!(
            hint.is_some_and(|hint| hint.ends_with("operator, admin")),
            path == "/mcp/call_tool",
            "{answer:?}"
        );
    }
    // Names that two readers may take for one another.
    let answer = post(
        "/list_parameters",
        r#"{"simulationId": "a", "SimulationId": "b"}"#,
    );
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(answer.json()["error"]["code"], "InvalidInput", "{answer:?}");
}

#[test]
fn an_argument_that_a_tool_does_not_take_does_not_stand_for_the_model_that_is_loaded() {
    let place = place();
    place.write_policy(
        r#"{"rules":[
            {"id":"no-run","effect":"deny","conditions":{"tool_name":"run_simulation","when":"simulation_model != null && simulation_model.endsWith('two_compartment.xml')"}},
            {"id":"no-load","effect":"deny","conditions":{"when":"paths != null && paths.exists(p, p.endsWith('/models/empty.xml'))"}},
            {"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#,
    );
    let mut client = client(&place);
    assert_eq!(reason(&mut client, "load_simulation", load()), None);
    let denied = Some("denied_by_rule".to_owned());
    for more in [
        json!({}),
        json!({"filePath": "empty.xml"}),
        json!({"modelPath": "empty.xml"}),
        json!({"filePath": "/srv/allowed.pkml", "modelPath": "/srv/allowed.pkml"}),
    ] {
        let mut asked = json!({"simulationId": "sim", "confirm": true});
        let members = asked.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        assert_eq!(
            reason(&mut client, "run_simulation", asked),
            denied,
            "{more}"
        );
    }
    // A relative path is judged as the file that it opens.
    for file in ["empty.xml", "../models/./empty.xml"] {
        let asked = json!({"filePath": file, "simulationId": "other", "confirm": true});
        assert_eq!(
            reason(&mut client, "load_simulation", asked),
            denied,
            "{file}"
        );
    }
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn a_snapshot_is_judged_by_the_file_that_it_loads() {
    let place = place();
    let mut client = client(&place);
    assert_eq!(reason(&mut client, "load_simulation", load()), None);
    let named = json!({"simulationId": "sim"});
    assert_eq!(
        reason(&mut client, "snapshot_simulation", named.clone()),
        None
    );
    assert_eq!(end(client).code, Some(0));
    for rule in [
        "paths != null && paths.exists(p, p.endsWith('/models/two_compartment.xml'))",
        "simulation_model != null && simulation_model.endsWith('two_compartment.xml')",
    ] {
        place.write_policy(
            &json!({"rules": [
                {"id": "none", "effect": "deny", "conditions": {"when": rule}},
                {"id": "all", "effect": "allow", "conditions": {"tool_name": "*"}}]})
            .to_string(),
        );
        let mut client = super::client(&place);
        for (tool, asked) in [
            ("load_simulation", load()),
            ("restore_simulation", named.clone()),
        ] {
            let refused = reason(&mut client, tool, asked);
            assert_eq!(refused.as_deref(), Some("denied_by_rule"), "{tool} {rule}");
        }
        assert_eq!(end(client).code, Some(0));
    }
}
