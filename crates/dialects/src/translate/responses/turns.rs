//! Reading the items of a request.

use std::borrow::Cow;

use super::super::ask::{Call, Part, Role, Source, Turn};
use super::super::fields::{Fields, LeftOut, NO_COUNTERPART, Read, wrong};
use super::super::parts;
use super::items::REDACTED;

/// Reads items; what one side says in several items becomes one turn.
pub(super) fn read<'a>(
    items: impl Iterator<Item = (String, &'a str)>,
    left_out: &mut LeftOut,
) -> Read<Vec<Turn<'a>>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for (at, raw) in items {
        let mut own = Fields::of(at.clone(), raw)?;
        // Items are given back with the id and status that they came with.
        for name in ["id", "status"] {
            own.take(name);
        }
        own.hints(&["phase"], left_out);
        let kind = own.text("type")?;
        let (role, parts) = match kind.as_deref().unwrap_or("message") {
            "message" => message(&mut own, left_out)?,
            "function_call" => (Role::Assistant, vec![Part::Call(call(&mut own)?)]),
            "function_call_output" => (Role::User, vec![output(&mut own, left_out)?]),
            "reasoning" => (Role::Assistant, thoughts(&mut own)?),
            _ => return wrong(own.at("type"), NO_COUNTERPART),
        };
        own.finish(left_out)?;
        match turns.last_mut() {
            Some(last) if last.role == role && role != Role::System => last.parts.extend(parts),
            _ => turns.push(Turn { role, parts, at }),
        }
    }
    Ok(turns)
}

fn message<'a>(own: &mut Fields<'a>, left_out: &mut LeftOut) -> Read<(Role, Vec<Part<'a>>)> {
    let role = match own.need("role")?.as_ref() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return wrong(own.at("role"), NO_COUNTERPART),
    };
    Ok((role, content(own, "content", left_out)?))
}

/// A content: a text, or parts.
fn content<'a>(own: &mut Fields<'a>, name: &str, left_out: &mut LeftOut) -> Read<Vec<Part<'a>>> {
    let mut parts = parts::read(own, name, "parts", |own| part(own, left_out))?;
    parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
    Ok(parts)
}

fn part<'a>(mut own: Fields<'a>, left_out: &mut LeftOut) -> Read<Part<'a>> {
    own.hints(&["prompt_cache_breakpoint"], left_out);
    let part = match own.need("type")?.as_ref() {
        "input_text" => Part::Text(own.need("text")?),
        "output_text" => {
            own.optional(&[("annotations", &["[]"])], left_out)?;
            own.hints(&["logprobs"], left_out);
            Part::Text(own.need("text")?)
        }
        "refusal" => Part::Refusal(own.need("refusal")?),
        "input_image" => {
            own.hints(&["detail"], left_out);
            own.neutral(&[("file_id", &[])])?;
            Part::Image(Source::of_url(own.need("image_url")?))
        }
        "input_file" => {
            let name = own.text("filename")?;
            own.hints(&["detail"], left_out);
            own.neutral(&[("file_id", &[]), ("file_url", &[])])?;
            match Source::of_url(own.need("file_data")?) {
                source @ Source::Data { .. } => Part::Document { name, source },
                Source::Url(_) => return wrong(own.at("file_data"), "has to be a data URL"),
            }
        }
        _ => return wrong(own.at("type"), NO_COUNTERPART),
    };
    own.finish(left_out)?;
    Ok(part)
}

fn call<'a>(own: &mut Fields<'a>) -> Read<Call<'a>> {
    own.neutral(&[("caller", &["{\"type\":\"direct\"}"])])?;
    let (id, name) = (own.need("call_id")?, own.need("name")?);
    let input = own.text("arguments")?.unwrap_or_default();
    let input = match input.trim().is_empty() {
        true => Cow::Borrowed("{}"),
        false => input,
    };
    Ok(Call {
        id,
        name,
        input,
        signature: None,
    })
}

fn output<'a>(own: &mut Fields<'a>, left_out: &mut LeftOut) -> Read<Part<'a>> {
    own.neutral(&[("caller", &["{\"type\":\"direct\"}"])])?;
    let id = own.need("call_id")?;
    let parts = content(own, "output", left_out)?;
    let is_said =
        |part: &Part<'_>| matches!(part, Part::Text(_) | Part::Image(_) | Part::Document { .. });
    if !parts.iter().all(is_said) {
        return wrong(own.at("output"), NO_COUNTERPART);
    }
    Ok(Part::Result {
        id,
        failed: false,
        parts,
    })
}

/// Thoughts, with the signature of who had them.
fn thoughts<'a>(own: &mut Fields<'a>) -> Read<Vec<Part<'a>>> {
    let mut text = String::new();
    for name in ["summary", "content"] {
        for (at, raw) in own.list(name)? {
            let mut part = Fields::of(at, raw)?;
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
        return Ok(vec![Part::Redacted(data.to_owned().into())]);
    }
    let is_empty = text.is_empty() && signature.is_none();
    let thinking = Part::Thinking {
        text: text.into(),
        signature,
    };
    Ok(if is_empty { Vec::new() } else { vec![thinking] })
}
