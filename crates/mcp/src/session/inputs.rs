//! What a Modern server's result asks of its client (`inputRequests`): each request is judged and recorded
//! like any other call towards the client, before the client sees the result.

use gate::journal::Status;
use gate::{Admission, Call, InFlight, Origin, Outcome, Refusal};
use wire::Era;
use wire::id::IdKey;

use crate::frames::{self, UpstreamFault};
use crate::serve::questions::inputs;
use crate::upstream::{Frame, taken};
use crate::{describe, reply};

use super::asking::{Key, Side};
use super::open::{Open, OpenKind};
use super::{Flow, Session};

/// A call whose answer is kept until everything that it asks of the client has been judged.
#[derive(Debug)]
pub(super) struct Judging {
    /// The call's id, as its client spelled it and as it is compared.
    id: String,
    key: IdKey,
    batch: Option<u64>,
    flight: InFlight,
    /// The answer for the client.
    answer: Vec<u8>,
    /// What is recorded of it.
    outcome: Outcome,
    /// Requests that wait for a person.
    waiting: usize,
    permitted: Vec<InFlight>,
}

impl Judging {
    /// Whether this is the id of the call.
    pub fn is(&self, key: &IdKey) -> bool {
        self.key == *key
    }
}

/// A call's answer on its way to the client.
pub(super) struct Answered<'a> {
    pub flight: InFlight,
    pub id: String,
    pub key: IdKey,
    pub batch: Option<u64>,
    /// The frame as the server sent it.
    pub frame: &'a [u8],
    /// The frame under the client's id, where that differs.
    pub renamed: Option<Vec<u8>>,
    pub is_error: bool,
    pub payload: &'a str,
}

impl Session {
    /// Passes a call's answer on; what a Modern result asks of the client is judged first.
    pub(super) async fn on_call_answer(&mut self, mut answered: Answered<'_>) -> Flow {
        answered.flight.reply_arrived();
        let modern = self.era == Some(Era::Modern) && !answered.is_error;
        let wanted = match modern.then(|| inputs(answered.payload)).transpose() {
            Ok(wanted) => wanted.unwrap_or_default(),
            Err(message) => {
                self.note("server_garbage", message);
                let open = Open {
                    id: answered.id,
                    sent_id: None,
                    kind: OpenKind::Call(answered.flight),
                    batch: answered.batch,
                    deadline_ns: u64::MAX,
                };
                return self.fail(open, &UpstreamFault::Garbage.into());
            }
        };
        let (frame, is_error) = (answered.frame, answered.is_error);
        let outcome = reply::outcome(&self.gate, frame, is_error, answered.payload);
        if wanted.is_empty() {
            let text = answered.renamed.as_deref().unwrap_or(frame);
            let flow = self.deliver_bytes(answered.batch, text);
            answered.flight.finish(outcome);
            return flow;
        }
        let number = self.next_judging;
        self.next_judging += 1;
        let judging = Judging {
            id: answered.id,
            key: answered.key,
            batch: answered.batch,
            flight: answered.flight,
            answer: answered.renamed.unwrap_or_else(|| frame.to_vec()),
            outcome,
            // One more than any, until all have been looked at.
            waiting: 1,
            permitted: Vec::new(),
        };
        self.table.judging.insert(number, judging);
        let mut flow = Flow::Go;
        for (index, (method, text)) in wanted.into_iter().enumerate() {
            // Refused meanwhile: nothing else is asked.
            let Some(judging) = self.table.judging.get_mut(&number) else {
                return flow;
            };
            judging.waiting += 1;
            let id = judging.id.clone();
            let admission = self.admit_input(&id, &method, text).await;
            let key = (Side::Input(number), IdKey::Text(index.to_string()));
            flow = flow.or(self.input_admitted(admission, key, method));
        }
        flow.or(self.input_judged(number, None))
    }

    async fn admit_input(&self, id: &str, method: &str, text: String) -> Admission<Frame> {
        let request = Frame(text.into_bytes());
        let origin = Origin {
            request_id: id.chars().take(256).collect(),
            session_id: self.session_id.clone(),
            era: self.era.map(Era::label),
            client_id: self.client_id.clone(),
            transport: self.upstream.transport(),
            arguments_digest: Some(self.gate.digest(&request.0)),
            received_ns: self.gate.mono_ns(),
        };
        let facts = describe::server_request(method, &self.context());
        self.gate
            .admit(Call {
                caller: self.options.caller.clone(),
                targets: (&self.client).into(),
                facts,
                origin,
                request,
            })
            .await
    }

    pub(super) fn input_admitted(
        &mut self,
        admission: Admission<Frame>,
        key: Key,
        method: String,
    ) -> Flow {
        let Side::Input(number) = key.0 else {
            return Flow::Go;
        };
        match admission {
            Admission::Permit(permit) => {
                let flight = taken(permit, &self.client).map(|(_, flight)| flight);
                self.input_judged(number, flight)
            }
            Admission::Pending(ticket) => {
                let open = Open {
                    id: method,
                    sent_id: None,
                    kind: OpenKind::Plain,
                    batch: None,
                    deadline_ns: u64::MAX,
                };
                self.wait(key, ticket, open)
            }
            Admission::Refused(refusal) => self.input_refused(number, &refusal),
        }
    }

    /// One request of a result has been judged; after the last one the result goes to the client.
    fn input_judged(&mut self, number: u64, permitted: Option<InFlight>) -> Flow {
        let Some(judging) = self.table.judging.get_mut(&number) else {
            return Flow::Go;
        };
        judging.permitted.extend(permitted);
        judging.waiting -= 1;
        if judging.waiting > 0 {
            return Flow::Go;
        }
        let Some(judging) = self.table.judging.remove(&number) else {
            return Flow::Go;
        };
        // The client's answers come with its next request, which is judged by itself.
        for mut flight in judging.permitted {
            flight.reply_arrived();
            flight.finish(Outcome {
                status: Status::Success,
                ..Outcome::default()
            });
        }
        let flow = self.deliver(judging.batch, judging.answer);
        judging.flight.finish(judging.outcome);
        flow
    }

    /// One request of a result is refused, and with it the result.
    pub(super) fn input_refused(&mut self, number: u64, refusal: &Refusal) -> Flow {
        let Some(judging) = self.table.judging.remove(&number) else {
            return Flow::Go;
        };
        self.drop_inputs(number);
        let flow = self.deliver(judging.batch, frames::refused(&judging.id, refusal));
        judging.flight.finish(Outcome {
            status: Status::Failure,
            error_code: Some(i64::from(frames::REFUSED_CODE)),
            reason: Some(refusal.reason.label()),
            ..Outcome::default()
        });
        flow
    }

    /// The client no longer wants a call whose result is being judged; `false` where there is none.
    pub(super) fn withdraw_judging(&mut self, key: &IdKey) -> bool {
        let found = self.table.judging.iter().find(|(_, j)| j.is(key));
        let Some(number) = found.map(|(number, _)| *number) else {
            return false;
        };
        self.drop_inputs(number);
        if let Some(judging) = self.table.judging.remove(&number)
            && let Some(batch) = judging.batch
        {
            // Whether the rest of the batch can be written shows later.
            let _ = self.batch_step(batch, None);
        }
        true
    }

    fn drop_inputs(&mut self, number: u64) {
        self.table
            .asking
            .retain(|(side, _), _| *side != Side::Input(number));
    }
}
