//! Providers that somebody else wrote: aimock plays the APIs of OpenAI, Anthropic, Google and Azure.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::support::{code, events, serve};
use crate::support::components;
use crate::support::serving::{Answer, Served};

/// The endpoints that are asked.
pub(super) const FRONTS: [&str; 2] = ["/v1/chat/completions", "/v1/messages"];

/// Every API that is played: a name, and what the configuration says of it behind the server's address.
const BACKS: [(&str, &str, &str); 4] = [
    ("o", "openai", "/v1"),
    ("a", "anthropic", "/v1"),
    ("g", "google", "/v1beta"),
    ("z", "azure", ""),
];

/// The server of strangers.
struct Foreign {
    child: Child,
    base: String,
}

impl Foreign {
    /// `None` where it is not installed.
    fn start() -> Option<Self> {
        let (script, node) = (components::aimock()?, components::node()?);
        let fixtures = components::repository().join("crates/durward/tests/it/models/foreign.json");
        let mut child = Command::new(node)
            .arg(script)
            .args(["--port", "0", "--strict", "--fixtures"])
            .arg(fixtures)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let base = lines.find_map(|line| {
            let line = line.unwrap();
            line.split_once("listening on ")
                .map(|(_, url)| url.to_owned())
        });
        // What it says later has to go somewhere.
        std::thread::spawn(move || lines.count());
        Some(Self {
            child,
            base: base.expect("it says where it listens"),
        })
    }

    fn before(&self) -> Served {
        let providers = BACKS.map(|(name, kind, path)| {
            format!(
                "{name}: {{ kind: {kind}, base_url: \"{}{path}\", api_key: \"${{HOME}}\" }}",
                self.base
            )
        });
        let aliases = BACKS.map(|(name, _, _)| format!("to-{name}: {{ tiers: [{name}/m1] }}"));
        let yaml = format!(
            "models: {{ providers: {{ {} }}, aliases: {{ {} }} }}",
            providers.join(", "),
            aliases.join(", ")
        );
        serve(&yaml, &[])
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks with this message, and these members beside it.
pub(super) fn ask(served: &Served, path: &str, back: &str, text: &str, more: &Value) -> Answer {
    let mut body = json!({ "model": format!("to-{back}"), "max_tokens": 100, "messages": [{ "role": "user", "content": text }] });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    served.send("POST", path, &[], &body.to_string())
}

/// What was said, what was thought, which tools were called, why it stopped.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Said {
    pub text: String,
    pub thoughts: String,
    pub calls: Vec<(String, Value)>,
    pub stop: String,
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Reads a whole reply of either dialect.
pub(super) fn whole(reply: &Value) -> Said {
    let mut said = Said::default();
    let Some(blocks) = reply["content"].as_array() else {
        let message = &reply["choices"][0]["message"];
        said.text = text(message.get("content")).to_owned();
        said.thoughts = text(message.get("reasoning_content")).to_owned();
        said.stop = text(reply.pointer("/choices/0/finish_reason")).to_owned();
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let arguments = serde_json::from_str(arguments).unwrap();
            let name = call["function"]["name"].as_str().unwrap();
            said.calls.push((name.to_owned(), arguments));
        }
        return said;
    };
    for block in blocks {
        said.text.push_str(text(block.get("text")));
        said.thoughts.push_str(text(block.get("thinking")));
        if block["type"] == "tool_use" {
            let name = block["name"].as_str().unwrap().to_owned();
            said.calls.push((name, block["input"].clone()));
        }
    }
    said.stop = text(reply.get("stop_reason")).to_owned();
    said
}

/// Puts a stream of either dialect together.
pub(super) fn streamed(answer: &Answer) -> Said {
    let (mut said, mut arguments) = (Said::default(), Vec::<String>::new());
    for data in events(answer) {
        let Ok(event) = serde_json::from_str::<Value>(&data) else {
            assert_eq!(data, "[DONE]");
            continue;
        };
        let delta = &event["choices"][0]["delta"];
        said.text.push_str(text(delta.get("content")));
        said.thoughts.push_str(text(delta.get("reasoning_content")));
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            if let Some(name) = call["function"]["name"].as_str() {
                said.calls.push((name.to_owned(), Value::Null));
                arguments.push(String::new());
            }
            let at = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            arguments[at].push_str(text(call.pointer("/function/arguments")));
        }
        let delta = &event["delta"];
        said.text.push_str(text(delta.get("text")));
        said.thoughts.push_str(text(delta.get("thinking")));
        if event["content_block"]["type"] == "tool_use" {
            said.calls.push((
                text(event.pointer("/content_block/name")).to_owned(),
                Value::Null,
            ));
            arguments.push(String::new());
        }
        if let Some(part) = delta["partial_json"].as_str() {
            arguments.last_mut().unwrap().push_str(part);
        }
        let reason = event.pointer("/choices/0/finish_reason");
        let reason = reason.or_else(|| delta.get("stop_reason"));
        said.stop.push_str(text(reason));
    }
    for ((_, value), text) in said.calls.iter_mut().zip(arguments) {
        *value = serde_json::from_str(&text).unwrap_or(json!({}));
    }
    said
}

/// Asks every provider through every endpoint, streamed and not; of each, what was said.
fn everywhere(served: &Served, text: &str, more: impl Fn(&str) -> Value) -> Vec<(String, Said)> {
    let mut all = Vec::new();
    for path in FRONTS {
        for (back, ..) in BACKS {
            for streams in [false, true] {
                let mut more = more(path);
                more["stream"] = json!(streams);
                let answer = ask(served, path, back, text, &more);
                assert_eq!(answer.status, 200, "{path} {back} {answer:?}");
                let said = if streams {
                    streamed(&answer)
                } else {
                    whole(&answer.json())
                };
                all.push((format!("{path} before {back}, stream {streams}"), said));
            }
        }
    }
    all
}

/// The word of the endpoint's dialect.
pub(super) fn word<'w>(place: &str, chat: &'w str, messages: &'w str) -> &'w str {
    if place.starts_with(FRONTS[0]) {
        chat
    } else {
        messages
    }
}

fn tools(path: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let tools = ["weather", "time"].map(|name| {
        if path == FRONTS[0] {
            json!({ "type": "function", "function": { "name": name, "parameters": schema } })
        } else {
            json!({ "name": name, "input_schema": schema })
        }
    });
    json!({ "tools": tools })
}

#[test]
fn strangers_are_understood_in_every_dialect() {
    let Some(foreign) = Foreign::start() else {
        return;
    };
    let served = foreign.before();
    let plain = |_: &str| json!({});
    for (place, said) in everywhere(&served, "hello", plain) {
        assert_eq!(said.text, "Hello there, stranger!", "{place}");
        assert_eq!(said.stop, word(&place, "stop", "end_turn"), "{place}");
    }
    for (place, said) in everywhere(&served, "long", plain) {
        assert_eq!(said.stop, word(&place, "length", "max_tokens"), "{place}");
    }
    for (place, said) in everywhere(&served, "think", plain) {
        assert_eq!(said.text, "42", "{place}");
        // It plays thoughts of some models only, whichever way they are asked for.
        let thinks = ["", "six by seven"].contains(&said.thoughts.as_str());
        assert!(thinks, "{place}: {said:?}");
    }
    for (place, said) in everywhere(&served, "weather and time", tools) {
        let calls = [
            ("weather".to_owned(), json!({ "city": "Rome" })),
            ("time".to_owned(), json!({})),
        ];
        assert_eq!(said.calls, calls, "{place}");
        assert_eq!(said.stop, word(&place, "tool_calls", "tool_use"), "{place}");
    }
}

#[test]
fn results_of_tools_reach_strangers() {
    let Some(foreign) = Foreign::start() else {
        return;
    };
    let served = foreign.before();
    let more = |path: &str| {
        let turns = if path == FRONTS[0] {
            json!([{ "role": "user", "content": "weather and time" },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "call_w", "type": "function", "function": { "name": "weather", "arguments": "{}" } },
                    { "id": "call_t", "type": "function", "function": { "name": "time", "arguments": "{}" } }] },
                { "role": "tool", "tool_call_id": "call_w", "content": "sunny" },
                { "role": "tool", "tool_call_id": "call_t", "content": "noon" }])
        } else {
            json!([{ "role": "user", "content": "weather and time" },
                { "role": "assistant", "content": [
                    { "type": "tool_use", "id": "call_w", "name": "weather", "input": {} },
                    { "type": "tool_use", "id": "call_t", "name": "time", "input": {} }] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "call_w", "content": "sunny" },
                    { "type": "tool_result", "tool_use_id": "call_t", "content": "noon" }] }])
        };
        let mut more = tools(path);
        more["messages"] = turns;
        more
    };
    for (place, said) in everywhere(&served, "", more) {
        assert_eq!(said.text, "sunny at noon", "{place}");
    }
}

#[test]
fn faults_of_strangers_are_told_in_the_callers_dialect() {
    let Some(foreign) = Foreign::start() else {
        return;
    };
    let served = foreign.before();
    for path in FRONTS {
        for (back, ..) in BACKS {
            for streams in [false, true] {
                let more = json!({ "stream": streams });
                let odd = ask(&served, path, back, "wrong", &more);
                assert_eq!(odd.status, 400, "{path} {back} {odd:?}");
                assert!(odd.body.contains("that is odd"), "{path} {back} {odd:?}");
            }
            let cut = ask(&served, path, back, "cut", &json!({ "stream": true }));
            // Cut before its first event, it has no stream at all.
            let last = if cut.status == 200 {
                events(&cut).pop().unwrap()
            } else {
                cut.body.clone()
            };
            let last: Value = serde_json::from_str(&last).unwrap();
            assert_eq!(code(&last), "provider_cut", "{path} {back} {cut:?}");
        }
    }
    // The one key may rest behind it, so these are the last questions.
    for path in FRONTS {
        for (back, ..) in BACKS {
            let busy = ask(&served, path, back, "slow down", &json!({}));
            assert_eq!(busy.status, 429, "{path} {back} {busy:?}");
            assert_eq!(code(&busy.json()), "provider_rate_limited");
        }
    }
}
