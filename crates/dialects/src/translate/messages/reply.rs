//! Whole replies. Those of a provider are read leniently: every member may be missing.

use super::super::arguments;
use super::super::ask::{Call, Part, Reply, Stop};
use super::super::fields::{LeftOut, unknown};
use super::usage;
use crate::dialect::Dialect;
use crate::json::{self, member};
use crate::usage::Tokens;
use crate::write::{Object, list, quoted};
use wire::scan::Member;

/// Reads a reply; `None` where it is none.
pub(in super::super) fn read(text: &str) -> Option<Reply<'_>> {
    let own = json::members(text);
    let word = |name: &str| member(&own, name).and_then(json::text);
    let blocks = json::elements(member(&own, "content")?);
    let inside = blocks.iter().flat_map(|raw| left_out(&json::members(raw)));
    let mut left_out: LeftOut = left_out(&own).into_iter().chain(inside).collect();
    let parts: Vec<Part<'_>> = blocks
        .into_iter()
        .filter_map(|raw| block(raw, &mut left_out))
        .collect();
    let sequence = word("stop_sequence");
    let calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
    let reason = word("stop_reason");
    Some(Reply {
        id: word("id").unwrap_or_default(),
        model: word("model").unwrap_or_default(),
        stop: stop(reason.as_deref(), sequence.as_deref(), calls, &mut left_out),
        parts,
        left_out,
        tokens: member(&own, "usage")
            .map_or_else(Tokens::default, |raw| Tokens::read(Dialect::Anthropic, raw)),
    })
}

/// What a reply, an event of a stream or a block has that no other dialect can say.
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
fn block<'a>(raw: &'a str, left_out: &mut LeftOut) -> Option<Part<'a>> {
    let own = json::members(raw);
    let word = |name: &str| member(&own, name).and_then(json::text);
    let kind = word("type").unwrap_or_default();
    let part = match kind.as_ref() {
        "text" => word("text").map(Part::Text),
        "thinking" => word("thinking").map(|text| Part::Thinking {
            text,
            signature: word("signature"),
        }),
        "redacted_thinking" => word("data").map(Part::Redacted),
        "tool_use" => word("id").zip(word("name")).map(|(id, name)| {
            Part::Call(Call {
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
) -> Stop {
    match reason.unwrap_or("end_turn") {
        "end_turn" => Stop::End,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "tool_use" => Stop::Calls,
        "stop_sequence" => Stop::Sequence(sequence.unwrap_or_default().to_owned()),
        "refusal" => Stop::Refusal,
        other => {
            left_out.insert(unknown("stop_reason", other));
            if calls { Stop::Calls } else { Stop::End }
        }
    }
}

/// The reason, as messages have it.
pub(super) fn reason(stop: &Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Calls => "tool_use",
        Stop::Sequence(_) => "stop_sequence",
        Stop::Refusal => "refusal",
    }
}

/// The text that the model stopped at.
pub(super) fn sequence(stop: &Stop) -> Vec<u8> {
    match stop {
        Stop::Sequence(text) => quoted(text),
        _ => b"null".to_vec(),
    }
}

/// Writes a reply.
pub(in super::super) fn write(reply: &Reply<'_>) -> Option<Vec<u8>> {
    let mut blocks = Vec::new();
    for part in &reply.parts {
        match part {
            Part::Text(text) | Part::Refusal(text) => {
                let block = Object::new().text("type", "text");
                blocks.push(block.text("text", text).end());
            }
            Part::Call(own) => {
                // A call has no place for a signature, so it stands in front.
                blocks.extend(own.signature.as_ref().map(|text| thinking("", text)));
                blocks.push(call(&own.id, &own.name, &arguments::to_object(&own.input)));
            }
            Part::Thinking { text, signature } => {
                blocks.push(thinking(text, signature.as_deref().unwrap_or_default()));
            }
            Part::Redacted(data) => blocks.push(redacted(data)),
            Part::Image(_) | Part::Document { .. } | Part::Result { .. } | Part::CacheMark(_) => {
                return None;
            }
        }
    }
    let body = Object::new()
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

/// A call of a tool.
pub(super) fn call(id: &str, name: &str, input: &str) -> Vec<u8> {
    Object::new()
        .text("type", "tool_use")
        .text("id", id)
        .text("name", name)
        .raw("input", input)
        .end()
}

/// Thoughts, with the signature of who had them.
pub(super) fn thinking(text: &str, signature: &str) -> Vec<u8> {
    Object::new()
        .text("type", "thinking")
        .text("thinking", text)
        .text("signature", signature)
        .end()
}

/// Thoughts that only the provider can read.
pub(super) fn redacted(data: &str) -> Vec<u8> {
    let block = Object::new().text("type", "redacted_thinking");
    block.text("data", data).end()
}
