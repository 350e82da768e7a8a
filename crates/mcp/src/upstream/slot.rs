//! The place of one process, or of one session over HTTP, and what it takes to open it again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gate::ControlKind;
use tokio::sync::Notify;
use toolkit::server::SessionRef;
use wire::{Bounds, scan_request};

use super::exchange::Incoming;
use super::link::{Link, Naming, Unsent};
use super::subscribers::Subscribers;
use super::verdict;
use crate::message::frames::{Failure, UpstreamFault};
use crate::message::reply::Reply;
use crate::message::request;
use crate::message::splice::Marks;
use crate::notes::Note;

/// How long a server may take to open a session or to say which era it speaks, in milliseconds.
pub(super) const HANDSHAKE_WAIT_MS: u64 = 15_000;

/// Most resources of one process that are subscribed to again when it is started again.
const SUBSCRIPTIONS_MAX: usize = 256;

/// One process or session and what it takes to open it again.
#[derive(Debug)]
pub struct Slot {
    pub(super) naming: Naming,
    pub(super) modern: bool,
    /// Whose it is.
    pub(super) owner: SessionRef,
    /// Its caller has to leave room for others.
    pub(super) has_to_share: bool,
    /// Its server is a process; other sessions come and go by themselves.
    is_process: bool,
    link: Mutex<Option<Arc<Link>>>,
    /// Held while a process is being started, so that it is started once.
    pub(super) starting: tokio::sync::Mutex<()>,
    hello: Mutex<Hello>,
    standing: Mutex<Standing>,
    /// Who of several clients has subscribed to what.
    pub(crate) subscribers: Subscribers,
    pub(super) used_ns: AtomicU64,
    /// A process was started, or the slot is no longer in use.
    renewed: Notify,
    over: AtomicBool,
    /// A server was started in it before.
    was_started: AtomicBool,
    /// Somebody reads what belongs to no exchange.
    attended: AtomicBool,
    /// Asking its server for its tools.
    listing: Listing,
}

/// Asking a server for its tools on the gate's own behalf: once for all calls that wait for them, which go on
/// in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Held by whoever asks; why the last one got no list.
    pub turn: tokio::sync::Mutex<Option<Failure>>,
    /// How often it was asked to the end.
    pub ended: AtomicU64,
}

/// A request whose effect lasts: a server that is started again has to be asked again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// `logging/setLevel`.
    Level(Vec<u8>),
    /// `resources/subscribe` to this URI, under this version of the policy.
    Subscribed(String, Subscription),
    /// `resources/unsubscribe` from this URI.
    Unsubscribed(String),
}

/// A subscription that was let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub frame: Vec<u8>,
    /// The policy's version when it was asked for. Under another one it would have to be judged again, which is its
    /// client's to ask for.
    pub policy_version: String,
}

/// What the server was asked that lasts, as its clients sent it.
#[derive(Debug, Default)]
struct Standing {
    level: Option<Vec<u8>>,
    subscriptions: BTreeMap<String, Subscription>,
}

/// A Legacy session's opening, as its client sent it.
#[derive(Debug, Default, Clone)]
pub(super) struct Hello {
    pub initialize: Option<Vec<u8>>,
    pub initialized: Option<Vec<u8>>,
    /// The result of the server's first answer.
    pub result: Option<String>,
}

impl Hello {
    /// What was said before the client is ready.
    pub fn of(initialize: Vec<u8>, result: &str) -> Self {
        Self {
            initialize: Some(initialize),
            initialized: None,
            result: Some(result.to_owned()),
        }
    }
}

impl Slot {
    pub(super) fn new(naming: Naming, modern: bool, owner: SessionRef, is_process: bool) -> Self {
        Self {
            naming,
            modern,
            owner,
            has_to_share: false,
            is_process,
            link: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
            hello: Mutex::default(),
            standing: Mutex::default(),
            subscribers: Subscribers::default(),
            used_ns: AtomicU64::new(0),
            renewed: Notify::new(),
            over: AtomicBool::new(false),
            was_started: AtomicBool::new(false),
            attended: AtomicBool::new(false),
            listing: Listing::default(),
        }
    }

    /// Asking its server for its tools.
    pub(crate) fn listing(&self) -> &Listing {
        &self.listing
    }

    pub(super) fn hello(&self) -> MutexGuard<'_, Hello> {
        self.hello.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its sessions are opened with `initialize` by us, for whoever shares it.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        !self.modern && self.naming != Naming::AsSpelled
    }

    /// Whether several clients use its server.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.naming == Naming::Shared
    }

    /// A session is over: what it alone has subscribed to is not asked for again.
    pub fn left_by(&self, session: &Arc<str>) {
        let mut standing = self.standing();
        for uri in self.subscribers.leave(session) {
            standing.subscriptions.remove(&uri);
        }
    }

    /// What its server has answered to `initialize`.
    #[must_use]
    pub fn opened_with(&self) -> Option<String> {
        self.hello().result.clone()
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

    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.renewed.notify_one();
        if let Some(link) = self.take() {
            link.stop();
        }
    }

    pub(super) fn take(&self) -> Option<Arc<Link>> {
        self.link
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    pub(super) fn set(&self, link: &Arc<Link>) {
        self.was_started.store(true, Ordering::Release);
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(link));
        if self.over.load(Ordering::Acquire)
            && let Some(late) = self.take()
        {
            // Whoever ended the slot found nothing to stop.
            late.stop();
        }
        self.renewed.notify_one();
    }

    /// Passes on that a client is ready, once for all who share the process.
    pub async fn initialized(&self, frame: Vec<u8>) {
        {
            let mut hello = self.hello();
            if hello.initialized.is_some() {
                return;
            }
            hello.initialized = Some(frame.clone());
        }
        if let Some(link) = self.current() {
            let pass = link.control(ControlKind::Handshake, frame);
            // A server that has ended is told again when it is started again.
            let _ = link.initialized(pass).await;
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server has agreed to something that lasts.
    pub(crate) fn lasts(&self, lasting: Lasting) {
        let mut standing = self.standing();
        match lasting {
            Lasting::Level(frame) => standing.level = Some(frame),
            Lasting::Subscribed(uri, subscription) => {
                let known = standing.subscriptions.contains_key(&uri);
                if known || standing.subscriptions.len() < SUBSCRIPTIONS_MAX {
                    standing.subscriptions.insert(uri, subscription);
                }
            }
            Lasting::Unsubscribed(uri) => {
                standing.subscriptions.remove(&uri);
            }
        }
    }

    /// Asks a server again for what lasts: one that was started again, or that had lost its session.
    pub(super) async fn ask_again(&self, link: &Arc<Link>) -> Result<(), Failure> {
        let world = link.gate().world();
        let (frames, forgotten) = {
            let mut standing = self.standing();
            let before = standing.subscriptions.len();
            let holds = |of: &Subscription| of.policy_version == world.version;
            standing.subscriptions.retain(|_, of| holds(of));
            let subscriptions = standing.subscriptions.values().map(|of| &of.frame);
            let all = standing.level.iter().chain(subscriptions);
            let frames: Vec<Vec<u8>> = all.cloned().collect();
            (frames, before - standing.subscriptions.len())
        };
        if forgotten > 0 {
            link.note(Note::SubscriptionsNotRenewed.into());
        }
        for frame in frames {
            if ask(link, ControlKind::Handshake, frame).await?.is_error {
                link.note(Note::ServerRefusesAgain.into());
            }
        }
        Ok(())
    }

    /// Opens the session of a server as its client did: of one that was started again, or at a session's first call.
    pub(super) async fn greet(&self, link: &Arc<Link>) -> Result<(), Failure> {
        let hello = self.hello().clone();
        let Some(initialize) = hello.initialize else {
            return Ok(());
        };
        let reply = ask(link, ControlKind::Handshake, initialize).await?;
        if reply.is_error {
            return Err(UpstreamFault::Died.into());
        }
        link.agreed_on(request::version_of(reply.payload()));
        link.opened(reply.payload());
        if let Some(initialized) = hello.initialized {
            let pass = link.control(ControlKind::Handshake, initialized);
            let told = link.initialized(pass).await;
            told.map_err(|_| UpstreamFault::Died)?;
            self.ask_again(link).await?;
        }
        if self.is_process && self.was_started.load(Ordering::Acquire) {
            link.note(Note::ServerRestarted.into());
        }
        Ok(())
    }
}

/// Sends a request of the protocol's own and waits for its answer, within a bound.
pub(super) async fn ask(
    link: &Arc<Link>,
    kind: ControlKind,
    frame: Vec<u8>,
) -> Result<Reply, Failure> {
    let answer = answer(link, kind, frame);
    tokio::time::timeout(Duration::from_millis(HANDSHAKE_WAIT_MS), answer)
        .await
        .unwrap_or_else(|_| Err(UpstreamFault::Timeout.into()))
}

async fn answer(link: &Arc<Link>, kind: ControlKind, frame: Vec<u8>) -> Result<Reply, Failure> {
    let marks = {
        let scan = scan_request(&frame, &Bounds::default()).map_err(|_| UpstreamFault::Garbage)?;
        Marks::of(&frame, &scan).ok_or(UpstreamFault::Garbage)?
    };
    let pass = link.control(kind, frame);
    let (mut exchange, ()) =
        link.request(pass, &marks, u64::MAX)
            .map_err(|unsent| match unsent {
                Unsent::Ended(_) => UpstreamFault::Died.into(),
                Unsent::Busy => UpstreamFault::Busy.into(),
                Unsent::Spared(rejected) => verdict::spared(rejected),
                Unsent::Elsewhere(_) => UpstreamFault::Unreachable.into(),
            })?;
    loop {
        match exchange.next().await {
            Incoming::Response(reply) => return Ok(reply),
            Incoming::Fault(failure) => return Err(failure),
            Incoming::Cancelled => return Err(UpstreamFault::Died.into()),
            // Nobody is there yet to be told.
            Incoming::Notification(_) | Incoming::Found(_) => {}
            Incoming::Request { id, .. } => {
                let text = "no session is open yet";
                let refused = crate::message::frames::error(&id, -32603, text, None);
                link.refuse(refused);
            }
        }
    }
}
