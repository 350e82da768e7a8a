//! Calls of a Modern client that wait for it to come back with its person's answer. There is one client,
//! so the question's own name is state enough: it is good once, and for the same request.

use std::collections::HashMap;

use gate::approval::Channel;
use gate::facts::Facts;
use gate::{Origin, Reason, Ticket};
use serde_json::Value;
use wire::id::IdKey;
use wire::jsonrpc::{Envelope, Kind};
use wire::{Bounds, Era, scan_request};

use crate::frames;
use crate::input_required::{self, Return, Stray, elicits, essence};
use crate::upstream::Frame;

use super::asking::{Asking, Side};
use super::open::Open;
use super::{Flow, Session};

/// A call that is kept.
#[derive(Debug)]
pub(super) struct Parked {
    ticket: Box<Ticket<Frame>>,
    essence: Value,
    /// The id of the request that is kept, which is what will be sent.
    id: String,
    key: IdKey,
}

impl Parked {
    /// Whether this is the id of the request that is kept.
    pub fn is(&self, key: &IdKey) -> bool {
        self.key == *key
    }
}

/// All that are kept, by the state that their client carries.
pub(super) type Lot = HashMap<String, Parked>;

impl Session {
    /// Keeps a Modern client's call and gives the result that wants its person's answer; the ticket comes
    /// back where the client may not answer, or cannot.
    pub(super) fn park(
        &mut self,
        ticket: Box<Ticket<Frame>>,
        id: &str,
    ) -> Result<Vec<u8>, Box<Ticket<Frame>>> {
        let may = self.era == Some(Era::Modern) && ticket.approvers().contains(&Channel::Client);
        let request = ticket.request().filter(|frame| may && elicits(&frame.0));
        let kept = request.and_then(|frame| Some((essence(&frame.0)?, id_of(&frame.0)?)));
        let question = self.gate.approvals().question(ticket.id());
        let (Some((essence, (sent_id, key))), Some(question)) = (kept, question) else {
            return Err(ticket);
        };
        let (state, answer) = input_required::result(id, &question, &question.id);
        let parked = Parked {
            ticket,
            essence,
            id: sent_id,
            key,
        };
        self.table.parked.insert(state, parked);
        Ok(answer)
    }

    fn unpark(&mut self, state: &str, frame: &[u8]) -> Result<Parked, Stray> {
        let parked = self.table.parked.get(state).ok_or(Stray::Unknown)?;
        if essence(frame).as_ref() != Some(&parked.essence) {
            return Err(Stray::Other);
        }
        self.table.parked.remove(state).ok_or(Stray::Unknown)
    }

    /// Goes on with a call that its client was asked about: as its person says, else as whoever else may
    /// answer does.
    pub(super) fn came_back(
        &mut self,
        key: IdKey,
        mut open: Open,
        frame: &[u8],
        (back, facts, origin): (&Return, &Facts, &Origin),
    ) -> Flow {
        let parked = match self.unpark(&back.state, frame) {
            Ok(parked) => parked,
            Err(stray) => {
                self.note("request_state_unusable", stray.sentence());
                let counted = self.gate.admit_stray(facts, origin);
                return self.deliver(open.batch, frames::stray(&open.id, stray, counted));
            }
        };
        let Parked {
            ticket,
            id,
            key: sent_as,
            ..
        } = parked;
        let (answer, subject) = (back.answer.as_ref(), &self.options.caller.subject);
        let ended = input_required::take_answer(&self.gate, subject, &ticket, answer);
        if let Some(reason) = ended {
            let refusal = self.gate.decline(*ticket, reason);
            return self.deliver(open.batch, frames::refused(&open.id, &refusal));
        }
        // What is sent is the request that was judged, under its own id; the answer goes to this one.
        if sent_as != key {
            open.sent_id = Some(id);
            self.table.come_back(key, sent_as.clone());
        }
        let key = (Side::Client, sent_as);
        if ticket.is_settled() {
            self.go_on(key, Asking::of(ticket, open))
        } else {
            self.wait(key, ticket, open)
        }
    }

    /// Gives up the calls whose client has not come back in time.
    pub(super) fn sweep_parked(&mut self) {
        let now_ns = self.gate.mono_ns();
        let over = self
            .table
            .parked
            .extract_if(|_, parked| parked.ticket.deadline_ns() <= now_ns);
        for (_, Parked { ticket, .. }) in over {
            // Nobody is left to be told.
            drop(self.gate.decline(*ticket, Reason::ApprovalTimeout));
        }
    }

    /// Gives up all of them.
    pub(super) fn give_up_parked(&mut self, reason: Reason) {
        for (_, Parked { ticket, .. }) in self.table.parked.drain() {
            drop(self.gate.decline(*ticket, reason));
        }
    }
}

/// The id of a request, as spelled and as it is compared.
fn id_of(frame: &[u8]) -> Option<(String, IdKey)> {
    let scan = scan_request(frame, &Bounds::default()).ok()?;
    match Envelope::of(&scan).ok()?.kind {
        Kind::Request { id, .. } => Some((id.raw().to_owned(), id.key())),
        Kind::Notification { .. } | Kind::Response { .. } => None,
    }
}
