//! The edge of Streamable HTTP: many clients in front, their servers behind.
//!
//! Invariants, as absences: no central loop and no lock held while waiting: a request is read, judged,
//! sent and answered on its connection's own task; no session answers to another caller than the one
//! who opened it; no session id is given out in the era that has none.

mod answer;
mod beside;
pub mod door;
mod federated;
mod legacy;
mod modern;
mod post;
pub mod refused;
mod reply;
mod revocation;
mod session;
mod stateless_client;
mod streams;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use ::http::Method;
pub use gate::Caller;
use gate::Gate;
use net::http::server::{Request, Response};
use tokio::sync::watch;
use toolkit::breaker::BreakerEvent;

use crate::call::{Lot, Order, Server, ServerOptions};
use crate::federation::Prefix;
use crate::notes::{Noted, Notes};
use crate::reading_pool::ReadingPool;
pub use beside::Beside;
pub use federated::StreamsOptions;
use federated::{Absences, Federations, Memories};
use gate::journal::EndReason;
use refused::Refused;
use session::Sessions;
use share::{ShareLimits, SharePermit, SharePool};

/// Bounds of the face.
#[derive(Debug, Clone)]
pub struct FaceOptions {
    /// Most sessions at once.
    pub sessions_max: usize,
    /// Most of one caller's, where it has to leave room for others.
    pub sessions_of_caller_max: usize,
    /// How long a session may be unused, in milliseconds. One whose client listens is in use.
    pub session_idle_ms_max: u64,
    /// How long a shared server process may be unused, in milliseconds.
    pub server_idle_ms_max: u64,
    /// When the names of several servers' tools carry the name of their server.
    pub prefix: Prefix,
    /// Above how many tools of all servers a client searches instead of being listed them; `None`: never.
    pub search_above: Option<usize>,
    /// How often a silent stream shows that it is alive, in milliseconds.
    pub keep_alive_ms: u64,
    /// Whether requests that deviate as [`wire::lenient`] says are repaired.
    pub is_lenient: bool,
}

impl Default for FaceOptions {
    fn default() -> Self {
        Self {
            sessions_max: 10_000,
            sessions_of_caller_max: 1_000,
            session_idle_ms_max: 30 * 60 * 1_000,
            server_idle_ms_max: 10 * 60 * 1_000,
            prefix: Prefix::default(),
            search_above: None,
            keep_alive_ms: 15_000,
            is_lenient: false,
        }
    }
}

/// Fills its argument with secret, uniform bytes.
pub type Random = dyn Fn(&mut [u8]) -> io::Result<()> + Send + Sync;

/// What is there, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Legacy sessions.
    pub sessions: usize,
    /// Server processes, and sessions with servers over HTTP.
    pub servers: usize,
}

/// How much there is to look after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// No session is open.
    Nothing,
    /// Sessions are open, and nothing is asked in them.
    Open,
    /// Calls are under way, or wait for their client.
    UnderWay,
}

/// What a breaker has counted.
pub type Counted = [(BreakerEvent, u64); BreakerEvent::ALL.len()];

/// How long calls in process leave [`Face::look_after`] to others.
const LOOK_AFTER_NS_MAX: u64 = 500_000_000;

/// The servers by name.
type Servers = HashMap<String, Arc<Server>>;

/// The MCP face over HTTP.
pub struct Face {
    gate: Arc<Gate>,
    options: FaceOptions,
    servers: RwLock<Servers>,
    /// The order of calls of all of them.
    order: Arc<Order>,
    sessions: Sessions,
    /// Sessions with all servers at once.
    federations: Federations,
    /// What their clients were given.
    memories: Memories,
    /// Servers that could not be asked for clients without a session.
    absences: Absences,
    /// Sessions that are open or being opened.
    session_permits: SharePool,
    /// Threads that read long calls.
    reading: Arc<ReadingPool>,
    lot: Arc<Lot>,
    notes: Arc<Mutex<Notes>>,
    /// What stands for a session in records where there is none.
    no_session: Arc<str>,
    /// How many requests were made in process.
    made: AtomicU64,
    /// Streams that would last for ever are to end.
    quiet: watch::Sender<bool>,
    /// When streams were last kept alive, by the gate's clock.
    kept_alive_ns: AtomicU64,
    /// When [`Face::look_after`] was called last.
    looked_after_ns: AtomicU64,
}

impl Face {
    /// A face for these servers. Nothing is started before it is needed. `gate` is for records that
    /// belong to no server.
    #[must_use]
    pub fn new(
        gate: Arc<Gate>,
        servers: Vec<ServerOptions>,
        options: FaceOptions,
        random: Box<Random>,
    ) -> Self {
        let session_limits =
            ShareLimits::of_caller(options.sessions_of_caller_max, options.sessions_max);
        let order = Arc::new(Order::default());
        let servers = servers
            .into_iter()
            .map(|server| {
                let name = server.name.clone();
                (name, Arc::new(Server::new(server, "", Arc::clone(&order))))
            })
            .collect();
        Self {
            kept_alive_ns: AtomicU64::new(gate.mono_ns()),
            looked_after_ns: AtomicU64::default(),
            gate,
            options,
            servers: RwLock::new(servers),
            order,
            sessions: Sessions::default(),
            federations: Federations::default(),
            memories: Memories::default(),
            absences: Absences::default(),
            session_permits: SharePool::new(session_limits),
            reading: Arc::default(),
            lot: Arc::new(Lot::guarded(random)),
            notes: Arc::default(),
            no_session: "".into(),
            made: AtomicU64::new(0),
            quiet: watch::Sender::new(false),
        }
    }

    /// Returns a permit for one more session if the caller may have it. A caller without a key is alone and is bound by the limit of
    /// all. It is acquired before a session is opened, so that many openings at once do not exceed the limits.
    fn session_permit(&self, caller: &Caller) -> Option<SharePermit> {
        let sharer = caller.has_to_share().then_some(&caller.subject);
        self.session_permits.try_acquire(sharer, 1).ok()
    }

    /// The servers' names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.servers().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    fn servers(&self) -> RwLockReadGuard<'_, Servers> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_servers(&self) -> Vec<Arc<Server>> {
        self.servers().values().cloned().collect()
    }

    /// Serves a further server; `false` where there is one of this name already.
    pub fn add(&self, options: ServerOptions) -> bool {
        let name = options.name.clone();
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        if servers.contains_key(&name) {
            return false;
        }
        let order = Arc::clone(&self.order);
        servers.insert(name, Arc::new(Server::new(options, "", order)));
        true
    }

    /// Serves a server no longer: its sessions end, and its processes; `false` where there is none of
    /// this name. The end of the processes is waited for.
    pub async fn remove(&self, name: &str) -> bool {
        let removed = {
            let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
            servers.remove(name)
        };
        let Some(server) = removed else {
            return false;
        };
        for session in self.sessions.all() {
            if Arc::ptr_eq(&session.server, &server) {
                self.end(&session, EndReason::ServerRemoved);
            }
        }
        self.lot.withdraw(|_, of| Arc::ptr_eq(of, &server));
        server.pool.close().await;
        server.close();
        true
    }

    /// What is there.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            sessions: self.sessions.count(),
            servers: self.servers().values().map(|s| s.pool.running()).sum(),
        }
    }

    /// What the breaker of each server has counted, by its name.
    #[must_use]
    pub fn breakers(&self) -> Vec<(String, Counted)> {
        let servers = self.servers();
        let counted = |(name, server): (&String, &Arc<Server>)| {
            (name.clone(), server.pool.breaker().counts())
        };
        let mut all: Vec<_> = servers.iter().map(counted).collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        all
    }

    /// What the built-in servers have counted, and where parts of lists came from.
    #[must_use]
    pub fn measures(&self) -> Vec<toolkit::measure::Measure> {
        let servers = self.servers();
        let of = |(name, server): (&String, &Arc<Server>)| {
            let measures = server.builtin().map(|builtin| builtin.measures());
            let mut measures = measures.unwrap_or_default();
            for measure in &mut measures {
                // Two servers of a kind count under the same names.
                measure.labels.push(("server", name.clone()));
            }
            measures
        };
        let of_servers = servers.iter().flat_map(of);
        of_servers.chain(self.memories.measures()).collect()
    }

    /// Answers a request for the server of this name.
    pub async fn handle(
        self: &Arc<Self>,
        name: &str,
        caller: &Caller,
        request: Request,
    ) -> Response {
        let received_ns = self.gate.mono_ns();
        let server = self.servers().get(name).cloned();
        let Some(server) = &server else {
            return self.unknown_server();
        };
        match request.head.method {
            Method::POST => self.post(server, caller, request, received_ns).await,
            Method::GET => self.listen(server, caller, &request),
            Method::DELETE => self.delete(server, caller, &request),
            _ => answer::not_allowed("GET, POST, DELETE"),
        }
    }

    /// Answers a request for no server of ours.
    #[must_use]
    pub fn unknown_server(&self) -> Response {
        let message = format!(
            "no server has this name; /mcp/NAME serves: {}",
            self.names().join(", ")
        );
        answer::fault_with(Refused::ServerUnknown, &message)
    }

    fn note(&self, noted: Noted<'_>) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(noted);
    }

    /// Calls [`Self::look_after`] if nobody has for [`LOOK_AFTER_NS_MAX`]: a call in process ends in time also where its
    /// site has no other clock.
    fn look_after_if_due(&self) {
        let now_ns = self.gate.mono_ns();
        let last_ns = self.looked_after_ns.load(Ordering::Relaxed);
        let is_due = now_ns.saturating_sub(last_ns) >= LOOK_AFTER_NS_MAX;
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let swap = || {
            self.looked_after_ns
                .compare_exchange(last_ns, now_ns, set, failed)
        };
        if is_due && swap().is_ok() {
            self.look_after();
        }
    }

    /// Looks after sessions, processes and notes. To be called a few times a second while something is under way, and
    /// about once a second while something is open, which it gives.
    pub fn look_after(&self) -> Activity {
        self.flush_notes();
        let now_ns = self.gate.mono_ns();
        self.looked_after_ns.store(now_ns, Ordering::Relaxed);
        self.lot.sweep(now_ns);
        for session in self.sessions.all() {
            session.tell_of_changed_lists();
        }
        let forgotten = self
            .sessions
            .forgotten(now_ns, self.options.session_idle_ms_max);
        for session in forgotten {
            self.end(&session, EndReason::Timeout);
        }
        self.forget_federations(now_ns);
        let mut is_busy = !self.lot.is_empty();
        for server in self.all_servers() {
            is_busy |= server.pool.sweep(self.options.server_idle_ms_max);
        }
        let kept_alive_ns = self.kept_alive_ns.load(Ordering::Relaxed);
        let keep_alive_ns = self.options.keep_alive_ms.saturating_mul(1_000_000);
        if now_ns.saturating_sub(kept_alive_ns) >= keep_alive_ns {
            self.kept_alive_ns.store(now_ns, Ordering::Relaxed);
            self.sessions.keep_alive();
            self.federations.keep_alive();
        }
        if is_busy {
            Activity::UnderWay
        } else if self.sessions.count() + self.federations.count() > 0 {
            Activity::Open
        } else {
            Activity::Nothing
        }
    }

    fn flush_notes(&self) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .flush(&self.gate, "", "");
    }

    /// Ends the streams that no request is waiting on, so that connections can drain.
    pub fn quiet(&self) {
        self.quiet.send_replace(true);
        self.sessions.quiet();
    }

    /// Cancels every call under way: its client is answered so, its server told.
    pub fn cancel_all(&self) {
        for server in self.all_servers() {
            server.pool.cancel_all();
        }
    }

    /// Ends sessions and processes, and waits for the end of these.
    pub async fn close(&self) {
        self.lot.withdraw(|_, _| true);
        self.end_federations(None, EndReason::Shutdown);
        for session in self.sessions.all() {
            self.end(&session, EndReason::Shutdown);
        }
        for server in self.all_servers() {
            server.pool.close().await;
            server.close();
        }
        self.flush_notes();
    }
}

impl fmt::Debug for Face {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Face")
            .field("servers", &self.names())
            .finish_non_exhaustive()
    }
}
