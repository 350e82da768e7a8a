//! Notifications of clients that are none of the protocol's own: a server may do anything on one, so each is judged
//! as a request of that name would be. Nobody waits for an answer, and so nobody is asked.

use gate::facts::{Facts, ResourceType, Touched};
use gate::inspect::{Inspected, Way};
use gate::journal::Digest;
use gate::{Admission, Call, Outcome, Reason};
use wire::Canonical;
use wire::jsonrpc::{Kind, member};

use super::client::Asker;
use super::order::Turn;
use crate::describe::{self, Context, InlineBound};
use crate::message::shapes;
use crate::notes::Note;
use crate::upstream::Frame;

impl Asker {
    /// Judges a notification and passes it on where it may pass.
    pub async fn notify(self, frame: Vec<u8>, received_ns: u64) {
        let seen = self.settled();
        let inspected = shapes::of_client(&frame)
            .and_then(|canonical| self.server.inspect_notification(canonical));
        let call = match inspected {
            Ok(inspected) => self.check_notification(inspected, received_ns).await,
            Err(fault) => Err(fault.message),
        };
        let mut call = match call {
            Ok(call) => call,
            Err(why) => return self.client.note(Note::ClientNotificationRefused.with(why)),
        };
        let mut turn = self.turn_of(&mut call, seen).await;
        let gate = &self.server.gate;
        match gate.admit(call).await {
            Admission::Permit(permit) => {
                let sent = self.slot.current().map(|link| link.send(permit));
                // One that was not sent is recorded as given up.
                if let Some(Ok(flight)) = sent {
                    flight.finish(Outcome::default());
                    // Nobody hears when the server is done with it: it counts for a while as if given up.
                    turn.iter_mut().for_each(Turn::sent);
                }
            }
            Admission::Pending(ticket) => {
                drop(gate.decline(*ticket, Reason::ApprovalUnreachable));
                let why = "a notification was dropped: a rule asks for approval, and a notification cannot wait for it";
                self.client.note(Note::ClientNotificationRefused.with(why));
            }
            Admission::Refused(_) => {
                let why = "a notification was dropped: no rule allows it";
                self.client.note(Note::ClientNotificationRefused.with(why));
            }
        }
    }

    /// Returns a notification as a call, once the checkers have inspected it.
    async fn check_notification(
        &self,
        inspected: Inspected<Canonical>,
        received_ns: u64,
    ) -> Result<Call<Frame>, &'static str> {
        let method = inspected
            .message()
            .envelope()
            .map_err(|fault| fault.message)?;
        let method = match &method.kind {
            Kind::Notification { method } => method.to_string(),
            _ => String::new(),
        };
        let frame = inspected.map(Canonical::into_bytes);
        let frame = self.checked_beside(Way::Request, &method, frame).await;
        let canonical = shapes::of_client(frame.message()).map_err(|fault| fault.message)?;
        let (facts, digest) = self.describe_notification(&canonical)?;
        Ok(Call {
            caller: self.caller.clone(),
            facts,
            origin: Box::new(self.origin("", digest, received_ns, (None, None))),
            targets: self.server.peer().into(),
            request: frame.map(|_| Frame::from(canonical.text().as_bytes().to_vec())),
        })
    }

    /// Its place among the calls that are not settled, once none of them can change where it leads.
    async fn turn_of(&self, call: &mut Call<Frame>, seen: u64) -> Option<Turn> {
        let (mut turn, is_free) = self.take_turn(&call.facts, seen)?;
        if is_free {
            return Some(turn);
        }
        let frame = call.request.message().bytes.clone();
        let read = || {
            let canonical = shapes::of_client(&frame).ok()?;
            // It was described before, so it can be again.
            if let Ok((facts, _)) = self.describe_notification(&canonical) {
                call.facts = facts;
            }
            Touched::of(&call.facts)
        };
        let holds = turn.wait(read).await;
        call.facts.unsettled = !holds;
        Some(turn)
    }

    /// Returns the facts of a notification and the digest of its arguments.
    fn describe_notification(
        &self,
        canonical: &Canonical,
    ) -> Result<(Box<Facts>, Option<Digest>), &'static str> {
        let scan = canonical.scan();
        let envelope = canonical.envelope().map_err(|fault| fault.message)?;
        let Kind::Notification { method } = &envelope.kind else {
            return Err("it is not a notification");
        };
        let server = Some(ResourceType::Server);
        // Its sender waits for no answer, so it may not take long.
        let inline = self.client.reading_pool().map(|_| InlineBound::default());
        let facts = self.with_context(|context| {
            let inline = inline.as_ref();
            let context = Context { inline, ..*context };
            describe::client_request(method, server, &scan, &context)
        })?;
        if inline.is_some_and(|inline| inline.is_exceeded()) {
            return Err(
                "a notification was dropped: it takes too long to read; send shorter strings",
            );
        }
        let gate = &self.server.gate;
        let digest = member(&scan.params, "arguments").map(|raw| gate.digest(raw.as_bytes()));
        Ok((facts, digest))
    }
}
