//! The servers behind: started when first needed, shared as configured, started again when they end.

mod exchange;
mod link;
mod route;

pub use exchange::{Exchange, Incoming, Reply};
pub use link::{Link, Unsent};

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gate::{ControlKind, Gate};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use wire::{Bounds, Era, scan_request};

use super::splice::Marks;
use crate::frames::UpstreamFault;
use crate::upstream::{Frame, ServerCommand};

/// Most processes of one server.
pub const CHILDREN_MAX: usize = 32;
/// Most callers that wait for one to become free.
pub const QUEUE_MAX: usize = 256;
/// How long they wait, in milliseconds.
pub const QUEUE_WAIT_MS_MAX: u64 = 10_000;
/// How long a server may take to open a session or to say which era it speaks, in milliseconds.
const HANDSHAKE_WAIT_MS: u64 = 15_000;

/// Who shares a server's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Share {
    /// Each session has one of its own; where there are no sessions, each caller.
    #[default]
    Session,
    /// Each caller has one.
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
    command: ServerCommand,
    share: Share,
    gate: Arc<Gate>,
    places: Arc<Semaphore>,
    queued: AtomicUsize,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
    speaks_modern: AtomicU8,
}

/// What is known of whether a server speaks the Modern era.
const UNKNOWN: u8 = 0;
const SPEAKS: u8 = 1;
const SPEAKS_NOT: u8 = 2;

/// One process and what it takes to start it again.
#[derive(Debug)]
pub struct Slot {
    exclusive: bool,
    modern: bool,
    link: Mutex<Option<Arc<Link>>>,
    /// Held while a process is being started, so that it is started once.
    starting: tokio::sync::Mutex<()>,
    hello: Mutex<Hello>,
    used_ns: AtomicU64,
    /// A process was started, or the slot is no longer in use.
    renewed: Notify,
    over: AtomicBool,
    /// Somebody reads what belongs to no exchange.
    attended: AtomicBool,
}

/// A Legacy session's opening, as its client sent it.
#[derive(Debug, Default, Clone)]
struct Hello {
    initialize: Option<Vec<u8>>,
    initialized: Option<Vec<u8>>,
    /// The result of the server's first answer.
    result: Option<String>,
}

impl Pool {
    /// The processes of a server, none of which runs yet.
    #[must_use]
    pub fn new(name: Arc<str>, command: ServerCommand, share: Share, gate: Arc<Gate>) -> Self {
        Self {
            name,
            command,
            share,
            gate,
            places: Arc::new(Semaphore::new(CHILDREN_MAX)),
            queued: AtomicUsize::new(0),
            slots: Mutex::default(),
            speaks_modern: AtomicU8::new(UNKNOWN),
        }
    }

    /// How many processes run.
    #[must_use]
    pub fn running(&self) -> usize {
        CHILDREN_MAX.saturating_sub(self.places.available_permits())
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
    pub fn slot(&self, era: Era, caller: &Arc<str>, session: Option<&Arc<str>>) -> Arc<Slot> {
        let key = self.key(era, caller, session);
        let mut slots = self.slots();
        let slot = slots.entry(key).or_insert_with_key(|key| {
            Arc::new(Slot {
                exclusive: key.session.is_some(),
                modern: key.modern,
                link: Mutex::default(),
                starting: tokio::sync::Mutex::default(),
                hello: Mutex::default(),
                used_ns: AtomicU64::new(0),
                renewed: Notify::new(),
                over: AtomicBool::new(false),
                attended: AtomicBool::new(false),
            })
        });
        slot.used_ns.store(self.gate.mono_ns(), Ordering::Relaxed);
        Arc::clone(slot)
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

    /// Ends shared processes that nobody has used for so long.
    pub fn sweep(&self, idle_ms_max: u64) {
        let now_ns = self.gate.mono_ns();
        let idle_ns = idle_ms_max.saturating_mul(1_000_000);
        self.slots().retain(|key, slot| {
            let used_ns = slot.used_ns.load(Ordering::Relaxed);
            let busy = slot.current().is_some_and(|link| !link.is_idle());
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
    }

    /// Ends all processes and waits for their end.
    pub async fn close(&self) {
        let slots: Vec<Arc<Slot>> = self.slots().drain().map(|(_, slot)| slot).collect();
        for slot in slots {
            slot.end();
        }
        let all = u32::try_from(CHILDREN_MAX).unwrap_or(u32::MAX);
        drop(self.places.acquire_many(all).await);
    }

    /// The running process of a slot, started where there is none.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn link(&self, slot: &Arc<Slot>) -> Result<Arc<Link>, UpstreamFault> {
        if let Some(link) = slot.current() {
            return Ok(link);
        }
        if slot.modern && self.speaks_modern.load(Ordering::Acquire) == SPEAKS_NOT {
            return Err(UpstreamFault::EraMismatch);
        }
        let _starting = slot.starting.lock().await;
        if let Some(link) = slot.current() {
            return Ok(link);
        }
        let link = self.start(slot).await?;
        if slot.modern {
            self.probe(&link).await?;
        } else {
            slot.greet(&link).await?;
        }
        slot.set(&link);
        Ok(link)
    }

    /// The answer to a client's `initialize`: the server's own to the first, the same to those who
    /// share its process. `Err` where the server's answer is an error: that answer, to be passed on.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn open(
        &self,
        slot: &Arc<Slot>,
        initialize: Vec<u8>,
    ) -> Result<Result<String, Reply>, UpstreamFault> {
        let _starting = slot.starting.lock().await;
        let known = slot.hello().result.clone();
        if let (Some(result), Some(_)) = (known, slot.current()) {
            return Ok(Ok(result));
        }
        let link = self.start(slot).await?;
        let reply = slot.ask(&link, initialize.clone()).await?;
        if reply.is_error {
            link.stop();
            return Ok(Err(reply));
        }
        let result = reply.payload().to_owned();
        *slot.hello() = Hello {
            initialize: Some(initialize),
            initialized: None,
            result: Some(result.clone()),
        };
        slot.set(&link);
        Ok(Ok(result))
    }

    async fn start(&self, slot: &Slot) -> Result<Arc<Link>, UpstreamFault> {
        let place = self.place().await?;
        Link::start(&self.command, &self.name, &self.gate, slot.exclusive, place).map_err(|error| {
            tracing::error!(server = %self.name, "cannot start the server: {error}");
            UpstreamFault::Died
        })
    }

    /// A place among the processes that may run, waited for in a bounded queue.
    async fn place(&self) -> Result<OwnedSemaphorePermit, UpstreamFault> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        if self.queued.fetch_add(1, Ordering::AcqRel) >= QUEUE_MAX {
            self.queued.fetch_sub(1, Ordering::AcqRel);
            return Err(UpstreamFault::NoPlace);
        }
        let _queued = Queued(&self.queued);
        let wait = Duration::from_millis(QUEUE_WAIT_MS_MAX);
        tokio::time::timeout(wait, Arc::clone(&self.places).acquire_owned())
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or(UpstreamFault::NoPlace)
    }

    /// Learns once whether the server speaks the Modern era. A server that does not answer at all may
    /// only be slow: it is asked again the next time.
    async fn probe(&self, link: &Arc<Link>) -> Result<(), UpstreamFault> {
        if self.speaks_modern.load(Ordering::Acquire) == SPEAKS {
            return Ok(());
        }
        let known = match ask(link, ControlKind::Handshake, PROBE.to_vec()).await {
            Ok(reply) if reply.is_error => SPEAKS_NOT,
            Ok(_) => SPEAKS,
            Err(UpstreamFault::Timeout) => UNKNOWN,
            Err(fault) => return Err(fault),
        };
        self.speaks_modern.store(known, Ordering::Release);
        if known == SPEAKS {
            return Ok(());
        }
        link.stop();
        Err(UpstreamFault::EraMismatch)
    }
}

/// Asks what a Modern server can do; any answer but a result means that it is none.
const PROBE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"durward","version":"1"}}}}"#;

struct Queued<'q>(&'q AtomicUsize);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Slot {
    fn hello(&self) -> MutexGuard<'_, Hello> {
        self.hello.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The running process.
    #[must_use]
    pub fn current(&self) -> Option<Arc<Link>> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.as_ref().filter(|link| !link.has_ended()).cloned()
    }

    /// Whether the caller of this is the first: it is the one to read what belongs to no exchange.
    pub fn attend(&self) -> bool {
        !self.attended.swap(true, Ordering::AcqRel)
    }

    /// The running process, as soon as there is another one than before; none when the slot is no
    /// longer in use. For one reader.
    pub async fn next_link(&self) -> Option<Arc<Link>> {
        loop {
            self.renewed.notified().await;
            if self.over.load(Ordering::Acquire) {
                return None;
            }
            if let Some(link) = self.current() {
                return Some(link);
            }
        }
    }

    fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.renewed.notify_one();
        if let Some(link) = self.take() {
            link.stop();
        }
    }

    fn take(&self) -> Option<Arc<Link>> {
        self.link
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn set(&self, link: &Arc<Link>) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(link));
        self.renewed.notify_one();
    }

    /// Passes on that a client is ready, once for all who share the process.
    pub fn initialized(&self, frame: Vec<u8>) {
        {
            let mut hello = self.hello();
            if hello.initialized.is_some() {
                return;
            }
            hello.initialized = Some(frame.clone());
        }
        if let Some(link) = self.current() {
            let pass = link.gate.control(ControlKind::Handshake, Frame(frame));
            // A server that has ended is told again when it is started again.
            let _ = link.send(pass);
        }
    }

    /// Opens a restarted server's session as its client did.
    async fn greet(&self, link: &Arc<Link>) -> Result<(), UpstreamFault> {
        let hello = self.hello().clone();
        let Some(initialize) = hello.initialize else {
            return Ok(());
        };
        let reply = self.ask(link, initialize).await?;
        if reply.is_error {
            link.stop();
            return Err(UpstreamFault::Died);
        }
        if let Some(initialized) = hello.initialized {
            let pass = link
                .gate
                .control(ControlKind::Handshake, Frame(initialized));
            link.send(pass).map_err(|_| UpstreamFault::Died)?;
        }
        link.note(
            "server_restarted",
            "the server had ended and was started again",
        );
        Ok(())
    }

    async fn ask(&self, link: &Arc<Link>, frame: Vec<u8>) -> Result<Reply, UpstreamFault> {
        ask(link, ControlKind::Handshake, frame).await
    }
}

/// Sends a request of the protocol's own and waits for its answer, within a bound.
async fn ask(link: &Arc<Link>, kind: ControlKind, frame: Vec<u8>) -> Result<Reply, UpstreamFault> {
    let marks = {
        let scan = scan_request(&frame, &Bounds::default()).map_err(|_| UpstreamFault::Garbage)?;
        Marks::of(&frame, &scan).ok_or(UpstreamFault::Garbage)?
    };
    let pass = link.gate.control(kind, Frame(frame));
    let wait_ns = HANDSHAKE_WAIT_MS.saturating_mul(1_000_000);
    let deadline_ns = link.gate.mono_ns().saturating_add(wait_ns);
    let (mut exchange, ()) =
        link.request(pass, &marks, deadline_ns)
            .map_err(|unsent| match unsent {
                Unsent::Ended(_) => UpstreamFault::Died,
                Unsent::Busy => UpstreamFault::Busy,
            })?;
    loop {
        match exchange.next().await {
            Incoming::Response(reply) => return Ok(reply),
            Incoming::Fault(fault) => {
                link.stop();
                return Err(fault);
            }
            Incoming::Cancelled => return Err(UpstreamFault::Died),
            // Nobody is there yet to be told.
            Incoming::Notification { .. } => {}
            Incoming::Request { id, .. } => {
                let text = "no session is open yet";
                let refused = crate::frames::error(&id, -32603, text, None);
                let pass = link.gate.control(ControlKind::Complaint, Frame(refused));
                let _ = link.send(pass);
            }
        }
    }
}
