//! Replies, whole and piece by piece: both have one form.

use std::borrow::Cow;

use super::super::ask::{ContentPart, ModelReply, StopReason, Text, ToolCall};
use super::super::fields::{LeftOut, unknown};
use crate::json::{self, member};
use crate::usage::Tokens;
use wire::scan::Member;

/// Content of one answer of the API.
#[derive(Debug)]
pub(super) struct GeminiAnswer<'a> {
    pub id: Text<'a>,
    pub model: Text<'a>,
    pub parts: Vec<ContentPart<'a>>,
    pub stop: Option<StopReason>,
    pub tokens: Option<Tokens>,
    /// Members without a counterpart in other dialects.
    pub left_out: LeftOut,
}

/// Members beside the words of a candidate without a counterpart.
const BESIDE: [&str; 4] = [
    "citationMetadata",
    "groundingMetadata",
    "logprobsResult",
    "urlContextMetadata",
];

/// Reads an answer. `id` is that of a reply that has none of its own, `calls` counts the calls of the reply so far.
pub(super) fn answer<'a>(own: &[Member<'a>], id: &str, calls: &mut usize) -> GeminiAnswer<'a> {
    let word = |name: &str| member(own, name).and_then(json::text).unwrap_or_default();
    let mut read = GeminiAnswer {
        id: word("responseId"),
        model: word("modelVersion"),
        parts: Vec::new(),
        stop: None,
        tokens: member(own, "usageMetadata").map(usage),
        left_out: LeftOut::new(),
    };
    let candidates = json::elements(member(own, "candidates").unwrap_or_default());
    match candidates.as_slice() {
        [] => {
            let feedback = json::members(member(own, "promptFeedback").unwrap_or_default());
            let blocked = member(&feedback, "blockReason").is_some();
            read.stop = blocked.then_some(StopReason::Refusal);
        }
        [one, more @ ..] => {
            let one = json::members(one);
            let is_said = |name: &&str| member(&one, name).is_some_and(|raw| raw != "{}");
            read.left_out.extend(BESIDE.into_iter().filter(is_said));
            if !more.is_empty() {
                read.left_out.insert("candidates");
            }
            let content = json::members(member(&one, "content").unwrap_or_default());
            for raw in json::elements(member(&content, "parts").unwrap_or_default()) {
                let id = if read.id.is_empty() { id } else { &read.id };
                match part(&json::members(raw), id, calls) {
                    Ok(part) => read.parts.extend(part),
                    Err(name) => {
                        read.left_out.insert(name);
                    }
                }
            }
            if let Some(reason) = member(&one, "finishReason").and_then(json::text) {
                read.stop = Some(stop(&reason, *calls > 0, &mut read.left_out));
            }
        }
    }
    read
}

/// Reads a whole reply.
pub(in super::super) fn read<'a>(text: &'a str, id: &str) -> Option<ModelReply<'a>> {
    let own = json::members(text);
    let read = answer(&own, id, &mut 0);
    Some(ModelReply {
        id: read.id,
        model: read.model,
        parts: read.parts,
        stop: read.stop?,
        tokens: read.tokens.unwrap_or_default(),
        left_out: read.left_out,
    })
}

/// Reads a part; an error is the name of one that no other dialect has.
fn part<'a>(
    own: &[Member<'a>],
    reply: &str,
    calls: &mut usize,
) -> Result<Option<ContentPart<'a>>, Cow<'static, str>> {
    let word = |name: &str| member(own, name).and_then(json::text);
    if let Some(call) = member(own, "functionCall") {
        let call = json::members(call);
        let text = |name: &str| member(&call, name).and_then(json::text);
        let Some(name) = text("name") else {
            return Err("functionCall".into());
        };
        let id = text("id").filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("{reply}_{calls}").into());
        *calls += 1;
        return Ok(Some(ContentPart::Call(ToolCall {
            id,
            name,
            input: member(&call, "args").unwrap_or("{}").into(),
            signature: word("thoughtSignature"),
        })));
    }
    let text = word("text");
    if text.is_none() && member(own, "thoughtSignature").is_none() {
        let beside = ["thought", "partMetadata", "videoMetadata"];
        let kind = own
            .iter()
            .find(|(name, _)| !beside.contains(&name.as_ref()))
            .map_or("", |(name, _)| name.as_ref());
        return Err(unknown("parts", kind));
    }
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    Ok(Some(if member(own, "thought") == Some("true") {
        ContentPart::Thinking {
            text,
            signature: None,
        }
    } else {
        ContentPart::Text(text)
    }))
}

/// Returns why the model stopped. A reason that is not known counts as the nearest one, and is named.
fn stop(reason: &str, calls: bool, left_out: &mut LeftOut) -> StopReason {
    match reason {
        "STOP" if calls => StopReason::Calls,
        "FUNCTION_CALL" => StopReason::Calls,
        "STOP" => StopReason::End,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "LANGUAGE"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => StopReason::Refusal,
        other => {
            left_out.insert(unknown("finishReason", other));
            if calls {
                StopReason::Calls
            } else {
                StopReason::End
            }
        }
    }
}

/// Reads a `usageMetadata` object.
pub(in super::super) fn usage(raw: &str) -> Tokens {
    let own = json::members(raw);
    let number = |name: &str| member(&own, name).and_then(json::number);
    let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        _ => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    };
    let reasoning = number("thoughtsTokenCount");
    Tokens {
        input: sum(
            number("promptTokenCount"),
            number("toolUsePromptTokenCount"),
        ),
        output: sum(number("candidatesTokenCount"), reasoning),
        cached: number("cachedContentTokenCount"),
        reasoning,
        ..Tokens::default()
    }
}
