//! A run as a chat completion, streamed and whole.

use serde_json::{Map, Value, json};

use crate::delta::text_of;
use crate::run::{HandedCall, StepUsage, ToolStep};

/// Most bytes of arguments, and of a result, that a step shows.
const SHOWN_BYTES_MAX: usize = 8 * 1024;

/// Members that an answer repeats.
#[derive(Debug, Clone, Default)]
pub struct AnswerStamp {
    /// Id of the answer.
    pub id: String,
    /// When, in seconds since 1970.
    pub created: u64,
    /// Name by which the agent was called.
    pub model: String,
}

impl AnswerStamp {
    fn chunk(&self, choices: Value) -> Map<String, Value> {
        let mut chunk = Map::new();
        chunk.insert("id".into(), self.id.as_str().into());
        chunk.insert("object".into(), "chat.completion.chunk".into());
        chunk.insert("created".into(), self.created.into());
        chunk.insert("model".into(), self.model.as_str().into());
        chunk.insert("choices".into(), choices);
        chunk
    }

    /// Returns an event with this delta.
    #[must_use]
    pub fn delta(&self, delta: Value, finish: Option<&str>) -> String {
        let choice = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        event(&Value::Object(self.chunk(choice)))
    }

    /// Returns the event with the usage of the whole run.
    #[must_use]
    pub fn usage_event(&self, usage: StepUsage) -> String {
        let mut chunk = self.chunk(json!([]));
        chunk.insert("usage".into(), usage_json(usage));
        event(&Value::Object(chunk))
    }
}

/// Last event of a stream.
pub const DONE: &str = "data: [DONE]\n\n";
/// Comment that keeps a stream open while a run waits.
pub const WAITING: &str = ": waiting\n\n";

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn usage_json(usage: StepUsage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
        "prompt_tokens_details": { "cached_tokens": usage.cached },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
        "cost_micros": usage.cost_micros,
    })
}

/// Returns a step as text of `reasoning_content`.
#[must_use]
pub fn step_text(step: &ToolStep) -> String {
    let arguments = shorten(&step.arguments);
    let result = shorten(&step.result);
    format!("\n### {}\n{arguments}\n\n{result}\n", step.name)
}

fn shorten(text: &str) -> std::borrow::Cow<'_, str> {
    crate::observation::cut_result(text, SHOWN_BYTES_MAX)
}

/// Returns calls of the caller's tools as members of a delta or a message.
#[must_use]
pub fn calls_json(calls: &[HandedCall], is_delta: bool) -> Value {
    let calls = calls.iter().enumerate().map(|(at, call)| {
        let mut out = json!({
            "id": call.id, "type": "function",
            "function": { "name": call.name, "arguments": call.arguments },
        });
        if let (true, Some(members)) = (is_delta, out.as_object_mut()) {
            members.insert("index".into(), at.into());
        }
        out
    });
    Value::Array(calls.collect())
}

/// A whole answer, which grows step by step.
#[derive(Debug, Default)]
pub struct WholeAnswer {
    /// Text of the answer.
    pub content: String,
    /// Thoughts and steps.
    pub reasoning: String,
    /// Calls of the caller's tools.
    pub calls: Vec<HandedCall>,
}

impl WholeAnswer {
    /// Returns the body of the completion.
    #[must_use]
    pub fn body(&self, stamp: &AnswerStamp, finish: &str, usage: StepUsage) -> String {
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        let content = match self.content.is_empty() && !self.calls.is_empty() {
            true => Value::Null,
            false => self.content.as_str().into(),
        };
        message.insert("content".into(), content);
        message.insert("refusal".into(), Value::Null);
        if !self.reasoning.is_empty() {
            message.insert("reasoning_content".into(), self.reasoning.as_str().into());
        }
        if !self.calls.is_empty() {
            message.insert("tool_calls".into(), calls_json(&self.calls, false));
        }
        json!({
            "id": stamp.id, "object": "chat.completion", "created": stamp.created, "model": stamp.model,
            "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish }],
            "usage": usage_json(usage),
        })
        .to_string()
    }
}

/// Request of a caller.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AgentRequest {
    /// System texts of the caller, in one.
    pub system: String,
    /// Other messages, each as JSON.
    pub messages: Vec<String>,
    /// Tools of the caller: name and JSON.
    pub tools: Vec<(String, String)>,
    /// Parameters that the caller names: they outrank those of the agent.
    pub parameters: Vec<(String, String)>,
    /// The caller wants the usage in the stream.
    pub wants_usage: bool,
}

/// Parameters that callers may set.
const PARAMETERS: [&str; 7] = [
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "stop",
    "seed",
];

impl AgentRequest {
    /// Reads the body of a chat completion.
    ///
    /// # Errors
    /// The member that cannot be read, and why.
    pub fn read(body: &[u8]) -> Result<Self, (&'static str, &'static str)> {
        let body: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| ("body", "is not a JSON object"))?;
        let mut request = Self::default();
        let messages = body.get("messages").and_then(Value::as_array);
        let messages = messages.ok_or(("messages", "has to be a list"))?;
        for message in messages {
            let role = message.get("role").and_then(Value::as_str);
            match role.ok_or(("messages", "has a message without a role"))? {
                "system" | "developer" => {
                    if !request.system.is_empty() {
                        request.system.push_str("\n\n");
                    }
                    let text = text_of(message.get("content"));
                    request.system.push_str(&text);
                }
                _ => request.messages.push(message.to_string()),
            }
        }
        if request.messages.is_empty() {
            return Err((
                "messages",
                "has to have a message besides those of the system",
            ));
        }
        let tools = body.get("tools").and_then(Value::as_array);
        for tool in tools.into_iter().flatten() {
            let name = tool.pointer("/function/name").and_then(Value::as_str);
            let name = name.ok_or(("tools", "has a tool that is not a function"))?;
            request.tools.push((name.to_owned(), tool.to_string()));
        }
        for name in PARAMETERS {
            if let Some(value) = body.get(name).filter(|value| !value.is_null()) {
                request
                    .parameters
                    .push((name.to_owned(), value.to_string()));
            }
        }
        if let Some(n) = body.get("n")
            && n.as_u64() != Some(1)
            && !n.is_null()
        {
            return Err(("n", "has to be 1 for an agent"));
        }
        let usage = body.get("stream_options");
        let usage = usage.and_then(|own| own.get("include_usage"));
        request.wants_usage = usage.and_then(Value::as_bool).unwrap_or(false);
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_split_into_system_and_history() {
        let body = br#"{"model":"a","temperature":0.5,"messages":[{"role":"system","content":"one"},{"role":"user","content":"hi"},{"role":"developer","content":[{"type":"text","text":"two"}]}],"tools":[{"type":"function","function":{"name":"f"}}]}"#;
        let request = AgentRequest::read(body).unwrap();
        assert_eq!(request.system, "one\n\ntwo");
        assert_eq!(request.messages.len(), 1);
        assert_eq!(request.tools[0].0, "f");
        assert_eq!(request.parameters, [("temperature".into(), "0.5".into())]);
        for (body, member) in [
            (&b"[]"[..], "body"),
            (b"{}", "messages"),
            (br#"{"messages":[]}"#, "messages"),
            (br#"{"messages":[{"content":"x"}]}"#, "messages"),
            (
                br#"{"n":2,"messages":[{"role":"user","content":"x"}]}"#,
                "n",
            ),
            (
                br#"{"tools":[{"type":"mcp"}],"messages":[{"role":"user","content":"x"}]}"#,
                "tools",
            ),
        ] {
            assert_eq!(AgentRequest::read(body).unwrap_err().0, member);
        }
    }
}
