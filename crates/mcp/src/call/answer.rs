//! The client's answer to a request of its server, judged before the server receives it.

use std::sync::Arc;

use gate::facts::Facts;
use gate::inspect::Inspected;
use gate::journal::Status;
use gate::{Admission, AnswerVerdict, Call, InFlight, Outcome, Refusal};
use wire::jsonrpc::member;
use wire::{Bounds, scan_reply};

use super::client::Asker;
use super::under_way::Stop;
use crate::describe::{self, Context, InlineBound};
use crate::message::refusal;
use crate::upstream::{Frame, Link, taken};

impl Asker {
    /// Judges an answer of this client and sends it to the server that asked. An answer that may not pass is replaced
    /// by an error, so that the server does not wait; one that a person is asked about goes on beside the session.
    pub(super) fn answer_server(
        &self,
        link: Arc<Link>,
        flight: InFlight,
        frame: Inspected<Vec<u8>>,
    ) {
        let Some((asked, _)) = flight.about() else {
            return;
        };
        let inline = self.client.reading_pool().map(|_| InlineBound::default());
        let facts = self.with_context(|context| {
            let inline = inline.as_ref();
            let context = Context { inline, ..*context };
            describe::client_answer(asked, frame.message(), &context)
        });
        if inline.is_some_and(|inline| inline.is_exceeded()) {
            let work = self.clone().answer_long(link, flight, facts, frame);
            return self.client.beside(Box::pin(work));
        }
        self.judge_answer(link, flight, facts, frame);
    }

    /// Judges an answer that takes long to read, without a serving thread. The server receives an error if there is no
    /// thread for it. `begun` are the facts that were read of it before.
    async fn answer_long(
        self,
        link: Arc<Link>,
        flight: InFlight,
        begun: Facts,
        frame: Inspected<Vec<u8>>,
    ) {
        let Some((asked, _)) = flight.about() else {
            return;
        };
        let prepare = || {
            let (asker, asked, answer) = (self.clone(), asked.clone(), frame.message().clone());
            move || asker.with_context(|context| describe::client_answer(&asked, &answer, context))
        };
        match self.read_elsewhere(prepare).await {
            Some(facts) => self.judge_answer(link, flight, facts, frame),
            None => {
                let id = id_of(frame.message());
                let now_ns = self.server.gate.mono_ns();
                let origin = self.origin(&id, None, now_ns, (None, None));
                let refusal = self.refuse_unread(&begun, &origin);
                let error = refusal::as_error(&id, &refusal);
                send(&link, flight, error, Some(&refusal));
            }
        }
    }

    /// Judges an answer by its facts.
    fn judge_answer(
        &self,
        link: Arc<Link>,
        mut flight: InFlight,
        facts: Facts,
        frame: Inspected<Vec<u8>>,
    ) {
        let gate = &self.server.gate;
        match gate.judge_answer(&mut flight, Box::new(facts.clone()), &frame) {
            AnswerVerdict::Passes => send(&link, flight, frame.into_message(), None),
            AnswerVerdict::Refused(refusal) => {
                let error = refusal::as_error(&id_of(frame.message()), &refusal);
                send(&link, flight, error, Some(&refusal));
            }
            AnswerVerdict::Asks => {
                let asker = self.clone();
                let work = asker.admit_answer(link, flight, facts, frame);
                self.client.beside(Box::pin(work));
            }
        }
    }

    /// Asks a person about an answer and sends it, or the error in its place.
    async fn admit_answer(
        self,
        link: Arc<Link>,
        flight: InFlight,
        facts: Facts,
        frame: Inspected<Vec<u8>>,
    ) {
        let gate = &self.server.gate;
        let id = id_of(frame.message());
        let origin = self.origin(
            &id,
            Some(gate.digest(frame.message())),
            gate.mono_ns(),
            (None, None),
        );
        let call = Call {
            caller: self.caller.clone(),
            facts: Box::new(facts.clone()),
            origin: Box::new(origin),
            targets: link.id().clone().into(),
            request: frame.map(Frame::from),
        };
        let mut decided = gate.admit(call).await;
        if let Admission::Pending(ticket) = decided {
            let again = |ticket| gate.resume(ticket, facts.clone());
            let stop = Arc::new(Stop::default());
            let answered = self.wait_for_person(ticket, &stop, None, again);
            let Some(after) = answered.await else {
                return;
            };
            decided = after;
        }
        let refusal = match decided {
            Admission::Permit(permit) => {
                if let Some((frame, mut own)) = taken(permit, link.id()) {
                    send(&link, flight, frame.bytes, None);
                    own.reply_arrived();
                    own.finish(Outcome {
                        status: Status::Success,
                        ..Outcome::default()
                    });
                }
                return;
            }
            Admission::Pending(ticket) => self.undecidable(*ticket),
            Admission::Refused(refusal) => refusal,
        };
        let error = refusal::as_error(&id, &refusal);
        send(&link, flight, error, Some(&refusal));
    }
}

/// Sends an answer and ends the request of the server that it belongs to.
fn send(link: &Link, mut flight: InFlight, frame: Vec<u8>, refusal: Option<&Refusal>) {
    flight.reply_arrived();
    let status = match refusal {
        Some(_) => Status::Failure,
        None => Status::Success,
    };
    // A server that has ended needs no answer.
    if let Ok(flight) = link.send(flight.answer(Frame::from(frame))) {
        flight.finish(Outcome {
            status,
            reason: refusal.map(|refusal| refusal.reason.into()),
            ..Outcome::default()
        });
    }
}

/// Returns the id of an answer as its server spelled it.
fn id_of(frame: &[u8]) -> String {
    let scan = scan_reply(frame, &Bounds::default()).ok();
    let id = scan.as_ref().and_then(|scan| member(&scan.members, "id"));
    id.unwrap_or("null").to_owned()
}
