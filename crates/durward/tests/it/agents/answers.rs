//! One tool call and its answer: both encodings, streamed and whole, with the records of the run.

use serde_json::json;

use super::support::{STANDARD, ask, serve, streamed};

#[test]
fn a_run_calls_a_tool_and_quotes_its_result() {
    let served = serve(STANDARD);
    for model in [
        "standard_agent",
        "standard_agent_native",
        "helper",
        "agent/standard_agent",
    ] {
        let answer = ask(&served, model, "Analyze this complexity.", false);
        assert_eq!(answer.status, 200, "{model}: {answer:?}");
        assert!(answer.header("x-durward-run").is_some(), "{answer:?}");
        assert_eq!(answer.header("x-durward-steps"), Some("3"), "{model}");
        let body = answer.json();
        assert_eq!(
            body["choices"][0]["finish_reason"], "stop",
            "{model}: {body}"
        );
        let message = &body["choices"][0]["message"];
        assert_eq!(message["content"], "The tool said: mock", "{model}: {body}");
        let reasoning = message["reasoning_content"].as_str().unwrap();
        assert_eq!(
            reasoning.matches("### echo__echo").count(),
            1,
            "{model}: {reasoning}"
        );
        assert!(body["usage"]["total_tokens"].as_u64() > Some(0), "{body}");

        let answer = ask(&served, model, "Analyze this complexity.", true);
        assert_eq!(answer.status, 200, "{model}: {answer:?}");
        let whole = streamed(&answer);
        assert_eq!(whole.content, "The tool said: mock", "{model}: {answer:?}");
        assert_eq!(
            whole.reasoning.matches("### echo__echo").count(),
            1,
            "{whole:?}"
        );
        assert_eq!((whole.finish.as_str(), whole.is_done), ("stop", true));
    }
}

#[test]
fn a_run_is_one_tree_of_records() {
    let served = serve(STANDARD);
    let body =
        json!({ "model": "standard_agent", "messages": [{ "role": "user", "content": "go" }] });
    let headers = [("x-durward-run", "run-7")];
    let answer = served.send("POST", "/v1/chat/completions", &headers, &body.to_string());
    assert_eq!(answer.header("x-durward-run"), Some("run-7"), "{answer:?}");
    let records = served.place.records();
    let of_run: Vec<&serde_json::Value> = records
        .decisions()
        .into_iter()
        .filter(|record| record["run_id"] == "run-7")
        .collect();
    let is_agent = |record: &&&serde_json::Value| record["parent_op"].is_null();
    let agents: Vec<_> = of_run.iter().filter(is_agent).collect();
    assert_eq!(agents.len(), 1, "{of_run:#?}");
    let below = of_run
        .iter()
        .filter(|record| record["parent_op"] == agents[0]["op"]);
    // Two calls of the model and one of the tool at least; a list of tools may have a record too.
    assert!(below.count() >= 3, "{of_run:#?}");
    let tools = of_run.iter().filter(|record| record["tool_name"] == "echo");
    assert_eq!(tools.count(), 1, "{of_run:#?}");
}

#[test]
fn runs_show_prints_the_tree() {
    let served = serve(STANDARD);
    let body =
        json!({ "model": "standard_agent", "messages": [{ "role": "user", "content": "go" }] });
    let headers = [("x-durward-run", "run-8")];
    let answer = served.send("POST", "/v1/chat/completions", &headers, &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let show = [
        "--config",
        "durward.yaml",
        "--state-dir",
        "state",
        "runs",
        "show",
    ];
    let output = served.place.durward(&[&show[..], &["run-8"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "\n  agent standard_agent  Success",
        "\n    model mock/plain  Success",
        "\n    tool echo/echo  Success",
    ] {
        assert!(text.contains(line), "{line:?}: {text}");
    }
    let output = served.place.durward(&[&show[..], &["nope"]].concat());
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn agents_are_listed_as_models() {
    let served = serve(STANDARD);
    let list = served.send_get("/v1/models");
    let names: Vec<&str> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    for name in [
        "standard_agent",
        "agent/standard_agent",
        "standard_agent_native",
        "agent/standard_agent_native",
        "helper",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let one = served.send_get("/v1/models/standard_agent");
    assert_eq!(one["id"], "standard_agent");
}

#[test]
fn all_three_apis_answer() {
    let served = serve(STANDARD);
    let turns = json!([{ "role": "user", "content": "go" }]);
    let body = json!({ "model": "standard_agent", "max_tokens": 500, "messages": turns });
    let answer = served.send("POST", "/v1/messages", &[], &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let blocks = answer.json()["content"].clone();
    let text = blocks.as_array().unwrap().last().unwrap()["text"].clone();
    assert_eq!(text, "The tool said: mock", "{blocks}");
    let body = json!({ "model": "standard_agent", "input": "go" });
    let answer = served.send("POST", "/v1/responses", &[], &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("The tool said: mock"), "{answer:?}");
}
