//! `inspect:` before real processes: what is found in requests and results, and what becomes of it, over
//! standard streams and HTTP, in both eras.

use std::fs;

use serde_json::{Value, json};

use crate::support::guarded::{Place, echo, end, eventually};
use crate::support::inspecting::{called, guarded, text, write};
use crate::support::refusals::told;
use crate::support::serving::{Served, call, modern_call, modern_headers};

/// A token of GitHub's form, in parts: a scanner is not to take this file for a leak.
fn token() -> String {
    ["ghp_", "0123456789abcdefghij", "ABCDEFGHIJ0123456789"].concat()
}

/// A place whose configuration names the server `echo` and these rules.
fn place(rules: &str) -> Place {
    let place = Place::new();
    write(&place, rules);
    place
}

/// Everything that Durward has written to disk.
fn written(place: &Place) -> String {
    let files = place.segments().into_iter();
    files
        .map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned())
        .collect()
}

#[test]
fn a_secret_is_masked_before_the_server_and_the_journal_see_it() {
    let place = place("keys: { secrets: all, action: mask }");
    let mut client = guarded(&place);
    let said = format!("use {} twice: {}", token(), token());
    let answer = called(&mut client, &said);
    assert_eq!(text(&answer), "use [masked: keys] twice: [masked: keys]");
    assert_eq!(text(&called(&mut client, "nothing here")), "nothing here");
    assert_eq!(end(client).code, Some(0));
    let reached = fs::read_to_string(place.path("count")).unwrap();
    assert!(!reached.contains(&token()), "{reached}");
    let journal = place.journal();
    let found: Vec<&Value> = journal
        .decisions()
        .into_iter()
        .map(|decision| &decision["inspected"])
        .collect();
    assert_eq!(found, [&json!(["keys:2"]), &Value::Null]);
    assert!(!written(&place).contains(&token()));
}

#[test]
fn a_secret_in_the_place_of_a_tools_name_is_in_no_record_and_no_answer() {
    for action in ["mask", "deny"] {
        let place = place(&format!("keys: {{ secrets: all, action: {action} }}"));
        let mut client = guarded(&place);
        for _ in 0..2 {
            let params = json!({"name": token(), "arguments": {}});
            let reply = client.request("tools/call", params).unwrap();
            let answer = reply.line();
            assert!(!answer.contains(&token()), "{answer}");
            let answer: Value = serde_json::from_str(answer).unwrap();
            let reason = told(&answer)["reason"].as_str().unwrap();
            let expected = ["unknown_tool", "inspection_denied"];
            assert!(expected.contains(&reason), "{answer}");
        }
        assert_eq!(text(&called(&mut client, "plain")), "plain");
        assert_eq!(end(client).code, Some(0));
        let journal = place.journal();
        assert_eq!(journal.decisions()[0]["inspected"], json!(["keys:1"]));
        assert!(!written(&place).contains(&token()), "{action}");
    }
}

#[test]
fn a_secret_in_the_place_of_a_name_a_uri_a_path_or_a_method_is_in_no_record() {
    let asked = [
        (
            "resources/read",
            json!({"uri": format!("mock://echo/{}", token())}),
        ),
        ("prompts/get", json!({"name": token()})),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {"text": "x", "path": format!("/srv/{}/x", token())}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": token()}, "argument": {"name": "a", "value": ""}}),
        ),
    ];
    for action in ["mask", "deny"] {
        let place = place(&format!("keys: {{ secrets: all, action: {action} }}"));
        let mut client = guarded(&place);
        for (method, params) in &asked {
            let reply = client.request(method, params.clone()).unwrap();
            assert!(
                !reply.line().contains(&token()),
                "{method}: {}",
                reply.line()
            );
        }
        drop(client.request(&token(), json!({})).unwrap());
        let id = json!(token()).to_string();
        client
            .send_request_as(&id, "tools/call", echo("x"))
            .unwrap();
        client.response(&id).unwrap();
        assert_eq!(end(client).code, Some(0));
        let journal = place.journal();
        assert_eq!(journal.decisions().len(), asked.len() + 2);
        assert!(!written(&place).contains(&token()), "{action}");
    }
}

#[test]
fn a_secret_in_a_result_is_masked_on_its_way_back() {
    let place = place("keys: { secrets: [github], on: results, action: mask }");
    let mut client = guarded(&place);
    let answer = called(&mut client, &token());
    assert_eq!(text(&answer), "[masked: keys]");
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    assert_eq!(journal.decisions()[0]["inspected"], Value::Null);
    assert_eq!(journal.operations()[0]["inspected"], json!(["keys:1"]));
    assert_eq!(journal.operations()[0]["status"], "Success");
    assert!(!written(&place).contains(&token()));
}

#[test]
fn a_pattern_that_is_denied_reaches_neither_server_nor_client() {
    let place = place(
        r#"out: { patterns: ["PROJECT-[0-9]+"], on: requests, action: deny },
           in: { patterns: ["CLASSIFIED"], on: results, action: deny }"#,
    );
    let mut client = guarded(&place);
    for (said, rule, reached) in [
        ("about PROJECT-42", "inspect:out", 0),
        ("it is CLASSIFIED", "inspect:in", 1),
    ] {
        let answer = called(&mut client, said);
        let data = told(&answer);
        assert_eq!(data["reason"], "inspection_denied", "{answer}");
        assert_eq!(data["final_rule"], rule, "{answer}");
        assert!(!answer.to_string().contains("PROJECT-42"), "{answer}");
        assert_eq!(place.counted().len(), reached, "{said}");
    }
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    let decided: Vec<&Value> = journal.decisions();
    assert_eq!(decided[0]["decision"], "deny");
    assert_eq!(decided[0]["reason"], "inspection_denied");
    assert_eq!(decided[0]["final_rule"], "inspect:out");
    assert_eq!(decided[1]["decision"], "allow");
    assert_eq!(journal.operations()[0]["reason"], "inspection_denied");
    assert!(!written(&place).contains("CLASSIFIED"));
}

#[test]
fn both_eras_over_http_are_inspected_alike() {
    let place = place("keys: { secrets: all, action: mask }");
    let served = Served::start_configured(place);
    let session = served.open("2025-11-25");
    let legacy = served.post(Some(&session), &call("7", &token())).json();
    assert_eq!(text(&legacy), "[masked: keys]");
    let body = modern_call("8", &token());
    let headers = modern_headers("tools/call", "echo");
    let answer = served.send("POST", "/mcp/echo", &headers, &body);
    assert_eq!(text(&answer.json()), "[masked: keys]");
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    assert!(!written(&place).contains(&token()));
    let reached = fs::read_to_string(place.path("count")).unwrap();
    assert!(!reached.contains(&token()), "{reached}");
}

#[test]
fn a_person_is_asked_about_a_call_that_is_shown_masked() {
    let place = place(
        r#"keys: { secrets: all, action: mask }, who: { patterns: ["payroll"], on: requests, action: ask }"#,
    );
    let mut client = guarded(&place);
    let said = format!("payroll with {}", token());
    client.send_request("tools/call", echo(&said)).unwrap();
    let waiting = || {
        let output = place.durward(&["approvals", "list", "--json"]);
        let shown = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str::<Value>(shown.lines().next()?).ok()
    };
    eventually("a question waits", || waiting().is_some());
    let question = waiting().unwrap();
    assert_eq!(question["rule"], "inspect:who");
    let shown = question["arguments"].as_str().unwrap();
    assert!(shown.contains("payroll with [masked: keys]"), "{shown}");
    assert_eq!(question["can_cache"], false);
    let id = question["id"].as_str().unwrap();
    assert!(place.durward(&["approvals", "allow", id]).status.success());
    let answer = crate::support::guarded::line(&mut client);
    assert_eq!(text(&answer), "payroll with [masked: keys]");
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    let decision = journal.decisions()[0];
    assert_eq!(decision["hitl_outcome"], "user_allowed");
    assert_eq!(decision["final_rule"], "inspect:who");
}

#[test]
fn rules_are_taken_up_while_running() {
    let place = place("");
    let mut client = guarded(&place);
    assert_eq!(text(&called(&mut client, "say ID-7")), "say ID-7");
    write(&place, r#"ids: { patterns: ["ID-[0-9]+"], action: mask }"#);
    eventually("the rule is in force", || {
        text(&called(&mut client, "say ID-7")) == "say [masked: ids]"
    });
    // What cannot be used changes nothing.
    write(&place, r#"ids: { patterns: ["("], action: mask }"#);
    eventually("the fault is recorded", || {
        let records = place.records();
        records.0.iter().any(|r| r["event"] == "validation_failed")
    });
    assert_eq!(text(&called(&mut client, "say ID-7")), "say [masked: ids]");
    assert_eq!(end(client).code, Some(0));
}
