//! A gateway with agents, the mock provider and the built-in server `echo`.

use std::fs;

use serde_json::{Value, json};

use crate::models::support::events;
use crate::support::guarded::Place;
use crate::support::serving::{Answer, Served};

/// Servers and models of every test.
pub const BASE: &str = "servers: { echo: { builtin: echo } }\nmodels: { providers: { mock: { kind: mock, latency: 0ms } } }\npolicy: policy.json\n";

/// Both encodings of one agent, with one tool.
pub const STANDARD: &str = r#"
agents:
  standard_agent:
    model: mock/plain
    description: Uses a tool and answers
    instruction: Answer with the tools.
    pattern: react
    patterns: [native]
    aliases: [helper]
    toolsets: [{ server: echo, tools: [echo] }]
"#;

/// Allows everything.
pub const ALLOW_ALL: &str = r#"{"version":"1","default_action":"deny","rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},{"id":"models","effect":"allow","conditions":{"resource_type":"model"}}]}"#;

/// A place with these agents and this policy.
pub fn place(agents: &str, policy: &str) -> Place {
    let place = Place::new();
    place.write_policy(policy);
    fs::write(place.path("durward.yaml"), format!("{BASE}{agents}")).unwrap();
    place
}

/// Serves these agents.
pub fn serve(agents: &str) -> Served {
    Served::start_ruled(place(agents, ALLOW_ALL))
}

/// Asks an agent over chat completions.
pub fn ask(served: &Served, model: &str, text: &str, streams: bool) -> Answer {
    let body = json!({
        "model": model, "stream": streams,
        "messages": [{ "role": "user", "content": text }],
    });
    served.send("POST", "/v1/chat/completions", &[], &body.to_string())
}

/// A streamed answer, put together.
#[derive(Debug, Default)]
pub struct Streamed {
    pub content: String,
    pub reasoning: String,
    pub finish: String,
    pub is_done: bool,
    pub usage: Value,
    pub error: Value,
}

/// Reads a stream to its end.
pub fn streamed(answer: &Answer) -> Streamed {
    let mut out = Streamed::default();
    for data in events(answer) {
        if data == "[DONE]" {
            out.is_done = true;
            continue;
        }
        let chunk: Value = serde_json::from_str(&data).unwrap();
        let text = |path: &str| chunk.pointer(path).and_then(Value::as_str);
        out.content
            .push_str(text("/choices/0/delta/content").unwrap_or_default());
        out.reasoning
            .push_str(text("/choices/0/delta/reasoning_content").unwrap_or_default());
        if let Some(finish) = text("/choices/0/finish_reason") {
            finish.clone_into(&mut out.finish);
        }
        if let Some(usage) = chunk.get("usage") {
            out.usage = usage.clone();
        }
        if let Some(error) = chunk.get("error") {
            out.error = error.clone();
        }
    }
    out
}

/// Decision records of calls.
pub fn decisions(place: &Place) -> Vec<Value> {
    let records = place.records();
    records.decisions().into_iter().cloned().collect()
}
