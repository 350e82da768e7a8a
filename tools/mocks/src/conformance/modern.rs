//! Dialogues in the Modern era: a result asks for input, and the client sends the request again with it.

use super::RequestOutcome;
use super::dialogue::{DialogueQuestion, QuestionDialogue};
use super::request::ReadRequest;
use super::shared::{ConversationState, SharedState};
use crate::json::quote;
use crate::server::RequestFault;
use serde_json::{Map, Value};

/// One step of a dialogue: the result, or what is to be asked next.
pub(super) fn advance(
    shared: &SharedState,
    dialogue: &QuestionDialogue,
    request: &ReadRequest<'_>,
) -> Result<RequestOutcome, RequestFault> {
    let name = request.name()?;
    let given = request.responses()?;
    let sealed = request.state()?.filter(|_| dialogue.stateful);
    let foreign = || RequestFault::InvalidParams("params.requestState was not issued here".into());
    let (state, given) = match &sealed {
        Some(sealed) => (shared.open(&name, sealed).ok_or_else(foreign)?, given),
        // Answers without the state they belong to count as none.
        None if dialogue.stateful => (ConversationState::default(), Map::new()),
        None => (ConversationState::default(), given),
    };
    let mut answers: Map<String, Value> = serde_json::from_str(&state.answers).unwrap_or_default();
    let asks = dialogue.rounds.get(state.round).ok_or_else(foreign)?;
    for ask in asks {
        match given.get(ask.key) {
            Some(answer) => answers.insert(ask.key.to_owned(), answer.clone()),
            None => return Ok(ask_for(shared, &name, dialogue, asks, &state)),
        };
    }
    let next = ConversationState {
        round: state.round + 1,
        answers: Value::Object(answers.clone()).to_string(),
    };
    Ok(match dialogue.rounds.get(next.round) {
        Some(asks) => ask_for(shared, &name, dialogue, asks, &next),
        None => RequestOutcome::Result((dialogue.finish)(&answers)),
    })
}

fn ask_for(
    shared: &SharedState,
    name: &str,
    dialogue: &QuestionDialogue,
    asks: &[DialogueQuestion],
    state: &ConversationState,
) -> RequestOutcome {
    let requests: Vec<String> = asks
        .iter()
        .map(|ask| {
            let DialogueQuestion {
                key,
                method,
                params,
            } = ask;
            format!(r#""{key}":{{"method":"{method}","params":{params}}}"#)
        })
        .collect();
    let mut members = format!(r#""inputRequests":{{{}}}"#, requests.join(","));
    if dialogue.stateful {
        members.push_str(r#","requestState":"#);
        members.push_str(&quote(&shared.seal(name, state)));
    }
    RequestOutcome::InputRequired(members)
}
