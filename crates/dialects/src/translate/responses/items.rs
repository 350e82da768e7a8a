//! The objects that whole replies and streams have in common.

use crate::json;
use crate::usage::Tokens;
use crate::write::{ObjectWriter, list, quote};

use super::super::ReplyStamp;
use super::super::ask::StopReason;

/// Prefix of thoughts that only their provider can read, to distinguish them from a signature.
pub(super) const REDACTED: &str = "redacted_thinking:";

/// Members of a request that a response repeats, and their defaults.
const REPEATED: [(&str, &str); 11] = [
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("metadata", "{}"),
    ("parallel_tool_calls", "true"),
    ("previous_response_id", "null"),
    ("reasoning", "{\"effort\":null,\"summary\":null}"),
    ("temperature", "null"),
    ("text", "{\"format\":{\"type\":\"text\"}}"),
    ("tool_choice", "\"auto\""),
    ("tools", "[]"),
    ("top_p", "null"),
];

/// What every object of one response says alike.
#[derive(Debug, Default)]
pub(super) struct ResponseHead {
    pub id: String,
    pub model: String,
    created: u64,
    /// The members that are repeated, as they are written.
    repeated: Vec<(&'static str, String)>,
}

impl ResponseHead {
    pub fn new(stamp: ReplyStamp<'_>) -> Self {
        let asked = json::members(stamp.asked);
        let repeated = REPEATED.into_iter().map(|(name, usual)| {
            let own = json::member(&asked, name);
            (name, own.unwrap_or(usual).to_owned())
        });
        Self {
            created: stamp.created,
            repeated: repeated.collect(),
            ..Self::default()
        }
    }

    /// Returns a response with this output; `ended` is why the model stopped and what was used, once it has.
    pub fn response(&self, output: &[Vec<u8>], ended: Option<(&StopReason, Tokens)>) -> Vec<u8> {
        let refused = output.iter().any(|item| is_refusal(item));
        let (status, why) = match ended {
            None => ("in_progress", None),
            Some((StopReason::Length, _)) => ("incomplete", Some("max_output_tokens")),
            // A refusal in words is a whole reply; a filter's is none.
            Some((StopReason::Refusal, _)) if !refused => ("incomplete", Some("content_filter")),
            Some(_) => ("completed", None),
        };
        let why = why.map(|why| ObjectWriter::new().text("reason", why).end());
        let null = || b"null".to_vec();
        let mut response = ObjectWriter::new()
            .text("id", &self.id)
            .text("object", "response")
            .raw("created_at", self.created.to_string())
            .text("status", status)
            .raw("background", "false")
            .raw("error", "null")
            .raw("incomplete_details", why.unwrap_or_else(null))
            .text("model", &self.model)
            .raw("output", list(output));
        for (name, value) in &self.repeated {
            response = response.raw(name, value);
        }
        let told = ended.filter(|(_, tokens)| *tokens != Tokens::default());
        response
            .raw("store", "false")
            .text("truncation", "disabled")
            .raw("usage", told.map_or_else(null, |(_, tokens)| usage(tokens)))
            .end()
    }
}

/// Returns whether a response ends before its time.
pub(super) fn is_incomplete(response: &[u8]) -> bool {
    let text = std::str::from_utf8(response).unwrap_or_default();
    let own = json::members(text);
    json::member(&own, "status") == Some("\"incomplete\"")
}

fn is_refusal(item: &[u8]) -> bool {
    let text = std::str::from_utf8(item).unwrap_or_default();
    let own = json::members(text);
    let parts = json::elements(json::member(&own, "content").unwrap_or_default());
    parts
        .into_iter()
        .any(|part| json::member(&json::members(part), "type") == Some("\"refusal\""))
}

fn usage(tokens: Tokens) -> Vec<u8> {
    let (input, output) = (tokens.input.unwrap_or(0), tokens.output.unwrap_or(0));
    let number = |number: u64| number.to_string();
    let read = ObjectWriter::new()
        .raw("cached_tokens", number(tokens.cached.unwrap_or(0)))
        .raw("cache_write_tokens", number(tokens.written.unwrap_or(0)));
    let wrote = ObjectWriter::new().raw("reasoning_tokens", number(tokens.reasoning.unwrap_or(0)));
    ObjectWriter::new()
        .raw("input_tokens", number(input))
        .raw("input_tokens_details", read.end())
        .raw("output_tokens", number(output))
        .raw("output_tokens_details", wrote.end())
        .raw("total_tokens", number(input.saturating_add(output)))
        .end()
}

/// Returns a message; `parts` are its content.
pub(super) fn message(id: &str, status: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    ObjectWriter::new()
        .text("id", id)
        .text("type", "message")
        .text("status", status)
        .text("role", "assistant")
        .raw("content", list(parts))
        .end()
}

/// Returns a part of a message.
pub(super) fn text_part(text: &str) -> Vec<u8> {
    ObjectWriter::new()
        .text("type", "output_text")
        .text("text", text)
        .raw("annotations", "[]")
        .raw("logprobs", "[]")
        .end()
}

/// Returns a part of a message that says that the model will not.
pub(super) fn refusal_part(text: &str) -> Vec<u8> {
    let part = ObjectWriter::new().text("type", "refusal");
    part.text("refusal", text).end()
}

/// Thoughts, with what their provider wants back.
pub(super) fn reasoning(id: &str, text: &str, encrypted: Option<&str>) -> Vec<u8> {
    let summary = (!text.is_empty()).then(|| summary_part(text));
    ObjectWriter::new()
        .text("id", id)
        .text("type", "reasoning")
        .raw("summary", list(summary))
        .raw_if("encrypted_content", encrypted.map(quote))
        .end()
}

/// Returns the text of thoughts.
pub(super) fn summary_part(text: &str) -> Vec<u8> {
    let part = ObjectWriter::new().text("type", "summary_text");
    part.text("text", text).end()
}

/// Returns a call of a tool.
pub(super) fn call(id: &str, status: &str, (call, name): (&str, &str), arguments: &str) -> Vec<u8> {
    ObjectWriter::new()
        .text("id", id)
        .text("type", "function_call")
        .text("status", status)
        .text("call_id", call)
        .text("name", name)
        .text("arguments", arguments)
        .end()
}

/// Returns the id of the item at this place of the output: a message, a reasoning or a call by its prefix.
pub(super) fn id(head: &ResponseHead, prefix: &str, at: usize) -> String {
    format!("{prefix}_{}_{at}", head.id)
}
