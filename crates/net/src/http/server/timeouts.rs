//! How long a connection may keep us waiting.
//!
//! One timer a connection: a request costs a look at the clock.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::Options;
use super::heads::Strict;
use super::unsent::Held;
use crate::alarm::{Alarm, about};
use crate::pieces::poll_write_pieces;

/// How often a peer that takes nothing is looked at, in milliseconds.
const LOOK_MS: u64 = 1_000;
/// A request is being handled: the peer need not say anything.
const BUSY: u64 = u64::MAX;

/// What a connection waits for, shared between its stream and its requests.
#[derive(Debug)]
pub(super) struct Waiting {
    start: Instant,
    /// The same by the clock of [`about`].
    begun: Duration,
    /// Since when a request is awaited, in milliseconds since `start`; [`BUSY`] while one is handled.
    idle_since_ms: AtomicU64,
    /// How many requests have arrived.
    requests: AtomicU64,
    /// How often the stream gave something.
    reads: AtomicU64,
    /// It has been without a request for long enough to give its buffers back.
    rests: AtomicBool,
}

impl Waiting {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            begun: about(),
            idle_since_ms: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            rests: AtomicBool::new(false),
        })
    }

    /// Whether it is to give its buffers back: nothing has come of a request, all of the last answer has left.
    pub fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    /// How often the stream gave something: a request for which it was not read had come with an earlier one.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// A request has arrived.
    pub fn busy(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.idle_since_ms.store(BUSY, Ordering::Relaxed);
    }

    /// Its answer has been handed over.
    pub fn idle(&self) {
        self.idle_since_ms.store(self.about_ms(), Ordering::Relaxed);
    }

    /// As [`Self::now_ms`], a few milliseconds early or late, for waits of seconds.
    fn about_ms(&self) -> u64 {
        let since = about().saturating_sub(self.begun);
        u64::try_from(since.as_millis()).unwrap_or(BUSY - 1)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(BUSY - 1)
    }
}

/// Waits with a bound.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub header_wait_ms_max: u64,
    pub idle_ms_max: u64,
    pub write_wait_ms_max: u64,
    pub ended_wait_ms_max: u64,
    pub unsent_bytes_max: usize,
    pub unsent_wait_ms_max: u64,
    /// How long a connection may be without a request before it rests; never where absent.
    pub rest_ms: Option<u64>,
}

impl Limits {
    /// Those of a server; of a connection that can rest or cannot.
    pub fn of(options: &Options, can_rest: bool) -> Self {
        Self {
            header_wait_ms_max: options.header_wait_ms_max,
            idle_ms_max: options.idle_ms_max,
            write_wait_ms_max: options.write_wait_ms_max,
            ended_wait_ms_max: options.ended_wait_ms_max,
            unsent_bytes_max: options.unsent_bytes_max,
            unsent_wait_ms_max: options.unsent_wait_ms_max,
            rest_ms: can_rest.then_some(options.rest_ms),
        }
    }
}

/// A stream of which nothing ambiguous is read, and that gives up on a peer who takes too long.
pub(super) struct Patient<S> {
    stream: Strict<S>,
    waiting: Arc<Waiting>,
    limits: Limits,
    /// What of its answers waits for the peer.
    held: Held,
    /// The head under way: how many requests came before it, and when its first byte came, in
    /// milliseconds.
    head: Option<(u64, u64)>,
    /// Since when the peer takes nothing, in milliseconds.
    stuck_since_ms: Option<u64>,
    /// Since when the peer sends nothing more, in milliseconds.
    ended_since_ms: Option<u64>,
    alarm: Alarm,
}

impl<S> Patient<S> {
    pub fn new(stream: S, waiting: Arc<Waiting>, (limits, held): (Limits, Held)) -> Self {
        let alarm = Alarm::new(waiting.start, limits.idle_ms_max);
        Self {
            stream: Strict::new(stream),
            waiting,
            limits,
            held,
            head: None,
            stuck_since_ms: None,
            ended_since_ms: None,
            alarm,
        }
    }

    /// What it was made of.
    pub fn into_inner(self) -> S {
        self.stream.into_inner()
    }

    /// When it rests, where nothing is under way in either direction.
    fn rests_at_ms(&self) -> Option<u64> {
        let rest_ms = self.limits.rest_ms?;
        let idle_since = self.waiting.idle_since_ms.load(Ordering::Relaxed);
        let requests = self.waiting.requests.load(Ordering::Relaxed);
        let has_begun = self.head.is_some_and(|(before, _)| before == requests);
        let is_quiet = idle_since != BUSY && requests > 0 && !has_begun;
        (is_quiet && self.stuck_since_ms.is_none() && self.stream.is_between())
            .then(|| idle_since.saturating_add(rest_ms))
    }

    /// The end of the present wait for the peer to say something; none while a request is handled.
    fn read_until_ms(&self) -> Option<u64> {
        let idle_since = self.waiting.idle_since_ms.load(Ordering::Relaxed);
        if idle_since == BUSY {
            return None;
        }
        Some(match self.head {
            Some((before, since)) if before == self.waiting.requests.load(Ordering::Relaxed) => {
                since.saturating_add(self.limits.header_wait_ms_max)
            }
            _ => idle_since.saturating_add(self.limits.idle_ms_max),
        })
    }

    /// Keeps the timer set, whose end is not near: nobody calls again when the answer has been sent.
    fn keep_armed(&mut self, cx: &mut Context<'_>) {
        let (waiting, idle_ms_max) = (&self.waiting, self.limits.idle_ms_max);
        let next_ms = || waiting.now_ms().saturating_add(idle_ms_max);
        self.alarm.keep(next_ms, cx);
    }

    /// Bytes have come: of a head, unless a request is being handled, whose body they are.
    fn note_bytes(&mut self) {
        if self.waiting.idle_since_ms.load(Ordering::Relaxed) == BUSY {
            return;
        }
        let before = self.waiting.requests.load(Ordering::Relaxed);
        if self.head.is_none_or(|(known, _)| known != before) {
            self.head = Some((before, self.waiting.about_ms()));
        }
    }

    /// Ready when the peer's end is to be told: at once where no request is being handled that has come whole, and no answer
    /// is on its way.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_busy = self.waiting.idle_since_ms.load(Ordering::Relaxed) == BUSY;
        if !is_busy && self.stuck_since_ms.is_some() {
            // The last of an answer is on its way: whoever writes it is woken, and has a bound.
            return Poll::Pending;
        }
        if !is_busy || !self.stream.is_between() {
            return Poll::Ready(());
        }
        let now = self.waiting.now_ms();
        let since = *self.ended_since_ms.get_or_insert(now);
        self.alarm
            .poll_until(since.saturating_add(self.limits.ended_wait_ms_max), cx)
    }

    /// What became of an attempt to send so many bytes.
    fn written(
        &mut self,
        wanted: usize,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let taken = match &written {
            Poll::Ready(Ok(taken)) => *taken,
            _ => 0,
        };
        self.held.note(wanted, taken, || self.waiting.now_ms());
        if written.is_ready() {
            self.stuck_since_ms = None;
            return written;
        }
        self.poll_stuck(cx)
    }

    fn poll_stuck(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        loop {
            let now = self.waiting.now_ms();
            let since = *self.stuck_since_ms.get_or_insert(now);
            let mut until = since.saturating_add(self.limits.write_wait_ms_max);
            if let Some(since) = self.held.is_too_slow_since_ms(self.limits.unsent_bytes_max) {
                until = until.min(since.saturating_add(self.limits.unsent_wait_ms_max));
            }
            if until <= now {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            // What waits elsewhere may become too much meanwhile.
            ready!(
                self.alarm
                    .poll_until(until.min(now.saturating_add(LOOK_MS)), cx)
            );
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buffer) {
            if read.is_ok() && buffer.filled().len() == before {
                ready!(self.poll_ended(cx));
            }
            self.waiting.reads.fetch_add(1, Ordering::Relaxed);
            self.note_bytes();
            return Poll::Ready(read);
        }
        let Some(until) = self.read_until_ms() else {
            self.keep_armed(cx);
            return Poll::Pending;
        };
        if let Some(rest) = self.rests_at_ms().filter(|rest| *rest < until) {
            ready!(self.alarm.poll_until(rest, cx));
            // Whoever polled looks, and takes the connection apart.
            self.waiting.rests.store(true, Ordering::Relaxed);
            return Poll::Pending;
        }
        ready!(self.alarm.poll_until(until, cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(bytes.len(), written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = poll_write_pieces(Pin::new(&mut self.stream), cx, parts);
        self.written(parts.iter().map(|part| part.len()).sum(), written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        // Nobody reads again once the answer has left: what is woken then reads, and sees that it rests.
        if let Some(rest) = self.rests_at_ms()
            && self.alarm.poll_until(rest, cx).is_ready()
        {
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::super::unsent::Unsent;
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

    fn connection() -> (DuplexStream, Arc<Waiting>, Patient<DuplexStream>) {
        let (client, server) = tokio::io::duplex(64);
        let waiting = Waiting::new();
        let limits = Limits {
            header_wait_ms_max: 60_000,
            idle_ms_max: 60_000,
            write_wait_ms_max: 60_000,
            ended_wait_ms_max: 0,
            unsent_bytes_max: usize::MAX,
            unsent_wait_ms_max: 60_000,
            rest_ms: Some(0),
        };
        let patient = Patient::new(
            server,
            Arc::clone(&waiting),
            (limits, Unsent::default().held()),
        );
        (client, waiting, patient)
    }

    /// Reads what there is.
    async fn read(patient: &mut Patient<DuplexStream>) {
        let mut buffer = [0; 256];
        std::future::poll_fn(|cx| {
            let mut buffer = ReadBuf::new(&mut buffer);
            while Pin::new(&mut *patient)
                .poll_read(cx, &mut buffer)
                .is_ready()
            {}
            Poll::Ready(())
        })
        .await;
    }

    /// Whether it rests, having been asked for what there is to read.
    async fn rests(patient: &mut Patient<DuplexStream>, waiting: &Waiting) -> bool {
        read(patient).await;
        // Its timer, where it has set one, fires before this one.
        tokio::time::sleep(Duration::from_millis(5)).await;
        read(patient).await;
        waiting.rests()
    }

    #[tokio::test]
    async fn a_connection_rests_between_requests_only() {
        let (mut client, waiting, mut patient) = connection();
        assert!(!rests(&mut patient, &waiting).await, "before the first");
        client.write_all(REQUEST).await.unwrap();
        let (begun, ended) = (waiting.clone(), waiting.clone());
        assert!(!rests(&mut patient, &waiting).await);
        begun.busy();
        assert!(!rests(&mut patient, &waiting).await, "it is being handled");
        ended.idle();
        // The next one has begun to come.
        client.write_all(&REQUEST[..7]).await.unwrap();
        assert!(!rests(&mut patient, &waiting).await);
        client.write_all(&REQUEST[7..]).await.unwrap();
        assert!(!rests(&mut patient, &waiting).await);
        begun.busy();
        ended.idle();
        assert!(rests(&mut patient, &waiting).await);
    }

    #[tokio::test]
    async fn a_connection_does_not_rest_before_its_answer_has_left() {
        let (mut client, waiting, mut patient) = connection();
        client.write_all(REQUEST).await.unwrap();
        assert!(!rests(&mut patient, &waiting).await);
        waiting.busy();
        let answer = [b'x'; 100];
        let mut left = 0;
        let mut write = |patient: &mut Patient<DuplexStream>, cx: &mut Context<'_>| {
            while let Some(rest) = answer.get(left..).filter(|rest| !rest.is_empty()) {
                match Pin::new(&mut *patient).poll_write(cx, rest) {
                    Poll::Ready(written) => left += written.unwrap(),
                    Poll::Pending => break,
                }
            }
            Poll::Ready(())
        };
        std::future::poll_fn(|cx| write(&mut patient, cx)).await;
        waiting.idle();
        assert!(!rests(&mut patient, &waiting).await, "some of it waits");
        client.read_exact(&mut [0; 64]).await.unwrap();
        std::future::poll_fn(|cx| write(&mut patient, cx)).await;
        assert!(rests(&mut patient, &waiting).await);
    }

    #[tokio::test]
    async fn a_connection_is_woken_to_rest_though_nobody_reads_after_its_answer() {
        let (mut client, waiting, mut patient) = connection();
        client.write_all(REQUEST).await.unwrap();
        read(&mut patient).await;
        waiting.busy();
        waiting.idle();
        let mut has_flushed = false;
        let woken = std::future::poll_fn(|cx| {
            let patient = Pin::new(&mut patient);
            if !std::mem::replace(&mut has_flushed, true) {
                assert!(patient.poll_flush(cx).is_ready());
                return Poll::Pending;
            }
            let mut buffer = [0; 16];
            let read = patient.poll_read(cx, &mut ReadBuf::new(&mut buffer));
            assert!(read.is_pending());
            Poll::Ready(())
        });
        tokio::time::timeout(Duration::from_secs(30), woken)
            .await
            .unwrap();
        assert!(waiting.rests());
    }

    #[tokio::test]
    async fn a_connection_does_not_rest_amid_a_body() {
        let (mut client, waiting, mut patient) = connection();
        let head = b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n";
        client.write_all(head).await.unwrap();
        assert!(!rests(&mut patient, &waiting).await);
        waiting.busy();
        // Answered before all of it has come.
        waiting.idle();
        assert!(!rests(&mut patient, &waiting).await);
        waiting.busy();
        client.write_all(b"ab").await.unwrap();
        assert!(!rests(&mut patient, &waiting).await);
        waiting.idle();
        assert!(rests(&mut patient, &waiting).await);
    }
}
