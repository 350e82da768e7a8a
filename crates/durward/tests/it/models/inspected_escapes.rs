//! What `inspect:` finds where a model writes JSON in a string, and where a provider names its events.

use serde_json::{Value, json};

use super::support::{Upstream, events, request, serve};
use crate::support::web::{json_reply, reply};

const RULE: &str = "cases: { patterns: ['CASE-[0-9]{6}'], on: results, action: mask }";

fn call(arguments: &str) -> Value {
    json!([{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}])
}

/// The arguments of a call that a model writes are JSON in a string, and it may spell a character as an escape.
#[test]
fn an_escape_in_the_arguments_of_a_models_call_hides_nothing() {
    let written = r#"{"text":"C\u0041SE\u002d123456","n":1}"#;
    let upstream = Upstream::before(move |asked| {
        let is_stream = String::from_utf8_lossy(&asked.body).contains("\"stream\":true");
        if !is_stream {
            let message =
                json!({"role": "assistant", "content": null, "tool_calls": call(written)});
            let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
            return Some(json_reply(&json!({"id": "x", "choices": [choice]})));
        }
        let mut text = String::new();
        for part in written.split_inclusive('4').chain([""]) {
            let delta = json!({"tool_calls": call(part)});
            let stop = part.is_empty().then_some("tool_calls");
            let choice = json!({"index": 0, "delta": delta, "finish_reason": stop});
            let event = json!({"id": "x", "choices": [choice]});
            text.push_str(&format!("data: {event}\n\n"));
        }
        text.push_str("data: [DONE]\n\n");
        Some(reply("200 OK", "", "text/event-stream", &text))
    });
    let path = "/v1/chat/completions";
    let provider = upstream.configured("o", path);
    let served = serve(
        &format!("models: {{ providers: {{ {provider} }} }}\ninspect:\n  {RULE}\n"),
        &[],
    );
    let masked = r#"{"text":"[masked: cases]","n":1}"#;
    let whole = served.send("POST", path, &[], &request(path, "o/m", false).to_string());
    let at = "/choices/0/message/tool_calls/0/function/arguments";
    assert_eq!(whole.json().pointer(at), Some(&json!(masked)), "{whole:?}");
    let streamed = served.send("POST", path, &[], &request(path, "o/m", true).to_string());
    let at = "/choices/0/delta/tool_calls/0/function/arguments";
    let part = |event: String| -> Option<String> {
        let event: Value = serde_json::from_str(&event).ok()?;
        Some(event.pointer(at)?.as_str()?.to_owned())
    };
    let text: String = events(&streamed).into_iter().filter_map(part).collect();
    assert_eq!(text, masked, "{streamed:?}");
}

/// Chat completions have no names of events, so nobody would look for anything there.
#[test]
fn what_a_rule_finds_in_the_name_of_an_event_reaches_nobody() {
    let upstream = Upstream::before(|_| {
        let choice = json!({"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"});
        let event = json!({"id": "x", "choices": [choice]});
        let text = format!("event: CASE-123456\ndata: {event}\n\ndata: [DONE]\n\n");
        Some(reply("200 OK", "", "text/event-stream", &text))
    });
    let path = "/v1/chat/completions";
    let provider = upstream.configured("o", path);
    let served = serve(
        &format!("models: {{ providers: {{ {provider} }} }}\ninspect:\n  {RULE}\n"),
        &[],
    );
    let streamed = served.send("POST", path, &[], &request(path, "o/m", true).to_string());
    assert!(!streamed.body.contains("CASE-1"), "{streamed:?}");
    assert!(streamed.body.contains("reply_withheld"), "{streamed:?}");
}
