//! Reading a request.

use super::super::ask::{
    ModelRequest, OfferedTool, ReplyShape, SpeakerRole, Text, ThinkingEffort, ToolChoice,
};
use super::super::fields::{LeftOut, NO_COUNTERPART, ObjectFields, Read, wrong};
use super::super::openai;
use super::turns;
use crate::json;

/// Members that change nothing if they have one of these values.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("n", &["1"]),
    ("modalities", &["[\"text\"]"]),
    ("functions", &["[]"]),
    ("function_call", &["\"none\"", "\"auto\""]),
    ("audio", &[]),
    ("web_search_options", &[]),
];

/// The same, where other values are wishes that a reply can do without.
const OPTIONAL: &[(&str, &[&str])] = &[
    ("logprobs", &["false"]),
    ("top_logprobs", &["0"]),
    ("logit_bias", &["{}"]),
    ("service_tier", &["\"auto\"", "\"default\""]),
    ("verbosity", &["\"medium\""]),
];

/// Reads a request.
pub(in super::super) fn read<'a>(body: &'a str, left_out: &mut LeftOut) -> Read<ModelRequest<'a>> {
    let mut own = ObjectFields::of("", body)?;
    // The gate has read these, and they are written again.
    for name in ["model", "stream_options"] {
        own.take(name);
    }
    own.neutral(NEUTRAL)?;
    own.optional(OPTIONAL, left_out)?;
    own.hints(openai::HINTS, left_out);
    // It only makes a reply come sooner.
    own.hints(&["prediction"], left_out);
    // A provider of another dialect stores no replies, so nothing is found by their names either.
    if own.flag("store")? == Some(true) {
        left_out.insert("store");
    }
    let named = own.take("metadata").map(json::members);
    left_out.extend(named.filter(|names| !names.is_empty()).map(|_| "metadata"));
    let mut ask = ModelRequest {
        streams: own.flag("stream")? == Some(true),
        max_tokens: own.number("max_tokens")?,
        temperature: own.number("temperature")?,
        top_p: own.number("top_p")?,
        seed: own.number("seed")?,
        presence_penalty: penalty(&mut own, "presence_penalty")?,
        frequency_penalty: penalty(&mut own, "frequency_penalty")?,
        parallel: own.flag("parallel_tool_calls")?,
        user: own.text("user")?,
        ..ModelRequest::default()
    };
    ask.max_tokens = own.number("max_completion_tokens")?.or(ask.max_tokens);
    let safety = own.text("safety_identifier")?;
    if safety.is_some() {
        ask.names.user = "safety_identifier";
    }
    ask.user = safety.or(ask.user);
    ask.stop = stop(&mut own)?;
    ask.effort = match own.text("reasoning_effort")? {
        None => None,
        Some(word) => match ThinkingEffort::of(&word) {
            Some(effort) => Some(effort),
            None => {
                left_out.drop_or_refuse("reasoning_effort")?;
                None
            }
        },
    };
    ask.shape = shape(&mut own, left_out)?;
    for (at, raw) in own.list("tools")? {
        ask.tools.push(tool(at, raw, left_out)?);
    }
    ask.choice = choice(&mut own)?;
    let turns = turns::read(own.list("messages")?, left_out)?;
    let mut turns = turns.into_iter().peekable();
    while let Some(turn) = turns.next_if(|turn| turn.role == SpeakerRole::System) {
        turns::system(turn, &mut ask)?;
    }
    ask.turns = turns.collect();
    own.finish(left_out)?;
    Ok(ask)
}

/// Returns a penalty; none if it is zero.
fn penalty<'a>(own: &mut ObjectFields<'a>, name: &str) -> Read<Option<&'a str>> {
    let number = own.number(name)?;
    Ok(number.filter(|raw| raw.parse::<f64>() != Ok(0.0)))
}

fn stop<'a>(own: &mut ObjectFields<'a>) -> Read<Vec<Text<'a>>> {
    let Some(raw) = own.take("stop") else {
        return Ok(Vec::new());
    };
    if let Some(text) = json::text(raw) {
        return Ok(vec![text]);
    }
    let texts: Option<Vec<Text<'a>>> = json::elements(raw).into_iter().map(json::text).collect();
    match texts.filter(|_| raw.trim_start().starts_with('[')) {
        Some(texts) => Ok(texts),
        None => wrong("stop", "has to be a text or a list of texts"),
    }
}

fn shape<'a>(own: &mut ObjectFields<'a>, left_out: &mut LeftOut) -> Read<Option<ReplyShape<'a>>> {
    let Some(mut format) = own.object("response_format")? else {
        return Ok(None);
    };
    let shape = match format.need("type")?.as_ref() {
        "text" => None,
        "json_object" => Some(ReplyShape::Json),
        "json_schema" => {
            let Some(mut inner) = format.object("json_schema")? else {
                return wrong(format.at("json_schema"), "is missing");
            };
            inner.hints(&["description"], left_out);
            let shape = ReplyShape::Schema {
                name: inner.text("name")?,
                strict: inner.flag("strict")?,
                schema: inner.take("schema").unwrap_or("{}"),
            };
            inner.finish(left_out)?;
            Some(shape)
        }
        _ => return wrong(format.at("type"), NO_COUNTERPART),
    };
    format.finish(left_out)?;
    Ok(shape)
}

fn tool<'a>(at: String, raw: &'a str, left_out: &mut LeftOut) -> Read<OfferedTool<'a>> {
    let mut own = ObjectFields::of(at, raw)?;
    let kind = own.text("type")?;
    if kind.is_some_and(|kind| kind != "function") {
        return wrong(own.at("type"), NO_COUNTERPART);
    }
    let mark = own.take("cache_control");
    let Some(mut function) = own.object("function")? else {
        return wrong(own.at("function"), "is missing");
    };
    let tool = OfferedTool {
        cache_mark: function.take("cache_control").or(mark),
        name: function.need("name")?,
        description: function.text("description")?,
        schema: function.take("parameters"),
        strict: function.flag("strict")?,
    };
    function.finish(left_out)?;
    own.finish(left_out)?;
    Ok(tool)
}

fn choice<'a>(own: &mut ObjectFields<'a>) -> Read<Option<ToolChoice<'a>>> {
    openai::choice(own, |named| {
        let Some(mut function) = named.object("function")? else {
            return wrong("tool_choice.function", "is missing");
        };
        let name = function.need("name")?;
        function.end()?;
        Ok(name)
    })
}
