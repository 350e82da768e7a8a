//! An HTTP/1.1 client for one origin: kept connections, no redirects, every wait and size bounded.
//!
//! A connection is driven by the task that uses it: nothing is spawned, and a call costs no hop to
//! another task. What is dropped before its end closes its connection, which tells the server.

mod connection;
mod credential;
mod fault;
mod pool;
mod reply;
mod stream;
mod target;
mod tls;
mod turns;

use std::sync::Arc;

use ::http::{Request, Uri};
use bytes::Bytes;
use http_body_util::Full;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

pub use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
pub use credential::Credential;
pub use fault::HttpFault;
pub use pool::Lane;
pub use reply::{RepeatedHeader, Reply};
pub use target::{Target, TargetFault};
pub use tls::{TlsFault, TlsOptions};

use connection::{End, Unanswered};
use pool::{Kept, Pool};

/// Bounds of a client, with their defaults.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Most connections for calls at once; further calls wait. Default 128.
    pub connections_max: usize,
    /// Most calls that wait for one; further calls fail at once. Default 1,024.
    pub waiting_max: usize,
    /// How long they wait, in milliseconds. Default 10 s.
    pub wait_ms_max: u64,
    /// Most connections for short messages (answers, notifications) at once, so that they pass while
    /// every call waits for them. Default 8.
    pub asides_max: usize,
    /// How long a connection is kept without use, in milliseconds. Default 4 s: node and uvicorn
    /// close theirs after 5 s, and whoever closes first does not lose a call to that.
    pub idle_ms_max: u64,
    /// How long connecting and the TLS handshake may take, in milliseconds. Default 10 s.
    pub connect_ms_max: u64,
    /// Longest head of a reply, in bytes. Default 64 KiB; at most 100 headers in any case.
    pub head_bytes_max: usize,
    /// TLS, where the target asks for it.
    pub tls: TlsOptions,
    /// Sent to the target, and nowhere else.
    pub credential: Option<Credential>,
    /// Further headers of every request, sent to the target and nowhere else.
    pub headers: HeaderMap,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connections_max: 128,
            waiting_max: 1_024,
            wait_ms_max: 10_000,
            asides_max: 8,
            idle_ms_max: 4_000,
            connect_ms_max: 10_000,
            head_bytes_max: 64 * 1024,
            tls: TlsOptions::default(),
            credential: None,
            headers: HeaderMap::new(),
        }
    }
}

/// A client for one origin. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct HttpClient {
    pool: Arc<Pool>,
    /// What every request carries.
    base: HeaderMap,
    /// Path and query, in origin form.
    path: Uri,
}

/// What is to be sent: begun by [`HttpClient::outgoing`], and sent by the same client.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// All headers, with those that each request of the client carries.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// Which connections it may take.
    pub lane: Lane,
    /// How long the head of the reply may take, in milliseconds.
    pub head_ms_max: u64,
}

impl HttpClient {
    /// A client for `target`. Opens nothing yet.
    ///
    /// # Errors
    /// Where certificates or keys cannot be used.
    pub fn new(target: Target, options: &HttpOptions) -> Result<Self, TlsFault> {
        let mut base = options.headers.clone();
        base.insert(header::HOST, target.host_header.clone());
        base.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("durward/", env!("CARGO_PKG_VERSION"))),
        );
        if let Some(credential) = &options.credential {
            base.insert(header::AUTHORIZATION, credential.header());
        }
        let tls = if target.secure {
            Some(tls::connector(&options.tls)?)
        } else {
            None
        };
        let path = target.path.clone();
        Ok(Self {
            pool: Arc::new(Pool::new(target, tls, options)),
            base,
            path,
        })
    }

    /// The same client for another path below its target's: connections and their bounds are shared.
    /// `below` begins with a slash. `None` where that is no path.
    #[must_use]
    pub fn below(&self, below: &str) -> Option<Self> {
        let own = self.pool.target().path.path().trim_end_matches('/');
        let path = format!("{own}{below}").parse().ok()?;
        Some(Self {
            path,
            ..self.clone()
        })
    }

    /// Sends a request and waits for the head of its reply. A kept connection that the server has
    /// closed meanwhile is replaced by a new one, as long as nothing of the request was written.
    ///
    /// # Errors
    /// [`HttpFault`]; [`HttpFault::was_sent`] says whether the server may have seen the request.
    pub async fn send(&self, outgoing: Outgoing) -> Result<Reply, HttpFault> {
        let end = End::after_ms(outgoing.head_ms_max);
        let permit = self.pool.permit(outgoing.lane, end).await?;
        self.send_now(self.request(outgoing), permit, end).await
    }

    async fn send_now(
        &self,
        mut request: Request<Full<Bytes>>,
        permit: Option<OwnedSemaphorePermit>,
        end: End,
    ) -> Result<Reply, HttpFault> {
        loop {
            let (mut connection, kept) = match self.pool.take_idle().await {
                Some(connection) => (connection, true),
                None => (self.connected(end).await?, false),
            };
            match connection.send(request, end).await {
                Ok(response) => {
                    return Ok(Reply::new(
                        response,
                        connection,
                        Arc::clone(&self.pool),
                        permit,
                    ));
                }
                // Each kept connection is tried at most once, and a new one ends the loop.
                Err(Unanswered::NotSent(unsent)) if kept => request = *unsent,
                Err(Unanswered::NotSent(_)) => return Err(HttpFault::NotSent),
                Err(Unanswered::Fault(fault)) => return Err(fault),
            }
        }
    }

    async fn connected(&self, end: End) -> Result<Kept, HttpFault> {
        // Boxed, since hardly any request needs it.
        let connecting = Box::pin(timeout(end.left(), self.pool.connect()));
        connecting.await.unwrap_or(Err(HttpFault::HeadTimeout))
    }

    /// A request without a body, with the headers that each of this client's carries (`Host`, `User-Agent`, the credential and
    /// those of [`HttpOptions::headers`]) and room for a few more. The head of the reply may take `head_ms_max` milliseconds.
    #[must_use]
    pub fn outgoing(&self, method: Method, lane: Lane, head_ms_max: u64) -> Outgoing {
        /// What a request of MCP or of a model says beside.
        const FURTHER: usize = 8;
        let mut headers = HeaderMap::with_capacity(self.base.len() + FURTHER);
        for (name, value) in &self.base {
            headers.append(name.clone(), value.clone());
        }
        Outgoing {
            method,
            headers,
            body: Bytes::new(),
            lane,
            head_ms_max,
        }
    }

    fn request(&self, outgoing: Outgoing) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(outgoing.body));
        *request.method_mut() = outgoing.method;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = outgoing.headers;
        request
    }

    /// Closes what was not used for longer than the bound. To be called now and then.
    pub fn reap(&self) {
        self.pool.reap();
    }

    /// Path and query of its requests, as they stand in their first line.
    #[must_use]
    pub fn path(&self) -> (&str, &str) {
        (self.path.path(), self.path.query().unwrap_or_default())
    }

    /// Where this client sends to.
    #[must_use]
    pub fn target(&self) -> &Target {
        self.pool.target()
    }
}
