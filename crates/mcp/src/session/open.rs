//! What is under way: calls of the client by id, calls of the server by id, batches.

use std::collections::{HashMap, VecDeque};

use gate::InFlight;
use wire::id::IdKey;

use crate::era::Asked;
use crate::method::List;

use super::asking::{Asking, Key, Side};
use super::inputs::Judging;
use super::parked::Lot;

/// Most calls of the client under way at once.
pub const IN_FLIGHT_MAX: usize = 1_024;
/// Most requests of the server under way at once.
pub const SERVER_REQUESTS_MAX: usize = 256;
/// Most ids of ended calls that are remembered, so that a late answer is known for what it is.
const ENDED_MAX: usize = 1_024;

/// A call of the client that its server has not answered.
#[derive(Debug)]
pub struct Open {
    /// The id as the client spelled it.
    pub id: String,
    /// The id that the server knows, where that is another: of a call that its client came back for.
    pub sent_id: Option<String>,
    /// What to do with the answer.
    pub kind: OpenKind,
    /// The batch that the answer belongs to.
    pub batch: Option<u64>,
    /// When it is given up, on the gate's monotonic clock.
    pub deadline_ns: u64,
}

/// What to do with an answer.
#[derive(Debug)]
pub enum OpenKind {
    /// Pass it on and settle the operation.
    Call(InFlight),
    /// Filter it; `first` where it was asked for without a cursor.
    List {
        /// Which list.
        list: List,
        /// Whether it is the beginning.
        first: bool,
    },
    /// Learn the revision from it, screen its instructions, then pass it on.
    Initialize,
    /// Screen its instructions, then pass it on: `server/discover`.
    Discover,
    /// Pass it on.
    Plain,
}

impl OpenKind {
    /// What was asked, as far as the eras are concerned.
    pub fn asked(&self) -> Asked {
        match self {
            Self::Initialize => Asked::Initialize,
            Self::Discover => Asked::Discover,
            Self::Call(_) | Self::List { .. } | Self::Plain => Asked::Other,
        }
    }
}

/// A batch whose answers are being collected.
#[derive(Debug, Default)]
pub struct Batch {
    /// Answers that are still to come.
    pub missing: usize,
    /// Answers so far.
    pub parts: Vec<Vec<u8>>,
}

/// Everything under way.
#[derive(Debug, Default)]
pub struct Table {
    calls: HashMap<IdKey, Open>,
    /// Ids under which a client came back, and those that its calls go on under.
    came_back_as: HashMap<IdKey, IdKey>,
    ended: VecDeque<IdKey>,
    /// Requests of the server that the client has not answered.
    pub server_requests: HashMap<IdKey, InFlight>,
    /// Pings of the server that the client has not answered.
    pub server_pings: VecDeque<IdKey>,
    /// Requests of either side that wait for a person.
    pub asking: HashMap<Key, Asking>,
    /// Calls whose results ask something of the client, while that is judged, by a number of ours.
    pub judging: HashMap<u64, Judging>,
    /// Calls that wait for their Modern client to come back.
    pub parked: Lot,
    /// Our own open questions to the client's person, and what they are about.
    pub elicitations: HashMap<IdKey, Key>,
    /// Batches being collected.
    pub batches: HashMap<u64, Batch>,
}

impl Table {
    /// Whether this id is in use.
    pub fn has(&self, key: &IdKey) -> bool {
        self.calls.contains_key(key)
            || (!self.asking.is_empty() && self.asking.contains_key(&(Side::Client, key.clone())))
            || self.came_back_as.contains_key(key)
            || self.parked.values().any(|parked| parked.is(key))
            || self.judging.values().any(|judging| judging.is(key))
    }

    /// The id that a call goes on under: another than its client's where that came back for it.
    pub fn sent_as(&self, key: IdKey) -> IdKey {
        self.came_back_as.get(&key).cloned().unwrap_or(key)
    }

    /// Notes that a client came back for a call.
    pub fn come_back(&mut self, key: IdKey, sent_as: IdKey) {
        self.came_back_as.insert(key, sent_as);
    }

    /// A call has ended, so that nobody needs its other id.
    pub fn forget_other_id(&mut self, key: &IdKey) {
        if !self.came_back_as.is_empty() {
            self.came_back_as.retain(|_, sent_as| sent_as != key);
        }
    }

    /// Whether no further call may be under way.
    pub fn is_full(&self) -> bool {
        self.calls.len() + self.asking.len() + self.parked.len() + self.judging.len()
            >= IN_FLIGHT_MAX
    }

    /// Whether no call is under way.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.asking.is_empty()
    }

    /// Notes a call that was sent.
    pub fn insert(&mut self, key: IdKey, open: Open) {
        self.calls.insert(key, open);
    }

    /// Takes a call that has ended.
    pub fn take(&mut self, key: &IdKey) -> Option<Open> {
        let open = self.calls.remove(key)?;
        self.forget_other_id(key);
        self.ended.push_back(key.clone());
        if self.ended.len() > ENDED_MAX {
            self.ended.pop_front();
        }
        Some(open)
    }

    /// Whether a call of this id has ended before.
    pub fn has_ended(&self, key: &IdKey) -> bool {
        self.ended.contains(key)
    }

    /// Takes every call whose time is over.
    pub fn take_overdue(&mut self, now_ns: u64) -> Vec<Open> {
        let keys: Vec<IdKey> = self
            .calls
            .iter()
            .filter(|(_, o)| o.deadline_ns <= now_ns)
            .map(|(k, _)| k.clone())
            .collect();
        keys.iter().filter_map(|key| self.take(key)).collect()
    }

    /// Takes every call.
    pub fn take_all(&mut self) -> Vec<Open> {
        self.calls.drain().map(|(_, open)| open).collect()
    }
}
