//! Legacy sessions: opened by `initialize`, bound to their caller, ended by DELETE or by silence.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use gate::journal::Status;
use gate::{Caller, ControlKind, InFlight, Outcome, Ticket};
use tokio::sync::{Notify, watch};
use wire::id::IdKey;
use wire::{Id, Revision};

use super::call::Asker;
use super::server::{Server, Shown};
use super::streams::Streams;
use super::upstream::{Link, Slot};
use crate::ask_client::{self, ID_PREFIX, Said};
use crate::input_required::only_client;
use crate::upstream::Frame;

/// Most requests of a server that its client has not answered.
pub const SERVER_REQUESTS_MAX: usize = 256;

/// Calls by id.
type Calls = HashMap<IdKey, Stage>;

/// How far a call has come.
#[derive(Debug, Clone)]
enum Stage {
    /// It has been read.
    Begun,
    /// It waits for a person; told when the client no longer does.
    Waits(Arc<Notify>),
    /// At which process it is, and under which number.
    Sent(Arc<Link>, u64),
}

impl Stage {
    fn cancel(&self, why: &str) {
        match self {
            Self::Begun => {}
            Self::Waits(cancelled) => cancelled.notify_one(),
            Self::Sent(link, number) => link.cancel(*number, why),
        }
    }
}

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub id: Arc<str>,
    pub server: Arc<Server>,
    pub caller: Caller,
    pub client_id: Option<Arc<str>>,
    pub revision: Option<Revision>,
    /// Whether the client can show its person a form.
    pub elicits: bool,
    pub slot: Arc<Slot>,
    pub streams: Streams,
    /// Made with the first request: many sessions never get beyond being opened.
    shown: OnceLock<Arc<Shown>>,
    /// Calls of the client under way.
    calls: Mutex<Calls>,
    /// Requests of the server under way.
    asked: Mutex<HashMap<IdKey, Ask>>,
    /// Questions of ours to the client's person that are open. As many as calls may wait.
    forms: Mutex<HashMap<IdKey, Open>>,
    used_ns: AtomicU64,
    over: watch::Sender<bool>,
}

/// A question of ours about a call.
#[derive(Debug)]
struct Open {
    /// The question's name.
    name: String,
    only_client: bool,
    /// Told where the client answers without an answer, and nobody else may.
    unanswered: Arc<Notify>,
}

#[derive(Debug)]
struct Ask {
    link: Arc<Link>,
    epoch: u64,
    kind: AskKind,
}

#[derive(Debug)]
enum AskKind {
    /// Being judged.
    Open,
    Ping,
    Judged(InFlight),
}

/// What a session is made of.
pub(super) struct Opening {
    pub id: Arc<str>,
    pub server: Arc<Server>,
    pub caller: Caller,
    pub client_id: Option<Arc<str>>,
    pub revision: Option<Revision>,
    pub elicits: bool,
    pub slot: Arc<Slot>,
}

impl Session {
    pub fn new(opening: Opening, now_ns: u64) -> Self {
        Self {
            id: opening.id,
            server: opening.server,
            caller: opening.caller,
            client_id: opening.client_id,
            revision: opening.revision,
            elicits: opening.elicits,
            slot: opening.slot,
            streams: Streams::default(),
            shown: OnceLock::new(),
            calls: Mutex::default(),
            asked: Mutex::default(),
            forms: Mutex::default(),
            used_ns: AtomicU64::new(now_ns),
            over: watch::Sender::new(false),
        }
    }

    /// This session as the one who asks.
    pub fn asker(self: &Arc<Self>) -> Asker {
        Asker {
            server: Arc::clone(&self.server),
            caller: self.caller.clone(),
            session_id: Arc::clone(&self.id),
            client_id: self.client_id.clone(),
            era: wire::Era::Legacy,
            session: Some(Arc::clone(self)),
            elicits: self.elicits,
            slot: Arc::clone(&self.slot),
            shown: Arc::clone(self.shown.get_or_init(|| self.server.nothing_shown())),
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<IdKey, Ask>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the session is in use.
    pub fn touch(&self, now_ns: u64) {
        self.used_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Whether nobody has used it for so long.
    fn is_forgotten(&self, now_ns: u64, idle_ns: u64) -> bool {
        let used_ns = self.used_ns.load(Ordering::Relaxed);
        now_ns.saturating_sub(used_ns) >= idle_ns
            && self.calls().is_empty()
            && !self.streams.is_read()
    }

    /// Takes an id for a call; none where it is in use.
    pub fn take_id(self: &Arc<Self>, key: IdKey) -> Option<CallGuard> {
        let mut calls = self.calls();
        if calls.contains_key(&key) {
            return None;
        }
        calls.insert(key.clone(), Stage::Begun);
        drop(calls);
        Some(CallGuard {
            session: Arc::clone(self),
            key,
        })
    }

    /// Cancels a call of the client.
    pub fn cancel(&self, key: &IdKey) {
        let stage = self.calls().get(key).cloned();
        if let Some(stage) = stage {
            stage.cancel("the client cancelled");
        }
    }

    /// Takes an id for a request of the server; none where it is in use or there are too many.
    pub fn ask(self: &Arc<Self>, id: &str, link: &Arc<Link>) -> Option<AskGuard> {
        let key = Id::from_raw(id)?.key();
        // The ids of our own questions are nobody else's.
        if matches!(&key, IdKey::Text(text) if text.starts_with(ID_PREFIX)) {
            return None;
        }
        let mut asked = self.asked();
        // What an ended server or session has asked nobody waits for.
        asked.retain(|_, ask| !ask.link.has_ended() && ask.link.epoch() == ask.epoch);
        if asked.len() >= SERVER_REQUESTS_MAX || asked.contains_key(&key) {
            return None;
        }
        let ask = Ask {
            link: Arc::clone(link),
            epoch: link.epoch(),
            kind: AskKind::Open,
        };
        asked.insert(key.clone(), ask);
        let session = Arc::clone(self);
        Some(AskGuard { session, key })
    }

    fn forms(&self) -> MutexGuard<'_, HashMap<IdKey, Open>> {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a question of ours; what is given is told where it stays without an answer.
    pub fn open_form(&self, id: &IdKey, ticket: &Ticket<Frame>) -> Arc<Notify> {
        let unanswered = Arc::new(Notify::new());
        let open = Open {
            name: ticket.id().to_string(),
            only_client: only_client(ticket),
            unanswered: Arc::clone(&unanswered),
        };
        self.forms().insert(id.clone(), open);
        unanswered
    }

    /// Closes a question of ours; `false` where it was answered or closed before.
    pub fn close_form(&self, id: &IdKey) -> bool {
        self.forms().remove(id).is_some()
    }

    /// The client answers a question of ours; `false` where there is none of this id.
    fn answer_form(&self, key: &IdKey, frame: &[u8]) -> bool {
        let Some(open) = self.forms().remove(key) else {
            return false;
        };
        match ask_client::answer(frame, &self.caller.subject, open.only_client) {
            Said::Answer(answer) => {
                // Where another channel was faster, its answer stands.
                drop(self.server.gate.approvals().answer(&open.name, answer));
            }
            Said::Nothing if open.only_client => open.unanswered.notify_one(),
            // Others still may answer.
            Said::Nothing => {}
        }
        true
    }

    /// The client answers a request of the server or of ours; `false` where there is none of this id.
    pub fn answer(&self, key: &IdKey, frame: Vec<u8>) -> bool {
        if self.answer_form(key, &frame) {
            return true;
        }
        let gate = &self.server.gate;
        let Some(Ask { link, kind, .. }) = self.asked().remove(key) else {
            return false;
        };
        match kind {
            AskKind::Open => return false,
            AskKind::Ping => {
                let pass = gate.control(ControlKind::Ping, &link.id, Frame(frame));
                // A server that has ended needs no answer.
                let _ = link.send(pass);
            }
            AskKind::Judged(mut flight) => {
                flight.reply_arrived();
                if let Ok(flight) = link.send(flight.answer(Frame(frame))) {
                    flight.finish(Outcome {
                        status: Status::Success,
                        ..Outcome::default()
                    });
                }
            }
        }
        true
    }

    /// Ready when the session has ended.
    pub fn over(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut over = self.over.subscribe();
        async move {
            // Without a session there is no sender, which is an end as well.
            drop(over.wait_for(|over| *over).await);
        }
    }

    /// Ends the session: streams, calls, and its process where nobody else shares it.
    fn end(&self) {
        self.over.send_replace(true);
        let stages: Vec<Stage> = self.calls().values().cloned().collect();
        for stage in stages {
            stage.cancel("the session has ended");
        }
        self.asked().clear();
        self.streams.close();
        if let Some(shown) = self.shown.get() {
            shown.close();
        }
        self.server.pool.leave(&self.caller.subject, &self.id);
    }
}

/// A call's id, free again when the call has ended.
pub(super) struct CallGuard {
    session: Arc<Session>,
    key: IdKey,
}

impl CallGuard {
    /// The call was sent: this is how to cancel it.
    pub fn sent(&self, link: &Arc<Link>, number: u64) {
        if let Some(call) = self.session.calls().get_mut(&self.key) {
            *call = Stage::Sent(Arc::clone(link), number);
        }
    }

    /// The call waits for a person: this is how to say that its client no longer does.
    pub fn waits(&self, cancelled: &Arc<Notify>) {
        if let Some(call) = self.session.calls().get_mut(&self.key) {
            *call = Stage::Waits(Arc::clone(cancelled));
        }
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.session.calls().remove(&self.key);
    }
}

/// The id of a request of the server, free again unless the request passes.
pub(super) struct AskGuard {
    session: Arc<Session>,
    key: IdKey,
}

impl AskGuard {
    /// It passes as a ping.
    pub fn ping(self) {
        self.set(AskKind::Ping);
    }

    /// It passes as judged.
    pub fn judged(self, flight: InFlight) {
        self.set(AskKind::Judged(flight));
    }

    fn set(&self, kind: AskKind) {
        if let Some(ask) = self.session.asked().get_mut(&self.key) {
            ask.kind = kind;
        }
    }
}

impl Drop for AskGuard {
    fn drop(&mut self) {
        let mut asked = self.session.asked();
        if asked
            .get(&self.key)
            .is_some_and(|ask| matches!(ask.kind, AskKind::Open))
        {
            asked.remove(&self.key);
        }
    }
}

/// All sessions.
#[derive(Debug, Default)]
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
        (*session.caller.subject == *caller && *session.server.name == *server).then_some(session)
    }

    /// Those who share this place.
    pub fn at(&self, slot: &Arc<Slot>) -> Vec<Arc<Session>> {
        let here = |session: &&Arc<Session>| Arc::ptr_eq(&session.slot, slot);
        self.read().values().filter(here).cloned().collect()
    }

    /// Adds one.
    pub fn add(&self, session: Arc<Session>) {
        self.write().insert(Arc::clone(&session.id), session);
    }

    /// Ends one; `false` where it has ended before.
    pub fn end(&self, session: &Session) -> bool {
        let ends = self.write().remove(&session.id).is_some();
        if ends {
            session.end();
        }
        ends
    }

    /// Those that nobody has used for so long.
    pub fn forgotten(&self, now_ns: u64, idle_ms_max: u64) -> Vec<Arc<Session>> {
        let idle_ns = idle_ms_max.saturating_mul(1_000_000);
        let mut all = self.all();
        all.retain(|session| session.is_forgotten(now_ns, idle_ns));
        all
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.read().values().cloned().collect()
    }

    /// Sends a sign of life on all streams.
    pub fn keep_alive(&self) {
        for session in self.read().values() {
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
