//! Legacy sessions: opened by `initialize`, bound to their caller, ended by DELETE or by silence.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use gate::Caller;
use share::SharePermit;
use tokio::sync::watch;
use wire::{Era, Revision};

use super::streams::{NEWS, Streams};
use crate::call::{Asker, Client, Lists, Lot, Server, Shown, UnderWay, Work};
use crate::federation::{Abilities, Spelling};
use crate::message::request;
use crate::notes::{Noted, Notes};
use crate::reading_pool::ReadingPool;
use crate::upstream::Slot;

/// Most entries of one list that are remembered of one session, to tell its client of changes. Of a
/// longer list any reload may change something.
const LISTED_MAX: usize = 512;

/// A session.
pub(super) struct Session {
    pub id: Arc<str>,
    pub server: Arc<Server>,
    pub caller: Caller,
    client_id: Option<Arc<str>>,
    /// Whether the client can show its person a form.
    elicits: bool,
    pub slot: Arc<Slot>,
    _permit: Option<SharePermit>,
    pub streams: Arc<Streams>,
    /// What it can do, for a client of several servers.
    pub abilities: Abilities,
    /// Of a session that is one of several of its client: how names are spelled.
    member: Option<Member>,
    pub under_way: Arc<UnderWay>,
    lot: Arc<Lot>,
    reading: Arc<ReadingPool>,
    notes: Arc<Mutex<Notes>>,
    /// Made with the first request: many sessions never get beyond being opened.
    shown: OnceLock<Arc<Shown>>,
    used_ns: AtomicU64,
    over: watch::Sender<bool>,
}

/// What makes a session one of several of its client.
pub(super) struct Member {
    /// Those that they share.
    pub streams: Arc<Streams>,
    /// How names are spelled, where they are not left as they are.
    pub spelling: Option<Spelling>,
}

/// What the session with one of several servers is found by. No id contains the separator.
fn member_key(id: &str, server: &str) -> String {
    format!("{id}/{server}")
}

/// What a session is made of.
pub(super) struct Opening<'o> {
    pub id: Arc<str>,
    pub server: Arc<Server>,
    pub caller: Caller,
    pub client_id: Option<Arc<str>>,
    pub elicits: bool,
    /// What the server has answered to `initialize`.
    pub result: &'o str,
    pub slot: Arc<Slot>,
    /// Of a session that is its client's only one.
    pub permit: Option<SharePermit>,
    pub member: Option<Member>,
    pub lot: Arc<Lot>,
    pub reading: Arc<ReadingPool>,
    pub notes: Arc<Mutex<Notes>>,
}

impl Session {
    pub fn new(opening: Opening<'_>, now_ns: u64) -> Self {
        let mut lists = Lists::new(opening.server.gate.world(), LISTED_MAX);
        lists.learn_capabilities(opening.result);
        let revision = request::version_of(opening.result);
        Self {
            id: opening.id,
            server: opening.server,
            caller: opening.caller,
            client_id: opening.client_id,
            elicits: opening.elicits,
            slot: opening.slot,
            _permit: opening.permit,
            streams: match &opening.member {
                Some(member) => Arc::clone(&member.streams),
                None => Arc::default(),
            },
            abilities: match &opening.member {
                Some(_) => Abilities::of(opening.result),
                None => Abilities::default(),
            },
            member: opening.member,
            under_way: Arc::new(UnderWay::new(lists, revision)),
            lot: opening.lot,
            reading: opening.reading,
            notes: opening.notes,
            shown: OnceLock::new(),
            used_ns: AtomicU64::new(now_ns),
            over: watch::Sender::new(false),
        }
    }

    /// What it is found by.
    fn key(&self) -> Arc<str> {
        match self.member {
            Some(_) => member_key(&self.id, &self.server.name).into(),
            None => Arc::clone(&self.id),
        }
    }

    /// Whether it is one of several of its client.
    pub fn is_member(&self) -> bool {
        self.member.is_some()
    }

    /// How its server's names are spelled, where they are not left as they are.
    pub fn spelling(&self) -> Option<&Spelling> {
        self.member.as_ref()?.spelling.as_ref()
    }

    /// A message as its client is told it.
    pub fn told(&self, frame: Vec<u8>) -> Vec<u8> {
        match self.spelling() {
            Some(spelling) => spelling.of_server(frame),
            None => frame,
        }
    }

    /// The revision that was agreed on.
    pub fn revision(&self) -> Option<Revision> {
        self.under_way.revision()
    }

    /// This session as the one who asks.
    pub fn asker(self: &Arc<Self>) -> Asker {
        Asker {
            server: Arc::clone(&self.server),
            caller: self.caller.clone(),
            session_id: Arc::clone(&self.id),
            client_id: self.client_id.clone(),
            era: Some(Era::Legacy),
            elicits: self.elicits,
            slot: Arc::clone(&self.slot),
            shown: Arc::clone(self.shown.get_or_init(|| self.server.nothing_shown())),
            under_way: Some(Arc::clone(&self.under_way)),
            lot: Arc::clone(&self.lot),
            client: Arc::clone(self) as _,
            recalls: self.is_member(),
        }
    }

    /// After a reload: tells the client which lists it had better ask for again.
    pub fn tell_of_changed_lists(self: &Arc<Self>) {
        if self.shown.get().is_some() {
            for frame in self.asker().changed_lists() {
                self.post(frame);
            }
        }
    }

    /// Notes that the session is in use.
    pub fn touch(&self, now_ns: u64) {
        self.used_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Whether nobody has used it for so long.
    fn is_forgotten(&self, now_ns: u64, idle_ns: u64) -> bool {
        let used_ns = self.used_ns.load(Ordering::Relaxed);
        now_ns.saturating_sub(used_ns) >= idle_ns
            && self.under_way.count() == 0
            && !self.streams.is_read()
    }

    /// Ends the session: streams, calls, and its process where nobody else shares it.
    fn end(&self) {
        self.over.send_replace(true);
        self.under_way.end();
        if !self.is_member() {
            self.streams.close();
        }
        if let Some(shown) = self.shown.get() {
            shown.close();
        }
        self.slot.left_by(&self.id);
        self.server.pool.leave(&self.caller.subject, &self.id);
    }
}

impl Client for Session {
    fn tell(&self, frame: Vec<u8>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let frame = self.told(frame);
        Box::pin(async move { self.streams.emit(NEWS, &frame).await })
    }

    fn post(&self, frame: Vec<u8>) {
        self.streams.post(NEWS, &self.told(frame));
    }

    fn beside(&self, work: Work) {
        tokio::spawn(work);
    }

    fn gone(&self) -> Work {
        let mut over = self.over.subscribe();
        Box::pin(async move {
            // Without a session there is no sender, which is an end as well.
            drop(over.wait_for(|over| *over).await);
        })
    }

    fn told(&self, frame: Vec<u8>) -> Vec<u8> {
        Self::told(self, frame)
    }

    fn is_over_http(&self) -> bool {
        true
    }

    fn reading_pool(&self) -> Option<&ReadingPool> {
        Some(&self.reading)
    }

    fn note(&self, noted: Noted<'_>) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(noted);
    }
}

/// All sessions.
#[derive(Default)]
pub(super) struct Sessions(RwLock<HashMap<Arc<str>, Arc<Session>>>);

impl Sessions {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.read().len()
    }

    /// A caller's session with a server. Of another caller's or server's it is not even said that
    /// it exists.
    pub fn find(&self, id: &str, caller: &str, server: &str) -> Option<Arc<Session>> {
        let session = self.read().get(id).cloned()?;
        if session.is_member() {
            return None;
        }
        (*session.caller.subject == *caller && *session.server.name == *server).then_some(session)
    }

    /// The session with a server that is one of several of a client.
    pub fn member(&self, id: &str, server: &str) -> Option<Arc<Session>> {
        self.read().get(&*member_key(id, server)).cloned()
    }

    /// Those who share this place.
    pub fn at(&self, slot: &Arc<Slot>) -> Vec<Arc<Session>> {
        let here = |session: &&Arc<Session>| Arc::ptr_eq(&session.slot, slot);
        self.read().values().filter(here).cloned().collect()
    }

    /// Adds one.
    pub fn add(&self, session: Arc<Session>) {
        self.write().insert(session.key(), session);
    }

    /// Ends one; `false` where it has ended before.
    pub fn end(&self, session: &Session) -> bool {
        let ends = self.write().remove(&session.key()).is_some();
        if ends {
            session.end();
        }
        ends
    }

    /// Those that nobody has used for so long.
    pub fn forgotten(&self, now_ns: u64, idle_ms_max: u64) -> Vec<Arc<Session>> {
        let idle_ns = idle_ms_max.saturating_mul(1_000_000);
        let mut all = self.all();
        // Those of one client among several servers end together.
        all.retain(|session| !session.is_member() && session.is_forgotten(now_ns, idle_ns));
        all
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.read().values().cloned().collect()
    }

    /// Sends a sign of life on all streams.
    pub fn keep_alive(&self) {
        for session in self.read().values().filter(|of| !of.is_member()) {
            session.streams.keep_alive();
        }
    }

    /// Ends the streams that no request waits on.
    pub fn quiet(&self) {
        for session in self.read().values() {
            session.streams.quiet();
        }
    }
}
