//! Whole replies. Those of a provider are read leniently: every member may be missing.

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
    let word = |name: &str| member(&own, name).and_then(json::text);
    let blocks = json::elements(member(&own, "content")?);
    let inside = blocks.iter().flat_map(|raw| left_out(&json::members(raw)));
    let left_out = left_out(&own).into_iter().chain(inside).collect();
    let parts: Option<Vec<Part<'_>>> = blocks.into_iter().map(block).collect();
    let sequence = word("stop_sequence");
    Some(Reply {
        id: word("id").unwrap_or_default(),
        model: word("model").unwrap_or_default(),
        parts: parts?,
        left_out,
        stop: stop(word("stop_reason").as_deref(), sequence.as_deref())?,
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

fn block(raw: &str) -> Option<Part<'_>> {
    let own = json::members(raw);
    let word = |name: &str| member(&own, name).and_then(json::text);
    Some(match word("type")?.as_ref() {
        "text" => Part::Text(word("text")?),
        "thinking" => Part::Thinking {
            text: word("thinking")?,
            signature: word("signature"),
        },
        "redacted_thinking" => Part::Redacted(word("data")?),
        "tool_use" => Part::Call(Call {
            id: word("id")?,
            name: word("name")?,
            input: member(&own, "input").unwrap_or("{}").into(),
            signature: None,
        }),
        _ => return None,
    })
}

/// Why the model stopped; `None` where it has not, or for a reason that no other dialect has.
pub(super) fn stop(reason: Option<&str>, sequence: Option<&str>) -> Option<Stop> {
    Some(match reason? {
        "end_turn" => Stop::End,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "tool_use" => Stop::Calls,
        "stop_sequence" => Stop::Sequence(sequence.unwrap_or_default().to_owned()),
        "refusal" => Stop::Refusal,
        _ => return None,
    })
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
                blocks.push(call(&own.id, &own.name, &own.input));
            }
            Part::Thinking { text, signature } => {
                blocks.push(thinking(text, signature.as_deref().unwrap_or_default()));
            }
            Part::Redacted(data) => blocks.push(redacted(data)),
            Part::Image(_) | Part::Document { .. } | Part::Result { .. } => return None,
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
