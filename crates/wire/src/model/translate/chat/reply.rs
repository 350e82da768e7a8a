//! Whole replies. Those of a provider are read leniently: every member may be missing.

use std::borrow::Cow;

use super::super::ask::{Call, Part, Reply, Stop};
use super::usage;
use crate::model::endpoint::Dialect;
use crate::model::json::{self, member};
use crate::model::usage::Tokens;
use crate::model::write::{Object, list, quoted};
use crate::scan::Member;

/// Reads a reply; `None` where it is none, or says what no other dialect can say.
pub(in super::super) fn read(text: &str) -> Option<Reply<'_>> {
    let own = json::members(text);
    let choices = json::elements(member(&own, "choices")?);
    let [choice] = choices.as_slice() else {
        return None;
    };
    let choice = json::members(choice);
    let message = json::members(member(&choice, "message")?);
    let word = |name: &str| member(&message, name).and_then(json::text);
    let mut parts = Vec::new();
    let thoughts = word("reasoning_content").or_else(|| word("reasoning"));
    if let Some(text) = thoughts.filter(|text| !text.is_empty()) {
        parts.push(Part::Thinking {
            text,
            signature: None,
        });
    }
    if let Some(content) = member(&message, "content") {
        parts.extend(self::content(content)?);
    }
    let mut stop = stop(&choice);
    if let Some(refusal) = word("refusal").filter(|text| !text.is_empty()) {
        parts.push(Part::Refusal(refusal));
        stop = Stop::Refusal;
    }
    let left_out = left_out(&own, &choice, &message).into_iter().collect();
    if has_more(&message) {
        return None;
    }
    let calls = json::elements(member(&message, "tool_calls").unwrap_or_default());
    for (number, raw) in calls.into_iter().enumerate() {
        parts.push(Part::Call(call(number, raw)?));
        // Some say that they have stopped, and call a tool all the same.
        if stop == Stop::End {
            stop = Stop::Calls;
        }
    }
    Some(Reply {
        id: member(&own, "id").and_then(json::text).unwrap_or_default(),
        model: member(&own, "model")
            .and_then(json::text)
            .unwrap_or_default(),
        parts,
        stop,
        tokens: member(&own, "usage")
            .map_or_else(Tokens::default, |raw| Tokens::read(Dialect::OpenAi, raw)),
        left_out,
    })
}

/// What a reply, or an event of a stream, has that no other dialect can say.
pub(super) fn left_out(
    own: &[Member<'_>],
    choice: &[Member<'_>],
    message: &[Member<'_>],
) -> Vec<&'static str> {
    [
        (message, "annotations"),
        (choice, "logprobs"),
        (own, "moderation"),
    ]
    .into_iter()
    .filter(|(of, name)| member(of, name).is_some_and(|raw| raw != "[]"))
    .map(|(_, name)| name)
    .collect()
}

/// Whether a message, or a piece of one, has more than words and calls of tools.
pub(super) fn has_more(message: &[Member<'_>]) -> bool {
    let has = |name: &str| member(message, name).is_some_and(|raw| raw != "[]");
    ["audio", "function_call", "images"].into_iter().any(has)
}

/// A content: a text, or parts, among which some have the model's thoughts. Empty ones are left out.
pub(super) fn content(raw: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    if let Some(text) = json::text(raw) {
        parts.push(Part::Text(text));
    }
    for raw in json::elements(raw) {
        let own = json::members(raw);
        let word = |name: &str| member(&own, name).and_then(json::text);
        match word("type")?.as_ref() {
            "text" => parts.push(Part::Text(word("text")?)),
            "thinking" => {
                for inner in json::elements(member(&own, "thinking")?) {
                    let text = member(&json::members(inner), "text").and_then(json::text)?;
                    parts.push(Part::Thinking {
                        text,
                        signature: None,
                    });
                }
            }
            _ => return None,
        }
    }
    parts.retain(
        |part| !matches!(part, Part::Text(text) | Part::Thinking { text, .. } if text.is_empty()),
    );
    Some(parts)
}

fn call(number: usize, raw: &str) -> Option<Call<'_>> {
    let own = json::members(raw);
    let function = json::members(member(&own, "function")?);
    let input = member(&function, "arguments").and_then(json::text);
    let input = input.filter(|text| !text.trim().is_empty());
    let input = input.unwrap_or(Cow::Borrowed("{}"));
    let id = member(&own, "id").and_then(json::text);
    json::is_object(&input).then_some(())?;
    Some(Call {
        id: id.unwrap_or_else(|| format!("call_{number}").into()),
        name: member(&function, "name").and_then(json::text)?,
        input,
        signature: None,
    })
}

/// Why the model stopped.
pub(super) fn stop(choice: &[crate::scan::Member<'_>]) -> Stop {
    let reason = member(choice, "finish_reason").and_then(json::text);
    match reason.as_deref() {
        Some("length") => Stop::Length,
        Some("tool_calls" | "function_call") => Stop::Calls,
        Some("content_filter") => Stop::Refusal,
        // Some servers say which text they stopped at.
        _ => match member(choice, "stop_reason").and_then(json::text) {
            Some(text) if reason.as_deref() == Some("stop") => Stop::Sequence(text.into_owned()),
            _ => Stop::End,
        },
    }
}

/// The reason, as chat completions have it.
pub(super) fn reason(stop: &Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Sequence(_) => "stop",
        Stop::Length => "length",
        Stop::Calls => "tool_calls",
        Stop::Refusal => "content_filter",
    }
}

/// The text that the model stopped at, where it is known.
pub(super) fn sequence(stop: &Stop) -> Option<Vec<u8>> {
    match stop {
        Stop::Sequence(text) => Some(quoted(text)),
        _ => None,
    }
}

/// Writes a reply; `created` is when, in seconds since 1970.
pub(in super::super) fn write(reply: &Reply<'_>, created: u64) -> Option<Vec<u8>> {
    let (mut words, mut thoughts, mut refusal) = (None, String::new(), None);
    let (mut calls, mut blocks) = (Vec::new(), Vec::new());
    for part in &reply.parts {
        match part {
            Part::Text(text) => words.get_or_insert_with(String::new).push_str(text),
            Part::Refusal(text) => refusal = Some(quoted(text)),
            Part::Call(own) => calls.push(super::ask::call(own, &own.input).end()),
            Part::Thinking { text, signature } => {
                thoughts.push_str(text);
                // Only what has a signature has to be given back as it is.
                blocks.extend(signature.as_ref().map(|own| thinking(text, own)));
            }
            Part::Redacted(data) => blocks.push(redacted(data)),
            Part::Image(_) | Part::Document { .. } | Part::Result { .. } => return None,
        }
    }
    let content = words.map_or_else(|| b"null".to_vec(), |words| quoted(&words));
    let message = Object::new()
        .text("role", "assistant")
        .raw("content", content)
        .raw("refusal", refusal.unwrap_or_else(|| b"null".to_vec()))
        .raw_if(
            "reasoning_content",
            (!thoughts.is_empty()).then(|| quoted(&thoughts)),
        )
        .raw_if(
            "thinking_blocks",
            (!blocks.is_empty()).then(|| list(blocks)),
        )
        .raw_if("tool_calls", (!calls.is_empty()).then(|| list(calls)));
    let choice = Object::new()
        .raw("index", "0")
        .raw("message", message.end())
        .raw("logprobs", "null")
        .text("finish_reason", reason(&reply.stop))
        .raw_if("stop_reason", sequence(&reply.stop));
    let told = reply.tokens != Tokens::default();
    let body = Object::new()
        .text("id", &reply.id)
        .text("object", "chat.completion")
        .raw("created", created.to_string())
        .text("model", &reply.model)
        .raw("choices", list([choice.end()]))
        .raw_if("usage", told.then(|| usage::write(reply.tokens)));
    Some(body.end())
}

/// Thoughts as they have to be given back, signature and all.
pub(super) fn thinking(text: &str, signature: &str) -> Vec<u8> {
    let block = Object::new().text("type", "thinking");
    let block = block.text("thinking", text);
    block.text("signature", signature).end()
}

/// Thoughts that only the provider can read.
pub(super) fn redacted(data: &str) -> Vec<u8> {
    let block = Object::new().text("type", "redacted_thinking");
    block.text("data", data).end()
}
