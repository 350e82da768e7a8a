//! Events of a chat completion's stream, as a run reads them.

use serde_json::Value;

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// It is done.
    Stop,
    /// Its tokens are used up.
    Length,
    /// It calls tools.
    ToolCalls,
    /// A filter of the provider.
    ContentFilter,
}

impl FinishReason {
    fn parse(word: &str) -> Self {
        match word {
            "length" | "max_tokens" => Self::Length,
            "tool_calls" | "function_call" => Self::ToolCalls,
            "content_filter" => Self::ContentFilter,
            _ => Self::Stop,
        }
    }

    /// Returns the word of chat completions.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// A piece of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPiece {
    /// Position of the call in its reply.
    pub index: u64,
    /// Id, in the first piece.
    pub id: Option<String>,
    /// Name, in the first piece.
    pub name: Option<String>,
    /// Further text of the arguments.
    pub arguments: String,
}

/// Contents of one event of the stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelDelta {
    /// Text of the answer.
    pub text: String,
    /// Text of the model's own thoughts.
    pub reasoning: String,
    /// Pieces of tool calls.
    pub calls: Vec<CallPiece>,
    /// Why the model stopped.
    pub finish: Option<FinishReason>,
}

/// Reads one server-sent event, or a whole completion. Returns `None` for an event that says nothing here.
#[must_use]
pub fn read_event(event: &[u8]) -> Option<ModelDelta> {
    let text = std::str::from_utf8(event).ok()?;
    let mut data = String::new();
    for line in text.lines() {
        if let Some(part) = line.strip_prefix("data:") {
            data.push_str(part.strip_prefix(' ').unwrap_or(part));
        }
    }
    read_completion(if data.is_empty() { text } else { &data })
}

/// Reads the JSON of a chunk or of a whole completion.
#[must_use]
pub fn read_completion(json: &str) -> Option<ModelDelta> {
    let chunk: Value = serde_json::from_str(json).ok()?;
    let choice = chunk.get("choices")?.get(0)?;
    let said = choice.get("delta").or_else(|| choice.get("message"))?;
    let string = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let reasoning = said.get("reasoning_content").or(said.get("reasoning"));
    let finish = choice.get("finish_reason").and_then(Value::as_str);
    let calls = said.get("tool_calls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten().enumerate().map(|(at, call)| {
        let function = call.get("function").unwrap_or(call);
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        let at = u64::try_from(at).unwrap_or(u64::MAX);
        CallPiece {
            index: call.get("index").and_then(Value::as_u64).unwrap_or(at),
            id: string(call.get("id")).filter(|id| !id.is_empty()),
            name: string(function.get("name")).filter(|name| !name.is_empty()),
            arguments,
        }
    });
    Some(ModelDelta {
        text: text_of(said.get("content")),
        reasoning: string(reasoning).unwrap_or_default(),
        calls: calls.collect(),
        finish: finish.map(FinishReason::parse),
    })
}

/// Returns the text of a content, itself or in parts.
#[must_use]
pub fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_and_whole_completions_are_read() {
        let event = b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\",\"reasoning_content\":\"hm\"},\"finish_reason\":null}]}\n\n";
        let delta = read_event(event).unwrap();
        assert_eq!(
            (delta.text.as_str(), delta.reasoning.as_str()),
            ("hi", "hm")
        );
        let whole = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":{"x":1}}}]},"finish_reason":"tool_calls"}]}"#;
        let delta = read_event(whole.as_bytes()).unwrap();
        assert_eq!(delta.calls[0].arguments, "{\"x\":1}");
        assert_eq!(delta.finish, Some(FinishReason::ToolCalls));
        for nothing in ["data: [DONE]\n\n", ": comment\n\n", "", "{\"choices\":[]}"] {
            assert_eq!(read_event(nothing.as_bytes()), None, "{nothing}");
        }
    }
}
