//! Asking a Modern client's own person: a result that wants input, and the client that comes back with
//! it. What it carries meanwhile (`requestState`) only names the call, which is kept here.

use gate::approval::{Channel, Question};
use gate::{Gate, Reason, Ticket};
use serde_json::{Value, json};
use wire::Bounds;
use wire::jsonrpc::{member, string};
use wire::scan::{Scan, scan_request};

use super::form::{self, ID_PREFIX, Said};
use crate::message::{frames, request};
use crate::upstream::Frame;

/// Under which key a client answers our question.
const INPUT: &str = "durward_approval";

/// The result that asks, and the state that it carries. `name` tells this call from all others that are
/// kept.
#[must_use]
pub fn result(id: &str, question: &Question, name: &str) -> (String, Vec<u8>) {
    let state = format!("{ID_PREFIX}{name}");
    let result = json!({
        "resultType": "input_required",
        "inputRequests": { INPUT: {
            "method": "elicitation/create",
            "params": form::form(question),
        } },
        "requestState": state,
    });
    let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
    (state, frame.into_bytes())
}

/// Why a call that is come back for is not gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// No call is kept under this state, or it is none of this caller's.
    Unknown,
    /// It is kept, and it is another one.
    Other,
}

impl Stray {
    /// A sentence for the client.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Unknown => {
                "requestState is unknown, used or too old; send the request again without it"
            }
            Self::Other => "the request is not the one that was asked about",
        }
    }

    /// The answer to a request that comes back so.
    #[must_use]
    pub fn answer(self, id: &str) -> Vec<u8> {
        frames::error(id, -32602, self.sentence(), None)
    }
}

/// What a client comes back with to a call that was asked about: our state, and the answer.
#[derive(Debug)]
pub struct Return {
    /// The state.
    pub state: String,
    /// What the person said, where anything was.
    pub answer: Option<Value>,
}

impl Return {
    /// Reads it out of a request; none where the request carries no state of ours.
    #[must_use]
    pub fn of(scan: &Scan<'_>) -> Option<Self> {
        let state = member(&scan.params, "requestState").and_then(string)?;
        if !state.starts_with(ID_PREFIX) {
            return None;
        }
        let answers: Option<Value> =
            member(&scan.params, "inputResponses").and_then(|raw| serde_json::from_str(raw).ok());
        Some(Self {
            state: state.into_owned(),
            answer: answers.and_then(|mut answers| Some(answers.get_mut(INPUT)?.take())),
        })
    }
}

/// What must be the same when a client comes back: the method and its parameters, without what only
/// belongs to the one or the other message.
#[must_use]
pub fn essence(frame: &[u8]) -> Option<Value> {
    let mut message: Value = serde_json::from_slice(frame).ok()?;
    let method = message.get_mut("method")?.take();
    let mut params = message.get_mut("params")?.take();
    let members = params.as_object_mut()?;
    for passing in ["_meta", "requestState", "inputResponses"] {
        members.remove(passing);
    }
    Some(json!([method, params]))
}

/// Whether nobody but the client may answer.
#[must_use]
pub fn only_client(ticket: &Ticket<Frame>) -> bool {
    ticket.approvers().iter().all(|c| *c == Channel::Client)
}

/// Takes what the caller's person has said about a call; gives the reason where that ends it.
#[must_use]
pub fn take_answer(
    gate: &Gate,
    caller: &str,
    ticket: &Ticket<Frame>,
    answer: Option<&Value>,
) -> Option<Reason> {
    let only_client = only_client(ticket);
    let said = answer.map_or(Said::Nothing, |answer| {
        form::said(answer, caller, only_client)
    });
    let is_taken = said.is_taken(gate, &ticket.id().to_string());
    (!is_taken && only_client && !ticket.is_settled()).then_some(Reason::ApprovalUnfit)
}

/// Whether a request says of its client that it can show its person a form.
#[must_use]
pub fn elicits(frame: &[u8]) -> bool {
    let says = || {
        let scan = scan_request(frame, &Bounds::default()).ok()?;
        let meta: Value = serde_json::from_str(member(&scan.params, "_meta")?).ok()?;
        let capabilities = meta.get(request::META_CAPABILITIES)?.to_string();
        Some(form::can_elicit(&capabilities))
    };
    says().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_must_be_the_same_request() {
        let first = br#"{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"y":2},"_meta":{"k":1}}}"#;
        let same = br#"{"params":{"requestState":"s","inputResponses":{},"arguments":{"y":2,"x":1},"name":"a"},"id":"2","method":"tools/call"}"#;
        assert_eq!(essence(first), essence(same));
        for other in [
            br#"{"method":"tools/call","params":{"name":"a","arguments":{"x":1,"y":3}}}"#
                .as_slice(),
            br#"{"method":"prompts/get","params":{"name":"a","arguments":{"x":1,"y":2}}}"#,
            br#"{"method":"tools/call","params":{"name":"b","arguments":{"x":1,"y":2}}}"#,
            br#"{"method":"tools/call","params":{"name":"a","arguments":{"x":1,"y":2},"more":1}}"#,
        ] {
            assert_ne!(essence(first), essence(other));
        }
        assert_eq!(essence(b"{}"), None);
    }
}
