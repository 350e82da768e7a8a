//! The conformance fixtures over standard input and output.

use crate::common::{mock, ready};
use mcp::client::{Client, Era, Message, Reply};
use serde_json::{Value, json};

const LEGACY: Era = Era::Legacy("2025-11-25");

/// Calls a tool and answers every question of the server by its method.
fn converse(client: &mut Client, tool: &str, arguments: Value) -> Reply {
    let id = client
        .send_request("tools/call", json!({"name": tool, "arguments": arguments}))
        .unwrap();
    loop {
        match client.next_message().unwrap() {
            Message::Response(reply) => {
                assert_eq!(reply.id(), id);
                return reply;
            }
            Message::Request { id, method, .. } => client.respond(&id, &answer(&method)).unwrap(),
            Message::Notification { .. } => {}
        }
    }
}

fn answer(method: &str) -> Value {
    match method {
        "sampling/createMessage" => {
            json!({"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///r"}]}),
        _ => {
            json!({"action": "accept", "content": {"name": "Zo\u{eb}", "color": "blue", "ok": true}})
        }
    }
}

#[test]
fn dialogues_are_held_in_both_eras() {
    let cases = [
        (
            "test_input_required_result_elicitation",
            1,
            "Good day, Zo\u{eb}.",
        ),
        ("test_input_required_result_sampling", 1, "Paris"),
        ("test_input_required_result_list_roots", 1, "file:///r"),
        ("test_input_required_result_request_state", 1, "state-ok"),
        ("test_input_required_result_multiple_inputs", 1, "file:///r"),
        ("test_input_required_result_multi_round", 2, "blue"),
        ("test_input_required_result_capabilities", 1, "Paris"),
    ];
    for (tool, rounds, expect) in cases {
        let mut legacy = ready(&["conformance"], LEGACY);
        let reply = converse(&mut legacy, tool, json!({}));
        assert!(reply.text().unwrap().contains(expect), "{tool}: {reply:?}");

        let mut modern = ready(&["conformance"], Era::Modern);
        let mut params = json!({"name": tool, "arguments": {}});
        for _ in 0..rounds {
            let reply = modern.request("tools/call", params.clone()).unwrap();
            let result = reply.result().unwrap();
            assert_eq!(result["resultType"], "input_required", "{tool}");
            let requests = result["inputRequests"].as_object().unwrap();
            let answers: serde_json::Map<String, Value> = requests
                .iter()
                .map(|(key, ask)| (key.clone(), answer(ask["method"].as_str().unwrap())))
                .collect();
            params["inputResponses"] = Value::Object(answers);
            if let Some(state) = result.get("requestState") {
                params["requestState"] = state.clone();
            }
        }
        let reply = modern.request("tools/call", params).unwrap();
        assert_eq!(reply.result().unwrap()["resultType"], "complete");
        assert!(reply.text().unwrap().contains(expect), "{tool}: {reply:?}");
    }
}

#[test]
fn answers_that_are_none_and_states_of_others_are_refused() {
    let mut client = ready(&["conformance"], Era::Modern);
    let tool = "test_input_required_result_request_state";
    for further in [
        json!({"inputResponses": null}),
        json!({"inputResponses": []}),
        json!({"inputResponses": {"confirm": 5}}),
        json!({"requestState": "0-0-"}),
        json!({"requestState": 5}),
    ] {
        let mut params = json!({"name": tool, "arguments": {}});
        params
            .as_object_mut()
            .unwrap()
            .extend(further.as_object().unwrap().clone());
        let reply = client.request("tools/call", params).unwrap();
        assert_eq!(reply.error_code(), Some(-32602), "{further}");
    }
}

#[test]
fn a_client_that_declines_gets_a_tool_error() {
    let mut client = ready(&["conformance"], LEGACY);
    let id = client
        .send_request(
            "tools/call",
            json!({"name": "test_sampling", "arguments": {"prompt": "p"}}),
        )
        .unwrap();
    let Message::Request {
        id: ask,
        method,
        params,
    } = client.next_message().unwrap()
    else {
        panic!("the server asks first");
    };
    assert_eq!(method, "sampling/createMessage");
    assert_eq!(params["messages"][0]["content"]["text"], "p");
    let refusal = format!(r#"{{"jsonrpc":"2.0","id":{ask},"error":{{"code":-1,"message":"no"}}}}"#);
    client.process().send_line(refusal.as_bytes()).unwrap();
    let reply = client.response(&id).unwrap();
    assert!(reply.is_tool_error(), "{reply:?}");
}

#[test]
fn a_capability_that_was_not_declared_is_named() {
    let mut client = mock(&["conformance"]);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    client.request("initialize", params).unwrap();
    for tool in [
        "test_missing_capability",
        "test_input_required_result_sampling",
    ] {
        let reply = client
            .request("tools/call", json!({"name": tool, "arguments": {}}))
            .unwrap();
        assert_eq!(reply.error_code(), Some(-32021), "{tool}");
        let error = reply.error().unwrap();
        assert_eq!(
            error["data"]["requiredCapabilities"],
            json!({"sampling": {}})
        );
    }
}

#[test]
fn changes_are_told_to_those_who_asked() {
    let change = |client: &mut Client, tool: &str| {
        let params = json!({"name": tool, "arguments": {}});
        client
            .request("tools/call", params)
            .unwrap()
            .result()
            .unwrap();
    };
    let mut legacy = ready(&["conformance"], LEGACY);
    legacy
        .request(
            "resources/subscribe",
            json!({"uri": "test://watched-resource"}),
        )
        .unwrap();
    let mut modern = ready(&["conformance"], Era::Modern);
    let listen = modern
        .send_request(
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["test://watched-resource"]}}),
        )
        .unwrap();
    let told = |client: &mut Client| match client.next_message().unwrap() {
        Message::Notification { method, params } => (method, params),
        other => panic!("{other:?}"),
    };
    let (method, params) = told(&mut modern);
    assert_eq!(method, "notifications/subscriptions/acknowledged");
    assert_eq!(params["notifications"]["toolsListChanged"], true);
    for client in [&mut legacy, &mut modern] {
        change(client, "test_trigger_prompt_change");
        change(client, "test_trigger_tool_change");
        change(client, "test_trigger_resource_update");
    }
    let legacy_told: Vec<String> = (0..3).map(|_| told(&mut legacy).0).collect();
    assert_eq!(
        legacy_told,
        [
            "notifications/prompts/list_changed",
            "notifications/tools/list_changed",
            "notifications/resources/updated"
        ]
    );
    for expect in [
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    ] {
        let (method, params) = told(&mut modern);
        assert_eq!(method, expect);
        let subscription = &params["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(subscription.to_string(), listen);
    }
    let tools = modern.request("tools/list", json!({})).unwrap();
    assert!(tools.line().contains("test_passing_tool"));
}

#[test]
fn log_lines_come_at_the_level_that_was_asked_for() {
    let mut legacy = ready(&["conformance"], LEGACY);
    let logs = |client: &mut Client, params: Value| {
        let id = client.send_request("tools/call", params).unwrap();
        let mut logs = 0;
        loop {
            match client.next_message().unwrap() {
                Message::Response(reply) => {
                    assert_eq!(reply.id(), id);
                    return logs;
                }
                Message::Notification { .. } => logs += 1,
                Message::Request { .. } => panic!("nothing is asked"),
            }
        }
    };
    let call = json!({"name": "test_tool_with_logging", "arguments": {}});
    assert_eq!(logs(&mut legacy, call.clone()), 3);
    legacy
        .request("logging/setLevel", json!({"level": "error"}))
        .unwrap();
    assert_eq!(logs(&mut legacy, call.clone()), 0);
    let wrong = legacy
        .request("logging/setLevel", json!({"level": "loud"}))
        .unwrap();
    assert_eq!(wrong.error_code(), Some(-32602));

    let mut modern = ready(&["conformance"], Era::Modern);
    assert_eq!(logs(&mut modern, call.clone()), 0);
    let mut asking = call;
    asking["_meta"] = json!({"io.modelcontextprotocol/logLevel": "debug"});
    assert_eq!(logs(&mut modern, asking), 3);
}
