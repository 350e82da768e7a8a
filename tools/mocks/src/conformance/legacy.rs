//! Dialogues in the Legacy era: each question is a request of the server, and the answer to the call
//! waits for the answers of the client.

use super::dialogue::QuestionDialogue;
use crate::json::text_result;
use crate::server::{MachineAction, RequestFault};
use serde_json::{Map, Value};

/// How many dialogues one session has open at most.
const TALKS_MAX: usize = 256;

/// The open dialogues of a session.
#[derive(Debug, Default)]
pub(super) struct OpenDialogues {
    open: Vec<OpenDialogue>,
    /// How many questions were asked so far.
    asked: u64,
}

#[derive(Debug)]
struct OpenDialogue {
    /// The id of the call that waits, raw JSON.
    id: String,
    dialogue: QuestionDialogue,
    round: usize,
    /// Questions without an answer: their ids (raw JSON) and keys.
    waiting: Vec<(String, &'static str)>,
    answers: Map<String, Value>,
}

impl OpenDialogues {
    /// Asks the first round.
    pub(super) fn begin(
        &mut self,
        id: &str,
        dialogue: QuestionDialogue,
        actions: &mut Vec<MachineAction>,
    ) -> Result<(), RequestFault> {
        if self.open.len() >= TALKS_MAX {
            return Err(RequestFault::Internal(format!(
                "{TALKS_MAX} calls wait for answers of the client"
            )));
        }
        let mut talk = OpenDialogue {
            id: id.to_owned(),
            dialogue,
            round: 0,
            waiting: Vec::new(),
            answers: Map::new(),
        };
        talk.ask(&mut self.asked, actions);
        self.open.push(talk);
        Ok(())
    }

    /// Forgets the dialogue of a call that was cancelled.
    pub(super) fn end(&mut self, id: &str) {
        self.open.retain(|talk| talk.id != id);
    }

    /// Takes the answer to a question; gives the call and the members of its result once all is known.
    pub(super) fn take_answer(
        &mut self,
        ask: &str,
        answer: Result<&str, &str>,
        actions: &mut Vec<MachineAction>,
    ) -> Option<(String, String)> {
        let place = self
            .open
            .iter()
            .position(|talk| talk.waiting.iter().any(|(id, _)| id == ask))?;
        let talk = self.open.get_mut(place)?;
        let answer = match answer {
            Ok(text) => text,
            Err(error) => {
                let talk = self.open.swap_remove(place);
                let text = format!("the client did not answer: {error}");
                return Some((talk.id, text_result(&text, true)));
            }
        };
        let (_, key) = talk.waiting.extract_if(.., |(id, _)| id == ask).next()?;
        let answer = serde_json::from_str(answer).unwrap_or_default();
        talk.answers.insert(key.to_owned(), answer);
        if !talk.waiting.is_empty() {
            return None;
        }
        talk.round += 1;
        if talk.round < talk.dialogue.rounds.len() {
            talk.ask(&mut self.asked, actions);
            return None;
        }
        let talk = self.open.swap_remove(place);
        Some((talk.id, (talk.dialogue.finish)(&talk.answers)))
    }
}

impl OpenDialogue {
    /// Sends the questions of the current round.
    fn ask(&mut self, asked: &mut u64, actions: &mut Vec<MachineAction>) {
        for ask in self.dialogue.rounds.get(self.round).into_iter().flatten() {
            *asked += 1;
            let id = format!("\"mock-ask-{asked}\"");
            let (method, params) = (ask.method, &ask.params);
            let frame =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            actions.push(MachineAction::Send(frame.into_bytes()));
            self.waiting.push((id, ask.key));
        }
    }
}
