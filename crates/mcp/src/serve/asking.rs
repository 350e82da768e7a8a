//! Calls that wait for a person, and asking the calling client's own where a rule says so: in a Legacy
//! session by elicitation on the call's stream, in the Modern era as a result that wants input.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::approval::Channel;
use gate::{Admission, Reason, Ticket};
use serde_json::Value;
use tokio::sync::Notify;
use wire::id::IdKey;
use wire::jsonrpc::{member, string};
use wire::{Bounds, Era, scan_request};

use super::Face;
use super::call::{After, Asker, Names, Run, Said, Stage};
use super::server::Server;
use super::session::{CallGuard, Session};
use super::splice::Marks;
use crate::ask_client;
use crate::frames;
use crate::input_required::{self, Stray, essence, only_client};
use crate::request;
use crate::upstream::Frame;

/// Most calls of Modern clients that are kept until their client asks again.
pub const PARKED_MAX: usize = 1_024;

/// A call that waits for an answer of its Legacy client's person, or of anybody else who may give one.
pub(super) struct Asking {
    ticket: Box<Ticket<Frame>>,
    marks: Marks,
    /// Told when the client no longer wants the call.
    cancelled: Arc<Notify>,
    form: Option<Form>,
    over: Option<End>,
}

/// How the wait for a person ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Settled,
    Declined(Reason),
}

/// Our question to the client. Dropped, it is not waited for any more.
struct Form {
    session: Arc<Session>,
    id: IdKey,
    question: Option<Vec<u8>>,
    /// Told when the client has answered without an answer.
    unanswered: Arc<Notify>,
}

impl Drop for Form {
    fn drop(&mut self) {
        self.session.close_form(&self.id);
    }
}

/// What there is for the client of a call that waits.
pub(super) enum News {
    Show(Vec<u8>),
    Over(End),
}

impl Asking {
    /// Gives back what waits.
    pub(super) fn into_ticket(self) -> Box<Ticket<Frame>> {
        self.ticket
    }

    /// What there is for the client next. Nothing is lost where this is dropped on the way.
    pub(super) async fn next(&mut self) -> News {
        if let Some(question) = self.form.as_mut().and_then(|form| form.question.take()) {
            return News::Show(question);
        }
        if let Some(over) = self.over {
            return News::Over(over);
        }
        let unanswered = async {
            match &self.form {
                Some(form) => form.unanswered.notified().await,
                None => std::future::pending().await,
            }
        };
        let over = tokio::select! {
            () = self.ticket.settled() => End::Settled,
            () = self.cancelled.notified() => End::Declined(Reason::ApprovalWithdrawn),
            () = unanswered => End::Declined(Reason::ApprovalUnreachable),
        };
        self.over = Some(over);
        match self.form.take() {
            Some(form) if form.session.close_form(&form.id) => {
                News::Show(ask_client::cancelled(&form.id))
            }
            Some(_) | None => News::Over(over),
        }
    }
}

impl Asker {
    /// A question for the client's own person, where they may answer and the client can show it.
    pub(super) fn asking(
        &self,
        ticket: Box<Ticket<Frame>>,
        marks: Marks,
        guard: Option<&CallGuard>,
    ) -> Result<Box<Asking>, (Box<Ticket<Frame>>, Marks)> {
        let session = self.session.as_ref().filter(|_| self.elicits);
        let asked = ticket.approvers().contains(&Channel::Client);
        let question = self.server.gate.approvals().question(ticket.id());
        let (Some(session), true, Some(question)) = (session, asked, question) else {
            return Err((ticket, marks));
        };
        let (id, frame) = ask_client::question(&question);
        let unanswered = session.open_form(&id, &ticket);
        let cancelled = Arc::new(Notify::new());
        if let Some(guard) = guard {
            guard.waits(&cancelled);
        }
        Ok(Box::new(Asking {
            ticket,
            marks,
            cancelled,
            form: Some(Form {
                session: Arc::clone(session),
                id,
                question: Some(frame),
                unanswered,
            }),
            over: None,
        }))
    }

    /// Waits for a person's answer to a question about a call. A client that goes away takes the
    /// question with it.
    pub(super) async fn approved(
        &self,
        face: &Arc<Face>,
        ticket: Box<Ticket<Frame>>,
        guard: Option<&CallGuard>,
    ) -> Admission<Frame> {
        if only_client(&ticket) && !ticket.is_settled() {
            let reason = Reason::ApprovalUnreachable;
            return Admission::Refused(self.server.gate.decline(*ticket, reason));
        }
        let cancelled = Arc::new(Notify::new());
        if let Some(guard) = guard {
            guard.waits(&cancelled);
        }
        let stay = face.stay(&self.caller.subject);
        tokio::select! {
            () = ticket.settled() => {}
            () = async {
                tokio::select! {
                    () = cancelled.notified() => {}
                    () = stay.over() => {}
                }
            } => {
                let reason = Reason::ApprovalWithdrawn;
                return Admission::Refused(self.server.gate.decline(*ticket, reason));
            }
        }
        self.resumed(ticket)
    }

    /// Goes on with a call whose question has ended.
    fn resumed(&self, ticket: Box<Ticket<Frame>>) -> Admission<Frame> {
        let now = ticket.request().and_then(|frame| {
            let scan = scan_request(&frame.0, &Bounds::default()).ok()?;
            let method = string(member(&scan.members, "method")?)?;
            let described =
                self.with_context(|context| request::described(&method, &scan, context));
            let mut facts = described?;
            Server::refresh_quarantine(&mut facts, &self.shown);
            Some(facts)
        });
        match now {
            Some(now) => self.server.gate.resume(ticket, now),
            // It was described before, so it can be again.
            None => Admission::Refused(self.server.gate.decline(*ticket, Reason::Undecidable)),
        }
    }

    /// When the server's time is over, if it begins now.
    pub(super) fn deadline_ns(&self, names: &Names) -> u64 {
        let now_ns = self.server.gate.mono_ns();
        now_ns.saturating_add(names.timeout_ns)
    }
}

impl Run {
    /// What there is for the client of a call that waits; none where it has been sent.
    pub(super) async fn next_asked(&mut self) -> Option<Said> {
        let Stage::Asking(asking) = &mut self.stage else {
            return None;
        };
        let over = match asking.next().await {
            News::Show(frame) => return Some(Said::Emit(frame)),
            News::Over(over) => over,
        };
        let Stage::Asking(asking) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return None;
        };
        let Asking { ticket, marks, .. } = *asking;
        let gate = &self.asker.server.gate;
        let mut admission = match over {
            End::Settled => self.asker.resumed(ticket),
            End::Declined(reason) => Admission::Refused(gate.decline(*ticket, reason)),
        };
        if let Admission::Pending(ticket) = admission {
            // The rules have changed, and they ask as well.
            match self
                .asker
                .asking(ticket, marks.clone(), self.guard.as_ref())
            {
                Ok(asking) => {
                    self.stage = Stage::Asking(asking);
                    return None;
                }
                Err((ticket, _)) => {
                    admission = self
                        .asker
                        .approved(&self.face, ticket, self.guard.as_ref())
                        .await;
                }
            }
        }
        let refusal = match admission {
            Admission::Permit(permit) => {
                let deadline_ns = self.asker.deadline_ns(&self.names);
                match self.asker.dispatch(permit, &marks, deadline_ns).await {
                    Ok((exchange, flight)) => {
                        self.sent(exchange, After::Call(flight));
                        return None;
                    }
                    Err(failure) => return Some(self.failed(&failure)),
                }
            }
            Admission::Pending(ticket) => {
                let gate = &self.asker.server.gate;
                gate.decline(*ticket, Reason::Undecidable)
            }
            Admission::Refused(refusal) => refusal,
        };
        Some(Said::Done(frames::refused(self.id(), &refusal), None))
    }
}

/// A Modern client's call that waits for its client to ask again with an answer.
struct Parked {
    ticket: Box<Ticket<Frame>>,
    marks: Marks,
    server: Arc<Server>,
    caller: Arc<str>,
    essence: Value,
}

/// Calls of Modern clients that wait for their clients, by the state that these carry. A state is good
/// once, for its caller, its server and the same request, until the question's time is over.
#[derive(Default)]
pub(super) struct Lot(Mutex<HashMap<String, Parked>>);

impl Lot {
    fn parked(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up those whose client has not come back in time.
    pub fn sweep(&self, now_ns: u64) {
        let over: Vec<Parked> = {
            let mut parked = self.parked();
            let due = parked
                .iter()
                .filter(|(_, parked)| parked.ticket.deadline_ns() <= now_ns);
            let due: Vec<String> = due.map(|(state, _)| state.clone()).collect();
            due.iter()
                .filter_map(|state| parked.remove(state))
                .collect()
        };
        for Parked { ticket, server, .. } in over {
            // Nobody is left to be told.
            drop(server.gate.decline(*ticket, Reason::ApprovalTimeout));
        }
    }

    /// Withdraws those of a caller or of a server.
    pub fn withdraw(&self, which: impl Fn(&str, &Arc<Server>) -> bool) {
        let mut parked = self.parked();
        let found = parked.iter().filter(|(_, p)| which(&p.caller, &p.server));
        let states: Vec<String> = found.map(|(state, _)| state.clone()).collect();
        let gone: Vec<Parked> = states.iter().filter_map(|s| parked.remove(s)).collect();
        drop(parked);
        drop(gone);
    }

    /// Withdraws all.
    pub fn close(&self) {
        let all = std::mem::take(&mut *self.parked());
        drop(all);
    }
}

impl Face {
    /// Keeps a Modern client's call and gives the result that wants its person's answer; the ticket
    /// comes back where the client may not answer, cannot, or too many are kept.
    pub(super) fn park(
        &self,
        asker: &Asker,
        ticket: Box<Ticket<Frame>>,
        marks: &Marks,
        id: &str,
    ) -> Result<Vec<u8>, Box<Ticket<Frame>>> {
        let may = asker.era == Era::Modern
            && asker.elicits
            && ticket.approvers().contains(&Channel::Client);
        let question = asker.server.gate.approvals().question(ticket.id());
        let essence = ticket.request().and_then(|frame| essence(&frame.0));
        let mut random = [0_u8; 16];
        let (true, Some(question), Some(essence), Ok(())) =
            (may, question, essence, (self.random)(&mut random))
        else {
            return Err(ticket);
        };
        let mut parked = self.parked.parked();
        if parked.len() >= PARKED_MAX {
            return Err(ticket);
        }
        let name = format!("{:032x}", u128::from_be_bytes(random));
        let (state, frame) = input_required::result(id, &question, &name);
        let kept = Parked {
            ticket,
            marks: marks.clone(),
            server: Arc::clone(&asker.server),
            caller: Arc::clone(&asker.caller.subject),
            essence,
        };
        parked.insert(state, kept);
        Ok(frame)
    }

    /// The call that a Modern client comes back for.
    ///
    /// # Errors
    /// Where the state is none of this caller's, or the request is another one.
    pub(super) fn unpark(
        &self,
        asker: &Asker,
        state: &str,
        frame: &[u8],
    ) -> Result<(Box<Ticket<Frame>>, Marks), Stray> {
        let essence = essence(frame);
        let mut parked = self.parked.parked();
        let found = parked.get(state).filter(|parked| {
            parked.caller == asker.caller.subject && Arc::ptr_eq(&parked.server, &asker.server)
        });
        match found {
            None => return Err(Stray::Unknown),
            Some(found) if essence.as_ref() != Some(&found.essence) => return Err(Stray::Other),
            Some(_) => {}
        }
        let Parked { ticket, marks, .. } = parked.remove(state).ok_or(Stray::Unknown)?;
        Ok((ticket, marks))
    }
}
