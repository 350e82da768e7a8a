//! Writing a request.

use std::collections::BTreeMap;

use super::super::arguments;
use super::super::ask::{
    ChatTurn, ContentPart, FileSource, MemberNames, ModelRequest, OfferedTool, ReplyShape,
    SpeakerRole, Text, ThinkingEffort, ToolChoice,
};
use super::super::fields::{LeftOut, Read, wrong};
use crate::write::{ObjectWriter, list, quote};

/// Writes a request. The model and whether it streams are in the URL.
pub(in super::super) fn write(ask: &ModelRequest<'_>, left_out: &mut LeftOut) -> Read<Vec<u8>> {
    if ask.parallel == Some(false) && !ask.tools.is_empty() {
        left_out.drop_or_refuse(ask.names.parallel)?;
    }
    if ask.user.is_some() {
        left_out.insert(ask.names.user);
    }
    if ask.tools.iter().any(|tool| tool.strict == Some(true)) {
        left_out.insert("strict");
    }
    if let Some(ReplyShape::Schema { name: Some(_), .. }) = &ask.shape {
        left_out.insert(ask.names.schema);
    }
    // A result names the call's function, which callers know by the call's id alone.
    let mut called = BTreeMap::new();
    let mut contents = Vec::new();
    let mut system: Vec<&Text<'_>> = ask.system.iter().collect();
    let mut has_answered = false;
    for turn in &ask.turns {
        has_answered |= turn.role == SpeakerRole::Assistant;
        if turn.role == SpeakerRole::System && !has_answered {
            // Before the model's first turn its position does not matter.
            system.extend(early(turn)?);
            continue;
        }
        for part in &turn.parts {
            if let ContentPart::Call(call) = part {
                called.insert(call.id.as_ref(), call.name.as_ref());
            }
        }
        contents.extend(content(turn, &called, (ask.names, left_out))?);
    }
    let system = (!system.is_empty()).then(|| {
        let parts = system
            .iter()
            .map(|text| ObjectWriter::new().text("text", text).end());
        ObjectWriter::new().raw("parts", list(parts)).end()
    });
    let tools = (!ask.tools.is_empty()).then(|| {
        let declared = list(ask.tools.iter().map(tool));
        list([ObjectWriter::new()
            .raw("functionDeclarations", declared)
            .end()])
    });
    let body = ObjectWriter::new()
        .raw("contents", list(contents))
        .raw_if("systemInstruction", system)
        .raw_if("tools", tools)
        .raw_if("toolConfig", ask.choice.as_ref().map(choice))
        .raw("generationConfig", generation(ask));
    Ok(body.end())
}

/// Returns the texts of a system's turn.
fn early<'t, 'a>(turn: &'t ChatTurn<'a>) -> Read<Vec<&'t Text<'a>>> {
    let texts = turn.parts.iter().map(|part| match part {
        ContentPart::Text(text) => Ok(text),
        _ => wrong(&turn.at, "has to be text alone"),
    });
    texts.collect()
}

fn generation(ask: &ModelRequest<'_>) -> Vec<u8> {
    let stop = ask.stop.iter().map(|text| quote(text));
    let schema = match &ask.shape {
        Some(ReplyShape::Schema { schema, .. }) => Some(schema),
        Some(ReplyShape::Json) | None => None,
    };
    let is_json = ask.shape.is_some();
    ObjectWriter::new()
        .raw_if("maxOutputTokens", ask.max_tokens)
        .raw_if("temperature", ask.temperature)
        .raw_if("topP", ask.top_p)
        .raw_if("topK", ask.top_k)
        .raw_if("seed", ask.seed)
        .raw_if("presencePenalty", ask.presence_penalty)
        .raw_if("frequencyPenalty", ask.frequency_penalty)
        .raw_if("stopSequences", (!ask.stop.is_empty()).then(|| list(stop)))
        .raw_if(
            "responseMimeType",
            is_json.then(|| quote("application/json")),
        )
        .raw_if("responseJsonSchema", schema)
        .raw_if("thinkingConfig", ask.effort.map(thinking))
        .end()
}

/// Returns the budget of thinking in tokens.
fn thinking(effort: ThinkingEffort) -> Vec<u8> {
    let tokens = match effort {
        ThinkingEffort::None => 0,
        ThinkingEffort::Minimal | ThinkingEffort::Low => 1_024,
        ThinkingEffort::Medium => 8_192,
        ThinkingEffort::High | ThinkingEffort::XHigh | ThinkingEffort::Max => 24_576,
    };
    ObjectWriter::new()
        .raw("includeThoughts", (tokens > 0).to_string())
        .raw("thinkingBudget", tokens.to_string())
        .end()
}

fn content(
    turn: &ChatTurn<'_>,
    called: &BTreeMap<&str, &str>,
    (names, left_out): (MemberNames, &mut LeftOut),
) -> Read<Option<Vec<u8>>> {
    let role = match turn.role {
        SpeakerRole::User => "user",
        SpeakerRole::Assistant => "model",
        // Its words become the user's at their position.
        SpeakerRole::System => {
            left_out.drop_or_refuse(&format!("{}.role", turn.at))?;
            "user"
        }
    };
    // The signature of a call comes back in front of it if the caller's dialect has no other place.
    let mut before = None;
    let mut parts = Vec::new();
    for part in &turn.parts {
        match part {
            ContentPart::Text(text) | ContentPart::Refusal(text) => {
                parts.push(ObjectWriter::new().text("text", text).end());
            }
            ContentPart::Image(source) => parts.push(inline(source, &turn.at)?),
            ContentPart::Document { name, source } => {
                left_out.extend(name.as_ref().map(|_| names.document));
                parts.push(inline(source, &turn.at)?);
            }
            ContentPart::Call(call) => {
                let function = ObjectWriter::new()
                    .text("id", &call.id)
                    .text("name", &call.name)
                    .raw("args", arguments::to_object(&call.input).as_bytes())
                    .end();
                let signature = call.signature.as_ref().or(before.take());
                let part = ObjectWriter::new().raw("functionCall", function);
                let signature = signature.map(|text| quote(text));
                parts.push(part.raw_if("thoughtSignature", signature).end());
            }
            ContentPart::Result {
                id,
                failed,
                parts: said,
            } => {
                let Some(name) = called.get(id.as_ref()) else {
                    return wrong(
                        &turn.at,
                        "has the result of a call that no message before it has",
                    );
                };
                let is_text = |part: &&ContentPart<'_>| matches!(part, ContentPart::Text(_));
                let texts: Vec<&ContentPart<'_>> = said.iter().filter(is_text).collect();
                parts.push(result(id, name, *failed, &texts));
                // A file is beside its result.
                for part in said {
                    if let ContentPart::Image(source) | ContentPart::Document { source, .. } = part
                    {
                        parts.push(inline(source, &turn.at)?);
                    }
                }
            }
            ContentPart::Thinking {
                text,
                signature: Some(signature),
            } if text.is_empty() => before = Some(signature),
            ContentPart::Thinking { text, signature } => {
                // It is that of another provider: Gemini's are separate parts.
                let has_own = signature.as_ref().is_some_and(|own| !own.is_empty());
                left_out.extend(has_own.then_some(names.signature));
                parts.push(
                    ObjectWriter::new()
                        .text("text", text)
                        .raw("thought", "true")
                        .end(),
                );
            }
            ContentPart::Redacted(_) => {
                left_out.insert("content.redacted_thinking");
            }
            ContentPart::CacheMark(_) => {}
        }
    }
    // An empty turn is refused. The turn had only parts that no other provider can read.
    let is_said = !parts.is_empty() || turn.parts.is_empty();
    let content = ObjectWriter::new()
        .text("role", role)
        .raw("parts", list(parts));
    Ok(is_said.then(|| content.end()))
}

fn inline(source: &FileSource<'_>, at: &str) -> Read<Vec<u8>> {
    let FileSource::Data { media, data } = source else {
        return wrong(
            at,
            "has a file by its URL, which this model's provider cannot be told",
        );
    };
    let data = ObjectWriter::new()
        .text("mimeType", media)
        .text("data", data);
    Ok(ObjectWriter::new().raw("inlineData", data.end()).end())
}

fn result(id: &str, name: &str, failed: bool, said: &[&ContentPart<'_>]) -> Vec<u8> {
    let texts = said.iter().filter_map(|part| match part {
        ContentPart::Text(text) => Some(quote(text)),
        _ => None,
    });
    let texts: Vec<Vec<u8>> = texts.collect();
    let text = match texts.as_slice() {
        [] => quote(""),
        [one] => one.clone(),
        many => list(many),
    };
    let outcome = if failed { "error" } else { "output" };
    let response = ObjectWriter::new()
        .text("id", id)
        .text("name", name)
        .raw("response", ObjectWriter::new().raw(outcome, text).end());
    let part = ObjectWriter::new().raw("functionResponse", response.end());
    part.end()
}

fn tool(own: &OfferedTool<'_>) -> Vec<u8> {
    let description = own.description.as_ref().map(|text| quote(text));
    ObjectWriter::new()
        .text("name", &own.name)
        .raw_if("description", description)
        .raw_if("parametersJsonSchema", own.schema)
        .end()
}

fn choice(own: &ToolChoice<'_>) -> Vec<u8> {
    let (mode, name) = match own {
        ToolChoice::Auto => ("AUTO", None),
        ToolChoice::Any => ("ANY", None),
        ToolChoice::None => ("NONE", None),
        ToolChoice::Tool(name) => ("ANY", Some(list([quote(name)]))),
    };
    let config = ObjectWriter::new()
        .text("mode", mode)
        .raw_if("allowedFunctionNames", name);
    ObjectWriter::new()
        .raw("functionCallingConfig", config.end())
        .end()
}
