//! Chat completions: the names of a request, and what an event of its stream says.

use super::dialect::Dialect;
use super::json;
use super::stream_state::{StreamEvent, StreamState};
use super::usage::Tokens;

/// Reads the data of one event.
pub(super) fn chunk(state: &mut StreamState, data: &str) -> StreamEvent {
    if data.trim() == "[DONE]" {
        return StreamEvent::End;
    }
    let members = json::members(data);
    if members.is_empty() {
        return StreamEvent::Malformed;
    }
    if json::member(&members, "error").is_some() {
        return StreamEvent::Failed;
    }
    let choices = json::elements(json::member(&members, "choices").unwrap_or_default());
    for choice in &choices {
        let inner = json::members(choice);
        let number = json::member(&inner, "index").and_then(json::number);
        let bit = 1_u128 << number.unwrap_or(0).min(127);
        state.choices.0 |= bit;
        if json::member(&inner, "finish_reason").is_some() {
            state.choices.1 |= bit;
        } else if carries(json::member(&inner, "delta").unwrap_or_default()) {
            state.pieces += 1;
        }
    }
    state.finished = state.choices.1 != 0 && state.choices.0 == state.choices.1;
    if let Some(usage) = json::member(&members, "usage") {
        state.tokens.overlay(Tokens::read(Dialect::OpenAi, usage));
        // Some gateways have a choice there all the same, with nothing in it, behind the last that has.
        if choices.is_empty() || state.finished && choices.iter().all(|raw| says_nothing(raw)) {
            return StreamEvent::UsageOnly;
        }
    }
    StreamEvent::Part
}

/// Returns whether a choice has neither a part of the reply nor its end.
fn says_nothing(choice: &str) -> bool {
    let members = json::members(choice);
    let delta = json::member(&members, "delta").unwrap_or_default();
    json::member(&members, "finish_reason").is_none() && json::members(delta).is_empty()
}

/// Returns whether a delta has something that the model wrote: the role, and the name of a tool, come before that.
fn carries(delta: &str) -> bool {
    let members = json::members(delta);
    let is_text = |raw: &str| raw.len() > 2;
    let has = |name| json::member(&members, name).is_some_and(is_text);
    let calls = json::elements(json::member(&members, "tool_calls").unwrap_or_default());
    let has_arguments = |call: &str| {
        let call = json::members(call);
        let function = json::members(json::member(&call, "function").unwrap_or_default());
        json::member(&function, "arguments").is_some_and(is_text)
    };
    [
        "content",
        "reasoning_content",
        "reasoning",
        "refusal",
        "function_call",
    ]
    .into_iter()
    .any(has)
        || calls.into_iter().any(has_arguments)
}
