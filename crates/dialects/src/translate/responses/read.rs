//! Reading a request.

use super::super::ask::{
    ChatTurn, ContentPart, MemberNames, ModelRequest, ReplyShape, SpeakerRole, ThinkingEffort,
};
use super::super::fields::{LeftOut, NO_COUNTERPART, ObjectFields, Read, wrong};
use super::super::openai;
use super::{tools, turns};
use crate::json;

/// Members that change nothing if they have one of these values.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("background", &["false"]),
    ("previous_response_id", &[]),
    ("conversation", &[]),
    ("prompt", &[]),
    ("context_management", &["[]"]),
];

/// The same, where other values are wishes that a reply can do without.
const OPTIONAL: &[(&str, &[&str])] = &[
    ("truncation", &["\"disabled\""]),
    ("top_logprobs", &["0"]),
    ("service_tier", &["\"auto\"", "\"default\""]),
    ("include", &["[]", "[\"reasoning.encrypted_content\"]"]),
];

/// Reads a request.
pub(in super::super) fn read<'a>(body: &'a str, left_out: &mut LeftOut) -> Read<ModelRequest<'a>> {
    let mut own = ObjectFields::of("", body)?;
    // The gate has read the model; padding of streams is the writer's; metadata are given back.
    for name in ["model", "stream_options", "metadata"] {
        own.take(name);
    }
    own.neutral(NEUTRAL)?;
    own.optional(OPTIONAL, left_out)?;
    own.hints(openai::HINTS, left_out);
    own.hints(&["client_metadata"], left_out);
    // A provider of another dialect stores no replies.
    if own.flag("store")? == Some(true) {
        left_out.insert("store");
    }
    let mut ask = ModelRequest {
        streams: own.flag("stream")? == Some(true),
        max_tokens: own.number("max_output_tokens")?,
        temperature: own.number("temperature")?,
        top_p: own.number("top_p")?,
        parallel: own.flag("parallel_tool_calls")?,
        user: own.text("user")?,
        names: MemberNames {
            shape: "text.format.type",
            schema: "format.name",
            signature: "encrypted_content",
            thoughts: "input.reasoning",
            ..MemberNames::default()
        },
        ..ModelRequest::default()
    };
    let safety = own.text("safety_identifier")?;
    if safety.is_some() {
        ask.names.user = "safety_identifier";
    }
    ask.user = safety.or(ask.user);
    ask.system.extend(own.text("instructions")?);
    ask.effort = effort(&mut own, left_out)?;
    if let Some(mut text) = own.object("text")? {
        text.optional(&[("verbosity", &["\"medium\""])], left_out)?;
        ask.shape = shape(&mut text, left_out)?;
        text.finish(left_out)?;
    }
    for (at, raw) in own.list("tools")? {
        ask.tools.push(tools::read(at, raw, left_out)?);
    }
    ask.choice = tools::choice(&mut own)?;
    let mut turns = input(&mut own, left_out)?.into_iter().peekable();
    while let Some(turn) = turns.next_if(|turn| turn.role == SpeakerRole::System) {
        for part in turn.parts {
            match part {
                ContentPart::Text(text) => ask.system.push(text),
                _ => return wrong(turn.at, "has to be text alone"),
            }
        }
    }
    ask.turns = turns.collect();
    own.finish(left_out)?;
    Ok(ask)
}

/// Reads the input: one text, or items.
fn input<'a>(own: &mut ObjectFields<'a>, left_out: &mut LeftOut) -> Read<Vec<ChatTurn<'a>>> {
    let Some(raw) = own.take("input") else {
        return wrong("input", "is missing");
    };
    if let Some(text) = json::text(raw) {
        return Ok(vec![ChatTurn {
            role: SpeakerRole::User,
            parts: vec![ContentPart::Text(text)],
            at: "input".to_owned(),
        }]);
    }
    if !raw.trim_start().starts_with('[') {
        return wrong("input", "has to be a text or a list of items");
    }
    let items = json::elements(raw).into_iter().enumerate();
    let items = items.map(|(number, raw)| (format!("input[{number}]"), raw));
    turns::read(items, left_out)
}

fn effort(own: &mut ObjectFields<'_>, left_out: &mut LeftOut) -> Read<Option<ThinkingEffort>> {
    let Some(mut reasoning) = own.object("reasoning")? else {
        return Ok(None);
    };
    // A provider shows its thoughts as the summary.
    reasoning.hints(&["summary", "generate_summary"], left_out);
    let word = reasoning.text("effort")?;
    let effort = word.as_deref().map(ThinkingEffort::of);
    if effort == Some(None) {
        left_out.drop_or_refuse("reasoning.effort")?;
    }
    reasoning.finish(left_out)?;
    Ok(effort.flatten())
}

fn shape<'a>(text: &mut ObjectFields<'a>, left_out: &mut LeftOut) -> Read<Option<ReplyShape<'a>>> {
    let Some(mut format) = text.object("format")? else {
        return Ok(None);
    };
    let shape = match format.need("type")?.as_ref() {
        "text" => None,
        "json_object" => Some(ReplyShape::Json),
        "json_schema" => {
            format.hints(&["description"], left_out);
            Some(ReplyShape::Schema {
                name: format.text("name")?,
                strict: format.flag("strict")?,
                schema: format.take("schema").unwrap_or("{}"),
            })
        }
        _ => return wrong(format.at("type"), NO_COUNTERPART),
    };
    format.end()?;
    Ok(shape)
}
