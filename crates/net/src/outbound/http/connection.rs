//! One connection, driven by whoever uses it.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::runtime::{Handle, Id};
use tokio::time::Instant;

use super::fault::HttpFault;
use super::stream::Stream;
use super::turns::Turns;
use crate::alarm::{Alarm, about};

/// When a new connection looks at its alarm, in milliseconds: it is set to the end of a wait that lasts so long.
const ALARM_MS: u64 = 60_000;

type Driver = http1::Connection<TokioIo<Stream>, Full<Bytes>>;

pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Absent once the connection has ended.
    driver: Option<Driver>,
    /// Since when nobody uses it, by the clock of [`about`].
    idle_since: Duration,
    /// The runtime that hears from the kernel when something has come.
    home: Option<Id>,
    turns: Turns,
    /// When it was opened, by the clock of [`about`].
    opened: Duration,
    /// Ends the wait for a reply.
    alarm: Alarm,
}

/// Why a request has no answer.
pub(super) enum Unanswered {
    /// Nothing of it was written.
    NotSent(Box<Request<Full<Bytes>>>),
    Fault(HttpFault),
}

/// When a wait ends, by the clock of [`about`].
#[derive(Debug, Clone, Copy)]
pub(super) struct End(Duration);

impl End {
    /// So many milliseconds from now.
    pub(super) fn after_ms(ms: u64) -> Self {
        Self(about().saturating_add(Duration::from_millis(ms)))
    }

    /// How much is left.
    pub(super) fn left(self) -> Duration {
        self.0.saturating_sub(about())
    }

    fn since_ms(self, start: Duration) -> u64 {
        u64::try_from(self.0.saturating_sub(start).as_millis()).unwrap_or(u64::MAX)
    }
}

/// The present runtime.
pub(super) fn here() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl Connection {
    pub(super) async fn open(stream: Stream, head_bytes_max: usize) -> Result<Self, HttpFault> {
        let (sender, driver) = http1::Builder::new()
            .max_header_size(head_bytes_max)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| HttpFault::of(&error))?;
        Ok(Self {
            sender,
            driver: Some(driver),
            idle_since: about(),
            home: here(),
            turns: Turns::default(),
            opened: about(),
            alarm: Alarm::new(Instant::now(), ALARM_MS),
        })
    }

    /// From now on nobody uses it.
    pub(super) fn rests(&mut self) {
        self.idle_since = about();
    }

    /// Whether nobody has used it for so long.
    pub(super) fn is_stale(&self, idle_time: Duration) -> bool {
        about().saturating_sub(self.idle_since) >= idle_time
    }

    /// Whether what comes wakes nobody but the present runtime.
    pub(super) fn is_at(&self, runtime: Option<Id>) -> bool {
        self.home == runtime
    }

    /// The same connection at the present runtime; none where it does not hold. An encrypted one stays where it is, which
    /// costs a wake from there for all that comes.
    pub(super) async fn moved(mut self, head_bytes_max: usize) -> Option<Self> {
        let parts = self.driver.take()?.into_parts();
        let stream = parts.io.into_inner();
        // What it has said unasked would be lost.
        if !parts.read_buf.is_empty() {
            return None;
        }
        let home = self.home;
        let is_moved = matches!(stream, Stream::Plain(_));
        let mut moved = Self::open(stream.moved().ok()?, head_bytes_max)
            .await
            .ok()?;
        if !is_moved {
            moved.home = home;
        }
        Some(moved)
    }

    /// Sends a request and waits for the head of the reply, until `end` at most.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        end: End,
    ) -> Result<Response<Incoming>, Unanswered> {
        let until_ms = end.since_ms(self.opened);
        let mut answer = pin!(self.sender.try_send_request(request));
        let outcome = poll_fn(|cx| {
            self.turns.take(cx, |cx| {
                // The answer is there, if at all, after the driver has done what it can.
                drive(&mut self.driver, cx);
                match answer.as_mut().poll(cx) {
                    Poll::Ready(answer) => Poll::Ready(Some(answer)),
                    Poll::Pending => self.alarm.poll_until(until_ms, cx).map(|()| None),
                }
            })
        });
        match outcome.await {
            Some(Ok(response)) => Ok(response),
            Some(Err(mut error)) => Err(match error.take_message() {
                Some(unsent) => Unanswered::NotSent(Box::new(unsent)),
                None => Unanswered::Fault(HttpFault::of(error.error())),
            }),
            None => Err(Unanswered::Fault(HttpFault::HeadTimeout)),
        }
    }

    /// The next bytes of a body that comes over this connection; `None` at its end.
    pub(super) fn poll_body(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, HttpFault>>> {
        // What came with the head is there before the driver has another turn, and asking for more is what makes it read.
        self.turns.take(cx, |cx| {
            while let Poll::Ready(frame) = std::pin::Pin::new(&mut *body).poll_frame(cx) {
                match frame {
                    None => return Poll::Ready(None),
                    Some(Err(error)) => return Poll::Ready(Some(Err(HttpFault::of(&error)))),
                    Some(Ok(frame)) => {
                        // Trailers are of no use to anyone here.
                        if let Ok(data) = frame.into_data() {
                            return Poll::Ready(Some(Ok(data)));
                        }
                    }
                }
            }
            drive(&mut self.driver, cx);
            Poll::Pending
        })
    }

    /// Whether a request may be sent on it: it was not closed, and the last reply has ended.
    pub(super) fn is_ready(&mut self) -> bool {
        drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }
}

fn drive(driver: &mut Option<Driver>, cx: &mut Context<'_>) {
    // What went wrong is told to the answer or the body.
    if let Some(driving) = driver
        && driving.poll_without_shutdown(cx).is_ready()
    {
        *driver = None;
    }
}
