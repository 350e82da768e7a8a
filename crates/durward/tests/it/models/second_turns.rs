//! What was given out in one turn comes back in the next, and wishes that a provider does not know are no reason to refuse it.

use serde_json::{Value, json};

use super::support::{Upstream, code, serve};
use crate::support::serving::{Answer, Served};
use crate::support::web::{Request, reply};

const CHAT: &str = "/v1/chat/completions";

/// A reply of messages that thought, and calls a tool.
const THOUGHT: &str = r#"{"id":"m1","type":"message","role":"assistant","model":"c","content":[
    {"type":"thinking","thinking":"I should add","signature":"sig-1"},
    {"type":"tool_use","id":"toolu_0","name":"add","input":{"a":1}}],
    "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}}"#;

/// The same as a stream.
const STREAMED: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"model\":\"c\"}}\n\n\
event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n\
event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"I should add\"}}\n\n\
event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"sig-1\"}}\n\n\
event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_0\",\"name\":\"add\",\"input\":{\"a\":1}}}\n\n\
event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n\
event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":2}}\n\n\
event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// A provider of messages that thinks before it calls a tool, and takes thoughts back with their signature alone.
fn thinker() -> Upstream {
    Upstream::before(|request: &Request| {
        let body = request.json();
        let turns = body["messages"].as_array().cloned().unwrap_or_default();
        let blocks = turns.iter().filter_map(|turn| turn["content"].as_array());
        let mut blocks = blocks.flatten();
        if blocks.any(|block| block["type"] == "thinking" && block["signature"] != "sig-1") {
            let error = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Invalid signature in thinking block"}}"#;
            return Some(reply("400 x", "", "application/json", error));
        }
        if turns.len() > 1 {
            return None;
        }
        Some(match body["stream"] == true {
            true => reply("200 OK", "", "text/event-stream", STREAMED),
            false => reply("200 OK", "", "application/json", THOUGHT),
        })
    })
}

fn send(served: &Served, body: &Value) -> Answer {
    served.send("POST", CHAT, &[], &body.to_string())
}

/// The second turn of a client that has kept `reasoning_content` and nothing else of the thought.
fn second(thought: &str) -> Value {
    json!({ "model": "far/c", "messages": [
        { "role": "user", "content": "x" },
        { "role": "assistant", "content": null, "reasoning_content": thought, "tool_calls": [
            { "id": "toolu_0", "type": "function", "function": { "name": "add", "arguments": "{\"a\":1}" } }] },
        { "role": "tool", "tool_call_id": "toolu_0", "content": "3" },
    ], "tools": [{ "type": "function", "function": { "name": "add", "parameters": { "type": "object" } } }] })
}

#[test]
fn a_thought_that_comes_back_without_its_signature_gets_it_back() {
    for streams in [false, true] {
        let upstream = thinker();
        let provider = upstream.configured("far", "/v1/messages");
        let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
        let first = json!({ "model": "far/c", "stream": streams, "messages": [{ "role": "user", "content": "x" }] });
        let answer = send(&served, &first);
        assert!(answer.body.contains("I should add"), "{answer:?}");
        let answer = send(&served, &second("I should add"));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("x-durward-left-out"), None);
        let sent = upstream.web.requests().pop().unwrap().json();
        assert_eq!(
            sent["messages"][1]["content"][0],
            json!({ "type": "thinking", "thinking": "I should add", "signature": "sig-1" })
        );
        // A thought that was not given out has none, and is left out.
        let answer = send(&served, &second("I should subtract"));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            answer.header("x-durward-left-out"),
            Some("reasoning_content")
        );
        let sent = upstream.web.requests().pop().unwrap().json();
        assert_eq!(sent["messages"][1]["content"][0]["type"], "tool_use");
    }
}

/// Requests with a wish that messages have no word for, and the name of each.
fn wishes() -> [(Value, &'static str); 4] {
    let turns = json!([{ "role": "user", "name": "user", "content": "x" }]);
    [
        ("seed", json!(1), "seed"),
        (
            "response_format",
            json!({ "type": "json_object" }),
            "response_format.type",
        ),
        ("presence_penalty", json!(0.5), "presence_penalty"),
        ("messages", turns, "messages.name"),
    ]
    .map(|(member, value, name)| {
        let mut body =
            json!({ "model": "far/x", "messages": [{ "role": "user", "content": "x" }] });
        body[member] = value;
        (body, name)
    })
}

#[test]
fn wishes_that_a_provider_does_not_know_are_left_out_and_named() {
    let upstream = Upstream::start();
    let provider = upstream.configured("far", "/v1/messages");
    let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
    for (body, name) in wishes() {
        let answer = send(&served, &body);
        assert_eq!(answer.status, 200, "{name} {answer:?}");
        assert_eq!(answer.header("x-durward-left-out"), Some(name));
    }
}

#[test]
fn a_provider_that_is_configured_so_refuses_what_it_does_not_know() {
    let upstream = Upstream::start();
    let provider = upstream.configured("far", "/v1/messages");
    let provider = provider.replace("kind:", "unsupported: refuse, kind:");
    let served = serve(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
    for (body, name) in wishes() {
        let answer = send(&served, &body);
        assert_eq!(answer.status, 400, "{name} {answer:?}");
        assert_eq!(code(&answer.json()), "not_expressible", "{name}");
    }
    assert_eq!(upstream.count(), 0);
}
