//! Reading a request.

use super::super::ask::{
    ContentPart, MemberNames, ModelRequest, OfferedTool, ReplyShape, ThinkingEffort, ToolChoice,
};
use super::super::fields::{LeftOut, NO_COUNTERPART, ObjectFields, Read, wrong};
use super::turns;
use crate::json;

/// Members that change nothing if they have one of these values.
const NEUTRAL: &[(&str, &[&str])] = &[("mcp_servers", &["[]"]), ("container", &[])];

/// The same, where other values are wishes that a reply can do without.
const OPTIONAL: &[(&str, &[&str])] = &[
    ("service_tier", &["\"auto\"", "\"standard_only\""]),
    ("speed", &["\"standard\""]),
];

/// Reads a request.
pub(in super::super) fn read<'a>(body: &'a str, left_out: &mut LeftOut) -> Read<ModelRequest<'a>> {
    let mut own = ObjectFields::of("", body)?;
    // The gate has read it, and it is written again.
    own.take("model");
    own.neutral(NEUTRAL)?;
    own.optional(OPTIONAL, left_out)?;
    own.hints(&["cache_control"], left_out);
    context(&mut own, left_out)?;
    let mut ask = ModelRequest {
        streams: own.flag("stream")? == Some(true),
        max_tokens: own.number("max_tokens")?,
        temperature: own.number("temperature")?,
        top_p: own.number("top_p")?,
        top_k: own.number("top_k")?,
        names: MemberNames {
            user: "user_id",
            parallel: "tool_choice.disable_parallel_tool_use",
            document: "title",
            thoughts: "thinking",
            ..MemberNames::default()
        },
        ..ModelRequest::default()
    };
    for (at, raw) in own.list("stop_sequences")? {
        match json::text(raw) {
            Some(text) => ask.stop.push(text),
            None => return wrong(at, "has to be a text"),
        }
    }
    for part in turns::content(&mut own, "system", left_out)? {
        match part {
            ContentPart::Text(text) => ask.system.push(text),
            _ => return wrong("system", "has to be text alone"),
        }
    }
    ask.turns = turns::read(own.list("messages")?, left_out)?;
    for (at, raw) in own.list("tools")? {
        ask.tools.push(tool(at, raw, left_out)?);
    }
    choice(&mut own, &mut ask)?;
    if let Some(mut metadata) = own.object("metadata")? {
        ask.user = metadata.text("user_id")?;
        metadata.finish(left_out)?;
    }
    ask.effort = thinking(&mut own, left_out)?;
    if let Some(mut output) = own.object("output_config")? {
        if let Some(word) = output.text("effort")? {
            match ThinkingEffort::of(&word) {
                Some(effort) => ask.effort = Some(effort),
                None => left_out.drop_or_refuse(&output.at("effort"))?,
            }
        }
        ask.shape = shape(&mut output)?;
        output.finish(left_out)?;
    }
    own.finish(left_out)?;
    Ok(ask)
}

/// Cuts of a long conversation are hints; summaries are in the reply, and are not.
fn context(own: &mut ObjectFields<'_>, left_out: &mut LeftOut) -> Read<()> {
    let Some(mut context) = own.object("context_management")? else {
        return Ok(());
    };
    for (at, raw) in context.list("edits")? {
        let kind = ObjectFields::of(at, raw)?.need("type")?;
        if !kind.starts_with("clear_") {
            return wrong("context_management", NO_COUNTERPART);
        }
        left_out.insert("context_management");
    }
    context.end()
}

fn tool<'a>(at: String, raw: &'a str, left_out: &mut LeftOut) -> Read<OfferedTool<'a>> {
    let mut own = ObjectFields::of(at, raw)?;
    let kind = own.text("type")?;
    if kind.is_some_and(|kind| kind != "custom") {
        return wrong(own.at("type"), NO_COUNTERPART);
    }
    own.hints(&["cache_control", "eager_input_streaming"], left_out);
    own.neutral(&[
        ("defer_loading", &["false"]),
        ("allowed_callers", &["[\"direct\"]"]),
        ("input_examples", &["[]"]),
    ])?;
    let tool = OfferedTool {
        name: own.need("name")?,
        description: own.text("description")?,
        schema: own.take("input_schema"),
        strict: own.flag("strict")?,
        cache_mark: None,
    };
    own.finish(left_out)?;
    Ok(tool)
}

fn choice<'a>(own: &mut ObjectFields<'a>, ask: &mut ModelRequest<'a>) -> Read<()> {
    let Some(mut choice) = own.object("tool_choice")? else {
        return Ok(());
    };
    ask.choice = Some(match choice.need("type")?.as_ref() {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Any,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Tool(choice.need("name")?),
        _ => return wrong(choice.at("type"), NO_COUNTERPART),
    });
    let single = choice.flag("disable_parallel_tool_use")?;
    ask.parallel = single.map(|single| !single);
    choice.end()
}

/// Returns how much the model is to think; nothing if it thinks as it usually does.
fn thinking(own: &mut ObjectFields<'_>, left_out: &mut LeftOut) -> Read<Option<ThinkingEffort>> {
    let Some(mut thinking) = own.object("thinking")? else {
        return Ok(None);
    };
    // How much of the thoughts is shown is the provider's own affair.
    thinking.hints(&["display"], left_out);
    let effort = match thinking.need("type")?.as_ref() {
        // A model that always thinks refuses `disabled`, and one that never does knows no effort.
        "disabled" | "adaptive" => {
            left_out.insert("thinking");
            None
        }
        "enabled" => {
            let tokens = thinking.number("budget_tokens")?.and_then(json::number);
            Some(ThinkingEffort::of_budget(tokens.unwrap_or(0)))
        }
        _ => return wrong(thinking.at("type"), NO_COUNTERPART),
    };
    thinking.end()?;
    Ok(effort)
}

fn shape<'a>(output: &mut ObjectFields<'a>) -> Read<Option<ReplyShape<'a>>> {
    let Some(mut format) = output.object("format")? else {
        return Ok(None);
    };
    if format.need("type")? != "json_schema" {
        return wrong(format.at("type"), NO_COUNTERPART);
    }
    let schema = format.take("schema").unwrap_or("{}");
    format.end()?;
    Ok(Some(ReplyShape::Schema {
        name: None,
        schema,
        strict: Some(true),
    }))
}
