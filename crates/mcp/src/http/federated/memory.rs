//! The parts of lists that one client was given, for as long as they would come out the same (`call::Basis`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use toolkit::measure::{Measure, Measured};

use super::super::session::Session;
use crate::byte_budget::{ByteBudget, BytePermit};
use crate::call::Basis;
use crate::federation::Part;
use crate::message::method::List;
use crate::upstream::KEPT_MS_MAX;

/// Most bytes of the lists of one client that are remembered.
pub const REMEMBERED_BYTES_MAX: usize = 4 << 20;
/// The same of all clients.
pub const REMEMBERED_BYTES_OF_ALL_MAX: usize = 64 << 20;
/// What a part takes beside its text, in bytes.
const PART_BYTES: usize = 512;

/// Parts that all clients share: the byte budget, and how often parts were remembered or worked out.
#[derive(Debug)]
pub(in crate::http) struct Memories {
    budget: Arc<ByteBudget>,
    remembered: AtomicU64,
    worked_out: AtomicU64,
}

impl Default for Memories {
    fn default() -> Self {
        Self {
            budget: ByteBudget::new(REMEMBERED_BYTES_OF_ALL_MAX),
            remembered: AtomicU64::new(0),
            worked_out: AtomicU64::new(0),
        }
    }
}

impl Memories {
    /// The memory of a further client.
    pub(super) fn of_client(&self) -> Memory {
        Memory {
            parts: Mutex::default(),
            of_client: ByteBudget::new(REMEMBERED_BYTES_MAX),
            of_all: Arc::clone(&self.budget),
        }
    }

    /// Counts parts of a list.
    pub fn count(&self, remembered: usize, worked_out: usize) {
        let count = |of: &AtomicU64, n: usize| {
            of.fetch_add(u64::try_from(n).unwrap_or(u64::MAX), Ordering::Relaxed);
        };
        count(&self.remembered, remembered);
        count(&self.worked_out, worked_out);
    }

    /// What was counted.
    pub fn measures(&self) -> [Measure; 2] {
        let about = "Parts of lists in front of several servers, one for each server, by whether they were remembered or worked out";
        let of = |how, count: &AtomicU64| {
            let count = Measured::Count(count.load(Ordering::Relaxed));
            Measure::new("durward_list_parts", about, &[("how", how)], count)
        };
        [
            of("remembered", &self.remembered),
            of("worked_out", &self.worked_out),
        ]
    }
}

/// What one client was given.
#[derive(Debug)]
pub(super) struct Memory {
    parts: Mutex<HashMap<(List, Arc<str>), Remembered>>,
    of_client: Arc<ByteBudget>,
    of_all: Arc<ByteBudget>,
}

/// One server's part of a list.
#[derive(Debug)]
struct Remembered {
    /// The session that it was made in: what it rests on is counted there.
    session: Weak<Session>,
    basis: Arc<Basis>,
    part: Part,
    since_ns: u64,
    _permits: [BytePermit; 2],
}

impl Memory {
    fn parts(&self) -> MutexGuard<'_, HashMap<(List, Arc<str>), Remembered>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of a session in a list as it was, and what that rests on.
    pub fn of(&self, list: List, session: &Arc<Session>) -> Option<(Arc<Basis>, Part)> {
        let parts = self.parts();
        let known = parts.get(&(list, Arc::clone(&session.server.name)))?;
        let is_of_session = std::ptr::eq(known.session.as_ptr(), Arc::as_ptr(session));
        is_of_session.then(|| (Arc::clone(&known.basis), known.part.clone()))
    }

    /// Remembers the part of a session in a list, if the budget has the bytes; what was known of it is forgotten.
    pub fn keep(&self, list: List, session: &Arc<Session>, basis: Basis, part: &Part, now_ns: u64) {
        let key = (list, Arc::clone(&session.server.name));
        let mut parts = self.parts();
        parts.remove(&key);
        let Some(text) = part.whole() else {
            return;
        };
        let bytes = PART_BYTES + text.len();
        let permits = self.of_client.permit(bytes).zip(self.of_all.permit(bytes));
        if let Some((of_client, of_all)) = permits {
            let remembered = Remembered {
                session: Arc::downgrade(session),
                basis: Arc::new(basis),
                part: part.clone(),
                since_ns: now_ns,
                _permits: [of_client, of_all],
            };
            parts.insert(key, remembered);
        }
    }

    /// Forgets what no server's list is kept for any more.
    pub fn sweep(&self, now_ns: u64) {
        let is_young = |known: &mut Remembered| {
            now_ns.saturating_sub(known.since_ns) < KEPT_MS_MAX * 1_000_000
        };
        self.parts().retain(|_, known| is_young(known));
    }
}
