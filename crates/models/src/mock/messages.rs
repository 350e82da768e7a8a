//! Anthropic's messages.

use serde_json::{Value, json};

use super::Step;
use super::script::Script;

fn reason(script: &Script) -> &'static str {
    if !script.tools.is_empty() {
        "tool_use"
    } else if script.is_cut {
        "max_tokens"
    } else {
        "end_turn"
    }
}

fn usage(script: &Script, output: u64) -> Value {
    if !script.tells_usage {
        return Value::Null;
    }
    json!({ "input_tokens": script.prompt_tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": output })
}

fn message(script: &Script, content: Value, reason: Value, output: u64) -> Value {
    json!({
        "id": format!("msg_mock_{}", script.number),
        "type": "message",
        "role": "assistant",
        "model": script.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": null,
        "usage": usage(script, output),
    })
}

/// A whole reply.
pub(super) fn whole(script: &Script) -> Value {
    let mut content = Vec::new();
    if !script.tokens.is_empty() {
        content.push(json!({ "type": "text", "text": script.tokens.concat() }));
    }
    for tool in &script.tools {
        content.push(json!({ "type": "tool_use", "id": tool.id, "name": tool.name, "input": tool.arguments }));
    }
    let reason = json!(reason(script));
    message(
        script,
        Value::Array(content),
        reason,
        script.output_tokens(),
    )
}

/// A stream.
pub(super) fn stream(script: &Script, token_ms: u64) -> Vec<Step> {
    let start = message(script, json!([]), Value::Null, 1);
    let mut steps = vec![event(
        "message_start",
        &json!({ "type": "message_start", "message": start }),
    )];
    let mut index = 0;
    let open = |index: usize, block: Value| {
        event(
            "content_block_start",
            &json!({ "type": "content_block_start", "index": index, "content_block": block }),
        )
    };
    let delta = |index: usize, delta: Value| {
        event(
            "content_block_delta",
            &json!({ "type": "content_block_delta", "index": index, "delta": delta }),
        )
    };
    let close = |index: usize| {
        event(
            "content_block_stop",
            &json!({ "type": "content_block_stop", "index": index }),
        )
    };
    if !script.tokens.is_empty() {
        steps.push(open(index, json!({ "type": "text", "text": "" })));
        steps.push(event("ping", &json!({ "type": "ping" })));
        for token in &script.tokens {
            steps.push(Step::Wait(token_ms));
            steps.push(delta(index, json!({ "type": "text_delta", "text": token })));
        }
        steps.push(close(index));
        index += 1;
    }
    for tool in &script.tools {
        steps.push(Step::Wait(token_ms));
        steps.push(open(
            index,
            json!({ "type": "tool_use", "id": tool.id, "name": tool.name, "input": {} }),
        ));
        let text = tool.arguments.to_string();
        steps.push(delta(
            index,
            json!({ "type": "input_json_delta", "partial_json": text }),
        ));
        steps.push(close(index));
        index += 1;
    }
    let told = json!({
        "type": "message_delta",
        "delta": { "stop_reason": reason(script), "stop_sequence": null },
        "usage": if script.tells_usage { json!({ "output_tokens": script.output_tokens() }) } else { Value::Null },
    });
    steps.push(event("message_delta", &told));
    steps.push(event("message_stop", &json!({ "type": "message_stop" })));
    steps
}

fn event(name: &str, data: &Value) -> Step {
    Step::Bytes(format!("event: {name}\ndata: {data}\n\n").into_bytes())
}
