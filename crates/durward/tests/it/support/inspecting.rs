//! Rules of `inspect:` before the mock server `echo`, and checkers that are asked.

use std::fs;
use std::sync::{Arc, Mutex};

use mcp::client::{Client, Era};
use serde_json::{Value, json};

use super::guarded::{LATEST, Place, binary, echo};
use super::web::{Then, Web, json_reply, send};

/// A configuration that names the server `echo`, which counts its calls, and these rules.
pub fn write(place: &Place, rules: &str) {
    let count = place.path("count");
    let text = format!(
        "servers:\n  echo: {{ command: \"{}\", args: [lab, mock, echo, --count, \"{}\"] }}\ninspect: {{ {rules} }}\n",
        binary(),
        count.display()
    );
    fs::write(place.path("durward.yaml"), text).unwrap();
}

pub fn guarded(place: &Place) -> Client {
    guarded_in(place, LATEST)
}

pub fn guarded_in(place: &Place, era: Era) -> Client {
    let mut client = place.guard_configured("durward.yaml", &[], "echo");
    client.handshake(era).unwrap();
    client
}

/// What the tool `echo` answers to this text.
pub fn called(client: &mut Client, text: &str) -> Value {
    let reply = client.request("tools/call", echo(text)).unwrap();
    serde_json::from_slice(reply.line().as_bytes()).unwrap()
}

pub fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}"))
}

/// A checker that answers every question as told, and what it was asked.
pub fn saying(
    answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
) -> (Web, Arc<Mutex<Vec<Value>>>) {
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let noted = Arc::clone(&asked);
    let web = Web::start(move |request, wire| {
        let question = request.json();
        noted.lock().unwrap().push(question.clone());
        let said = answer(&question);
        send(wire, &json_reply(&said), Then::Keep)
    });
    (web, asked)
}

/// A checker that names these words wherever they stand.
pub fn naming(words: &'static [&'static str]) -> (Web, Arc<Mutex<Vec<Value>>>) {
    saying(move |question| {
        let content = question["content"].to_string();
        let stands = words.iter().filter(|word| content.contains(**word));
        let texts: Vec<&&str> = stands.collect();
        json!({"found": !texts.is_empty(), "texts": texts})
    })
}
