//! Tools and prompts that need answers of the client before they can finish, written once for both kinds of revision:
//! the session-based ones send each question as a separate request, the stateless one returns them as `input_required`.

use super::fixtures::messages;
use crate::json::{quote, text_result};
use crate::server::{RequestFault, text};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A question to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DialogueQuestion {
    /// Under which key its answer comes.
    pub(super) key: &'static str,
    pub(super) method: &'static str,
    /// Raw JSON.
    pub(super) params: String,
}

/// Rounds of questions, and what to make of the answers.
#[derive(Debug)]
pub(super) struct QuestionDialogue {
    pub(super) rounds: Vec<Vec<DialogueQuestion>>,
    /// Whether a Modern client carries a state from round to round.
    pub(super) stateful: bool,
    /// The members of the result, from all answers by key.
    pub(super) finish: fn(&Map<String, Value>) -> String,
}

#[derive(Debug, Default, Deserialize)]
struct DialogueArguments<'a> {
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

impl DialogueQuestion {
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

    /// Returns the capability that a client which can answer declares.
    pub(super) fn capability(&self) -> &'static str {
        match self.method {
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => "elicitation",
        }
    }
}

/// Returns the dialogue of a tool; none if the tool asks nothing. `declared` is the client's capabilities.
pub(super) fn of_tool(
    tool: &str,
    arguments: &str,
    declared: impl Fn(&str) -> bool,
) -> Option<Result<QuestionDialogue, RequestFault>> {
    let dialogue = match tool {
        "test_sampling" => match argument(arguments, |given| given.prompt, "prompt") {
            Ok(prompt) => once(DialogueQuestion::model("answer", &prompt), format_answers),
            Err(fault) => return Some(Err(fault)),
        },
        "test_elicitation" => match argument(arguments, |given| given.message, "message") {
            Ok(message) => once(
                DialogueQuestion::person("contact", &message, CONTACT),
                format_answers,
            ),
            Err(fault) => return Some(Err(fault)),
        },
        "test_elicitation_sep1034_defaults" => once(
            DialogueQuestion::person("form", "Check these values.", DEFAULTS),
            format_answers,
        ),
        "test_elicitation_sep1330_enums" => once(
            DialogueQuestion::person("form", "Choose in every way.", CHOICES),
            format_answers,
        ),
        "test_streaming_elicitation" => once(
            DialogueQuestion::person("name", "Who is there?", NAME),
            format_answers,
        ),
        "test_input_required_result_elicitation" => once(
            DialogueQuestion::person("user_name", "What is your name?", NAME),
            greeting,
        ),
        "test_input_required_result_sampling" => once(
            DialogueQuestion::model("capital_question", "What is the capital of France?"),
            format_answers,
        ),
        "test_input_required_result_list_roots" => {
            once(DialogueQuestion::roots("client_roots"), format_answers)
        }
        "test_input_required_result_request_state" => QuestionDialogue {
            stateful: true,
            ..once(
                DialogueQuestion::person("confirm", "Go on?", CONFIRM),
                confirmed,
            )
        },
        "test_input_required_result_tampered_state" => QuestionDialogue {
            stateful: true,
            ..once(
                DialogueQuestion::person("confirm", "Go on?", CONFIRM),
                format_answers,
            )
        },
        "test_input_required_result_multiple_inputs" => QuestionDialogue {
            rounds: vec![all_three()],
            stateful: true,
            finish: format_answers,
        },
        "test_input_required_result_multi_round" => QuestionDialogue {
            rounds: vec![
                vec![DialogueQuestion::person("step1", "First: your name?", NAME)],
                vec![DialogueQuestion::person(
                    "step2",
                    "Then: your favourite colour?",
                    COLOUR,
                )],
            ],
            stateful: true,
            finish: format_answers,
        },
        "test_input_required_result_capabilities" => QuestionDialogue {
            rounds: vec![
                all_three()
                    .into_iter()
                    .filter(|ask| declared(ask.capability()))
                    .collect(),
            ],
            stateful: false,
            finish: format_answers,
        },
        _ => return None,
    };
    Some(Ok(dialogue))
}

/// Returns the dialogue of a prompt; none if the prompt asks nothing.
pub(super) fn of_prompt(prompt: &str) -> Option<QuestionDialogue> {
    let ask = DialogueQuestion::person(
        "user_context",
        "Which context should the prompt use?",
        CONTEXT,
    );
    (prompt == "test_input_required_result_prompt").then(|| once(ask, prompted))
}

fn once(ask: DialogueQuestion, finish: fn(&Map<String, Value>) -> String) -> QuestionDialogue {
    QuestionDialogue {
        rounds: vec![vec![ask]],
        stateful: false,
        finish,
    }
}

fn all_three() -> Vec<DialogueQuestion> {
    vec![
        DialogueQuestion::person("user_name", "What is your name?", NAME),
        DialogueQuestion::model("greeting", "Write a greeting."),
        DialogueQuestion::roots("client_roots"),
    ]
}

fn argument<'a>(
    arguments: &'a str,
    pick: impl Fn(DialogueArguments<'a>) -> Option<&'a RawValue>,
    name: &str,
) -> Result<String, RequestFault> {
    let given: DialogueArguments<'a> = serde_json::from_str(arguments)
        .map_err(|error| RequestFault::InvalidParams(format!("arguments: {error}")))?;
    text(pick(given), name).map(Into::into)
}

/// Returns every answer as it came.
fn format_answers(answers: &Map<String, Value>) -> String {
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
