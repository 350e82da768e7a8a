//! Calls in two steps: somebody is asked by a result that wants input.

use serde_json::json;

use super::super::text_of;
use super::{ANYTHING, served};
use crate::support::serving::{modern, modern_headers};

#[test]
fn a_servers_question_in_a_result_is_answered_under_the_same_name() {
    let served = served(ANYTHING);
    let name = "one__test_input_required_result_elicitation";
    let ask = |more: &str| {
        let params = format!(r#""name":"{name}","arguments":{{}}{more}"#);
        let body = modern("7", "tools/call", &params).replace(
            "clientCapabilities\":{}",
            "clientCapabilities\":{\"elicitation\":{}}",
        );
        served
            .send("POST", "/mcp", &modern_headers("tools/call", name), &body)
            .json()
    };
    let wanted = ask("");
    assert_eq!(wanted["result"]["resultType"], "input_required", "{wanted}");
    let requests = wanted["result"]["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create", "{wanted}");
    let mut more =
        json!({"inputResponses": {key: {"action": "accept", "content": {"name": "Ada"}}}});
    if let Some(state) = wanted["result"].get("requestState") {
        more["requestState"] = state.clone();
    }
    let more = more.to_string();
    let more = format!(",{}", &more[1..more.len() - 1]);
    let answer = ask(&more);
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert!(text_of(&answer).contains("Ada"), "{answer}");
}

#[test]
fn the_clients_own_person_is_asked_by_a_result_and_the_call_is_carried_out_once() {
    let rules = r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"echo"},"approvers":["client"]}]}"#;
    let served = served(rules);
    let ask = |name: &str, more: &str| {
        let params = format!(r#""name":"{name}","arguments":{{"text":"x"}}{more}"#);
        let body = modern("7", "tools/call", &params).replace(
            "clientCapabilities\":{}",
            "clientCapabilities\":{\"elicitation\":{\"form\":{}}}",
        );
        served
            .send("POST", "/mcp", &modern_headers("tools/call", name), &body)
            .json()
    };
    for name in ["slow__echo", "old__echo"] {
        let before = served.place.counted().len();
        let wanted = ask(name, "");
        assert_eq!(wanted["result"]["resultType"], "input_required", "{wanted}");
        let state = wanted["result"]["requestState"].to_string();
        let back = format!(
            r#","requestState":{state},"inputResponses":{{"durward_approval":{{"action":"accept","content":{{"answer":"allow once"}}}}}}"#
        );
        // A state is good for the same call of the same server alone.
        let other = match name {
            "old__echo" => "slow__echo",
            _ => "old__echo",
        };
        let elsewhere = ask(other, &back);
        assert_eq!(elsewhere["error"]["code"], -32602, "{elsewhere}");
        assert_eq!(served.place.counted().len(), before);
        assert_eq!(text_of(&ask(name, &back)), "x");
        let again = ask(name, &back);
        assert_eq!(again["error"]["code"], -32602, "{again}");
        assert_eq!(served.place.counted().len(), before + 1);
    }
}
