//! How long a connection may keep us waiting.
//!
//! One timer a connection, which is moved only when it fires early or a nearer end is set: a request
//! costs a look at the clock, not a timer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A request is being handled: the peer need not say anything.
const BUSY: u64 = u64::MAX;

/// What a connection waits for, shared between its stream and its requests.
#[derive(Debug)]
pub(super) struct Waiting {
    start: Instant,
    /// Since when a request is awaited, in milliseconds since `start`; [`BUSY`] while one is handled.
    idle_since_ms: AtomicU64,
    /// How many requests have arrived.
    requests: AtomicU64,
}

impl Waiting {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            idle_since_ms: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        })
    }

    /// A request has arrived.
    pub fn busy(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.idle_since_ms.store(BUSY, Ordering::Relaxed);
    }

    /// Its answer has been handed over.
    pub fn idle(&self) {
        self.idle_since_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(BUSY - 1)
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }
}

/// Waits with a bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub header_wait_ms_max: u64,
    pub idle_ms_max: u64,
    pub write_wait_ms_max: u64,
}

/// A stream that gives up on a peer who takes too long.
pub(super) struct Patient<S> {
    stream: S,
    waiting: Arc<Waiting>,
    limits: Limits,
    /// The head under way: how many requests came before it, and when its first byte came, in
    /// milliseconds.
    head: Option<(u64, u64)>,
    /// Since when the peer takes nothing, in milliseconds.
    stuck_since_ms: Option<u64>,
    timer: Pin<Box<Sleep>>,
    /// When the timer fires, in milliseconds.
    armed_ms: u64,
}

impl<S> Patient<S> {
    pub fn new(stream: S, waiting: Arc<Waiting>, limits: Limits) -> Self {
        let armed_ms = limits.idle_ms_max;
        let timer = Box::pin(tokio::time::sleep_until(waiting.at(armed_ms)));
        Self {
            stream,
            waiting,
            limits,
            head: None,
            stuck_since_ms: None,
            timer,
            armed_ms,
        }
    }

    /// The end of the present wait for the peer to say something. While a request is handled it is
    /// never near, but the timer stays set: nobody calls again when the answer has been sent.
    fn read_until_ms(&mut self) -> u64 {
        let idle_since = self.waiting.idle_since_ms.load(Ordering::Relaxed);
        if idle_since == BUSY {
            return self
                .waiting
                .now_ms()
                .saturating_add(self.limits.idle_ms_max);
        }
        match self.head {
            Some((before, since)) if before == self.waiting.requests.load(Ordering::Relaxed) => {
                since.saturating_add(self.limits.header_wait_ms_max)
            }
            _ => idle_since.saturating_add(self.limits.idle_ms_max),
        }
    }

    /// Bytes have come: of a head, unless a request is being handled, whose body they are.
    fn note_bytes(&mut self) {
        if self.waiting.idle_since_ms.load(Ordering::Relaxed) == BUSY {
            return;
        }
        let before = self.waiting.requests.load(Ordering::Relaxed);
        if self.head.is_none_or(|(known, _)| known != before) {
            self.head = Some((before, self.waiting.now_ms()));
        }
    }

    /// Ready when the time is over. Otherwise the task is woken by then at the latest.
    fn poll_until(&mut self, until_ms: u64, cx: &mut Context<'_>) -> Poll<()> {
        if until_ms < self.armed_ms {
            self.arm(until_ms);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.armed_ms >= until_ms {
                return Poll::Ready(());
            }
            self.arm(until_ms);
        }
        Poll::Pending
    }

    fn arm(&mut self, at_ms: u64) {
        self.armed_ms = at_ms;
        let at = self.waiting.at(at_ms);
        self.timer.as_mut().reset(at);
    }

    fn poll_stuck(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let now = self.waiting.now_ms();
        let since = *self.stuck_since_ms.get_or_insert(now);
        ready!(self.poll_until(since.saturating_add(self.limits.write_wait_ms_max), cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buffer) {
            self.note_bytes();
            return Poll::Ready(read);
        }
        let until = self.read_until_ms();
        ready!(self.poll_until(until, cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Ready(written) => {
                self.stuck_since_ms = None;
                Poll::Ready(written)
            }
            Poll::Pending => self.poll_stuck(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write_vectored(cx, parts) {
            Poll::Ready(written) => {
                self.stuck_since_ms = None;
                Poll::Ready(written)
            }
            Poll::Pending => self.poll_stuck(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
