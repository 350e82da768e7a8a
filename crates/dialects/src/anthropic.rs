//! Messages: the names of a request, and what an event of its stream says.

use super::dialect::Dialect;
use super::json;
use super::stream_state::{StreamEvent, StreamState};
use super::usage::Tokens;

/// Reads the data of one event; its type decides, for the event's name only repeats it.
pub(super) fn event(state: &mut StreamState, data: &str) -> StreamEvent {
    let members = json::members(data);
    let kind = json::member(&members, "type").and_then(json::text);
    let usage_in = |raw: Option<&str>| {
        let inner = json::members(raw.unwrap_or_default());
        let usage = json::member(&inner, "usage");
        usage.map(|raw| Tokens::read(Dialect::Anthropic, raw))
    };
    match kind.as_deref() {
        Some("message_start") => {
            let told = usage_in(json::member(&members, "message"));
            state.tokens.overlay(told.unwrap_or_default());
            StreamEvent::Part
        }
        Some("message_delta") => {
            let mut told = usage_in(Some(data)).unwrap_or_default();
            // It repeats the input only if a server tool has added to it.
            if told.input < state.tokens.input {
                told.input = None;
            }
            state.tokens.overlay(told);
            state.finished = true;
            StreamEvent::Part
        }
        Some("message_stop") => StreamEvent::End,
        Some("error") => StreamEvent::Failed,
        Some("content_block_delta") => {
            state.pieces += 1;
            StreamEvent::Part
        }
        Some(_) => StreamEvent::Part,
        None => StreamEvent::Malformed,
    }
}
