//! Whole replies. Those of a provider are read leniently: every member may be missing.

use std::borrow::Cow;

use super::super::arguments;
use super::super::ask::{Call, Part, Reply, Stop};
use super::super::fields::{LeftOut, unknown};
use super::usage;
use crate::dialect::Dialect;
use crate::json::{self, member};
use crate::usage::Tokens;
use crate::write::{Object, list, quoted};
use wire::scan::Member;

/// Reads a reply; `None` where it is none. `stamp` is that of the request: its id, and when it was answered.
pub(in super::super) fn read<'a>(text: &'a str, stamp: (&str, u64)) -> Option<Reply<'a>> {
    let own = json::members(text);
    let choices = json::elements(member(&own, "choices")?);
    let (choice, more) = choices.split_first()?;
    let choice = json::members(choice);
    let message = json::members(member(&choice, "message")?);
    let word = |name: &str| member(&message, name).and_then(json::text);
    let mut left_out: LeftOut = left_out(&own, &choice, &message).into_iter().collect();
    if !more.is_empty() {
        left_out.insert("choices");
    }
    let mut parts = Vec::new();
    let thoughts = word("reasoning_content").or_else(|| word("reasoning"));
    if let Some(text) = thoughts.filter(|text| !text.is_empty()) {
        parts.push(Part::Thinking {
            text,
            signature: None,
        });
    }
    if let Some(content) = member(&message, "content") {
        parts.extend(self::content(content, &mut left_out));
    }
    let mut stop = stop(&choice, &mut left_out);
    if let Some(refusal) = word("refusal").filter(|text| !text.is_empty()) {
        parts.push(Part::Refusal(refusal));
        stop = Stop::Refusal;
    }
    let id = member(&own, "id").and_then(json::text).unwrap_or_default();
    let calls = json::elements(member(&message, "tool_calls").unwrap_or_default());
    let legacy = member(&message, "function_call").filter(|_| calls.is_empty());
    let calls = calls.into_iter().map(|raw| (raw, "function"));
    let calls = calls.chain(legacy.map(|raw| (raw, "")));
    for (number, (raw, below)) in calls.enumerate() {
        match call(raw, below, || arguments::id_of(&id, stamp, number)) {
            Some(call) => parts.push(Part::Call(call)),
            None => {
                left_out.insert("tool_calls");
                continue;
            }
        }
        // Some say that they have stopped, and call a tool all the same.
        if stop == Stop::End {
            stop = Stop::Calls;
        }
    }
    Some(Reply {
        id,
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

/// Members of a message, or of a piece of one, that are read, or say nothing that a caller could miss.
const KNOWN: [&str; 12] = [
    "role",
    "content",
    "refusal",
    "reasoning_content",
    "reasoning",
    "tool_calls",
    "function_call",
    "name",
    "prefix",
    "tool_call_id",
    "reasoning_signature",
    "obfuscation",
];

/// Returns what a reply, or an event of a stream, has that no other dialect can say.
pub(super) fn left_out(
    own: &[Member<'_>],
    choice: &[Member<'_>],
    message: &[Member<'_>],
) -> Vec<Cow<'static, str>> {
    let is_said = |raw: &str| !matches!(raw, "null" | "[]" | "\"\"" | "{}" | "false");
    let known = [(choice, "logprobs"), (own, "moderation")];
    let known = known
        .into_iter()
        .filter(|(of, name)| member(of, name).is_some_and(is_said));
    let known = known.map(|(_, name)| Cow::Borrowed(name));
    let unknown = message
        .iter()
        .filter(|(name, raw)| !KNOWN.contains(&name.as_ref()) && is_said(raw))
        .map(|(name, _)| match name.as_ref() {
            "annotations" => Cow::Borrowed("annotations"),
            name => unknown("message", name),
        });
    known.chain(unknown).collect()
}

/// Reads a content: a text, or parts, among which some have the model's thoughts. Empty ones are left out.
pub(super) fn content<'a>(raw: &'a str, left_out: &mut LeftOut) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    if let Some(text) = json::text(raw) {
        parts.push(Part::Text(text));
    }
    for raw in json::elements(raw) {
        let own = json::members(raw);
        let word = |name: &str| member(&own, name).and_then(json::text);
        let kind = word("type").unwrap_or_default();
        match kind.as_ref() {
            "text" | "output_text" => parts.extend(word("text").map(Part::Text)),
            "refusal" => parts.extend(word("refusal").map(Part::Refusal)),
            "thinking" => {
                let inner = json::elements(member(&own, "thinking").unwrap_or_default());
                let texts = inner
                    .into_iter()
                    .filter_map(|raw| member(&json::members(raw), "text").and_then(json::text));
                let texts = texts.chain(word("thinking"));
                parts.extend(texts.map(|text| Part::Thinking {
                    text,
                    signature: None,
                }));
            }
            kind => {
                left_out.insert(unknown("content", kind));
            }
        }
    }
    parts.retain(
        |part| !matches!(part, Part::Text(text) | Part::Thinking { text, .. } if text.is_empty()),
    );
    parts
}

/// Reads a call; `None` where it calls nothing by a name. `below` is where its function is, `id` makes an id.
fn call<'a>(raw: &'a str, below: &str, id: impl FnOnce() -> String) -> Option<Call<'a>> {
    let own = json::members(raw);
    let inner = member(&own, below).map(json::members);
    let function = inner.as_ref().unwrap_or(&own);
    let name = member(function, "name").and_then(json::text)?;
    let input = member(function, "arguments").and_then(arguments::of_server);
    let input = input.filter(|text| !text.trim().is_empty());
    let own_id = member(&own, "id").and_then(json::text);
    Some(Call {
        id: own_id
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| id().into()),
        name,
        input: input.unwrap_or(Cow::Borrowed("{}")),
        signature: None,
    })
}

/// Returns why the model stopped. A reason that is not known counts as an end, and is named.
pub(super) fn stop(choice: &[Member<'_>], left_out: &mut LeftOut) -> Stop {
    let reason = member(choice, "finish_reason").and_then(json::text);
    match reason.as_deref() {
        Some("length" | "max_tokens") => Stop::Length,
        Some("tool_calls" | "function_call") => Stop::Calls,
        Some("content_filter") => Stop::Refusal,
        // Some servers say which text they stopped at.
        Some("stop") => match member(choice, "stop_reason").and_then(json::text) {
            Some(text) => Stop::Sequence(text.into_owned()),
            None => Stop::End,
        },
        None | Some("eos" | "end_turn" | "") => Stop::End,
        Some(other) => {
            left_out.insert(unknown("finish_reason", other));
            Stop::End
        }
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
                blocks.extend(signature.as_ref().map(|own| thinking(text, own).end()));
            }
            Part::Redacted(data) => blocks.push(redacted(data).end()),
            Part::Image(_) | Part::Document { .. } | Part::Result { .. } | Part::CacheMark(_) => {
                return None;
            }
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
pub(super) fn thinking(text: &str, signature: &str) -> Object {
    let block = Object::new().text("type", "thinking");
    let block = block.text("thinking", text);
    block.text("signature", signature)
}

/// Thoughts that only the provider can read.
pub(super) fn redacted(data: &str) -> Object {
    let block = Object::new().text("type", "redacted_thinking");
    block.text("data", data)
}
