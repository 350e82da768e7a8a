//! Taking connections, serving them, and letting them end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::body::{Request, Response, Sent};
use super::listen::{Listener, Stream, Taken};
use super::silence::Silence;
use super::timeouts::{Limits, Patient, Waiting};
use super::turns::{self, Turns};
use super::unsent::Unsent;
use super::user::{Ends, READERS};
use super::{Handler, Options, plain};
use crate::quiet::Quiet;
use crate::timers::kept;

/// How long to wait after a connection could not be taken, in milliseconds.
const ACCEPT_PAUSE_MS: u64 = 50;
/// How long what is answered at the very end may take to be sent, in milliseconds.
const LAST_WORDS_MS: u64 = 1_000;
/// How long a connection that is one too many may take to read that, in milliseconds.
const FULL_WAIT_MS: u64 = 100;
/// What it reads.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: 22\r\n\r\ntoo many connections\r\n";

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were cut off because they did not end in time.
    pub cut_off: usize,
}

/// What all connections share.
struct Shared<H> {
    options: Options,
    handler: Arc<H>,
    open: AtomicUsize,
    /// Requests that have come so far.
    served: AtomicU64,
    /// Those who find out whose connections are whose.
    readers: Arc<Semaphore>,
    /// Answers that wait for their readers.
    unsent: Unsent,
    ending: watch::Receiver<Phase>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// Connections end after the request that they are at.
    Draining,
    /// Connections end now.
    Over,
}

/// Serves until `shutdown` is ready, then lets requests under way end: for as long as they may, or until
/// `hurry` is ready. Runs inside a tokio runtime.
pub async fn serve<H: Handler>(
    listener: impl Into<Listener>,
    options: Options,
    handler: Arc<H>,
    shutdown: impl Future<Output = ()>,
    hurry: impl Future<Output = ()>,
) -> Drained {
    let listener = listener.into();
    let ends = Arc::clone(&handler);
    let drain = Duration::from_millis(options.drain_ms);
    let (phase, ending) = watch::channel(Phase::Serving);
    let shared = Arc::new(Shared {
        options,
        handler,
        open: AtomicUsize::new(0),
        served: AtomicU64::new(0),
        readers: Arc::new(Semaphore::new(READERS)),
        unsent: Unsent::default(),
        ending,
    });
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        match accepted {
            Ok(Taken::Address(stream, peer)) => {
                let ends = Ends::tcp(peer, stream.local_addr().ok(), &shared.readers);
                take(&shared, stream, ends);
            }
            Ok(Taken::Socket(stream, peer)) => {
                let user = stream.peer_cred().ok().map(|user| user.uid());
                take(&shared, stream, Ends::socket(peer, user, &shared.readers));
            }
            Err(error) if is_the_peers(&error) => {}
            Err(error) => {
                tracing::warn!("cannot take a connection: {error}");
                tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
            }
        }
    }
    drop(listener);
    let _ = phase.send(Phase::Draining);
    // Each connection holds the shared state; the last one that drops it closes the channel.
    let connections = Arc::downgrade(&shared);
    drop(shared);
    let drained = tokio::select! {
        drained = tokio::time::timeout(drain, phase.closed()) => drained.is_ok(),
        () = hurry => false,
    };
    if drained {
        return Drained { cut_off: 0 };
    }
    ends.over();
    let last_words = Duration::from_millis(LAST_WORDS_MS);
    if tokio::time::timeout(last_words, phase.closed())
        .await
        .is_ok()
    {
        return Drained { cut_off: 0 };
    }
    let cut_off = connections
        .upgrade()
        .map_or(0, |shared| shared.open.load(Ordering::Acquire));
    let _ = phase.send(Phase::Over);
    phase.closed().await;
    Drained { cut_off }
}

/// Whether an error of accepting is about the one connection only.
fn is_the_peers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

fn take<H: Handler, S: Stream>(shared: &Arc<Shared<H>>, mut stream: S, ends: Ends) {
    let open = shared.open.fetch_add(1, Ordering::AcqRel);
    let place = Place(Arc::clone(shared));
    if open >= shared.options.connections_max {
        // Over TLS nobody could read this; the connection is closed all the same.
        if shared.options.tls.is_none() && open < 2 * shared.options.connections_max {
            tokio::spawn(async move {
                let wait = Duration::from_millis(FULL_WAIT_MS);
                drop(tokio::time::timeout(wait, stream.write_all(FULL)).await);
                drop(place);
            });
        }
        return;
    }
    stream.prepare();
    let Some(threads) = &shared.options.threads else {
        tokio::spawn(served(place, stream, ends));
        return;
    };
    // One that cannot change its place is gone already.
    let (Some(seat), Ok(loose)) = (threads.seat(), stream.loosened()) else {
        return;
    };
    seat.runtime.clone().spawn(async move {
        if let Ok(stream) = S::bound(loose) {
            served::<H, S>(place, stream, ends).await;
        }
        drop(seat);
    });
}

/// Serves a connection to its end.
async fn served<H: Handler, S: Stream>(place: Place<H>, stream: S, ends: Ends) {
    tokio::select! {
        biased;
        () = connection(&place.0, stream, ends) => {}
        // The sender is gone only after the last connection.
        () = reached(&place.0.ending, Phase::Over) => {}
    }
    drop(place);
}

/// Ready when the server is in this phase, or a later one. It is polled with all that a connection does, and asks again only
/// where something has changed.
async fn reached(ending: &watch::Receiver<Phase>, phase: Phase) {
    let mut own = ending.clone();
    let mut waits = pin!(own.wait_for(|now| *now >= phase));
    let mut asked: Option<Waker> = None;
    poll_fn(|cx| {
        let is_asked = asked.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
        if is_asked && matches!(ending.has_changed(), Ok(false)) {
            return Poll::Pending;
        }
        asked = Some(cx.waker().clone());
        waits.as_mut().poll(cx).map(drop)
    })
    .await;
}

/// A connection's place among those that may be open.
struct Place<H>(Arc<Shared<H>>);

impl<H> Drop for Place<H> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn connection<H: Handler, S: Stream>(shared: &Arc<Shared<H>>, mut stream: S, ends: Ends) {
    let ends = Arc::new(ends);
    let mut idle = Duration::from_millis(shared.options.idle_ms_max);
    loop {
        // Without a byte to read the parser needs no buffer: most idle connections cost next to nothing.
        tokio::select! {
            begun = kept(|| tokio::time::timeout(idle, stream.has_begun())) => {
                if !matches!(begun, Ok(true)) {
                    return;
                }
            }
            () = reached(&shared.ending, Phase::Draining) => return,
        }
        // Boxed, so that a connection that says nothing does not hold the room for a request.
        match Box::pin(begun(shared, stream, Arc::clone(&ends))).await {
            Some(rested) => stream = rested,
            None => return,
        }
        // As much of it is over.
        let rested_ms = shared.options.rest_ms.min(shared.options.idle_ms_max);
        idle = Duration::from_millis(shared.options.idle_ms_max - rested_ms);
    }
}

/// A connection that has something to say; given back where it has nothing more for now.
async fn begun<H: Handler, S: Stream>(
    shared: &Arc<Shared<H>>,
    stream: S,
    ends: Arc<Ends>,
) -> Option<S> {
    let peer = ends.peer();
    let Some(config) = &shared.options.tls else {
        return requests(shared, stream, ends, S::CAN_REST).await;
    };
    let handshake = TlsAcceptor::from(Arc::clone(config)).accept(stream);
    let wait = Duration::from_millis(shared.options.header_wait_ms_max);
    match tokio::time::timeout(wait, handshake).await {
        Ok(Ok(stream)) => {
            requests(shared, stream, ends, false).await;
        }
        Ok(Err(error)) => tracing::debug!(%peer, "no TLS: {error}"),
        Err(_) => tracing::debug!(%peer, "no TLS: the handshake took too long"),
    }
    None
}

/// Answers requests to the end of the connection, or until it rests: then it is given back.
async fn requests<H: Handler, S: AsyncRead + AsyncWrite + Unpin>(
    shared: &Arc<Shared<H>>,
    stream: S,
    ends: Arc<Ends>,
    can_rest: bool,
) -> Option<S> {
    let peer = ends.peer();
    let options = &shared.options;
    let waiting = Waiting::new();
    let limits = Limits::of(options, can_rest);
    let stream = Patient::new(stream, Arc::clone(&waiting), (limits, shared.unsent.held()));
    let turns = Mutex::new(Turns::default());
    let service = service_fn(|request: http::Request<Incoming>| {
        waiting.busy();
        let served = shared.served.fetch_add(1, Ordering::Relaxed) + 1;
        let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
        let has_to_wait = turns.take(waiting.reads(), served);
        drop(turns);
        let (waiting, ends) = (Arc::clone(&waiting), Arc::clone(&ends));
        async move {
            if has_to_wait {
                // Boxed, since hardly any request needs it.
                Box::pin(tokio::time::sleep(turns::PAUSE)).await;
            }
            // Boxed, so that a connection holds room for a request only while there is one.
            let answered = Box::pin(answer(shared, request, ends));
            let (parts, body) = answered.await.into_parts();
            let body = Sent::new(body, waiting);
            Ok::<_, Infallible>(http::Response::from_parts(parts, body))
        }
    });
    let mut connection = http1::Builder::new()
        .max_header_size(options.header_bytes_max)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service);
    let mut waker = Quiet::default();
    let mut silence = Silence::default();
    let served = poll_fn(|cx| {
        let mut own = Context::from_waker(waker.of(cx));
        silence.poll(&mut own, |cx| poll_served(&mut connection, &waiting, cx))
    });
    let ended = tokio::select! {
        biased;
        ended = served => ended,
        () = reached(&shared.ending, Phase::Draining) => {
            Pin::new(&mut connection).graceful_shutdown();
            Some((&mut connection).await)
        }
    };
    match ended {
        Some(ended) => {
            if let Err(error) = ended {
                tracing::debug!(%peer, "connection: {error}");
            }
            None
        }
        None => {
            let parts = connection.into_parts();
            // What nobody has asked for is not taken for a request later.
            let is_whole = parts.read_buf.is_empty();
            is_whole.then(|| parts.io.into_inner().into_inner())
        }
    }
}

/// How a connection ended; none where it rests.
fn poll_served<C: Future + Unpin>(
    connection: &mut C,
    waiting: &Waiting,
    cx: &mut Context<'_>,
) -> Poll<Option<C::Output>> {
    match Pin::new(connection).poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending if waiting.rests() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    }
}

async fn answer<H: Handler>(
    shared: &Shared<H>,
    request: http::Request<Incoming>,
    ends: Arc<Ends>,
) -> Response {
    let peer = ends.peer();
    let (head, body) = request.into_parts();
    let target = head.uri.authority().map(http::uri::Authority::as_str);
    let names = &shared.options.names;
    let is_public = shared.options.is_public(&head);
    let checked = match is_public {
        true => names.check_host(&head.headers, target).map(drop),
        false => names.check(&head.headers, target),
    };
    if let Err(fault) = checked {
        tracing::warn!(%peer, reason = fault.label(), "{}", fault.sentence());
        return plain(fault.status(), fault.sentence());
    }
    let request = Request {
        // Boxed, since it is handed on many times.
        head: Box::new(head),
        ends,
        body,
        body_bytes_max: shared.options.body_bytes_max,
        body_wait_ms_max: shared.options.body_wait_ms_max,
        share: None,
    };
    shared.handler.handle(request).await
}
