//! Writing a request.

use std::collections::BTreeMap;

use super::super::arguments;
use super::super::ask::{Ask, Choice, Effort, Names, Part, Role, Shape, Source, Text, Tool, Turn};
use super::super::fields::{LeftOut, Read, wrong};
use crate::write::{Object, list, quoted};

/// Writes a request. The model and whether it streams stand in the URL.
pub(in super::super) fn write(ask: &Ask<'_>, left_out: &mut LeftOut) -> Read<Vec<u8>> {
    if ask.parallel == Some(false) && !ask.tools.is_empty() {
        left_out.drop_or_refuse(ask.names.parallel)?;
    }
    if ask.user.is_some() {
        left_out.insert(ask.names.user);
    }
    if ask.tools.iter().any(|tool| tool.strict == Some(true)) {
        left_out.insert("strict");
    }
    if let Some(Shape::Schema { name: Some(_), .. }) = &ask.shape {
        left_out.insert(ask.names.schema);
    }
    // A result names the call's function, which callers know by the call's id alone.
    let mut called = BTreeMap::new();
    let mut contents = Vec::new();
    let mut system: Vec<&Text<'_>> = ask.system.iter().collect();
    let mut has_answered = false;
    for turn in &ask.turns {
        has_answered |= turn.role == Role::Assistant;
        if turn.role == Role::System && !has_answered {
            // Before the model's first turn it says the same wherever it stands.
            system.extend(early(turn)?);
            continue;
        }
        for part in &turn.parts {
            if let Part::Call(call) = part {
                called.insert(call.id.as_ref(), call.name.as_ref());
            }
        }
        contents.extend(content(turn, &called, (ask.names, left_out))?);
    }
    let system = (!system.is_empty()).then(|| {
        let parts = system
            .iter()
            .map(|text| Object::new().text("text", text).end());
        Object::new().raw("parts", list(parts)).end()
    });
    let tools = (!ask.tools.is_empty()).then(|| {
        let declared = list(ask.tools.iter().map(tool));
        list([Object::new().raw("functionDeclarations", declared).end()])
    });
    let body = Object::new()
        .raw("contents", list(contents))
        .raw_if("systemInstruction", system)
        .raw_if("tools", tools)
        .raw_if("toolConfig", ask.choice.as_ref().map(choice))
        .raw("generationConfig", generation(ask));
    Ok(body.end())
}

/// The texts of a system's turn.
fn early<'t, 'a>(turn: &'t Turn<'a>) -> Read<Vec<&'t Text<'a>>> {
    let texts = turn.parts.iter().map(|part| match part {
        Part::Text(text) => Ok(text),
        _ => wrong(&turn.at, "has to be text alone"),
    });
    texts.collect()
}

fn generation(ask: &Ask<'_>) -> Vec<u8> {
    let stop = ask.stop.iter().map(|text| quoted(text));
    let schema = match &ask.shape {
        Some(Shape::Schema { schema, .. }) => Some(schema),
        Some(Shape::Json) | None => None,
    };
    let is_json = ask.shape.is_some();
    Object::new()
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
            is_json.then(|| quoted("application/json")),
        )
        .raw_if("responseJsonSchema", schema)
        .raw_if("thinkingConfig", ask.effort.map(thinking))
        .end()
}

/// How much is thought is told in tokens.
fn thinking(effort: Effort) -> Vec<u8> {
    let tokens = match effort {
        Effort::None => 0,
        Effort::Minimal | Effort::Low => 1_024,
        Effort::Medium => 8_192,
        Effort::High | Effort::XHigh | Effort::Max => 24_576,
    };
    Object::new()
        .raw("includeThoughts", (tokens > 0).to_string())
        .raw("thinkingBudget", tokens.to_string())
        .end()
}

fn content(
    turn: &Turn<'_>,
    called: &BTreeMap<&str, &str>,
    (names, left_out): (Names, &mut LeftOut),
) -> Read<Option<Vec<u8>>> {
    let role = match turn.role {
        Role::User => "user",
        Role::Assistant => "model",
        // Its words are said by the user where they stand.
        Role::System => {
            left_out.drop_or_refuse(&format!("{}.role", turn.at))?;
            "user"
        }
    };
    // The signature of a call comes back in front of it where the caller's dialect has no other place.
    let mut before = None;
    let mut parts = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text(text) | Part::Refusal(text) => {
                parts.push(Object::new().text("text", text).end());
            }
            Part::Image(source) => parts.push(inline(source, &turn.at)?),
            Part::Document { name, source } => {
                left_out.extend(name.as_ref().map(|_| names.document));
                parts.push(inline(source, &turn.at)?);
            }
            Part::Call(call) => {
                let function = Object::new()
                    .text("id", &call.id)
                    .text("name", &call.name)
                    .raw("args", arguments::to_object(&call.input).as_bytes())
                    .end();
                let signature = call.signature.as_ref().or(before.take());
                let part = Object::new().raw("functionCall", function);
                let signature = signature.map(|text| quoted(text));
                parts.push(part.raw_if("thoughtSignature", signature).end());
            }
            Part::Result {
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
                let is_text = |part: &&Part<'_>| matches!(part, Part::Text(_));
                let texts: Vec<&Part<'_>> = said.iter().filter(is_text).collect();
                parts.push(result(id, name, *failed, &texts));
                // A file stands beside the result that it belongs to.
                for part in said {
                    if let Part::Image(source) | Part::Document { source, .. } = part {
                        parts.push(inline(source, &turn.at)?);
                    }
                }
            }
            Part::Thinking {
                text,
                signature: Some(signature),
            } if text.is_empty() => before = Some(signature),
            Part::Thinking { text, signature } => {
                // It is that of another provider: Gemini's stand alone.
                let has_own = signature.as_ref().is_some_and(|own| !own.is_empty());
                left_out.extend(has_own.then_some(names.signature));
                parts.push(
                    Object::new()
                        .text("text", text)
                        .raw("thought", "true")
                        .end(),
                );
            }
            Part::Redacted(_) => {
                left_out.insert("content.redacted_thinking");
            }
            Part::CacheMark(_) => {}
        }
    }
    // An empty turn is refused. Only what nobody else can read was said.
    let is_said = !parts.is_empty() || turn.parts.is_empty();
    let content = Object::new().text("role", role).raw("parts", list(parts));
    Ok(is_said.then(|| content.end()))
}

fn inline(source: &Source<'_>, at: &str) -> Read<Vec<u8>> {
    let Source::Data { media, data } = source else {
        return wrong(
            at,
            "has a file by its URL, which this model's provider cannot be told",
        );
    };
    let data = Object::new().text("mimeType", media).text("data", data);
    Ok(Object::new().raw("inlineData", data.end()).end())
}

fn result(id: &str, name: &str, failed: bool, said: &[&Part<'_>]) -> Vec<u8> {
    let texts = said.iter().filter_map(|part| match part {
        Part::Text(text) => Some(quoted(text)),
        _ => None,
    });
    let texts: Vec<Vec<u8>> = texts.collect();
    let text = match texts.as_slice() {
        [] => quoted(""),
        [one] => one.clone(),
        many => list(many),
    };
    let outcome = if failed { "error" } else { "output" };
    let response = Object::new()
        .text("id", id)
        .text("name", name)
        .raw("response", Object::new().raw(outcome, text).end());
    let part = Object::new().raw("functionResponse", response.end());
    part.end()
}

fn tool(own: &Tool<'_>) -> Vec<u8> {
    let description = own.description.as_ref().map(|text| quoted(text));
    Object::new()
        .text("name", &own.name)
        .raw_if("description", description)
        .raw_if("parametersJsonSchema", own.schema)
        .end()
}

fn choice(own: &Choice<'_>) -> Vec<u8> {
    let (mode, name) = match own {
        Choice::Auto => ("AUTO", None),
        Choice::Any => ("ANY", None),
        Choice::None => ("NONE", None),
        Choice::Tool(name) => ("ANY", Some(list([quoted(name)]))),
    };
    let config = Object::new()
        .text("mode", mode)
        .raw_if("allowedFunctionNames", name);
    Object::new()
        .raw("functionCallingConfig", config.end())
        .end()
}
