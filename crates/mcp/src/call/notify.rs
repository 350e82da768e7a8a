//! Notifications of clients that are none of the protocol's own: a server may do anything on one, so each is judged
//! as a request of that name would be. Nobody waits for an answer, and so nobody is asked.

use gate::facts::{ResourceType, Touched};
use gate::inspect::{Finding, Way};
use gate::{Admission, Call, Outcome, Reason};
use wire::Canonical;
use wire::jsonrpc::{Kind, member};

use super::client::Asker;
use super::inspected::APART;
use super::order::Turn;
use crate::describe;
use crate::message::shapes;
use crate::notes::Note;
use crate::upstream::Frame;

impl Asker {
    /// Judges a notification and passes it on where it may pass.
    pub async fn notify(self, frame: Vec<u8>, received_ns: u64) {
        let seen = self.settled();
        let inspected = shapes::of_client(&frame)
            .and_then(|canonical| self.server.inspected_in(canonical, "params", APART));
        let call = match inspected {
            Ok((canonical, finding)) => self.checked_notice(canonical, finding, received_ns).await,
            Err(fault) => Err(fault.message),
        };
        let mut call = match call {
            Ok(call) => call,
            Err(why) => return self.client.note(Note::ClientNotificationRefused.with(why)),
        };
        let mut turn = self.turn_of(&mut call, seen, received_ns).await;
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

    /// A notification as a call, once the checkers have looked at it.
    async fn checked_notice(
        &self,
        canonical: Canonical,
        finding: Option<Finding>,
        received_ns: u64,
    ) -> Result<Call<Frame>, &'static str> {
        let method = canonical.envelope().map_err(|fault| fault.message)?;
        let method = match &method.kind {
            Kind::Notification { method } => method.to_string(),
            _ => String::new(),
        };
        let frame = canonical.into_bytes();
        let checked = self.checked_beside(Way::Request, &method, frame, finding);
        let (frame, finding) = checked.await;
        let canonical = shapes::of_client(&frame).map_err(|fault| fault.message)?;
        self.described(&canonical, finding.as_ref(), received_ns)
    }

    /// Its place among the calls that are not settled, once none of them can change where it leads.
    async fn turn_of(&self, call: &mut Call<Frame>, seen: u64, received_ns: u64) -> Option<Turn> {
        let (mut turn, is_free) = self.take_turn(&call.facts, seen)?;
        if is_free {
            return Some(turn);
        }
        let frame = call.request.bytes.clone();
        let read = || {
            let canonical = shapes::of_client(&frame).ok()?;
            let again = self.described(&canonical, call.facts.inspected.as_deref(), received_ns);
            // It was described before, so it can be again.
            if let Ok(again) = again {
                call.facts = again.facts;
            }
            Touched::of(&call.facts)
        };
        let holds = turn.wait(read).await;
        call.facts.unsettled = !holds;
        Some(turn)
    }

    fn described(
        &self,
        canonical: &Canonical,
        finding: Option<&Finding>,
        received_ns: u64,
    ) -> Result<Call<Frame>, &'static str> {
        let scan = canonical.scan();
        let envelope = canonical.envelope().map_err(|fault| fault.message)?;
        let Kind::Notification { method } = &envelope.kind else {
            return Err("it is not a notification");
        };
        let server = Some(ResourceType::Server);
        let mut facts =
            self.with_context(|context| describe::client_request(method, server, &scan, context))?;
        if let Some(finding) = finding {
            facts.state_finding(finding);
        }
        let gate = &self.server.gate;
        let digest = member(&scan.params, "arguments").map(|raw| gate.digest(raw.as_bytes()));
        Ok(Call {
            caller: self.caller.clone(),
            facts,
            origin: Box::new(self.origin("", digest, received_ns, None)),
            targets: self.server.peer().into(),
            request: Frame::from(canonical.text().as_bytes().to_vec()),
        })
    }
}
