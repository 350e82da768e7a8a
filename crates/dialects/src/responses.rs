//! Responses: the names of a request, and what an event of its stream says.

use super::dialect::Dialect;
use super::json;
use super::stream_state::{StreamEvent, StreamState};
use super::usage::Tokens;

/// Reads the data of one event.
pub(super) fn event(state: &mut StreamState, data: &str) -> StreamEvent {
    // Some servers end as chat completions do.
    if data.trim() == "[DONE]" {
        return StreamEvent::End;
    }
    let members = json::members(data);
    let Some(kind) = json::member(&members, "type").and_then(json::text) else {
        return StreamEvent::Malformed;
    };
    match kind.as_ref() {
        "response.completed" | "response.incomplete" | "response.failed" => {
            let response = json::members(json::member(&members, "response").unwrap_or_default());
            if let Some(usage) = json::member(&response, "usage") {
                state.tokens.overlay(Tokens::read(Dialect::OpenAi, usage));
            }
            state.finished = true;
            if kind == "response.failed" {
                StreamEvent::Failed
            } else {
                StreamEvent::End
            }
        }
        "error" => StreamEvent::Failed,
        kind => {
            state.pieces += u64::from(kind.ends_with(".delta"));
            StreamEvent::Part
        }
    }
}
