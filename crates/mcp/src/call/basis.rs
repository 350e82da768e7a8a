//! What the outcome of a list rests on. A client of several servers is given a list as it was worked out before
//! for as long as nothing of that is another now; whatever cannot be compared cheaply is not remembered at all.
//!
//! Beside what is compared here, the outcome rests on the caller, the spelling of names and the revision, which stay with the
//! session, and on nothing else: a list is judged by facts that know neither the clock nor the labels of a session.

use std::sync::Arc;

use gate::{ControlKind, World};
use toolkit::Trace;
use wire::Id;

use super::client::Asker;
use super::server::Taken;
use crate::describe;
use crate::message::method::List;
use crate::message::refusal;
use crate::upstream::KeptAs;

/// All that a whole list was worked out from.
#[derive(Debug)]
pub(crate) struct Basis {
    /// The server's answer.
    kept_as: KeptAs,
    outcome: Outcome,
}

/// The same but for the server's answer.
#[derive(Debug)]
pub(super) struct Outcome {
    pub list: List,
    /// The rules and limits.
    pub world: Arc<World>,
    /// What the session noted of the list for reloads, as [`super::Lists::take`] numbers it.
    pub noted: u64,
    /// There is something in it, which its client reads.
    pub has_entries: bool,
    /// What it left behind; of tools, other lists and calls change that as well.
    pub taken: Option<Taken>,
}

impl Outcome {
    /// With the server's answer, where that is kept.
    pub fn of(self, kept_as: Option<KeptAs>) -> Option<Basis> {
        let outcome = self;
        kept_as.map(|kept_as| Basis { kept_as, outcome })
    }
}

/// A request for a list.
pub(crate) struct ToList<'l> {
    pub method: &'l str,
    /// Its id as its client spelled it.
    pub id: &'l str,
    pub received_ns: u64,
    pub trace: &'l Trace,
}

impl Asker {
    /// Whether a list would come out as it did, and would change nothing.
    fn stands_on(&self, Basis { kept_as, outcome }: &Basis) -> bool {
        let is_noted = || {
            let under_way = self.under_way.as_ref();
            under_way.is_some_and(|of| of.lists().is_noted(outcome.list, outcome.noted))
        };
        let is_kept = || {
            let link = self.server.pool.running_in(&self.slot);
            link.is_some_and(|link| kept_as.is_kept_by(&link))
        };
        self.server.gate.is_judging_by(&outcome.world)
            && is_kept()
            && is_noted()
            && outcome
                .taken
                .is_none_or(|taken| self.server.would_stay(&self.shown, taken))
    }

    /// Whether a list need not be worked out. It is counted then, as any other; the error is what its client is told
    /// where it is beyond its limits.
    pub fn lists_again(&self, asked: &ToList<'_>, basis: &Basis) -> Option<Result<(), Vec<u8>>> {
        let is_in_use = || {
            let key = Id::from_raw(asked.id).map(Id::key)?;
            Some(self.under_way.as_ref()?.has_id(&key))
        };
        // One whose id is in use is refused where requests are read.
        if !self.stands_on(basis) || is_in_use() != Some(false) {
            return None;
        }
        let facts = self.with_context(|context| describe::control_request(asked.method, context));
        let run = asked.trace.run.clone();
        let origin = self.origin(asked.id, None, asked.received_ns, (run, None));
        let to = self.server.peer();
        let gate = &self.server.gate;
        // What the pass may ask for is known: it is not spent.
        let admitted = gate.admit_control(ControlKind::List, &facts, &origin, &to, ());
        Some(match admitted {
            Ok(_) => {
                if basis.outcome.has_entries {
                    self.label_list();
                }
                Ok(())
            }
            Err(refusal) => Err(refusal::as_error(asked.id, &refusal)),
        })
    }
}
