//! OpenAI's chat completions.

use serde_json::{Value, json};

use super::Step;
use super::script::{Script, ToolUse};

/// When every reply was made, in seconds since 1970.
const CREATED: u64 = 1_760_000_000;

fn reason(script: &Script) -> &'static str {
    if !script.tools.is_empty() {
        "tool_calls"
    } else if script.is_cut {
        "length"
    } else {
        "stop"
    }
}

fn usage(script: &Script) -> Value {
    let (read, wrote) = (script.prompt_tokens, script.output_tokens());
    json!({
        "prompt_tokens": read,
        "completion_tokens": wrote,
        "total_tokens": read + wrote,
        "prompt_tokens_details": { "cached_tokens": 0, "audio_tokens": 0 },
        "completion_tokens_details": { "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0 },
    })
}

fn call(tool: &ToolUse, arguments: &str) -> Value {
    json!({
        "id": tool.id,
        "type": "function",
        "function": { "name": tool.name, "arguments": arguments },
    })
}

/// A whole reply.
pub(super) fn whole(script: &Script) -> Value {
    let mut message = json!({ "role": "assistant", "content": script.tokens.concat(), "refusal": null, "annotations": [] });
    if !script.tools.is_empty() {
        let calls = script.tools.iter();
        let calls: Vec<Value> = calls
            .map(|tool| call(tool, &tool.arguments.to_string()))
            .collect();
        set(&mut message, "content", Value::Null);
        set(&mut message, "tool_calls", Value::Array(calls));
    }
    let mut reply = json!({
        "id": format!("chatcmpl-mock-{}", script.number),
        "object": "chat.completion",
        "created": CREATED,
        "model": script.model,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason(script) }],
        "system_fingerprint": null,
    });
    if script.tells_usage {
        set(&mut reply, "usage", usage(script));
    }
    reply
}

/// A stream: the role, each token behind its pause, the reason, what was used, the mark.
pub(super) fn stream(script: &Script, token_ms: u64) -> Vec<Step> {
    let chunk = |choices: Value| {
        let mut chunk = json!({
            "id": format!("chatcmpl-mock-{}", script.number),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": script.model,
            "system_fingerprint": null,
            "choices": choices,
        });
        if script.tells_usage && script.streams_usage {
            set(&mut chunk, "usage", Value::Null);
        }
        chunk
    };
    let delta = |delta: Value, reason: Value| {
        let choice =
            json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason });
        event(&chunk(json!([choice])))
    };
    let mut steps = vec![delta(
        json!({ "role": "assistant", "content": "", "refusal": null }),
        Value::Null,
    )];
    for token in &script.tokens {
        steps.push(Step::Wait(token_ms));
        steps.push(delta(json!({ "content": token }), Value::Null));
    }
    for (at, tool) in script.tools.iter().enumerate() {
        let mut first = call(tool, "");
        set(&mut first, "index", json!(at));
        steps.push(Step::Wait(token_ms));
        steps.push(delta(json!({ "tool_calls": [first] }), Value::Null));
        let text = tool.arguments.to_string();
        let more = json!({ "index": at, "function": { "arguments": text } });
        steps.push(delta(json!({ "tool_calls": [more] }), Value::Null));
    }
    steps.push(delta(json!({}), json!(reason(script))));
    if script.tells_usage && script.streams_usage {
        let mut last = chunk(json!([]));
        set(&mut last, "usage", usage(script));
        steps.push(event(&last));
    }
    steps.push(Step::Bytes(b"data: [DONE]\n\n".to_vec()));
    steps
}

fn event(data: &Value) -> Step {
    Step::Bytes(format!("data: {data}\n\n").into_bytes())
}

fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}
