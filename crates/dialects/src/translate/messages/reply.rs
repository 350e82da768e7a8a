//! Whole replies. Those of a provider are read leniently: every member may be missing.

use super::super::arguments;
use super::super::ask::{ContentPart, ModelReply, StopReason, ToolCall};
use super::super::fields::{LeftOut, unknown};
use super::usage;
use crate::dialect::Dialect;
use crate::json::{self, member};
use crate::usage::Tokens;
use crate::write::{ObjectWriter, list, quote};
use wire::scan::Member;

/// Reads a reply; `None` if it is not one.
pub(in super::super) fn read(text: &str) -> Option<ModelReply<'_>> {
    let own = json::members(text);
    let word = |name: &str| member(&own, name).and_then(json::text);
    let blocks = json::elements(member(&own, "content")?);
    let inside = blocks.iter().flat_map(|raw| left_out(&json::members(raw)));
    let mut left_out: LeftOut = left_out(&own).into_iter().chain(inside).collect();
    let parts: Vec<ContentPart<'_>> = blocks
        .into_iter()
        .filter_map(|raw| block(raw, &mut left_out))
        .collect();
    let sequence = word("stop_sequence");
    let calls = parts
        .iter()
        .any(|part| matches!(part, ContentPart::Call(_)));
    let reason = word("stop_reason");
    Some(ModelReply {
        id: word("id").unwrap_or_default(),
        model: word("model").unwrap_or_default(),
        stop: stop(reason.as_deref(), sequence.as_deref(), calls, &mut left_out),
        parts,
        left_out,
        tokens: member(&own, "usage")
            .map_or_else(Tokens::default, |raw| Tokens::read(Dialect::Anthropic, raw)),
    })
}

/// Returns the members of a reply, an event of a stream or a block without a counterpart in other dialects.
pub(super) fn left_out(own: &[Member<'_>]) -> Vec<&'static str> {
    let said = |name: &str| member(own, name);
    let direct = |raw: &str| member(&json::members(raw), "type") == Some("\"direct\"");
    let found = [
        (
            "citations",
            said("citations").is_some_and(|raw| raw != "[]"),
        ),
        ("caller", said("caller").is_some_and(|raw| !direct(raw))),
        ("toolset_name", said("toolset_name").is_some()),
        ("container", said("container").is_some()),
        ("stop_details", said("stop_details").is_some()),
    ];
    let found = found.into_iter().filter(|(_, has)| *has);
    found.map(|(name, _)| name).collect()
}

/// Reads a block; one that no other dialect has is left out by its type.
fn block<'a>(raw: &'a str, left_out: &mut LeftOut) -> Option<ContentPart<'a>> {
    let own = json::members(raw);
    let word = |name: &str| member(&own, name).and_then(json::text);
    let kind = word("type").unwrap_or_default();
    let part = match kind.as_ref() {
        "text" => word("text").map(ContentPart::Text),
        "thinking" => word("thinking").map(|text| ContentPart::Thinking {
            text,
            signature: word("signature"),
        }),
        "redacted_thinking" => word("data").map(ContentPart::Redacted),
        "tool_use" => word("id").zip(word("name")).map(|(id, name)| {
            ContentPart::Call(ToolCall {
                id,
                name,
                input: member(&own, "input").unwrap_or("{}").into(),
                signature: None,
            })
        }),
        _ => None,
    };
    if part.is_none() {
        left_out.insert(unknown("content", &kind));
    }
    part
}

/// Returns why the model stopped. A reason that is not known counts as the nearest one, and is named.
pub(super) fn stop(
    reason: Option<&str>,
    sequence: Option<&str>,
    calls: bool,
    left_out: &mut LeftOut,
) -> StopReason {
    match reason.unwrap_or("end_turn") {
        "end_turn" => StopReason::End,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::Calls,
        "stop_sequence" => StopReason::Sequence(sequence.unwrap_or_default().to_owned()),
        "refusal" => StopReason::Refusal,
        other => {
            left_out.insert(unknown("stop_reason", other));
            if calls {
                StopReason::Calls
            } else {
                StopReason::End
            }
        }
    }
}

/// Returns the reason, as messages have it.
pub(super) fn reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::End => "end_turn",
        StopReason::Length => "max_tokens",
        StopReason::Calls => "tool_use",
        StopReason::Sequence(_) => "stop_sequence",
        StopReason::Refusal => "refusal",
    }
}

/// Returns the text that the model stopped at.
pub(super) fn sequence(stop: &StopReason) -> Vec<u8> {
    match stop {
        StopReason::Sequence(text) => quote(text),
        _ => b"null".to_vec(),
    }
}

/// Writes a reply.
pub(in super::super) fn write(reply: &ModelReply<'_>) -> Option<Vec<u8>> {
    let mut blocks = Vec::new();
    for part in &reply.parts {
        match part {
            ContentPart::Text(text) | ContentPart::Refusal(text) => {
                let block = ObjectWriter::new().text("type", "text");
                blocks.push(block.text("text", text).end());
            }
            ContentPart::Call(own) => {
                // A call has no place for a signature, so it is in front.
                blocks.extend(own.signature.as_ref().map(|text| thinking("", text)));
                blocks.push(call(&own.id, &own.name, &arguments::to_object(&own.input)));
            }
            ContentPart::Thinking { text, signature } => {
                blocks.push(thinking(text, signature.as_deref().unwrap_or_default()));
            }
            ContentPart::Redacted(data) => blocks.push(redacted(data)),
            ContentPart::Image(_)
            | ContentPart::Document { .. }
            | ContentPart::Result { .. }
            | ContentPart::CacheMark(_) => {
                return None;
            }
        }
    }
    let body = ObjectWriter::new()
        .text("id", &reply.id)
        .text("type", "message")
        .text("role", "assistant")
        .text("model", &reply.model)
        .raw("content", list(blocks))
        .text("stop_reason", reason(&reply.stop))
        .raw("stop_sequence", sequence(&reply.stop))
        .raw("usage", usage::write(reply.tokens));
    Some(body.end())
}

/// Returns a call of a tool.
pub(super) fn call(id: &str, name: &str, input: &str) -> Vec<u8> {
    ObjectWriter::new()
        .text("type", "tool_use")
        .text("id", id)
        .text("name", name)
        .raw("input", input)
        .end()
}

/// Thoughts, with the signature of who had them.
pub(super) fn thinking(text: &str, signature: &str) -> Vec<u8> {
    ObjectWriter::new()
        .text("type", "thinking")
        .text("thinking", text)
        .text("signature", signature)
        .end()
}

/// Thoughts that only the provider can read.
pub(super) fn redacted(data: &str) -> Vec<u8> {
    let block = ObjectWriter::new().text("type", "redacted_thinking");
    block.text("data", data).end()
}
