//! Writing a request.

use super::super::ask::{
    ChatTurn, ContentPart, ModelRequest, OfferedTool, ReplyShape, SpeakerRole, Text, ToolCall,
    ToolChoice,
};
use super::super::fields::{LeftOut, NO_COUNTERPART, Read, wrong};
use super::super::{FileSource, ReasoningField, RequestOptions};
use crate::write::{ObjectWriter, list, quote};

/// Prefix of the result of a failed tool: the dialect has no other mark.
const FAILED: &str = "the tool failed:";

/// The longest name of a user that OpenAI takes.
const USER_CHARS_MAX: usize = 64;

/// Writes a request.
pub(in super::super) fn write(
    ask: &ModelRequest<'_>,
    options: &RequestOptions<'_>,
    left_out: &mut LeftOut,
) -> Read<Vec<u8>> {
    if ask.top_k.is_some() {
        left_out.drop_or_refuse("top_k")?;
    }
    let mut turns = Vec::new();
    if !ask.system.is_empty() {
        turns.push(message("system", &texts(&ask.system)));
    }
    for turn in &ask.turns {
        match turn.role {
            SpeakerRole::System => turns.push(message("system", &parts(&turn.parts, &turn.at)?)),
            SpeakerRole::User => user(turn, &mut turns)?,
            // An empty turn is refused. The turn had only parts that no other provider can read.
            SpeakerRole::Assistant
                if turn.parts.iter().all(is_redacted) && !turn.parts.is_empty() =>
            {
                left_out.insert("content.redacted_thinking");
            }
            SpeakerRole::Assistant => {
                let said = assistant(turn, options.thoughts, (ask.names.signature, left_out))?;
                turns.push(said);
            }
        }
    }
    let most = if options.names_completion {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let stop = ask.stop.iter().map(|text| quote(text));
    let tools = ask.tools.iter().map(tool);
    let asks_usage = ask.streams && !options.is_strict;
    let usage = asks_usage.then_some("{\"include_usage\":true}");
    let fits = |user: &&Text<'_>| !options.is_strict && user.chars().count() <= USER_CHARS_MAX;
    let user = ask.user.as_ref().filter(fits);
    if ask.user.is_some() && user.is_none() {
        left_out.insert(ask.names.user);
    }
    let parallel = ask.parallel.filter(|_| !ask.tools.is_empty());
    let body = ObjectWriter::new()
        .text("model", options.model)
        .raw("messages", list(turns))
        .raw_if(most, ask.max_tokens)
        .raw_if("temperature", ask.temperature)
        .raw_if("top_p", ask.top_p)
        .raw_if("stop", (!ask.stop.is_empty()).then(|| list(stop)))
        .raw_if("tools", (!ask.tools.is_empty()).then(|| list(tools)))
        .raw_if("tool_choice", ask.choice.as_ref().map(choice))
        .raw_if(
            "parallel_tool_calls",
            parallel.map(|parallel| parallel.to_string()),
        )
        .raw_if("response_format", ask.shape.as_ref().map(shape))
        .raw_if(
            "reasoning_effort",
            ask.effort.map(|effort| quote(effort.word())),
        )
        .raw_if("user", user.map(|user| quote(user)))
        .raw_if("stream", ask.streams.then_some("true"))
        .raw_if("stream_options", usage);
    Ok(body.end())
}

fn is_redacted(part: &ContentPart<'_>) -> bool {
    matches!(part, ContentPart::Redacted(_))
}

fn message(role: &str, content: &[u8]) -> Vec<u8> {
    let message = ObjectWriter::new()
        .text("role", role)
        .raw("content", content);
    message.end()
}

/// Returns a content of texts: one is a string, several are parts.
fn texts(texts: &[Text<'_>]) -> Vec<u8> {
    match texts {
        [one] => quote(one),
        _ => list(texts.iter().map(|text| text_part(text))),
    }
}

fn text_part(text: &str) -> Vec<u8> {
    let part = ObjectWriter::new().text("type", "text").text("text", text);
    part.end()
}

/// Writes what a user says: the results of tools are messages of their own, and their files follow in the next message.
fn user(turn: &ChatTurn<'_>, out: &mut Vec<Vec<u8>>) -> Read<()> {
    let mut rest = turn.parts.as_slice();
    let mut files: Vec<Vec<u8>> = Vec::new();
    while let Some((first, behind)) = rest.split_first() {
        if let ContentPart::Result {
            id,
            failed,
            parts: said,
        } = first
        {
            out.push(result(id, *failed, said, &mut files, &turn.at)?);
            rest = behind;
            continue;
        }
        let count = rest
            .iter()
            .position(|part| matches!(part, ContentPart::Result { .. }))
            .unwrap_or(rest.len());
        let (own, behind) = rest.split_at(count);
        out.push(match files.is_empty() {
            true => message("user", &parts(own, &turn.at)?),
            false => {
                files.extend(content_parts(own, &turn.at)?);
                message("user", &list(std::mem::take(&mut files)))
            }
        });
        rest = behind;
    }
    if !files.is_empty() {
        out.push(message("user", &list(files)));
    }
    Ok(())
}

/// Writes what a tool has said; what of it is no text goes to `files`.
fn result(
    id: &str,
    failed: bool,
    said: &[ContentPart<'_>],
    files: &mut Vec<Vec<u8>>,
    at: &str,
) -> Read<Vec<u8>> {
    let is_text = |part: &&ContentPart<'_>| matches!(part, ContentPart::Text(_));
    let texts: Vec<&ContentPart<'_>> = said.iter().filter(is_text).collect();
    let others: Vec<&ContentPart<'_>> = said.iter().filter(|part| !is_text(part)).collect();
    if !others.is_empty() {
        files.push(text_part(&format!(
            "files that the tool call {id} returned:"
        )));
        for part in others {
            files.extend(content_parts(std::slice::from_ref(part), at)?);
        }
    }
    let content = match (texts.as_slice(), failed) {
        ([], false) => quote(""),
        ([ContentPart::Text(text)], false) => quote(text),
        _ => {
            let failed = failed.then(|| text_part(FAILED));
            let texts = texts.into_iter().filter_map(|part| match part {
                ContentPart::Text(text) => Some(text_part(text)),
                _ => None,
            });
            list(failed.into_iter().chain(texts))
        }
    };
    let message = ObjectWriter::new()
        .text("role", "tool")
        .text("tool_call_id", id)
        .raw("content", content);
    Ok(message.end())
}

/// Returns a content of parts.
fn parts(own: &[ContentPart<'_>], at: &str) -> Read<Vec<u8>> {
    if let [ContentPart::Text(text)] = own {
        return Ok(quote(text));
    }
    Ok(list(content_parts(own, at)?))
}

/// Returns the parts of a content.
fn content_parts(own: &[ContentPart<'_>], at: &str) -> Read<Vec<Vec<u8>>> {
    let mut out = Vec::new();
    for part in own {
        out.push(match part {
            ContentPart::Text(text) => text_part(text),
            ContentPart::Image(source) => {
                let image = ObjectWriter::new().text("url", &source.url());
                let part = ObjectWriter::new().text("type", "image_url");
                part.raw("image_url", image.end()).end()
            }
            ContentPart::Document { name, source } => document(name.as_deref(), source, at)?,
            _ => return wrong(at, NO_COUNTERPART),
        });
    }
    Ok(out)
}

fn document(name: Option<&str>, source: &FileSource<'_>, at: &str) -> Read<Vec<u8>> {
    let FileSource::Data { .. } = source else {
        return wrong(
            at,
            "has a document by its URL, which this model's provider cannot be told",
        );
    };
    let file = ObjectWriter::new()
        .text("filename", name.unwrap_or("document.pdf"))
        .text("file_data", &source.url());
    let part = ObjectWriter::new()
        .text("type", "file")
        .raw("file", file.end());
    Ok(part.end())
}

/// Writes a turn of the assistant.
fn assistant(
    turn: &ChatTurn<'_>,
    place: ReasoningField,
    (signed, left_out): (&'static str, &mut LeftOut),
) -> Read<Vec<u8>> {
    let (mut words, mut calls, mut thoughts) = (Vec::new(), Vec::new(), String::new());
    for part in &turn.parts {
        match part {
            ContentPart::Text(text) | ContentPart::Refusal(text) => words.push(text.clone()),
            ContentPart::Call(own) => calls.push(call(own, &own.input).end()),
            // A signature is for the provider that wrote it.
            ContentPart::Thinking { text, signature } => {
                thoughts.push_str(text);
                let has_own = signature.as_ref().is_some_and(|own| !own.is_empty());
                left_out.extend(has_own.then_some(signed));
            }
            ContentPart::Redacted(_) => {
                left_out.insert("content.redacted_thinking");
            }
            _ => return wrong(&turn.at, NO_COUNTERPART),
        }
    }
    let has_thoughts = |own| place == own && !thoughts.is_empty();
    let content = if has_thoughts(ReasoningField::Parts) {
        let words = words.iter().map(|text| text_part(text));
        list(std::iter::once(thoughts_part(&thoughts)).chain(words))
    } else if words.is_empty() {
        b"null".to_vec()
    } else {
        texts(&words)
    };
    let thoughts_in = |own| has_thoughts(own).then(|| quote(&thoughts));
    let calls = (!calls.is_empty()).then(|| list(calls));
    let message = ObjectWriter::new()
        .text("role", "assistant")
        .raw("content", content)
        .raw_if(
            "reasoning_content",
            thoughts_in(ReasoningField::ReasoningContent),
        )
        .raw_if("reasoning", thoughts_in(ReasoningField::Reasoning))
        .raw_if("tool_calls", calls);
    Ok(message.end())
}

/// Thoughts as a part of the content.
fn thoughts_part(text: &str) -> Vec<u8> {
    let part = ObjectWriter::new().text("type", "thinking");
    part.raw("thinking", list([text_part(text)])).end()
}

/// Returns a call of a tool, as in requests and replies.
pub(super) fn call(own: &ToolCall<'_>, arguments: &str) -> ObjectWriter {
    let function = ObjectWriter::new()
        .text("name", &own.name)
        .text("arguments", arguments);
    let extra = own.signature.as_ref().map(|signature| {
        let google = ObjectWriter::new().text("thought_signature", signature);
        ObjectWriter::new().raw("google", google.end()).end()
    });
    ObjectWriter::new()
        .text("id", &own.id)
        .text("type", "function")
        .raw("function", function.end())
        .raw_if("extra_content", extra)
}

fn tool(own: &OfferedTool<'_>) -> Vec<u8> {
    let description = own.description.as_ref().map(|text| quote(text));
    let function = ObjectWriter::new()
        .text("name", &own.name)
        .raw_if("description", description)
        .raw_if("parameters", own.schema)
        .raw_if("strict", own.strict.map(|strict| strict.to_string()));
    let tool = ObjectWriter::new().text("type", "function");
    tool.raw("function", function.end()).end()
}

fn choice(own: &ToolChoice<'_>) -> Vec<u8> {
    match own {
        ToolChoice::Auto => quote("auto"),
        ToolChoice::Any => quote("required"),
        ToolChoice::None => quote("none"),
        ToolChoice::Tool(name) => {
            let function = ObjectWriter::new().text("name", name).end();
            let choice = ObjectWriter::new().text("type", "function");
            choice.raw("function", function).end()
        }
    }
}

fn shape(own: &ReplyShape<'_>) -> Vec<u8> {
    match own {
        ReplyShape::Json => ObjectWriter::new().text("type", "json_object").end(),
        ReplyShape::Schema {
            name,
            schema,
            strict,
        } => {
            let inner = ObjectWriter::new()
                .text("name", name.as_deref().unwrap_or("reply"))
                .raw("schema", schema)
                .raw_if("strict", strict.map(|strict| strict.to_string()));
            let format = ObjectWriter::new().text("type", "json_schema");
            format.raw("json_schema", inner.end()).end()
        }
    }
}
