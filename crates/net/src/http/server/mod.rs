//! An HTTP/1.1 server in which everything has a bound: connections, headers, bodies, every wait.
//!
//! Invariants, as absences: no request reaches the handler under a name that is not ours (`Host`,
//! `Origin`); nothing is read from a connection faster than it is handled; no connection outlives
//! the drain. One task a connection, no task a request. A client that goes away ends what its
//! request started: the handler's future, or the stream that it answered with, is dropped.

mod accept;
mod body;
mod body_budget;
mod heads;
mod listen;
mod names;
mod silence;
mod threads;
mod timeouts;
mod tls;
mod turns;
mod unsent;
mod user;

pub use accept::{Drained, serve};
pub use body::{
    BodyFault, Parts, Request, Response, ResponseBody, StreamClosed, StreamSender, Whole, stream,
};
pub use body_budget::{BODIES_BYTES_MAX, BODIES_OF_CALLER_BYTES_MAX, BodyBudget, BodyShare};
pub use listen::{Listener, Peer, Socket};
pub use names::{NameFault, Names};
pub use rustls::ServerConfig as TlsConfig;
pub use silence::unless_silent;
pub use threads::Threads;
pub use tls::{TlsFault, server_config};
pub use user::users_can_be_known;

use std::sync::Arc;

/// Most headers of a request. It is what the parser takes without an allocation of its own.
pub const HEADERS_MAX: usize = 100;

/// Bounds of a server, and who it answers to.
#[derive(Debug, Clone)]
pub struct Options {
    /// Largest head of a request (request line and headers), in bytes; beyond it 431.
    pub header_bytes_max: usize,
    /// Largest body of a request, in bytes; beyond it 413.
    pub body_bytes_max: usize,
    /// How long a head may take from its first byte on, and a TLS handshake, in milliseconds.
    pub header_wait_ms_max: u64,
    /// How long a body may take, in milliseconds; beyond it 408.
    pub body_wait_ms_max: u64,
    /// How long a connection may be without a request, in milliseconds.
    pub idle_ms_max: u64,
    /// How long a connection may be without a request before its buffers are given back, in milliseconds.
    pub rest_ms: u64,
    /// How long a peer may read nothing of what is sent to it, in milliseconds.
    pub write_wait_ms_max: u64,
    /// Most bytes of answers that wait for their readers, over all connections, before those who take too little are cut off.
    pub unsent_bytes_max: usize,
    /// How long a peer may take too little then, in milliseconds.
    pub unsent_wait_ms_max: u64,
    /// How long a request is still handled whose peer sends nothing more, in milliseconds: it may have closed its own side
    /// of the connection only, or have gone.
    pub ended_wait_ms_max: u64,
    /// Most connections at once; a further one is answered 503 and closed.
    pub connections_max: usize,
    /// How long requests under way may take to end at the end, in milliseconds.
    pub drain_ms: u64,
    /// The names that `Host` and `Origin` may have.
    pub names: Names,
    /// Paths whose documents pages of every origin may read; only GET, HEAD and OPTIONS are answered so.
    pub public_paths: &'static [&'static str],
    /// Certificate and key, where the server speaks TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Who serves connections; without them the runtime that takes them does.
    pub threads: Option<Threads>,
}

impl Options {
    /// Returns whether pages of every origin may send this request.
    fn is_public(&self, head: &http::request::Parts) -> bool {
        use http::Method;
        let path = head.uri.path();
        let is_below = |public: &&&str| {
            let rest = path.strip_prefix(**public);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS)
            && self.public_paths.iter().any(|public| is_below(&public))
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            header_bytes_max: 16 * 1024,
            body_bytes_max: wire::frame::FRAME_BYTES_MAX,
            header_wait_ms_max: 10_000,
            body_wait_ms_max: 30_000,
            idle_ms_max: 300_000,
            rest_ms: 1_000,
            write_wait_ms_max: 60_000,
            unsent_bytes_max: 256 * 1024 * 1024,
            unsent_wait_ms_max: 5_000,
            ended_wait_ms_max: 1_000,
            connections_max: 10_240,
            drain_ms: 10_000,
            names: Names::loopback(),
            public_paths: &[],
            tls: None,
            threads: None,
        }
    }
}

/// What answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Answers one. Dropped where the client goes away before the answer.
    fn handle(&self, request: Request) -> impl Future<Output = Response> + Send;

    /// Requests under way have had their time: they are answered now, or cut off a little later.
    fn over(&self) {}
}

/// The only value of a header, where it has exactly one and that is text.
///
/// # Errors
/// A sentence, where the header is doubled or its value is not visible ASCII.
pub fn single<'h>(
    headers: &'h http::HeaderMap,
    name: &http::HeaderName,
) -> Result<Option<&'h str>, &'static str> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err("the header is given more than once");
    }
    value
        .to_str()
        .map(Some)
        .map_err(|_| "the header's value is not visible ASCII text")
}

/// A response with a body of plain text, for people.
#[must_use]
pub fn plain(status: http::StatusCode, text: &'static str) -> Response {
    let mut response = http::Response::new(ResponseBody::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
