//! Reading the messages of a request.

use super::super::ask::{ChatTurn, ContentPart, FileSource, SpeakerRole, ToolCall};
use super::super::fields::{LeftOut, NO_COUNTERPART, ObjectFields, Read, wrong};
use super::super::parts;
use crate::json;

/// Reads messages.
pub(super) fn read<'a>(
    messages: Vec<(String, &'a str)>,
    left_out: &mut LeftOut,
) -> Read<Vec<ChatTurn<'a>>> {
    let mut turns = Vec::new();
    for (at, raw) in messages {
        let mut own = ObjectFields::of(at.clone(), raw)?;
        let role = match own.need("role")?.as_ref() {
            "user" => SpeakerRole::User,
            "assistant" => SpeakerRole::Assistant,
            "system" => SpeakerRole::System,
            _ => return wrong(own.at("role"), NO_COUNTERPART),
        };
        let parts = content(&mut own, "content", left_out)?;
        own.finish(left_out)?;
        turns.push(ChatTurn { role, parts, at });
    }
    Ok(turns)
}

/// Returns a content: a text, or blocks.
pub(super) fn content<'a>(
    own: &mut ObjectFields<'a>,
    name: &str,
    left_out: &mut LeftOut,
) -> Read<Vec<ContentPart<'a>>> {
    blocks(own, name, left_out, false)
}

/// Returns the same; what is inside a tool's result has no results of its own.
fn blocks<'a>(
    own: &mut ObjectFields<'a>,
    name: &str,
    left_out: &mut LeftOut,
    inside: bool,
) -> Read<Vec<ContentPart<'a>>> {
    parts::read(own, name, "blocks", |own| block(own, left_out, inside))
}

fn block<'a>(
    mut own: ObjectFields<'a>,
    left_out: &mut LeftOut,
    inside: bool,
) -> Read<ContentPart<'a>> {
    own.hints(&["cache_control"], left_out);
    let part = match own.need("type")?.as_ref() {
        "text" => {
            own.optional(&[("citations", &["[]"])], left_out)?;
            ContentPart::Text(own.need("text")?)
        }
        "image" => ContentPart::Image(source(&mut own)?),
        "document" => {
            own.optional(&[("citations", &["{\"enabled\":false}"])], left_out)?;
            let source = source(&mut own)?;
            let is_pdf = |media: &str| media == "application/pdf";
            if !matches!(&source, FileSource::Data { media, .. } if is_pdf(media)) {
                return wrong(own.at("source"), NO_COUNTERPART);
            }
            let name = own.text("title")?;
            ContentPart::Document { name, source }
        }
        "thinking" => ContentPart::Thinking {
            text: own.need("thinking")?,
            signature: own.text("signature")?,
        },
        "redacted_thinking" => ContentPart::Redacted(own.need("data")?),
        "tool_use" => {
            own.neutral(&[("caller", &["{\"type\":\"direct\"}"])])?;
            let (id, name) = (own.need("id")?, own.need("name")?);
            let input = own.take("input").unwrap_or("{}");
            if !json::is_object(input) {
                return wrong(own.at("input"), "has to be an object");
            }
            ContentPart::Call(ToolCall {
                id,
                name,
                input: input.into(),
                signature: None,
            })
        }
        "tool_result" if !inside => ContentPart::Result {
            id: own.need("tool_use_id")?,
            failed: own.flag("is_error")? == Some(true),
            parts: results(&mut own, left_out)?,
        },
        _ => return wrong(own.at("type"), NO_COUNTERPART),
    };
    own.finish(left_out)?;
    Ok(part)
}

/// Reads the results of a tool: texts and files.
fn results<'a>(own: &mut ObjectFields<'a>, left_out: &mut LeftOut) -> Read<Vec<ContentPart<'a>>> {
    let parts = blocks(own, "content", left_out, true)?;
    let is_said = |part: &ContentPart<'_>| {
        matches!(
            part,
            ContentPart::Text(_) | ContentPart::Image(_) | ContentPart::Document { .. }
        )
    };
    if !parts.iter().all(is_said) {
        return wrong(own.at("content"), NO_COUNTERPART);
    }
    Ok(parts)
}

fn source<'a>(own: &mut ObjectFields<'a>) -> Read<FileSource<'a>> {
    let Some(mut source) = own.object("source")? else {
        return wrong(own.at("source"), "is missing");
    };
    let read = match source.need("type")?.as_ref() {
        "url" => FileSource::Url(source.need("url")?),
        "base64" => FileSource::Data {
            media: source.need("media_type")?,
            data: source.need("data")?,
        },
        _ => return wrong(source.at("type"), NO_COUNTERPART),
    };
    source.end()?;
    Ok(read)
}
