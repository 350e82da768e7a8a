//! Servers that could not be asked for a client without a session: such a client is told at once, and does not wait for
//! them again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::Caller;
use gate::caller::CALLERS_MAX;

use super::RETRY_MS;
use crate::call::Server;
use crate::federation::Missing;

/// For how long it is known, in milliseconds.
const KNOWN_MS: u64 = 60_000;

/// By server and caller.
#[derive(Default)]
pub(in crate::http) struct Absences(Mutex<All>);

type All = HashMap<(Arc<str>, Arc<str>), Absence>;

struct Absence {
    why: Missing,
    tried_ns: u64,
}

impl Absences {
    fn map(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why this server could not be asked lately; and whether it is time to try again, which is taken for done.
    pub(super) fn of(
        &self,
        server: &Server,
        caller: &Caller,
        now_ns: u64,
    ) -> Option<(Missing, bool)> {
        let mut all = self.map();
        let known = all.get_mut(&key(server, caller))?;
        let is_due = now_ns.saturating_sub(known.tried_ns) >= RETRY_MS * 1_000_000;
        if is_due {
            known.tried_ns = now_ns;
        }
        Some((known.why.clone(), is_due))
    }

    /// It could not be asked. What is too much is not known.
    pub(super) fn add(&self, server: &Server, caller: &Caller, why: Missing, now_ns: u64) {
        let mut all = self.map();
        let is_young =
            |known: &Absence| now_ns.saturating_sub(known.tried_ns) < KNOWN_MS * 1_000_000;
        if all.len() >= CALLERS_MAX {
            all.retain(|_, known| is_young(known));
        }
        if all.len() < CALLERS_MAX {
            let tried_ns = now_ns;
            all.insert(key(server, caller), Absence { why, tried_ns });
        }
    }

    /// It can be asked.
    pub(super) fn forget(&self, server: &Server, caller: &Caller) {
        self.map().remove(&key(server, caller));
    }
}

fn key(server: &Server, caller: &Caller) -> (Arc<str>, Arc<str>) {
    (Arc::clone(&server.name), Arc::clone(&caller.subject))
}
