//! What a scripted model says, before any API words it.

use serde_json::{Value, json};

use super::{Api, Manner};

/// The sentence, token by token.
pub const TOKENS: [&str; 8] = [
    "This",
    " is",
    " a",
    " MOCK",
    " response",
    " for",
    " load",
    " testing.",
];

/// What a model says.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub number: u64,
    pub model: String,
    pub tokens: Vec<String>,
    pub tools: Vec<ToolUse>,
    /// The most tokens were written, and more were to come.
    pub is_cut: bool,
    pub prompt_tokens: u64,
    /// What was used is told.
    pub tells_usage: bool,
    /// It is told in a stream of chat completions.
    pub streams_usage: bool,
}

/// A call of a tool that a model asks for.
#[derive(Debug, Clone)]
pub(super) struct ToolUse {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

impl Script {
    /// Tokens that were written.
    pub fn output_tokens(&self) -> u64 {
        u64::try_from(self.tokens.len() + self.tools.len()).unwrap_or(u64::MAX)
    }

    /// How long writing takes.
    pub fn ms(&self, token_ms: u64) -> u64 {
        self.output_tokens().saturating_mul(token_ms)
    }
}

/// Writes the script for a request.
pub(super) fn write(api: Api, request: &Value, manner: Manner, number: u64) -> Script {
    let text = |name: &str| {
        request
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let tools = tools(request, manner, number);
    let tagged = Some(manner).filter(|own| !matches!(own, Manner::Echo | Manner::Spell));
    let mut tokens: Vec<String> = if !tools.is_empty() {
        Vec::new()
    } else if let Some(tags) = tagged.and_then(|_| react_tags(request)) {
        tags
    } else if let Some(value) = structured(request) {
        vec![value.to_string()]
    } else if let Some(result) = tool_result(request) {
        vec!["The tool said: ".to_owned(), result]
    } else if manner == Manner::Echo {
        vec![last_text(request).unwrap_or_default()]
    } else if manner == Manner::Spell {
        let text = last_text(request).unwrap_or_default();
        text.chars().map(String::from).collect()
    } else {
        TOKENS.map(str::to_owned).to_vec()
    };
    let limits = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    let limit = limits
        .iter()
        .filter_map(|name| request.get(name)?.as_u64())
        .min();
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let is_cut = limit.is_some_and(|limit| limit < tokens.len());
    tokens.truncate(limit.unwrap_or(usize::MAX));
    let prompt = ["messages", "input", "system", "instructions", "tools"];
    let bytes = prompt.iter().filter_map(|name| request.get(name));
    let bytes: usize = bytes.map(|value| value.to_string().len()).sum();
    let usage = request
        .get("stream_options")
        .and_then(|own| own.get("include_usage"));
    Script {
        number,
        model: text("model").to_owned(),
        tokens,
        tools,
        is_cut,
        prompt_tokens: u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX),
        tells_usage: manner != Manner::Unmetered,
        streams_usage: api != Api::Chat || usage == Some(&Value::Bool(true)),
    }
}

/// The tools that are called: where some are offered, and the last message is no tool's result.
fn tools(request: &Value, manner: Manner, number: u64) -> Vec<ToolUse> {
    let offered = request.get("tools").and_then(Value::as_array);
    if tool_result(request).is_some() || request.get("tool_choice") == Some(&json!("none")) {
        return Vec::new();
    }
    let names = offered.into_iter().flatten().filter_map(|tool| {
        let function = tool.get("function").unwrap_or(tool);
        let schema = ["parameters", "input_schema"];
        let schema = schema.iter().find_map(|name| function.get(name));
        Some((function.get("name")?.as_str()?.to_owned(), schema))
    });
    let count = if manner == Manner::ParallelTools {
        2
    } else {
        1
    };
    names
        .take(count)
        .enumerate()
        .map(|(at, (name, schema))| ToolUse {
            id: format!("call_{number}_{at}"),
            name,
            arguments: schema.map_or_else(|| json!({}), instance),
        })
        .collect()
}

/// Pieces of a reply in ReAct tags if the system text asks for them: a call of the first tool, or after an observation an
/// answer that quotes it.
fn react_tags(request: &Value) -> Option<Vec<String>> {
    let system = turns(request)?.first()?;
    let system =
        (system.get("role") == Some(&json!("system"))).then(|| system.get("content"))??;
    let system = text_of(system);
    if !system.contains("<FINAL_ANSWER>") {
        return None;
    }
    let last = last_text(request)?;
    let observed = last.strip_prefix("<OBSERVATION>");
    let observed = observed.and_then(|rest| rest.strip_suffix("</OBSERVATION>"));
    if let Some(observed) = observed {
        let result: String = serde_json::from_str(observed).ok()?;
        let thought = "<THOUGHT>The tool has answered.</THOUGHT>".to_owned();
        let pieces = ["<FINAL_", "ANSWER>The tool said: "].map(str::to_owned);
        let end = [result, "</FINAL_ANSWER>".to_owned()];
        return Some([thought].into_iter().chain(pieces).chain(end).collect());
    }
    let mut tools = system.lines().filter_map(|line| {
        let tool = line.starts_with("{\"name\":").then_some(line)?;
        serde_json::from_str::<Value>(tool).ok()
    });
    let Some(tool) = tools.next().filter(|_| !last.contains("<FINAL_ANSWER>")) else {
        let sentence = TOKENS.map(str::to_owned);
        let answer = ["<FINAL_", "ANSWER>"].map(str::to_owned);
        let end = ["</FINAL_ANSWER>".to_owned()];
        return Some(answer.into_iter().chain(sentence).chain(end).collect());
    };
    let arguments = tool.get("parameters").map_or_else(|| json!({}), instance);
    let call = json!({ "tool_name": tool.get("name"), "arguments": arguments });
    let thought = "<THOUGHT>A tool will help.</THOUGHT>".to_owned();
    Some(vec![
        thought,
        "<ACT".to_owned(),
        format!("ION>{call}</ACTION>"),
    ])
}

/// The result of a tool, where the last message is one.
fn tool_result(request: &Value) -> Option<String> {
    let last = turns(request)?.last()?;
    if last.get("role") == Some(&json!("tool")) {
        return Some(text_of(last.get("content")?));
    }
    if last.get("type") == Some(&json!("function_call_output")) {
        return Some(text_of(last.get("output")?));
    }
    let part = last.get("content")?.as_array()?.last()?;
    let is_result = part.get("type") == Some(&json!("tool_result"));
    is_result.then(|| part.get("content").map(text_of).unwrap_or_default())
}

fn turns(request: &Value) -> Option<&Vec<Value>> {
    let turns = request.get("messages").or_else(|| request.get("input"))?;
    turns.as_array()
}

fn last_text(request: &Value) -> Option<String> {
    match turns(request) {
        Some(turns) => turns.last()?.get("content").map(text_of),
        None => request.get("input")?.as_str().map(str::to_owned),
    }
}

/// The text of a content, itself or in parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("")
        }
        other => other.to_string(),
    }
}

/// A value of the schema that the answer has to have.
fn structured(request: &Value) -> Option<Value> {
    let chat = request.pointer("/response_format/json_schema/schema");
    let responses = request.pointer("/text/format/schema");
    let messages = request.pointer("/output_config/format/schema");
    if let Some(schema) = chat.or(responses).or(messages) {
        return Some(instance(schema));
    }
    let plain = request.pointer("/response_format/type") == Some(&json!("json_object"));
    plain.then(|| json!({ "mock": true }))
}

/// The simplest value of a schema.
fn instance(schema: &Value) -> Value {
    if let Some(first) = schema.get("enum").and_then(|list| list.get(0)) {
        return first.clone();
    }
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    let choices = ["anyOf", "oneOf"]
        .iter()
        .find_map(|name| schema.get(name)?.get(0));
    if let Some(first) = choices {
        return instance(first);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => json!("mock"),
        Some("integer") => json!(7),
        Some("number") => json!(7.5),
        Some("boolean") => json!(true),
        Some("array") => match schema.get("items") {
            Some(items) => json!([instance(items)]),
            None => json!([]),
        },
        Some("null") => Value::Null,
        _ => {
            let members = schema.get("properties").and_then(Value::as_object);
            let members = members.into_iter().flatten();
            members
                .map(|(name, inner)| (name.clone(), instance(inner)))
                .collect()
        }
    }
}
