//! Calls of Modern clients that wait for their clients to ask again with an answer.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::approval::{Channel, Question};
use gate::{Reason, Ticket};
use wire::id::IdKey;

use super::client::Asker;
use super::input_required::{self, Essence, Stray, elicits, essence};
use super::server::Server;
use crate::message::splice::Marks;
use crate::upstream::Frame;

/// Most calls of Modern clients that are kept until their client asks again.
pub const PARKED_MAX: usize = 1_024;

/// Fills its argument with secret, uniform bytes.
type Random = dyn Fn(&mut [u8]) -> io::Result<()> + Send + Sync;

/// A call that is kept.
struct Parked {
    ticket: Box<Ticket<Frame>>,
    marks: Marks,
    server: Arc<Server>,
    caller: Arc<str>,
    essence: Essence,
    /// The id of the request that is kept, which is what will be sent.
    key: Option<IdKey>,
}

/// Calls that are kept, by the state that their clients carry. A state is good once, for its caller,
/// its server and the same request, until the question's time is over.
#[derive(Default)]
pub(crate) struct Lot {
    parked: Mutex<HashMap<String, Parked>>,
    /// Makes states that nobody can guess. Where there is one client, the question's own name is
    /// state enough.
    random: Option<Box<Random>>,
}

impl Lot {
    /// For many clients.
    pub fn guarded(random: Box<Random>) -> Self {
        Self {
            parked: Mutex::default(),
            random: Some(random),
        }
    }

    fn parked(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session id, or the name of a call that is kept.
    pub fn random(&self) -> io::Result<String> {
        let mut bytes = [0_u8; 16];
        match &self.random {
            Some(random) => random(&mut bytes)?,
            None => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
    }

    fn name(&self, question: &Question) -> Option<String> {
        match &self.random {
            Some(_) => self.random().ok(),
            None => Some(question.id.to_string()),
        }
    }

    /// How many calls are kept.
    pub fn count(&self) -> usize {
        self.parked().len()
    }

    /// Whether a request with this id is kept.
    pub fn has_id(&self, key: &IdKey) -> bool {
        self.parked().values().any(|p| p.key.as_ref() == Some(key))
    }

    /// Gives up those whose client has not come back in time.
    pub fn sweep(&self, now_ns: u64) {
        self.decline(Reason::ApprovalTimeout, |parked| {
            parked.ticket.deadline_ns() <= now_ns
        });
    }

    /// Whether no call is parked.
    pub fn is_empty(&self) -> bool {
        let parked = self.parked.lock();
        parked.unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Refuses all of them.
    pub fn decline_all(&self, reason: Reason) {
        self.decline(reason, |_| true);
    }

    fn decline(&self, reason: Reason, which: impl Fn(&Parked) -> bool) {
        let over: Vec<Parked> = self
            .parked()
            .extract_if(|_, parked| which(parked))
            .map(|(_, parked)| parked)
            .collect();
        for Parked { ticket, server, .. } in over {
            // Nobody is left to be told.
            drop(server.gate.decline(*ticket, reason));
        }
    }

    /// Withdraws those of a caller or of a server.
    pub fn withdraw(&self, which: impl Fn(&str, &Arc<Server>) -> bool) {
        let gone: Vec<(String, Parked)> = self
            .parked()
            .extract_if(|_, parked| which(&parked.caller, &parked.server))
            .collect();
        drop(gone);
    }
}

impl Asker {
    /// Keeps a Modern client's call and gives the result that wants its person's answer; the ticket
    /// comes back where the client may not answer, cannot, or too many are kept.
    pub(super) fn park(
        &self,
        ticket: Box<Ticket<Frame>>,
        marks: &Marks,
        id: &str,
    ) -> Result<Vec<u8>, Box<Ticket<Frame>>> {
        let may = self.is_modern() && ticket.approvers().contains(&Channel::Client);
        let request = ticket
            .request()
            .filter(|frame| may && elicits(&frame.bytes));
        let kept = request.and_then(|frame| {
            let key = marks.spelled_id(&frame.bytes).map(|(_, key)| key);
            Some((essence(&frame.bytes)?, key))
        });
        let question = self.server.gate.approvals().question(ticket.id());
        let (Some((essence, key)), Some(question)) = (kept, question) else {
            return Err(ticket);
        };
        let Some(name) = self.lot.name(&question) else {
            return Err(ticket);
        };
        let mut parked = self.lot.parked();
        if parked.len() >= PARKED_MAX {
            return Err(ticket);
        }
        let (state, frame) = input_required::result(id, &question, &name);
        let kept = Parked {
            ticket,
            marks: marks.clone(),
            server: Arc::clone(&self.server),
            caller: Arc::clone(&self.caller.subject),
            essence,
            key,
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
        state: &str,
        frame: &[u8],
    ) -> Result<(Box<Ticket<Frame>>, Marks), Stray> {
        let essence = essence(frame);
        let mut parked = self.lot.parked();
        let found = parked.get(state).filter(|parked| {
            parked.caller == self.caller.subject && Arc::ptr_eq(&parked.server, &self.server)
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
