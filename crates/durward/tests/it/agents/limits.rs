//! Limits, and callers that leave: no run that was cut ends with `stop`.

use serde_json::json;

use super::support::{ask, serve, streamed};
use crate::support::guarded::eventually;
use crate::support::serving::write_request;

fn agent(model: &str, rest: &str) -> String {
    format!(
        "agents: {{ a: {{ model: {model}, instruction: go, toolsets: [{{ server: echo, tools: [echo] }}], {rest} }} }}\n"
    )
}

#[test]
fn an_answer_at_a_limit_ends_with_length() {
    for rest in [
        "max_iterations: 1",
        "limits: { tool_calls: 0 }",
        "max_iterations: 1, pattern: react",
    ] {
        let served = serve(&agent("mock/plain", rest));
        let answer = ask(&served, "a", "hi", false);
        assert_eq!(answer.status, 200, "{rest}: {answer:?}");
        let body = answer.json();
        assert_eq!(
            body["choices"][0]["finish_reason"], "length",
            "{rest}: {body}"
        );
        let whole = streamed(&ask(&served, "a", "hi", true));
        assert_eq!(
            (whole.finish.as_str(), whole.is_done),
            ("length", true),
            "{rest}"
        );
    }
}

#[test]
fn an_error_at_a_limit_names_it() {
    let served = serve(&agent("mock/plain", "max_iterations: 1, on_limit: error"));
    let answer = ask(&served, "a", "hi", false);
    assert_eq!(answer.status, 429, "{answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(error["code"], "agent_limit", "{error}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("max_iterations"),
        "{error}"
    );
    // The step was shown before: the stream ends with the error, and without its mark.
    let whole = streamed(&ask(&served, "a", "hi", true));
    assert_eq!(whole.error["code"], "agent_limit", "{whole:?}");
    assert!(!whole.is_done && whole.finish.is_empty(), "{whole:?}");
}

#[test]
fn tokens_of_a_run_are_bounded_by_the_gate() {
    let served = serve(&agent("mock/plain", "limits: { tokens: 20 }"));
    let answer = ask(&served, "a", "hi", false);
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(
        answer.json()["error"]["code"],
        "agent_model_failed",
        "{answer:?}"
    );
}

#[test]
fn a_model_that_never_answers_ends_with_the_time() {
    for model in ["mock/fault-silent", "mock/fault-mute"] {
        let served = serve(&agent(model, "limits: { time: 400ms }"));
        let answer = ask(&served, "a", "hi", false);
        assert!(matches!(answer.status, 429 | 504), "{model}: {answer:?}");
        let code = answer.json()["error"]["code"].clone();
        assert!(
            code == "agent_limit" || code == "agent_model_failed",
            "{model}: {answer:?}"
        );
    }
}

#[test]
fn a_caller_that_leaves_cancels_the_run() {
    let served = serve(&agent("mock/fault-silent", "show: steps"));
    let mut stream = served.connect();
    let body =
        json!({ "model": "a", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let headers = [("x-request-id", "leaver"), ("x-durward-run", "left")];
    write_request(
        &mut stream,
        "POST",
        "/v1/chat/completions",
        &headers,
        &body.to_string(),
    );
    let of_run = |kind: &str, served: &crate::support::serving::Served| {
        let records = served.place.records();
        let all = records.0.iter();
        all.filter(|record| record["run_id"] == "left" && record["kind"] == kind)
            .count()
    };
    // The agent, its list of tools, its model.
    eventually("the model is asked", || of_run("decision", &served) >= 2);
    drop(stream);
    eventually("the run is settled", || {
        let records = served.place.records();
        let agent = records
            .0
            .iter()
            .find(|record| record["kind"] == "operation" && record["reason"] == "client_gone");
        agent.is_some()
    });
}

#[test]
fn permissions_narrow_what_the_policy_allows() {
    for (permissions, offers) in [
        ("permissions: { deny: [\"*/ec*\"] }", false),
        ("permissions: { deny: [echo/add] }", true),
        ("permissions: { allow: [echo/add] }", false),
        ("permissions: { allow: [\"echo/*\"] }", true),
    ] {
        let served = serve(&agent("mock/plain", permissions));
        let answer = ask(&served, "a", "hi", false);
        let content = answer.json()["choices"][0]["message"]["content"].clone();
        let has_called = content == "The tool said: mock";
        assert_eq!(has_called, offers, "{permissions}: {answer:?}");
    }
}

#[test]
fn a_narrowed_policy_is_recorded_in_the_history_with_its_own_text() {
    let permissions = "permissions: { deny: [echo/add] }";
    let served = serve(&agent("mock/plain", permissions));
    let state = ["--config", "durward.yaml", "--state-dir", "state"];
    let words = [&state[..], &["policy", "show", "v1"]].concat();
    let shown = served.place.durward(&words);
    assert!(shown.status.success(), "{shown:?}");
}

#[test]
fn a_permission_to_ask_asks_a_person() {
    let served = serve(&agent("mock/plain", "permissions: { ask: [echo/echo] }"));
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(&served, "a", "hi", false));
        let mut id = String::new();
        eventually("a person is asked", || {
            let listed = served.place.durward(&["approvals", "list", "--json"]);
            let text = String::from_utf8(listed.stdout).unwrap();
            let mut found = text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            let waiting: Option<serde_json::Value> = found.next();
            let waiting = waiting.and_then(|one| one["id"].as_str().map(str::to_owned));
            id = waiting.unwrap_or_default();
            !id.is_empty()
        });
        let said = served.place.durward(&["approvals", "once", &id]);
        assert!(said.status.success(), "{said:?}");
        asked.join().unwrap()
    });
    assert_eq!(answer.status, 200, "{answer:?}");
    let content = answer.json()["choices"][0]["message"]["content"].clone();
    assert_eq!(content, "The tool said: mock");
}
