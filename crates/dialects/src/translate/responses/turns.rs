//! Reading the items of a request.

use std::borrow::Cow;

use super::super::ask::{ChatTurn, ContentPart, FileSource, SpeakerRole, ToolCall};
use super::super::fields::{LeftOut, NO_COUNTERPART, ObjectFields, Read, wrong};
use super::super::parts;
use super::items::REDACTED;

/// Reads items; what one side says in several items becomes one turn.
pub(super) fn read<'a>(
    items: impl Iterator<Item = (String, &'a str)>,
    left_out: &mut LeftOut,
) -> Read<Vec<ChatTurn<'a>>> {
    let mut turns: Vec<ChatTurn<'a>> = Vec::new();
    for (at, raw) in items {
        let mut own = ObjectFields::of(at.clone(), raw)?;
        // Items are given back with the id and status that they came with.
        for name in ["id", "status"] {
            own.take(name);
        }
        own.hints(&["phase"], left_out);
        let kind = own.text("type")?;
        let (role, parts) = match kind.as_deref().unwrap_or("message") {
            "message" => message(&mut own, left_out)?,
            "function_call" => (
                SpeakerRole::Assistant,
                vec![ContentPart::Call(call(&mut own)?)],
            ),
            "function_call_output" => (SpeakerRole::User, vec![output(&mut own, left_out)?]),
            "reasoning" => (SpeakerRole::Assistant, thoughts(&mut own)?),
            _ => return wrong(own.at("type"), NO_COUNTERPART),
        };
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

fn message<'a>(
    own: &mut ObjectFields<'a>,
    left_out: &mut LeftOut,
) -> Read<(SpeakerRole, Vec<ContentPart<'a>>)> {
    let role = match own.need("role")?.as_ref() {
        "system" | "developer" => SpeakerRole::System,
        "user" => SpeakerRole::User,
        "assistant" => SpeakerRole::Assistant,
        _ => return wrong(own.at("role"), NO_COUNTERPART),
    };
    Ok((role, content(own, "content", left_out)?))
}

/// Returns a content: a text, or parts.
fn content<'a>(
    own: &mut ObjectFields<'a>,
    name: &str,
    left_out: &mut LeftOut,
) -> Read<Vec<ContentPart<'a>>> {
    let mut parts = parts::read(own, name, "parts", |own| part(own, left_out))?;
    parts.retain(|part| !matches!(part, ContentPart::Text(text) if text.is_empty()));
    Ok(parts)
}

fn part<'a>(mut own: ObjectFields<'a>, left_out: &mut LeftOut) -> Read<ContentPart<'a>> {
    own.hints(&["prompt_cache_breakpoint"], left_out);
    let part = match own.need("type")?.as_ref() {
        "input_text" => ContentPart::Text(own.need("text")?),
        "output_text" => {
            own.optional(&[("annotations", &["[]"])], left_out)?;
            own.hints(&["logprobs"], left_out);
            ContentPart::Text(own.need("text")?)
        }
        "refusal" => ContentPart::Refusal(own.need("refusal")?),
        "input_image" => {
            own.hints(&["detail"], left_out);
            own.neutral(&[("file_id", &[])])?;
            ContentPart::Image(FileSource::of_url(own.need("image_url")?))
        }
        "input_file" => {
            let name = own.text("filename")?;
            own.hints(&["detail"], left_out);
            own.neutral(&[("file_id", &[]), ("file_url", &[])])?;
            match FileSource::of_url(own.need("file_data")?) {
                source @ FileSource::Data { .. } => ContentPart::Document { name, source },
                FileSource::Url(_) => return wrong(own.at("file_data"), "has to be a data URL"),
            }
        }
        _ => return wrong(own.at("type"), NO_COUNTERPART),
    };
    own.finish(left_out)?;
    Ok(part)
}

fn call<'a>(own: &mut ObjectFields<'a>) -> Read<ToolCall<'a>> {
    own.neutral(&[("caller", &["{\"type\":\"direct\"}"])])?;
    let (id, name) = (own.need("call_id")?, own.need("name")?);
    let input = own.text("arguments")?.unwrap_or_default();
    let input = match input.trim().is_empty() {
        true => Cow::Borrowed("{}"),
        false => input,
    };
    Ok(ToolCall {
        id,
        name,
        input,
        signature: None,
    })
}

fn output<'a>(own: &mut ObjectFields<'a>, left_out: &mut LeftOut) -> Read<ContentPart<'a>> {
    own.neutral(&[("caller", &["{\"type\":\"direct\"}"])])?;
    let id = own.need("call_id")?;
    let parts = content(own, "output", left_out)?;
    let is_said = |part: &ContentPart<'_>| {
        matches!(
            part,
            ContentPart::Text(_) | ContentPart::Image(_) | ContentPart::Document { .. }
        )
    };
    if !parts.iter().all(is_said) {
        return wrong(own.at("output"), NO_COUNTERPART);
    }
    Ok(ContentPart::Result {
        id,
        failed: false,
        parts,
    })
}

/// Thoughts, with the signature of who had them.
fn thoughts<'a>(own: &mut ObjectFields<'a>) -> Read<Vec<ContentPart<'a>>> {
    let mut text = String::new();
    for name in ["summary", "content"] {
        for (at, raw) in own.list(name)? {
            let mut part = ObjectFields::of(at, raw)?;
            let kind = part.need("type")?;
            if !matches!(kind.as_ref(), "summary_text" | "reasoning_text") {
                return wrong(part.at("type"), NO_COUNTERPART);
            }
            text.push_str(&part.need("text")?);
            part.end()?;
        }
    }
    let signature = own.text("encrypted_content")?;
    if let Some(data) = signature
        .as_deref()
        .and_then(|own| own.strip_prefix(REDACTED))
    {
        return Ok(vec![ContentPart::Redacted(data.to_owned().into())]);
    }
    let is_empty = text.is_empty() && signature.is_none();
    let thinking = ContentPart::Thinking {
        text: text.into(),
        signature,
    };
    Ok(if is_empty { Vec::new() } else { vec![thinking] })
}
