//! Reading the messages of a request.

use std::borrow::Cow;

use super::super::arguments;
use super::super::ask::{
    ChatTurn, ContentPart, FileSource, ModelRequest, SpeakerRole, Text, ToolCall,
};
use super::super::fields::{LeftOut, NO_COUNTERPART, ObjectFields, Read, wrong};
use super::super::parts;

/// Reads messages; what one side says in several messages becomes one turn.
pub(super) fn read<'a>(
    messages: Vec<(String, &'a str)>,
    left_out: &mut LeftOut,
) -> Read<Vec<ChatTurn<'a>>> {
    let mut turns: Vec<ChatTurn<'a>> = Vec::new();
    for (at, raw) in messages {
        let mut own = ObjectFields::of(at.clone(), raw)?;
        let (role, parts) = match own.need("role")?.as_ref() {
            "system" | "developer" => (SpeakerRole::System, content(&mut own, left_out)?),
            "user" => (SpeakerRole::User, content(&mut own, left_out)?),
            "tool" => (SpeakerRole::User, vec![result(&mut own, left_out)?]),
            "assistant" => (SpeakerRole::Assistant, assistant_parts(&mut own, left_out)?),
            _ => return wrong(own.at("role"), NO_COUNTERPART),
        };
        let mut parts = parts;
        // Some put the wish beside the content.
        parts.extend(own.take("cache_control").map(ContentPart::CacheMark));
        own.finish(left_out)?;
        match turns.last_mut() {
            Some(last) if last.role == role && role != SpeakerRole::System => {
                last.parts.extend(parts)
            }
            _ => turns.push(ChatTurn { role, parts, at }),
        }
    }
    Ok(turns)
}

/// Reads a turn of the system, which has texts alone.
pub(super) fn system<'a>(turn: ChatTurn<'a>, ask: &mut ModelRequest<'a>) -> Read<()> {
    for part in turn.parts {
        match part {
            ContentPart::Text(text) => ask.system.push(text),
            ContentPart::CacheMark(raw) => {
                let last = ask.system.len().checked_sub(1);
                ask.system_marks.extend(last.map(|last| (last, raw)));
            }
            _ => return wrong(turn.at, "has to be text alone"),
        }
    }
    Ok(())
}

/// What an assistant has said: thoughts, words, calls of tools.
fn assistant_parts<'a>(
    own: &mut ObjectFields<'a>,
    left_out: &mut LeftOut,
) -> Read<Vec<ContentPart<'a>>> {
    own.optional(&[("annotations", &["[]"])], left_out)?;
    let mut parts = thoughts(own, left_out)?;
    parts.extend(content(own, left_out)?);
    if let Some(refusal) = own.text("refusal")? {
        parts.push(ContentPart::Refusal(refusal));
    }
    for (at, raw) in own.list("tool_calls")? {
        let mut call = ObjectFields::of(at, raw)?;
        // Streams are put together with the index left in.
        call.take("index");
        parts.push(ContentPart::Call(self::call(&mut call)?));
        call.finish(left_out)?;
    }
    Ok(parts)
}

/// Thoughts go back with the signature of their provider, which is in `thinking_blocks`.
fn thoughts<'a>(own: &mut ObjectFields<'a>, left_out: &mut LeftOut) -> Read<Vec<ContentPart<'a>>> {
    let mut parts = Vec::new();
    for (at, raw) in own.list("thinking_blocks")? {
        let mut block = ObjectFields::of(at, raw)?;
        parts.push(match block.need("type")?.as_ref() {
            "thinking" => ContentPart::Thinking {
                text: block.need("thinking")?,
                signature: block.text("signature")?,
            },
            "redacted_thinking" => ContentPart::Redacted(block.need("data")?),
            _ => return wrong(block.at("type"), NO_COUNTERPART),
        });
        // A stream numbers them.
        block.take("index");
        block.finish(left_out)?;
    }
    let plain = own.text("reasoning_content")?;
    let plain = own.text("reasoning")?.or(plain);
    if let Some(text) = plain.filter(|text| parts.is_empty() && !text.is_empty()) {
        parts.push(ContentPart::Thinking {
            text,
            signature: None,
        });
    }
    Ok(parts)
}

/// Returns a call of a function.
pub(super) fn call<'a>(own: &mut ObjectFields<'a>) -> Read<ToolCall<'a>> {
    let kind = own.text("type")?;
    if kind.is_some_and(|kind| kind != "function") {
        return wrong(own.at("type"), NO_COUNTERPART);
    }
    let id = own.need("id")?;
    let Some(mut function) = own.object("function")? else {
        return wrong(own.at("function"), "is missing");
    };
    let name = function.need("name")?;
    // A model's output is part of every later turn, in any form.
    let input = function.take("arguments").and_then(arguments::of_server);
    let input = input.unwrap_or_default();
    let input = if input.trim().is_empty() {
        Cow::Borrowed("{}")
    } else {
        input
    };
    function.end()?;
    Ok(ToolCall {
        id,
        name,
        input,
        signature: signature(own)?,
    })
}

/// Returns the signature of a call, where Google's own servers of this dialect have it.
fn signature<'a>(own: &mut ObjectFields<'a>) -> Read<Option<Text<'a>>> {
    let Some(mut extra) = own.object("extra_content")? else {
        return Ok(None);
    };
    let signature = match extra.object("google")? {
        None => None,
        Some(mut google) => {
            let signature = google.text("thought_signature")?;
            google.end()?;
            signature
        }
    };
    extra.end()?;
    Ok(signature)
}

fn result<'a>(own: &mut ObjectFields<'a>, left_out: &mut LeftOut) -> Read<ContentPart<'a>> {
    Ok(ContentPart::Result {
        id: own.need("tool_call_id")?,
        failed: false,
        parts: content(own, left_out)?,
    })
}

/// Returns a content: a text, or parts.
fn content<'a>(own: &mut ObjectFields<'a>, left_out: &mut LeftOut) -> Read<Vec<ContentPart<'a>>> {
    let mut marks = Vec::new();
    let parts = parts::read(own, "content", "parts", |mut own| {
        marks.push(own.take("cache_control"));
        part(own, left_out)
    })?;
    let marks = marks.into_iter().chain(std::iter::repeat(None));
    let marked = parts.into_iter().zip(marks).flat_map(|(part, mark)| {
        let is_empty = matches!(&part, ContentPart::Text(text) if text.is_empty());
        let part = (!is_empty).then_some(part);
        part.into_iter().chain(mark.map(ContentPart::CacheMark))
    });
    Ok(marked.collect())
}

fn part<'a>(mut own: ObjectFields<'a>, left_out: &mut LeftOut) -> Read<ContentPart<'a>> {
    own.hints(&["prompt_cache_breakpoint"], left_out);
    let part = match own.need("type")?.as_ref() {
        "text" => ContentPart::Text(own.need("text")?),
        "refusal" => ContentPart::Refusal(own.need("refusal")?),
        "image_url" => {
            let Some(mut image) = own.object("image_url")? else {
                return wrong(own.at("image_url"), "is missing");
            };
            image.hints(&["detail"], left_out);
            let source = FileSource::of_url(image.need("url")?);
            image.finish(left_out)?;
            ContentPart::Image(source)
        }
        "file" => document(&mut own, left_out)?,
        _ => return wrong(own.at("type"), NO_COUNTERPART),
    };
    own.finish(left_out)?;
    Ok(part)
}

fn document<'a>(part: &mut ObjectFields<'a>, left_out: &mut LeftOut) -> Read<ContentPart<'a>> {
    let Some(mut file) = part.object("file")? else {
        return wrong(part.at("file"), "is missing");
    };
    let name = file.text("filename")?;
    let data = file.text("file_data")?;
    // A file of another provider's is nowhere else.
    file.neutral(&[("file_id", &[])])?;
    file.finish(left_out)?;
    match data.map(FileSource::of_url) {
        Some(source @ FileSource::Data { .. }) => Ok(ContentPart::Document { name, source }),
        Some(FileSource::Url(_)) | None => wrong(part.at("file.file_data"), "has to be a data URL"),
    }
}
