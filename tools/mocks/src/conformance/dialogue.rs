//! Tools and prompts that need answers of the client before they can finish, told once for both eras:
//! Legacy sends each question as a request of its own, Modern returns them as `input_required`.

use super::fixtures::messages;
use crate::json::{quote, text_result};
use crate::server::{Fault, text};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A question to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    /// Under which key its answer comes.
    pub(super) key: &'static str,
    pub(super) method: &'static str,
    /// Raw JSON.
    pub(super) params: String,
}

/// Rounds of questions, and what to make of the answers.
#[derive(Debug)]
pub(super) struct Dialogue {
    pub(super) rounds: Vec<Vec<Ask>>,
    /// Whether a Modern client carries a state from round to round.
    pub(super) stateful: bool,
    /// The members of the result, from all answers by key.
    pub(super) finish: fn(&Map<String, Value>) -> String,
}

#[derive(Debug, Default, Deserialize)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
}

const NAME: &str =
    r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
const COLOUR: &str =
    r#"{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}"#;
const CONTEXT: &str =
    r#"{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}"#;
const CONFIRM: &str =
    r#"{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}"#;
const CONTACT: &str = r#"{"type":"object","properties":{"username":{"type":"string","description":"How to call you."},"email":{"type":"string","description":"Where to write to."}},"required":["username","email"]}"#;
const DEFAULTS: &str = r#"{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}"#;
const CHOICES: &str = r#"{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"One"},{"const":"value2","title":"Two"},{"const":"value3","title":"Three"}]},"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["One","Two","Three"]},"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"One"},{"const":"value2","title":"Two"},{"const":"value3","title":"Three"}]}}}}"#;

impl Ask {
    fn person(key: &'static str, message: &str, schema: &str) -> Self {
        let message = quote(message);
        Self {
            key,
            method: "elicitation/create",
            params: format!(r#"{{"message":{message},"requestedSchema":{schema}}}"#),
        }
    }

    fn model(key: &'static str, prompt: &str) -> Self {
        let prompt = quote(prompt);
        Self {
            key,
            method: "sampling/createMessage",
            params: format!(
                r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":{prompt}}}}}],"maxTokens":100}}"#
            ),
        }
    }

    fn roots(key: &'static str) -> Self {
        Self {
            key,
            method: "roots/list",
            params: "{}".into(),
        }
    }

    /// The capability that a client which can answer declares.
    pub(super) fn capability(&self) -> &'static str {
        match self.method {
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => "elicitation",
        }
    }
}

/// The dialogue of a tool; none where the tool asks nothing. `declared` tells the client's capabilities.
pub(super) fn of_tool(
    tool: &str,
    arguments: &str,
    declared: impl Fn(&str) -> bool,
) -> Option<Result<Dialogue, Fault>> {
    let dialogue = match tool {
        "test_sampling" => match argument(arguments, |given| given.prompt, "prompt") {
            Ok(prompt) => once(Ask::model("answer", &prompt), told),
            Err(fault) => return Some(Err(fault)),
        },
        "test_elicitation" => match argument(arguments, |given| given.message, "message") {
            Ok(message) => once(Ask::person("contact", &message, CONTACT), told),
            Err(fault) => return Some(Err(fault)),
        },
        "test_elicitation_sep1034_defaults" => {
            once(Ask::person("form", "Check these values.", DEFAULTS), told)
        }
        "test_elicitation_sep1330_enums" => {
            once(Ask::person("form", "Choose in every way.", CHOICES), told)
        }
        "test_streaming_elicitation" => once(Ask::person("name", "Who is there?", NAME), told),
        "test_input_required_result_elicitation" => once(
            Ask::person("user_name", "What is your name?", NAME),
            greeting,
        ),
        "test_input_required_result_sampling" => once(
            Ask::model("capital_question", "What is the capital of France?"),
            told,
        ),
        "test_input_required_result_list_roots" => once(Ask::roots("client_roots"), told),
        "test_input_required_result_request_state" => Dialogue {
            stateful: true,
            ..once(Ask::person("confirm", "Go on?", CONFIRM), confirmed)
        },
        "test_input_required_result_tampered_state" => Dialogue {
            stateful: true,
            ..once(Ask::person("confirm", "Go on?", CONFIRM), told)
        },
        "test_input_required_result_multiple_inputs" => Dialogue {
            rounds: vec![all_three()],
            stateful: true,
            finish: told,
        },
        "test_input_required_result_multi_round" => Dialogue {
            rounds: vec![
                vec![Ask::person("step1", "First: your name?", NAME)],
                vec![Ask::person("step2", "Then: your favourite colour?", COLOUR)],
            ],
            stateful: true,
            finish: told,
        },
        "test_input_required_result_capabilities" => Dialogue {
            rounds: vec![
                all_three()
                    .into_iter()
                    .filter(|ask| declared(ask.capability()))
                    .collect(),
            ],
            stateful: false,
            finish: told,
        },
        _ => return None,
    };
    Some(Ok(dialogue))
}

/// The dialogue of a prompt; none where the prompt asks nothing.
pub(super) fn of_prompt(prompt: &str) -> Option<Dialogue> {
    let ask = Ask::person(
        "user_context",
        "Which context should the prompt use?",
        CONTEXT,
    );
    (prompt == "test_input_required_result_prompt").then(|| once(ask, prompted))
}

fn once(ask: Ask, finish: fn(&Map<String, Value>) -> String) -> Dialogue {
    Dialogue {
        rounds: vec![vec![ask]],
        stateful: false,
        finish,
    }
}

fn all_three() -> Vec<Ask> {
    vec![
        Ask::person("user_name", "What is your name?", NAME),
        Ask::model("greeting", "Write a greeting."),
        Ask::roots("client_roots"),
    ]
}

fn argument<'a>(
    arguments: &'a str,
    pick: impl Fn(Arguments<'a>) -> Option<&'a RawValue>,
    name: &str,
) -> Result<String, Fault> {
    let given: Arguments<'a> = serde_json::from_str(arguments)
        .map_err(|error| Fault::InvalidParams(format!("arguments: {error}")))?;
    text(pick(given), name).map(Into::into)
}

/// Every answer as it came.
fn told(answers: &Map<String, Value>) -> String {
    let lines: Vec<String> = answers
        .iter()
        .map(|(key, answer)| format!("{key}: {answer}"))
        .collect();
    text_result(&lines.join("\n"), false)
}

fn confirmed(answers: &Map<String, Value>) -> String {
    let lines: Vec<String> = answers.values().map(Value::to_string).collect();
    text_result(&format!("state-ok {}", lines.join(" ")), false)
}

fn greeting(answers: &Map<String, Value>) -> String {
    let name = answers
        .get("user_name")
        .and_then(|answer| answer.pointer("/content/name"))
        .and_then(Value::as_str)
        .unwrap_or("whoever you are");
    text_result(&format!("Good day, {name}."), false)
}

fn prompted(answers: &Map<String, Value>) -> String {
    let context = answers
        .get("user_context")
        .and_then(|answer| answer.pointer("/content/context"))
        .and_then(Value::as_str)
        .unwrap_or("none");
    let text = quote(&format!("In the context of {context}, say something."));
    messages(&[format!(r#"{{"type":"text","text":{text}}}"#)])
}
