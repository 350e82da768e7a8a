//! Writing a request.

use std::borrow::Cow;

use super::super::RequestOptions;
use super::super::arguments;
use super::super::ask::{
    ContentPart, FileSource, MemberNames, ModelRequest, OfferedTool, ReplyShape, SpeakerRole, Text,
    ThinkingEffort, ToolChoice,
};
use super::super::fields::{LeftOut, NO_COUNTERPART, Read, wrong};
use crate::write::{ObjectWriter, list, quote};

/// The schema of a tool that takes nothing.
const NO_INPUT: &str = "{\"type\":\"object\",\"properties\":{}}";

/// The longest name of a user that Anthropic takes.
const USER_CHARS_MAX: usize = 256;

/// Writes a request.
pub(in super::super) fn write(
    ask: &ModelRequest<'_>,
    options: &RequestOptions<'_>,
    left_out: &mut LeftOut,
) -> Read<Vec<u8>> {
    for (name, value) in [
        ("seed", ask.seed),
        ("presence_penalty", ask.presence_penalty),
        ("frequency_penalty", ask.frequency_penalty),
    ] {
        if value.is_some() {
            left_out.drop_or_refuse(name)?;
        }
    }
    let mut turns = Vec::new();
    for turn in &ask.turns {
        let role = match turn.role {
            SpeakerRole::System => "system",
            SpeakerRole::User => "user",
            SpeakerRole::Assistant => "assistant",
        };
        let blocks = blocks(&turn.parts, (&turn.at, ask.names, options), left_out)?;
        if blocks.is_empty() {
            // An empty turn is refused. Only its thoughts were said.
            continue;
        }
        let turn = ObjectWriter::new()
            .text("role", role)
            .raw("content", list(blocks));
        turns.push(turn.end());
    }
    let system = match ask.system.as_slice() {
        [] => None,
        [one] if ask.system_marks.is_empty() => Some(quote(one)),
        many => Some(list(many.iter().enumerate().map(|(number, text)| {
            let mut block = text_block(text);
            let marks = ask.system_marks.iter();
            for (_, raw) in marks.filter(|(at, _)| *at == number).take(1) {
                mark(&mut block, raw);
            }
            block
        }))),
    };
    let most = ask.max_tokens.map(str::to_owned);
    let usual = || options.max_tokens.to_string();
    let stop = ask.stop.iter().map(|text| quote(text));
    let tools = ask.tools.iter().map(tool);
    let fits = |user: &&Text<'_>| user.chars().count() <= USER_CHARS_MAX;
    let user = ask.user.as_ref().filter(fits);
    if ask.user.is_some() && user.is_none() {
        left_out.insert(ask.names.user);
    }
    let user = user.map(|user| ObjectWriter::new().text("user_id", user).end());
    let thinking = ask.effort.map(|effort| match effort {
        ThinkingEffort::None => "{\"type\":\"disabled\"}",
        _ => "{\"type\":\"adaptive\"}",
    });
    let body = ObjectWriter::new()
        .text("model", options.model)
        .raw("max_tokens", most.unwrap_or_else(usual))
        .raw_if("system", system)
        .raw("messages", list(turns))
        .raw_if("temperature", ask.temperature)
        .raw_if("top_p", ask.top_p)
        .raw_if("top_k", ask.top_k)
        .raw_if("stop_sequences", (!ask.stop.is_empty()).then(|| list(stop)))
        .raw_if("tools", (!ask.tools.is_empty()).then(|| list(tools)))
        .raw_if("tool_choice", choice(ask))
        .raw_if("thinking", thinking)
        .raw_if("output_config", output(ask, left_out)?)
        .raw_if("metadata", user)
        .raw_if("stream", ask.streams.then_some("true"));
    Ok(body.end())
}

fn text_block(text: &str) -> Vec<u8> {
    let block = ObjectWriter::new().text("type", "text").text("text", text);
    block.end()
}

/// Asks the cache to end behind a block.
fn mark(block: &mut Vec<u8>, raw: &str) {
    if block.pop() == Some(b'}') {
        block.extend_from_slice(b",\"cache_control\":");
        block.extend_from_slice(raw.as_bytes());
        block.push(b'}');
    }
}

fn blocks(
    parts: &[ContentPart<'_>],
    (at, names, options): (&str, MemberNames, &RequestOptions<'_>),
    left_out: &mut LeftOut,
) -> Read<Vec<Vec<u8>>> {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let block = match part {
            ContentPart::Text(text) | ContentPart::Refusal(text) => text_block(text),
            ContentPart::Image(source) => file("image", source),
            ContentPart::Document { name, source } => document(name.as_deref(), source),
            ContentPart::Call(own) => {
                // It is Google's, and for Google.
                left_out.extend(own.signature.as_ref().map(|_| "thought_signature"));
                let input = arguments::to_object(&own.input);
                super::reply::call(&id(&own.id), &own.name, &input)
            }
            ContentPart::Result {
                id: of,
                failed,
                parts,
            } => {
                let mut said: Vec<Vec<u8>> = Vec::new();
                for part in parts {
                    match part {
                        ContentPart::Text(text) => said.push(text_block(text)),
                        ContentPart::Image(source) => said.push(file("image", source)),
                        ContentPart::Document { name, source } => {
                            said.push(document(name.as_deref(), source));
                        }
                        ContentPart::CacheMark(raw) => {
                            if let Some(last) = said.last_mut() {
                                mark(last, raw);
                            }
                        }
                        _ => return wrong(at, NO_COUNTERPART),
                    }
                }
                ObjectWriter::new()
                    .text("type", "tool_result")
                    .text("tool_use_id", &id(of))
                    .raw("content", list(said))
                    .raw_if("is_error", failed.then_some("true"))
                    .end()
            }
            ContentPart::Thinking {
                text,
                signature: Some(signature),
            } => super::reply::thinking(text, signature),
            ContentPart::Thinking {
                signature: None,
                text,
            } => {
                // The provider takes back no thought without its signature.
                match options.signatures.and_then(|own| own.find(text)) {
                    Some(found) => blocks.extend(
                        found
                            .iter()
                            .map(|own| super::reply::thinking(&own.text, &own.signature)),
                    ),
                    None => {
                        left_out.insert(names.thoughts);
                    }
                }
                continue;
            }
            ContentPart::Redacted(data) => super::reply::redacted(data),
            ContentPart::CacheMark(raw) => {
                let is_again = number
                    .checked_sub(1)
                    .and_then(|before| parts.get(before))
                    .is_some_and(|before| matches!(before, ContentPart::CacheMark(_)));
                if let Some(last) = blocks.last_mut().filter(|_| !is_again) {
                    mark(last, raw);
                }
                continue;
            }
        };
        blocks.push(block);
    }
    Ok(blocks)
}

/// Ids of calls may have letters, digits, `_` and `-`; other bytes are spelled out.
fn id(id: &str) -> Cow<'_, str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if id.bytes().all(fits) {
        return Cow::Borrowed(id);
    }
    let mut out = String::with_capacity(id.len() + 8);
    for byte in id.bytes() {
        if fits(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("_{byte:02x}"));
        }
    }
    out.into()
}

fn file(kind: &str, source: &FileSource<'_>) -> Vec<u8> {
    let block = ObjectWriter::new().text("type", kind);
    block.raw("source", self::source(source)).end()
}

fn document(name: Option<&str>, source: &FileSource<'_>) -> Vec<u8> {
    let block = ObjectWriter::new().text("type", "document");
    let block = block.raw("source", self::source(source));
    block.raw_if("title", name.map(quote)).end()
}

fn source(own: &FileSource<'_>) -> Vec<u8> {
    match own {
        FileSource::Url(url) => ObjectWriter::new()
            .text("type", "url")
            .text("url", url)
            .end(),
        FileSource::Data { media, data } => ObjectWriter::new()
            .text("type", "base64")
            .text("media_type", media)
            .text("data", data)
            .end(),
    }
}

fn tool(own: &OfferedTool<'_>) -> Vec<u8> {
    ObjectWriter::new()
        .text("name", &own.name)
        .raw_if(
            "description",
            own.description.as_ref().map(|text| quote(text)),
        )
        .raw("input_schema", own.schema.unwrap_or(NO_INPUT))
        .raw_if("strict", own.strict.map(|strict| strict.to_string()))
        .raw_if("cache_control", own.cache_mark)
        .end()
}

/// Which tool is to be called, and whether several at once.
fn choice(ask: &ModelRequest<'_>) -> Option<Vec<u8>> {
    let single = ask.parallel == Some(false) && !ask.tools.is_empty();
    let choice = match (&ask.choice, single) {
        (None, false) => return None,
        (None | Some(ToolChoice::Auto), _) => ObjectWriter::new().text("type", "auto"),
        (Some(ToolChoice::Any), _) => ObjectWriter::new().text("type", "any"),
        (Some(ToolChoice::None), _) => return Some(ObjectWriter::new().text("type", "none").end()),
        (Some(ToolChoice::Tool(name)), _) => {
            ObjectWriter::new().text("type", "tool").text("name", name)
        }
    };
    let choice = choice.raw_if("disable_parallel_tool_use", single.then_some("true"));
    Some(choice.end())
}

fn output(ask: &ModelRequest<'_>, left_out: &mut LeftOut) -> Read<Option<Vec<u8>>> {
    let effort = match ask.effort {
        None | Some(ThinkingEffort::None) => None,
        Some(ThinkingEffort::Minimal) => Some(ThinkingEffort::Low),
        other => other,
    };
    let format = match &ask.shape {
        None => None,
        Some(ReplyShape::Json) => {
            left_out.drop_or_refuse(ask.names.shape)?;
            None
        }
        Some(ReplyShape::Schema { schema, name, .. }) => {
            left_out.extend(name.as_ref().map(|_| ask.names.schema));
            let format = ObjectWriter::new().text("type", "json_schema");
            Some(format.raw("schema", schema).end())
        }
    };
    if effort.is_none() && format.is_none() {
        return Ok(None);
    }
    let effort = effort.map(|effort| quote(effort.word()));
    let output = ObjectWriter::new().raw_if("effort", effort);
    Ok(Some(output.raw_if("format", format).end()))
}
