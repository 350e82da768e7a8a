//! Drives [`ProtocolMachine`]s over Streamable HTTP: Legacy sessions with streams that can be resumed, and independent
//! requests of the stateless revision.
//!
//! A Legacy session is a machine of its own. A Modern request gets a fresh one, so that nothing can leak from one
//! request into another; a server with misbehaviour over several requests shares one. An answer goes to the stream of
//! the request it answers, whatever else is sent goes to the stream of the message that caused it, and what nothing
//! caused goes to the session's GET stream. A restart forgets all sessions.

mod headers;
mod post;
mod reply;
mod session;
mod sessions;
mod stream;

use crate::MockError;
use crate::server::{ChangeEvent, ProtocolMachine, RevisionSet};
use net::http::server::{Handler, Names, Options, Request, Response, serve};
use session::HttpSession;
use sessions::SessionTable;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// Path of the endpoint.
const PATH: &str = "/mcp";
/// How long requests under way may take after a termination signal, in milliseconds.
const DRAIN_MS: u64 = 500;
/// How long bytes have to leave before a server ends on purpose.
const FAREWELL: Duration = Duration::from_millis(50);
/// How many listening requests are open at most.
const LISTENERS_MAX: usize = 4096;

/// How a server answers a request: as one JSON document if possible, or always as a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ReplyForm {
    /// JSON where the answer comes first, else events.
    #[default]
    Auto,
    /// Always events.
    Events,
}

/// Parts of a server over HTTP.
pub(crate) struct HttpSite {
    /// Makes the machine of a session, or of a Modern request.
    pub(crate) open: Box<dyn Fn() -> Box<dyn ProtocolMachine> + Send + Sync>,
    /// Whether all Modern requests share one machine.
    pub(crate) shared: bool,
    pub(crate) eras: RevisionSet,
    pub(crate) form: ReplyForm,
    /// Whether the termination signal is left as it is.
    pub(crate) ignores_term: bool,
}

/// A running server.
struct HttpServer {
    site: HttpSite,
    sessions: SessionTable,
    /// The machine of all Modern requests, if they share one.
    shared: Option<Arc<HttpSession>>,
    /// Modern requests that stay open.
    listeners: Mutex<Vec<Weak<HttpSession>>>,
    /// Woken when the server is to end with `code`.
    end: Notify,
    code: AtomicU8,
}

/// Serves until a signal comes or a machine ends the process; prints the endpoint's URL on the first line
/// of standard output.
pub(crate) fn run(address: SocketAddr, site: HttpSite) -> Result<u8, MockError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(MockError::Runtime)?;
    runtime.block_on(listen(address, site))
}

async fn listen(address: SocketAddr, site: HttpSite) -> Result<u8, MockError> {
    let cannot = |source| MockError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(cannot)?;
    let local = listener.local_addr().map_err(cannot)?;
    let mut terminate = match site.ignores_term {
        true => None,
        false => Some(signal(SignalKind::terminate()).map_err(MockError::Runtime)?),
    };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(MockError::Runtime)?;
    let mut output = std::io::stdout();
    writeln!(output, "http://{local}{PATH}")
        .and_then(|()| output.flush())
        .map_err(MockError::Stdio)?;
    let mut names = Names::loopback();
    names
        .allow_host(&local.ip().to_string())
        .map_err(|fault| MockError::Usage(fault.into()))?;
    let options = Options {
        drain_ms: DRAIN_MS,
        body_bytes_max: crate::FRAME_BYTES_MAX,
        names,
        ..Options::default()
    };
    let server = Arc::new(HttpServer::new(site));
    let ending = async {
        let terminated = async {
            match terminate.as_mut() {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminated => {}
            _ = interrupt.recv() => {}
        }
    };
    tokio::select! {
        () = server.end.notified() => tokio::time::sleep(FAREWELL).await,
        _ = serve(listener, options, Arc::clone(&server), ending, std::future::pending()) => {}
    }
    Ok(server.code.load(Ordering::Relaxed))
}

impl HttpServer {
    fn new(site: HttpSite) -> Self {
        let shared = site.shared.then(|| HttpSession::stateless((site.open)()));
        Self {
            site,
            sessions: SessionTable::default(),
            shared,
            listeners: Mutex::default(),
            end: Notify::new(),
            code: AtomicU8::new(0),
        }
    }

    /// Publishes events to every session and every open stateless request.
    fn publish(&self, events: &[ChangeEvent]) {
        if events.is_empty() {
            return;
        }
        let listeners: Vec<Arc<HttpSession>> = {
            let mut listeners = self
                .listeners
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            listeners.retain(|listener| listener.strong_count() > 0);
            listeners.iter().filter_map(Weak::upgrade).collect()
        };
        for session in self.sessions.all().iter().chain(&listeners) {
            for event in events {
                session.event(event);
            }
        }
    }

    /// Keeps an open Modern request in mind.
    fn remember(&self, session: &Arc<HttpSession>) {
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        if listeners.len() < LISTENERS_MAX {
            listeners.push(Arc::downgrade(session));
        }
    }

    fn end_with(&self, code: u8) {
        self.code.store(code, Ordering::Relaxed);
        self.end.notify_one();
    }
}

impl Handler for HttpServer {
    async fn handle(&self, mut request: Request) -> Response {
        if request.head.uri.path() != PATH {
            return reply::refusal(http::StatusCode::NOT_FOUND, "the endpoint is /mcp");
        }
        match request.head.method {
            http::Method::POST => match request.read_body().await {
                Ok(body) => self.post(&request.head.headers, &body).await,
                Err(fault) => reply::refusal(fault.status(), fault.sentence()),
            },
            http::Method::GET => self.get(&request.head.headers),
            http::Method::DELETE => self.delete(&request.head.headers),
            _ => reply::method_not_allowed(),
        }
    }
}
