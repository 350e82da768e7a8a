//! OpenAI's responses.

use serde_json::{Value, json};

use super::Step;
use super::script::Script;

/// When every reply was made, in seconds since 1970.
const CREATED: u64 = 1_760_000_000;

fn response(script: &Script, status: &str, output: &[Value]) -> Value {
    let ended = status != "in_progress";
    let usage = json!({
        "input_tokens": script.prompt_tokens,
        "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
        "output_tokens": script.output_tokens(),
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": script.prompt_tokens + script.output_tokens(),
    });
    json!({
        "id": format!("resp_mock_{}", script.number),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": if status == "incomplete" { json!({ "reason": "max_output_tokens" }) } else { Value::Null },
        "instructions": null,
        "max_output_tokens": null,
        "model": script.model,
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": { "effort": null, "summary": null },
        "store": false,
        "temperature": 1.0,
        "text": { "format": { "type": "text" } },
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": if ended && script.tells_usage { usage } else { Value::Null },
        "metadata": {},
    })
}

fn ended(script: &Script) -> &'static str {
    if script.is_cut {
        "incomplete"
    } else {
        "completed"
    }
}

fn text_item(script: &Script, status: &str, content: &[Value]) -> Value {
    json!({ "id": format!("msg_mock_{}", script.number), "type": "message", "status": status, "role": "assistant", "content": content })
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn items(script: &Script) -> Vec<Value> {
    let mut output = Vec::new();
    if !script.tokens.is_empty() {
        output.push(text_item(
            script,
            ended(script),
            &[text_part(&script.tokens.concat())],
        ));
    }
    for tool in &script.tools {
        output.push(json!({ "id": format!("fc_{}", tool.id), "type": "function_call", "status": "completed", "call_id": tool.id, "name": tool.name, "arguments": tool.arguments.to_string() }));
    }
    output
}

/// A whole reply.
pub(super) fn whole(script: &Script) -> Value {
    response(script, ended(script), &items(script))
}

/// A stream.
pub(super) fn stream(script: &Script, token_ms: u64) -> Vec<Step> {
    let mut out = Events::default();
    let begun = response(script, "in_progress", &[]);
    out.say("response.created", json!({ "response": begun }));
    out.say("response.in_progress", json!({ "response": begun }));
    let items = items(script);
    let mut index = 0;
    if !script.tokens.is_empty() {
        let id = format!("msg_mock_{}", script.number);
        out.say(
            "response.output_item.added",
            json!({ "output_index": index, "item": text_item(script, "in_progress", &[]) }),
        );
        out.say("response.content_part.added", json!({ "item_id": id, "output_index": index, "content_index": 0, "part": text_part("") }));
        for token in &script.tokens {
            out.0.push(Step::Wait(token_ms));
            out.say("response.output_text.delta", json!({ "item_id": id, "output_index": index, "content_index": 0, "delta": token, "logprobs": [] }));
        }
        let text = script.tokens.concat();
        out.say("response.output_text.done", json!({ "item_id": id, "output_index": index, "content_index": 0, "text": text, "logprobs": [] }));
        out.say("response.content_part.done", json!({ "item_id": id, "output_index": index, "content_index": 0, "part": text_part(&text) }));
        out.say(
            "response.output_item.done",
            json!({ "output_index": index, "item": items.first() }),
        );
        index += 1;
    }
    for tool in &script.tools {
        let id = format!("fc_{}", tool.id);
        let text = tool.arguments.to_string();
        out.0.push(Step::Wait(token_ms));
        out.say("response.output_item.added", json!({ "output_index": index, "item": { "id": id, "type": "function_call", "status": "in_progress", "call_id": tool.id, "name": tool.name, "arguments": "" } }));
        out.say(
            "response.function_call_arguments.delta",
            json!({ "item_id": id, "output_index": index, "delta": text }),
        );
        out.say(
            "response.function_call_arguments.done",
            json!({ "item_id": id, "output_index": index, "name": tool.name, "arguments": text }),
        );
        out.say(
            "response.output_item.done",
            json!({ "output_index": index, "item": items.get(index) }),
        );
        index += 1;
    }
    let name = format!("response.{}", ended(script));
    out.say(
        &name,
        json!({ "response": response(script, ended(script), &items) }),
    );
    out.0
}

/// Events with their numbers.
#[derive(Default)]
struct Events(Vec<Step>);

impl Events {
    fn say(&mut self, name: &str, mut data: Value) {
        let number = self
            .0
            .iter()
            .filter(|step| matches!(step, Step::Bytes(_)))
            .count();
        if let Some(members) = data.as_object_mut() {
            members.insert("type".to_owned(), json!(name));
            members.insert("sequence_number".to_owned(), json!(number));
        }
        self.0.push(Step::Bytes(
            format!("event: {name}\ndata: {data}\n\n").into_bytes(),
        ));
    }
}
