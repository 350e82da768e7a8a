//! Links to one server: opened when first needed, shared as configured, opened again when they end.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gate::{Caller, ControlKind, Gate, PeerId, Transport};
use share::SharePermit;
use toolkit::breaker::{Breaker, Settings};
use toolkit::mcp::Builtin;
use toolkit::server::SessionRef;
use wire::{Era, Revision};

use super::ServerCommand;
use super::handshakes::HandshakeCache;
use super::kept::KEPT_BYTES_OF_SERVER_MAX;
use super::link::{Link, Making, Naming};
use super::process_limit::ProcessLimit;
use super::slot::{HANDSHAKE_WAIT_MS, Hello, Slot, ask};
use super::verdict;
use super::way::builtin::Inside;
use super::way::http::{HttpUpstream, Remote};
use super::way::{Driver, child};

use crate::byte_budget::ByteBudget;
use crate::message::frames::{Failure, UpstreamFault};
use crate::message::reply::Reply;
use crate::message::request;
use crate::notes::Note;

/// Most processes of one server, unless it is configured otherwise.
pub const CHILDREN_MAX: usize = 32;
/// Most sessions with one server over HTTP.
pub const SESSIONS_MAX: usize = 10_000;

/// How long the calls of a built-in server may take to be settled at the end, in milliseconds.
const SETTLE_WAIT_MS_MAX: u64 = 2_000;
/// How long a process must have had nothing to do before it is given up for another, in milliseconds.
const GIVEN_UP_IDLE_MS_MIN: u64 = 1_000;

/// How a server is started or reached.
#[derive(Clone)]
pub enum Means {
    /// As a process of ours.
    Command(Box<ServerCommand>),
    /// Over HTTP.
    Http(Arc<HttpUpstream>),
    /// In this process.
    Builtin(Arc<Builtin>),
}

impl fmt::Debug for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => f.debug_tuple("Command").field(command).finish(),
            Self::Http(upstream) => f.debug_tuple("Http").field(upstream).finish(),
            Self::Builtin(builtin) => f.debug_tuple("Builtin").field(builtin.id()).finish(),
        }
    }
}

impl Means {
    /// Most processes or sessions.
    fn processes_max(&self, processes_max: usize) -> usize {
        match self {
            Self::Command(_) => processes_max,
            Self::Http(_) | Self::Builtin(_) => SESSIONS_MAX,
        }
    }

    fn is_process(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    /// What records say of it.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self {
            Self::Command(_) => Transport::Stdio,
            Self::Http(_) => Transport::Http,
            Self::Builtin(_) => Transport::Builtin,
        }
    }
}

/// Who shares a server's process, or the session with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Share {
    /// One per session; for clients without sessions, one per caller.
    #[default]
    Session,
    /// One per caller.
    Caller,
    /// There is one.
    All,
}

/// Whose process it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    modern: bool,
    caller: Option<Arc<str>>,
    session: Option<Arc<str>>,
}

/// The processes of one server.
#[derive(Debug)]
pub struct Pool {
    name: Arc<str>,
    means: Means,
    share: Share,
    gate: Arc<Gate>,
    /// Spares the server where it fails.
    breaker: Arc<Breaker>,
    processes: ProcessLimit,
    /// Bytes of the lists that its links keep.
    kept: Arc<ByteBudget>,
    /// Answers to `initialize`, for sessions with a process each.
    handshakes: HandshakeCache,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
    speaks_modern: AtomicU8,
    /// Nothing is started any more.
    closed: AtomicBool,
}

/// What is known of whether a server speaks the Modern era.
const UNKNOWN: u8 = 0;
const SPEAKS: u8 = 1;
const SPEAKS_NOT: u8 = 2;

impl Pool {
    /// The processes of a server, none of which runs yet.
    #[must_use]
    pub fn new(
        name: Arc<str>,
        means: Means,
        share: Share,
        processes_max: usize,
        gate: Arc<Gate>,
        breaker: Settings,
    ) -> Self {
        let share = match means {
            // There is no process to share, and its sessions keep callers apart.
            Means::Builtin(_) => Share::Session,
            Means::Command(_) | Means::Http(_) => share,
        };
        let processes = ProcessLimit::new(means.processes_max(processes_max));
        Self {
            name,
            share,
            gate,
            breaker: Breaker::new(breaker),
            processes,
            kept: ByteBudget::new(KEPT_BYTES_OF_SERVER_MAX),
            means,
            handshakes: HandshakeCache::default(),
            slots: Mutex::default(),
            speaks_modern: AtomicU8::new(UNKNOWN),
            closed: AtomicBool::new(false),
        }
    }

    /// How it is started or reached.
    #[must_use]
    pub fn means(&self) -> &Means {
        &self.means
    }

    /// What spares it where it fails.
    #[must_use]
    pub fn breaker(&self) -> &Arc<Breaker> {
        &self.breaker
    }

    fn worth_trying(&self) -> Result<(), Failure> {
        let worth = self.breaker.worth_trying(self.gate.about_ns());
        worth.map_err(verdict::spared)
    }

    /// How many processes run, or sessions are open.
    #[must_use]
    pub fn running(&self) -> usize {
        self.processes.held()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Key, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, era: Era, caller: &Arc<str>, session: Option<&Arc<str>>) -> Key {
        let modern = era == Era::Modern;
        let (caller, session) = match self.share {
            Share::Session => (Some(Arc::clone(caller)), session.cloned()),
            Share::Caller => (Some(Arc::clone(caller)), None),
            Share::All => (None, None),
        };
        Key {
            modern,
            caller,
            session,
        }
    }

    /// The place of this caller's (and session's) process.
    #[must_use]
    pub fn slot(&self, era: Era, caller: &Caller, session: Option<&Arc<str>>) -> Arc<Slot> {
        let key = self.key(era, &caller.subject, session);
        let mut slots = self.slots();
        let slot = slots.entry(key).or_insert_with_key(|key| {
            let naming = match key.session {
                Some(_) => Naming::Exclusive,
                None => Naming::Shared,
            };
            let owner = SessionRef {
                id: key.session.clone().unwrap_or_default(),
                caller: Arc::clone(&caller.subject),
                groups: Arc::default(),
                shares: caller.has_to_share(),
            };
            let has_to_share = key.caller.is_some() && caller.has_to_share();
            let mut slot = Slot::new(naming, key.modern, owner, self.means.is_process());
            slot.has_to_share = has_to_share;
            Arc::new(slot)
        });
        slot.used_ns.store(self.gate.about_ns(), Ordering::Relaxed);
        Arc::clone(slot)
    }

    /// The place of this caller's process for requests without a session, where there was one before.
    pub(super) fn known_slot(&self, era: Era, caller: &Caller) -> Option<Arc<Slot>> {
        let key = self.key(era, &caller.subject, None);
        self.slots().get(&key).cloned()
    }

    /// Whether it is known that the server does not speak the Modern era.
    pub(super) fn speaks_only_legacy(&self) -> bool {
        self.speaks_modern.load(Ordering::Acquire) == SPEAKS_NOT
    }

    /// A session is over: so is its process, where nobody else shares it.
    pub fn leave(&self, caller: &Arc<str>, session: &Arc<str>) {
        if self.share == Share::Session {
            let key = self.key(Era::Legacy, caller, Some(session));
            let slot = self.slots().remove(&key);
            if let Some(slot) = slot {
                slot.end();
            }
        }
    }

    /// Ends what only this revoked caller uses between requests.
    pub fn end_caller(&self, caller: &str) {
        let of_caller = |key: &Key| key.caller.as_deref() == Some(caller);
        let ended: Vec<Arc<Slot>> = {
            let mut slots = self.slots();
            let ended = slots.extract_if(|key, _| of_caller(key));
            ended.map(|(_, slot)| slot).collect()
        };
        for slot in ended {
            slot.end();
        }
    }

    /// Ends shared processes and sessions that nobody has used for so long; gives whether a call is under way.
    pub fn sweep(&self, idle_ms_max: u64) -> bool {
        let mut is_busy = false;
        let now_ns = self.gate.mono_ns();
        let idle_ns = idle_ms_max.saturating_mul(1_000_000);
        if let Means::Http(upstream) = &self.means {
            upstream.reap();
        }
        self.slots().retain(|key, slot| {
            let used_ns = slot.used_ns.load(Ordering::Relaxed);
            let link = slot.current();
            if let (Some(link), false) = (&link, self.means.is_process()) {
                // A process has a task that does.
                link.look_after();
            }
            let busy = link.is_some_and(|link| !link.is_idle());
            is_busy |= busy;
            if key.session.is_some() || busy || now_ns.saturating_sub(used_ns) < idle_ns {
                return true;
            }
            if key.modern {
                slot.end();
            } else if let Some(link) = slot.take() {
                link.stop();
            }
            // A Legacy slot remembers how its clients opened it.
            !key.modern
        });
        is_busy
    }

    /// Cancels all that is under way.
    pub fn cancel_all(&self) {
        let slots: Vec<Arc<Slot>> = self.slots().values().cloned().collect();
        for link in slots.iter().filter_map(|slot| slot.current()) {
            link.cancel_all();
        }
    }

    /// Ends all processes and waits for their end.
    pub async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let slots: Vec<Arc<Slot>> = self.slots().drain().map(|(_, slot)| slot).collect();
        for slot in slots {
            slot.end();
        }
        let ended = self.processes.all_free();
        if let Means::Builtin(builtin) = &self.means {
            let wait = Duration::from_millis(SETTLE_WAIT_MS_MAX);
            drop(tokio::time::timeout(wait, ended).await);
            builtin.end();
        } else {
            ended.await;
        }
    }

    /// The running process of a slot, where there is one.
    #[must_use]
    pub fn running_in(&self, slot: &Slot) -> Option<Arc<Link>> {
        slot.used_ns.store(self.gate.about_ns(), Ordering::Relaxed);
        slot.current()
    }

    /// The running process of a slot, started where there is none.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn link(&self, slot: &Arc<Slot>) -> Result<Arc<Link>, Failure> {
        if let Some(link) = self.running_in(slot) {
            return Ok(link);
        }
        if slot.naming == Naming::AsSpelled {
            return Err(UpstreamFault::Died.into());
        }
        if slot.modern && self.speaks_only_legacy() {
            return Err(UpstreamFault::EraMismatch.into());
        }
        let _starting = slot.starting.lock().await;
        if let Some(link) = slot.current() {
            return Ok(link);
        }
        self.worth_trying()?;
        let link = self.start(slot).await?;
        if slot.modern {
            self.probe(&link).await?;
            link.agreed_on(Some(Revision::V2026_07_28));
        } else {
            slot.greet(&link).await?;
        }
        slot.set(&link);
        Ok(link.keep())
    }

    /// The answer to a client's `initialize`: the server's own to the first, the same to those who
    /// share its process, and to sessions of clients that offer the same: such a session starts its process at its first
    /// call. `Err` where the server's answer is an error: that answer, to be passed on.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn open(
        &self,
        slot: &Arc<Slot>,
        initialize: Vec<u8>,
    ) -> Result<Result<String, Reply>, Failure> {
        let _starting = slot.starting.lock().await;
        let known = slot.hello().result.clone();
        if let (Some(result), Some(_)) = (known, slot.current()) {
            return Ok(Ok(result));
        }
        let is_of_session = slot.naming == Naming::Exclusive && self.means.is_process();
        let handshake = is_of_session.then(|| self.handshakes.of_client(&initialize));
        let handshake = handshake.flatten();
        let mut handshake = match &handshake {
            Some(handshake) => {
                let wait = Duration::from_millis(HANDSHAKE_WAIT_MS);
                let lock = tokio::time::timeout(wait, handshake.lock()).await;
                Some(lock.map_err(|_| UpstreamFault::Timeout)?)
            }
            None => None,
        };
        handshake.take_if(|handshake| handshake.names_client());
        let shared = handshake.as_ref().and_then(|handshake| handshake.result());
        if let Some(result) = shared.map(str::to_owned) {
            *slot.hello() = Hello::of(initialize, &result);
            return Ok(Ok(result));
        }
        self.worth_trying()?;
        let link = self.start(slot).await?;
        let reply = ask(&link, ControlKind::Handshake, initialize.clone()).await?;
        if reply.is_error {
            return Ok(Err(reply));
        }
        let result = reply.payload().to_owned();
        link.agreed_on(request::version_of(&result));
        link.opened(&result);
        *slot.hello() = Hello::of(initialize.clone(), &result);
        slot.set(&link);
        let link = link.keep();
        if let Some(handshake) = &mut handshake {
            handshake.keep(&link, &initialize, &result);
        }
        Ok(Ok(result))
    }

    async fn start(&self, slot: &Slot) -> Result<Tentative, UpstreamFault> {
        let holder = slot.has_to_share.then_some(&slot.owner.caller);
        let make_room = |caller: Option<&Arc<str>>| self.give_up_idle(caller);
        let permit = self.processes.acquire(holder, make_room).await;
        let permit = permit.ok_or(UpstreamFault::NoPlace)?;
        if self.closed.load(Ordering::Acquire) {
            return Err(UpstreamFault::Died);
        }
        let (link, driver) = self
            .make(slot.naming, &slot.owner, "".into(), permit)
            .map_err(|error| {
                tracing::error!(server = %self.name, "cannot start the server: {error}");
                UpstreamFault::Died
            })?;
        if let Some(driver) = driver {
            tokio::spawn(driver.run());
        }
        Ok(Tentative { link, kept: false })
    }

    fn make(
        &self,
        naming: Naming,
        owner: &SessionRef,
        session_id: Arc<str>,
        permit: SharePermit,
    ) -> io::Result<(Arc<Link>, Option<Driver>)> {
        let making = |peer| Making {
            name: Arc::clone(&self.name),
            gate: Arc::clone(&self.gate),
            naming,
            peer,
            breaker: Arc::clone(&self.breaker),
            notes: Arc::default(),
            kept_of_server: Arc::clone(&self.kept),
            session_id,
        };
        let id = PeerId::server(Arc::clone(&self.name));
        match &self.means {
            Means::Command(command) => {
                let (peer, child) = child::start(command, id)?;
                let link = Arc::new(Link::new(making(Arc::clone(&peer) as _)));
                let driver = Driver::new(peer, child, Arc::clone(&link), permit);
                Ok((link, Some(driver)))
            }
            Means::Http(upstream) => {
                let peer = Remote::new(id, upstream, &self.gate, permit);
                Ok((Arc::new(Link::new(making(Arc::new(peer)))), None))
            }
            Means::Builtin(builtin) => {
                let peer = Inside::new(builtin, owner.clone(), permit);
                Ok((Arc::new(Link::new(making(Arc::new(peer)))), None))
            }
        }
    }

    /// The one link of an edge with a single client, which spells its ids itself; it is not opened
    /// again when it ends. A child's driver is for the edge to run.
    ///
    /// # Errors
    /// Where the process cannot be started.
    pub(crate) fn sole(&self, owner: SessionRef) -> io::Result<(Arc<Slot>, Option<Driver>)> {
        let permit = self.processes.try_acquire();
        let permit = permit.ok_or_else(|| io::Error::other("as many processes run as may"))?;
        let session_id = Arc::clone(&owner.id);
        let (link, driver) = self.make(Naming::AsSpelled, &owner, session_id, permit)?;
        let slot = Slot::new(Naming::AsSpelled, false, owner, self.means.is_process());
        slot.set(&link);
        Ok((Arc::new(slot), driver))
    }

    /// Ends the process (of this caller, if it is one's) that has had nothing to do for the longest time; `false`
    /// where there is none. Its session remains: its next call starts the process again.
    fn give_up_idle(&self, of: Option<&Arc<str>>) -> bool {
        if !matches!(self.means, Means::Command(_)) {
            return false;
        }
        let now_ns = self.gate.mono_ns();
        let idle_ns = GIVEN_UP_IDLE_MS_MIN.saturating_mul(1_000_000);
        let slots = self.slots();
        let theirs = |slot: &&Arc<Slot>| of.is_none_or(|caller| slot.owner.caller == *caller);
        let idle = slots.values().filter(theirs).filter_map(|slot| {
            let used_ns = slot.used_ns.load(Ordering::Relaxed);
            let is_idle = slot.current()?.is_idle() && now_ns.saturating_sub(used_ns) >= idle_ns;
            is_idle.then_some((used_ns, slot))
        });
        let longest = idle.min_by_key(|(used_ns, _)| *used_ns);
        let Some(link) = longest.and_then(|(_, slot)| slot.take()) else {
            return false;
        };
        link.note(Note::ServerGivenUp.into());
        link.stop();
        true
    }

    /// Learns once whether the server speaks the Modern era. A server that does not answer at all may
    /// only be slow: it is asked again the next time.
    async fn probe(&self, link: &Arc<Link>) -> Result<(), Failure> {
        if self.speaks_modern.load(Ordering::Acquire) == SPEAKS {
            return Ok(());
        }
        let known = match ask(link, ControlKind::Handshake, PROBE.to_vec()).await {
            Ok(reply) if reply.is_error => SPEAKS_NOT,
            Ok(_) => SPEAKS,
            Err(failure) if failure.fault == UpstreamFault::Timeout => UNKNOWN,
            Err(failure) => return Err(failure),
        };
        // Over HTTP it may be another server the next time.
        if known == SPEAKS || !matches!(self.means, Means::Http(_)) {
            self.speaks_modern.store(known, Ordering::Release);
        }
        if known == SPEAKS {
            return Ok(());
        }
        Err(UpstreamFault::EraMismatch.into())
    }
}

/// Asks what a Modern server can do; any answer but a result means that it is none.
const PROBE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"durward","version":"1"}}}}"#;

/// A link that is being opened, ended again where that fails or nobody waits for it any more.
struct Tentative {
    link: Arc<Link>,
    kept: bool,
}

impl Tentative {
    fn keep(mut self) -> Arc<Link> {
        self.kept = true;
        Arc::clone(&self.link)
    }
}

impl Deref for Tentative {
    type Target = Arc<Link>;

    fn deref(&self) -> &Arc<Link> {
        &self.link
    }
}

impl Drop for Tentative {
    fn drop(&mut self) {
        if !self.kept {
            self.link.stop();
        }
    }
}
