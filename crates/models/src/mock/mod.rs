//! A model that answers by a script: what a provider's API would send, byte by byte, with its pauses.
//!
//! The name of the model says how it behaves. A name that is not in the table of [`Manner`] says one fixed
//! sentence. No network, no clock: whoever plays the script waits.

mod behaviour;
mod chat;
mod embeddings;
mod messages;
mod others;
mod provider;
mod responses;
mod script;

use serde_json::{Value, json};

pub use behaviour::Manner;
pub use provider::MockProvider;
pub use script::TOKENS;

/// How a scripted model works.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The time before each token, in milliseconds.
    pub token_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { token_ms: 10 }
    }
}

/// An API of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's embeddings.
    Embeddings,
    /// Anthropic's messages.
    Messages,
    /// Anthropic's count of a message's tokens.
    CountTokens,
    /// Documents in the order of their use for a question.
    Rerank,
    /// Images.
    Images,
    /// Text that is said.
    Speech,
    /// Speech that is written down.
    Transcription,
}

/// One step of a reply's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// So many milliseconds pass.
    Wait(u64),
    /// These bytes come.
    Bytes(Vec<u8>),
    /// Nothing comes any more, and nothing ends.
    Stall,
    /// The connection ends in the middle.
    Cut,
}

/// A reply: its head, and its body step by step.
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Its headers.
    pub headers: Vec<(&'static str, String)>,
    /// Before the head, so many milliseconds pass.
    pub head_ms: u64,
    /// The body.
    pub steps: Box<dyn Iterator<Item = Step> + Send>,
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Answers a request. `number` tells requests apart, and stands in the ids of the reply.
#[must_use]
pub fn answer(api: Api, body: &[u8], options: Options, number: u64) -> Reply {
    let Ok(request) = serde_json::from_slice::<Value>(body) else {
        return failure(api, 400, "the body is not JSON");
    };
    let model = request.get("model").and_then(Value::as_str);
    let manner = Manner::of(model.unwrap_or_default());
    if let Some(reply) = manner.fault(api) {
        return reply;
    }
    let streams = request.get("stream") == Some(&Value::Bool(true));
    let script = script::write(api, &request, manner, number);
    let wait = options.token_ms;
    let steps: Vec<Step> = match (api, streams) {
        (Api::Chat, true) => chat::stream(&script, wait),
        (Api::Chat, false) => whole(&chat::whole(&script), script.ms(wait)),
        (Api::Messages, true) => messages::stream(&script, wait),
        (Api::Messages, false) => whole(&messages::whole(&script), script.ms(wait)),
        (Api::Responses, true) => responses::stream(&script, wait),
        (Api::Responses, false) => whole(&responses::whole(&script), script.ms(wait)),
        (Api::Embeddings, _) => whole(&embeddings::whole(&request), 0),
        (Api::Rerank, _) => whole(&others::rerank(&request), 0),
        (Api::Images, _) => whole(&others::images(), 0),
        (Api::Transcription, _) => vec![Step::Bytes(others::transcription(&request).1)],
        (Api::Speech, _) => vec![Step::Bytes(others::SPEECH.to_vec())],
        (Api::CountTokens, _) => whole(&json!({ "input_tokens": script.prompt_tokens }), 0),
    };
    let kind = match api {
        _ if streams => "text/event-stream",
        Api::Speech => "audio/wav",
        Api::Transcription => others::transcription(&request).0,
        _ => "application/json",
    };
    Reply {
        status: 200,
        headers: vec![("content-type", kind.to_owned())],
        head_ms: 0,
        steps: manner.spoil(steps, streams),
    }
}

fn whole(body: &Value, ms: u64) -> Vec<Step> {
    vec![Step::Wait(ms), Step::Bytes(body.to_string().into_bytes())]
}

/// An error in the words of the API.
fn failure(api: Api, status: u16, message: &str) -> Reply {
    let kind = match status {
        401 => "authentication_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let code = if status == 429 {
        "rate_limit_exceeded"
    } else {
        kind
    };
    let body = match api {
        Api::Messages | Api::CountTokens => {
            json!({ "type": "error", "error": { "type": kind, "message": message } })
        }
        _ => {
            json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
        }
    };
    Reply {
        status,
        headers: vec![("content-type", "application/json".to_owned())],
        head_ms: 0,
        steps: Box::new(whole(&body, 0).into_iter()),
    }
}
