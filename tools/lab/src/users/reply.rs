//! Reading a streamed reply, and what has to be right about it.

use serde_json::Value;

/// Reply of the scripted model.
pub(super) const SENTENCE: &str = "This is a MOCK response for load testing.";
/// What ReActUser's tool gives back.
pub(super) const OBSERVATION: &str = "three results were found";

/// A streamed reply, joined.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ModelReply {
    pub content: String,
    /// Name and arguments of the tools that are asked for, with the id of each call.
    pub calls: Vec<(String, String, String)>,
    pub finish: Option<String>,
    /// The model that says it has answered.
    pub model: String,
    /// Tokens that were written: parts with content, and calls.
    pub tokens: u64,
}

/// Reads a reply.
///
/// # Errors
/// What is wrong with it, for a person.
pub(super) fn read(body: &[u8]) -> Result<ModelReply, String> {
    let text = std::str::from_utf8(body).map_err(|_| "the reply is not UTF-8")?;
    let mut reply = ModelReply::default();
    let mut is_over = false;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let Some(data) = line.strip_prefix("data: ") else {
            if line.starts_with(':') {
                continue;
            }
            return Err(format!("a line of the stream is not data: {}", start(line)));
        };
        if is_over {
            return Err("there is data after [DONE]".to_owned());
        }
        if data == "[DONE]" {
            is_over = true;
            continue;
        }
        let chunk: Value = serde_json::from_str(data)
            .map_err(|_| format!("a chunk is not JSON: {}", start(data)))?;
        if let Some(error) = chunk.get("error") {
            return Err(format!("the stream ends with an error: {error}"));
        }
        if let Some(model) = chunk.get("model").and_then(Value::as_str)
            && reply.model.is_empty()
        {
            model.clone_into(&mut reply.model);
        }
        for choice in chunk
            .get("choices")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            take(&mut reply, choice)?;
        }
    }
    if !is_over {
        return Err("the stream has no [DONE]".to_owned());
    }
    if reply.finish.is_none() {
        return Err("the stream has no finish_reason".to_owned());
    }
    Ok(reply)
}

fn take(reply: &mut ModelReply, choice: &Value) -> Result<(), String> {
    if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str)
        && reply.finish.replace(finish.to_owned()).is_some()
    {
        return Err("the stream has two finish reasons".to_owned());
    }
    let Some(delta) = choice.get("delta") else {
        return Err("a choice has no delta".to_owned());
    };
    if let Some(part) = delta.get("content").and_then(Value::as_str)
        && !part.is_empty()
    {
        reply.content.push_str(part);
        reply.tokens += 1;
    }
    for call in delta
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let text = |at: &str| call.pointer(at).and_then(Value::as_str).unwrap_or_default();
        if !text("/function/name").is_empty() {
            let own = (text("/id").to_owned(), text("/function/name").to_owned());
            reply.calls.push((own.0, own.1, String::new()));
            reply.tokens += 1;
        }
        if let Some((_, _, arguments)) = reply.calls.last_mut() {
            arguments.push_str(text("/function/arguments"));
        }
    }
    Ok(())
}

impl ModelReply {
    /// Whether it is the sentence, whole.
    pub fn is_sentence(&self) -> Result<(), String> {
        self.says(SENTENCE)
    }

    /// Whether it is the answer that quotes what the tool has found.
    pub fn quotes(&self) -> Result<(), String> {
        self.says(&format!("The tool said: {OBSERVATION}"))
    }

    fn says(&self, text: &str) -> Result<(), String> {
        if self.content != text {
            let said = start(&self.content);
            return Err(format!("the reply says \"{said}\" instead of \"{text}\""));
        }
        if self.finish.as_deref() != Some("stop") {
            return Err(format!(
                "the reply ends with {:?} instead of stop",
                self.finish
            ));
        }
        Ok(())
    }

    /// Returns the one call of a tool that it asks for: its id.
    pub fn asks(&self) -> Result<&str, String> {
        let [(id, name, arguments)] = self.calls.as_slice() else {
            return Err(format!(
                "the reply asks for {} tools instead of one",
                self.calls.len()
            ));
        };
        if name != "smart_search" || id.is_empty() {
            return Err(format!(
                "the reply asks for \"{name}\" instead of smart_search"
            ));
        }
        let arguments: Result<Value, _> = serde_json::from_str(arguments);
        if !arguments.is_ok_and(|value| value.get("query").is_some_and(Value::is_string)) {
            return Err("the arguments of the tool are not {\"query\": TEXT}".to_owned());
        }
        match self.finish.as_deref() {
            Some("tool_calls") => Ok(id),
            other => Err(format!(
                "the reply ends with {other:?} instead of tool_calls"
            )),
        }
    }
}

/// Returns the beginning of a text, for a message.
fn start(text: &str) -> String {
    text.chars()
        .take(80)
        .collect::<String>()
        .escape_debug()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(parts: &[&str]) -> String {
        let parts = parts.iter().map(|part| format!("data: {part}\n\n"));
        parts.collect()
    }

    const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;
    const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

    fn content_event(text: &str) -> String {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}]}}"#
        )
    }

    #[test]
    fn a_reply_that_is_whole_passes_and_whatever_is_missing_is_told() {
        let (a, b) = (
            content_event("This is a MOCK"),
            content_event(" response for load testing."),
        );
        let whole = read(stream(&[ROLE, &a, &b, STOP, "[DONE]"]).as_bytes()).unwrap();
        assert_eq!((whole.is_sentence(), whole.tokens), (Ok(()), 2));
        let cases: [(&[&str], &str); 6] = [
            (&[ROLE, &a, &b, STOP], "no [DONE]"),
            (&[ROLE, &a, &b, "[DONE]"], "no finish_reason"),
            (&[ROLE, STOP, STOP, "[DONE]"], "two finish reasons"),
            (
                &[ROLE, r#"{"error":{"message":"x"}}"#],
                "ends with an error",
            ),
            (&[ROLE, STOP, "[DONE]", STOP], "after [DONE]"),
            (&["{"], "not JSON"),
        ];
        for (parts, says) in cases {
            let told = read(stream(parts).as_bytes()).unwrap_err();
            assert!(told.contains(says), "{told}");
        }
        let short = read(stream(&[&a, STOP, "[DONE]"]).as_bytes()).unwrap();
        assert!(short.is_sentence().unwrap_err().contains("instead of"));
        assert!(short.asks().is_err());
    }

    #[test]
    fn a_reply_that_asks_for_the_tool_is_told_from_one_that_does_not() {
        let first = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"smart_search","arguments":""}}]}}]}"#;
        let rest = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"query\":\"x\"}"}}]}}]}"#;
        let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
        let reply = read(stream(&[ROLE, first, rest, end, "[DONE]"]).as_bytes()).unwrap();
        assert_eq!((reply.asks(), reply.tokens), (Ok("c1"), 1));
        let cut = read(stream(&[ROLE, first, end, "[DONE]"]).as_bytes()).unwrap();
        assert!(cut.asks().unwrap_err().contains("arguments"));
    }
}
