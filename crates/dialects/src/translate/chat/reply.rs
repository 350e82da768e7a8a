//! Whole replies. Those of a provider are read leniently: every member may be missing.

use std::borrow::Cow;

use super::super::arguments;
use super::super::ask::{ContentPart, ModelReply, StopReason, ToolCall};
use super::super::fields::{LeftOut, unknown};
use super::usage;
use crate::dialect::Dialect;
use crate::json::{self, member};
use crate::usage::Tokens;
use crate::write::{ObjectWriter, list, quote};
use wire::scan::Member;

/// Reads a reply; `None` if it is not one. `stamp` is that of the request: its id, and the time of the answer.
pub(in super::super) fn read<'a>(text: &'a str, stamp: (&str, u64)) -> Option<ModelReply<'a>> {
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
        parts.push(ContentPart::Thinking {
            text,
            signature: None,
        });
    }
    if let Some(content) = member(&message, "content") {
        parts.extend(self::content(content, &mut left_out));
    }
    let mut stop = stop(&choice, &mut left_out);
    if let Some(refusal) = word("refusal").filter(|text| !text.is_empty()) {
        parts.push(ContentPart::Refusal(refusal));
        stop = StopReason::Refusal;
    }
    let id = member(&own, "id").and_then(json::text).unwrap_or_default();
    let calls = json::elements(member(&message, "tool_calls").unwrap_or_default());
    let legacy = member(&message, "function_call").filter(|_| calls.is_empty());
    let calls = calls.into_iter().map(|raw| (raw, "function"));
    let calls = calls.chain(legacy.map(|raw| (raw, "")));
    for (number, (raw, below)) in calls.enumerate() {
        match call(raw, below, || arguments::id_of(&id, stamp, number)) {
            Some(call) => parts.push(ContentPart::Call(call)),
            None => {
                left_out.insert("tool_calls");
                continue;
            }
        }
        // Some say that they have stopped, and call a tool all the same.
        if stop == StopReason::End {
            stop = StopReason::Calls;
        }
    }
    Some(ModelReply {
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
pub(super) fn content<'a>(raw: &'a str, left_out: &mut LeftOut) -> Vec<ContentPart<'a>> {
    let mut parts = Vec::new();
    if let Some(text) = json::text(raw) {
        parts.push(ContentPart::Text(text));
    }
    for raw in json::elements(raw) {
        let own = json::members(raw);
        let word = |name: &str| member(&own, name).and_then(json::text);
        let kind = word("type").unwrap_or_default();
        match kind.as_ref() {
            "text" | "output_text" => parts.extend(word("text").map(ContentPart::Text)),
            "refusal" => parts.extend(word("refusal").map(ContentPart::Refusal)),
            "thinking" => {
                let inner = json::elements(member(&own, "thinking").unwrap_or_default());
                let texts = inner
                    .into_iter()
                    .filter_map(|raw| member(&json::members(raw), "text").and_then(json::text));
                let texts = texts.chain(word("thinking"));
                parts.extend(texts.map(|text| ContentPart::Thinking {
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
        |part| !matches!(part, ContentPart::Text(text) | ContentPart::Thinking { text, .. } if text.is_empty()),
    );
    parts
}

/// Reads a call; `None` for a call without a name. `below` is the place of its function, `id` makes an id.
fn call<'a>(raw: &'a str, below: &str, id: impl FnOnce() -> String) -> Option<ToolCall<'a>> {
    let own = json::members(raw);
    let inner = member(&own, below).map(json::members);
    let function = inner.as_ref().unwrap_or(&own);
    let name = member(function, "name").and_then(json::text)?;
    let input = member(function, "arguments").and_then(arguments::of_server);
    let input = input.filter(|text| !text.trim().is_empty());
    let own_id = member(&own, "id").and_then(json::text);
    Some(ToolCall {
        id: own_id
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| id().into()),
        name,
        input: input.unwrap_or(Cow::Borrowed("{}")),
        signature: None,
    })
}

/// Returns why the model stopped. A reason that is not known counts as an end, and is named.
pub(super) fn stop(choice: &[Member<'_>], left_out: &mut LeftOut) -> StopReason {
    let reason = member(choice, "finish_reason").and_then(json::text);
    match reason.as_deref() {
        Some("length" | "max_tokens") => StopReason::Length,
        Some("tool_calls" | "function_call") => StopReason::Calls,
        Some("content_filter") => StopReason::Refusal,
        // Some servers say which text they stopped at.
        Some("stop") => match member(choice, "stop_reason").and_then(json::text) {
            Some(text) => StopReason::Sequence(text.into_owned()),
            None => StopReason::End,
        },
        None | Some("eos" | "end_turn" | "") => StopReason::End,
        Some(other) => {
            left_out.insert(unknown("finish_reason", other));
            StopReason::End
        }
    }
}

/// Returns the reason, as chat completions have it.
pub(super) fn reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::End | StopReason::Sequence(_) => "stop",
        StopReason::Length => "length",
        StopReason::Calls => "tool_calls",
        StopReason::Refusal => "content_filter",
    }
}

/// Returns the text that the model stopped at, if it is known.
pub(super) fn sequence(stop: &StopReason) -> Option<Vec<u8>> {
    match stop {
        StopReason::Sequence(text) => Some(quote(text)),
        _ => None,
    }
}

/// Writes a reply; `created` is when, in seconds since 1970.
pub(in super::super) fn write(reply: &ModelReply<'_>, created: u64) -> Option<Vec<u8>> {
    let (mut words, mut thoughts, mut refusal) = (None, String::new(), None);
    let (mut calls, mut blocks) = (Vec::new(), Vec::new());
    for part in &reply.parts {
        match part {
            ContentPart::Text(text) => words.get_or_insert_with(String::new).push_str(text),
            ContentPart::Refusal(text) => refusal = Some(quote(text)),
            ContentPart::Call(own) => calls.push(super::ask::call(own, &own.input).end()),
            ContentPart::Thinking { text, signature } => {
                thoughts.push_str(text);
                // Only what has a signature has to be given back as it is.
                blocks.extend(signature.as_ref().map(|own| thinking(text, own).end()));
            }
            ContentPart::Redacted(data) => blocks.push(redacted(data).end()),
            ContentPart::Image(_)
            | ContentPart::Document { .. }
            | ContentPart::Result { .. }
            | ContentPart::CacheMark(_) => {
                return None;
            }
        }
    }
    let content = words.map_or_else(|| b"null".to_vec(), |words| quote(&words));
    let message = ObjectWriter::new()
        .text("role", "assistant")
        .raw("content", content)
        .raw("refusal", refusal.unwrap_or_else(|| b"null".to_vec()))
        .raw_if(
            "reasoning_content",
            (!thoughts.is_empty()).then(|| quote(&thoughts)),
        )
        .raw_if(
            "thinking_blocks",
            (!blocks.is_empty()).then(|| list(blocks)),
        )
        .raw_if("tool_calls", (!calls.is_empty()).then(|| list(calls)));
    let choice = ObjectWriter::new()
        .raw("index", "0")
        .raw("message", message.end())
        .raw("logprobs", "null")
        .text("finish_reason", reason(&reply.stop))
        .raw_if("stop_reason", sequence(&reply.stop));
    let told = reply.tokens != Tokens::default();
    let body = ObjectWriter::new()
        .text("id", &reply.id)
        .text("object", "chat.completion")
        .raw("created", created.to_string())
        .text("model", &reply.model)
        .raw("choices", list([choice.end()]))
        .raw_if("usage", told.then(|| usage::write(reply.tokens)));
    Some(body.end())
}

/// Thoughts as they have to be given back, signature and all.
pub(super) fn thinking(text: &str, signature: &str) -> ObjectWriter {
    let block = ObjectWriter::new().text("type", "thinking");
    let block = block.text("thinking", text);
    block.text("signature", signature)
}

/// Thoughts that only the provider can read.
pub(super) fn redacted(data: &str) -> ObjectWriter {
    let block = ObjectWriter::new().text("type", "redacted_thinking");
    block.text("data", data)
}
