//! One client in front of all servers: a session with each of them, under one id and on the same streams.
//!
//! A message is taken apart first: the name that it reaches for says which server it is for, and takes that
//! server's own form. From there on it is a message of that server's session, judged, recorded and sent like any
//! other; nothing here judges or sends. Lists and the handshake are asked of each server, and put together. Requests
//! of the Modern era are taken apart the same way, and belong to no session (`alone`).

mod absences;
mod alone;
mod listening;
mod lists;
mod memory;
mod messages;
mod open;
mod post;
mod search;
mod stdio;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::Caller;
use gate::journal::EndReason;
use share::SharePermit;
use wire::Revision;

use super::Face;
use super::legacy::Introduction;
use super::session::Session;
use super::streams::Streams;
use crate::call::Server;
use crate::federation::{Missing, Spelling};
use memory::Memory;

pub(super) use absences::Absences;
pub(super) use alone::Unfit;
pub(super) use listening::Listening;
pub(super) use memory::Memories;

pub use stdio::StreamsOptions;

/// How soon a server that could not be opened is tried again, in milliseconds.
const RETRY_MS: u64 = 5_000;

/// One client's session with all servers.
pub(super) struct Federation {
    pub id: Arc<str>,
    pub caller: Caller,
    /// None over standard streams, where there is one client.
    _permit: Option<SharePermit>,
    pub streams: Arc<Streams>,
    /// The client's `initialize`, and what it says of itself there.
    initialize: Vec<u8>,
    client: Introduction,
    pub revision: Revision,
    /// Names of the one server stay as they are.
    is_bare: bool,
    missing: Mutex<BTreeMap<Arc<str>, Absent>>,
    /// `notifications/initialized`, once the client has sent it.
    initialized: Mutex<Option<Vec<u8>>>,
    /// The log level that the client has asked for, as its request.
    level: Mutex<Option<Vec<u8>>>,
    /// The client has the answer to its `initialize`.
    is_open: AtomicBool,
    /// The lists that it was given.
    memory: Memory,
    used_ns: AtomicU64,
}

/// A server without a session.
struct Absent {
    why: Missing,
    tried_ns: u64,
    is_being_tried: bool,
}

impl Federation {
    fn missing(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Absent>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn initialized(&self) -> Option<Vec<u8>> {
        let initialized = self.initialized.lock();
        initialized.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn level(&self) -> Option<Vec<u8>> {
        let level = self.level.lock();
        level.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that it is in use.
    fn touch(&self, now_ns: u64) {
        self.used_ns.store(now_ns, Ordering::Relaxed);
    }

    fn spelling(&self, server: &Server) -> Option<Spelling> {
        (!self.is_bare).then(|| Spelling::of(&server.name))
    }
}

/// All of them, by id.
#[derive(Default)]
pub(super) struct Federations(Mutex<HashMap<Arc<str>, Arc<Federation>>>);

impl Federations {
    fn all(&self) -> Vec<Arc<Federation>> {
        self.map().values().cloned().collect()
    }

    fn map(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Federation>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a sign of life on all streams.
    pub fn keep_alive(&self) {
        for federation in self.map().values() {
            federation.streams.keep_alive();
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.map().len()
    }
}

impl Face {
    /// The servers that this caller may reach, in the order of their names.
    fn servers_of(&self, caller: &Caller) -> Vec<Arc<Server>> {
        let mut all = self.all_servers();
        all.retain(|server| caller.may_reach(&server.name));
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The sessions of a federation, in the order of their servers' names.
    fn members(&self, of: &Federation) -> Vec<Arc<Session>> {
        let servers = self.servers_of(&of.caller);
        let member = |server| self.member_at(of, server);
        servers.iter().filter_map(member).collect()
    }

    /// The session of a federation with this server.
    fn member_at(&self, of: &Federation, server: &Arc<Server>) -> Option<Arc<Session>> {
        let session = self.sessions.member(&of.id, &server.name)?;
        // A server of this name may have come in the place of another.
        Arc::ptr_eq(&session.server, server).then_some(session)
    }

    /// Ends one, with its session at each server.
    fn end_federation(&self, federation: &Federation, why: EndReason) {
        if self.federations.map().remove(&federation.id).is_none() {
            return;
        }
        for session in self.sessions.all() {
            if session.is_member() && session.id == federation.id {
                self.end(&session, why);
            }
        }
        federation.streams.close();
    }

    /// Ends those of this caller, or all of them.
    pub(super) fn end_federations(&self, caller: Option<&str>, why: EndReason) {
        for federation in self.federations.all() {
            if caller.is_none_or(|subject| *federation.caller.subject == *subject) {
                self.end_federation(&federation, why);
            }
        }
    }

    /// Ends those that nobody has used for so long, and forgets old lists of the others.
    pub(super) fn forget_federations(&self, now_ns: u64) {
        let idle_ns = self.options.session_idle_ms_max.saturating_mul(1_000_000);
        for federation in self.federations.all() {
            federation.memory.sweep(now_ns);
            let used_ns = federation.used_ns.load(Ordering::Relaxed);
            let is_idle = now_ns.saturating_sub(used_ns) >= idle_ns
                && !federation.streams.is_read()
                && self
                    .members(&federation)
                    .iter()
                    .all(|of| of.under_way.count() == 0);
            if is_idle {
                self.end_federation(&federation, EndReason::Timeout);
            }
        }
    }
}
