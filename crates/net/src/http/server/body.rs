//! Requests as they are read, responses as they are sent.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::body_budget::{BodyPermit, BodyShare, Revoked};
use super::listen::Peer;
use super::timeouts::Waiting;
use super::user::Ends;
use crate::quiet::quietly;

/// Most of a body beyond its bound that is read before the connection is closed, in bytes.
const DRAINED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long that may take, in milliseconds.
const DRAIN_WAIT_MS_MAX: u64 = 5_000;

/// A request whose names have been checked.
#[derive(Debug)]
pub struct Request {
    /// Method, target, headers.
    pub head: Box<http::request::Parts>,
    pub(super) ends: Arc<Ends>,
    pub(super) body: Incoming,
    pub(super) body_bytes_max: usize,
    pub(super) body_wait_ms_max: u64,
    /// The caller's share of the byte budget for bodies; `None` is unbounded.
    pub(super) share: Option<BodyShare>,
}

/// Why a body was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFault {
    /// It is longer than it may be.
    TooLong,
    /// It took longer than it may.
    TooSlow,
    /// The connection broke, or the body's framing is wrong.
    Broken,
    /// The byte budget of its caller, or of all callers, is exhausted.
    BudgetExhausted,
    /// Its caller's key was revoked before it had arrived.
    Revoked,
}

impl BodyFault {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 5] = [
        Self::TooLong,
        Self::TooSlow,
        Self::Broken,
        Self::BudgetExhausted,
        Self::Revoked,
    ];

    /// The closed label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::TooLong => "body_too_long",
            Self::TooSlow => "body_too_slow",
            Self::Broken => "body_broken",
            Self::BudgetExhausted => "too_many_bodies",
            Self::Revoked => "caller_expelled",
        }
    }

    /// One sentence for whoever sent it.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::TooLong => "the body is longer than this server takes",
            Self::TooSlow => "the body took too long to arrive",
            Self::Broken => "the body could not be read to its end",
            Self::BudgetExhausted => {
                "too many bodies are being read; try again when some have ended"
            }
            Self::Revoked => "the key was revoked while the body was being read",
        }
    }

    /// The status of the answer.
    #[must_use]
    pub fn status(self) -> http::StatusCode {
        match self {
            Self::TooLong => http::StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => http::StatusCode::REQUEST_TIMEOUT,
            Self::Broken => http::StatusCode::BAD_REQUEST,
            Self::BudgetExhausted => http::StatusCode::SERVICE_UNAVAILABLE,
            Self::Revoked => http::StatusCode::UNAUTHORIZED,
        }
    }
}

impl Request {
    /// Who sent it.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.ends.peer()
    }

    /// The user (uid) whose process sent it, where it came from this machine and that can be known.
    pub async fn user(&self) -> Option<u32> {
        self.ends.user().await
    }

    /// Takes a body of at most this many bytes, whatever the server's own bound is.
    pub fn take_at_most(&mut self, body_bytes_max: usize) {
        self.body_bytes_max = body_bytes_max;
    }

    /// Bounds the body by this caller's share of the byte budget.
    pub fn set_body_share(&mut self, share: BodyShare) {
        self.share = Some(share);
    }

    /// Reads the body to its end. A body that came in one piece is not copied.
    ///
    /// # Errors
    /// A [`BodyFault`]; the connection is then closed after the answer.
    pub async fn read_body(&mut self) -> Result<Bytes, BodyFault> {
        let body = self.read_whole().await?;
        Ok(body.bytes)
    }

    /// Reads the body with its permit of the byte budget, for which it waits as long as a body may take.
    ///
    /// # Errors
    /// As [`Request::read_body`].
    pub async fn read_whole(&mut self) -> Result<Whole, BodyFault> {
        let read = self.whole_body().await;
        if matches!(read, Err(BodyFault::TooLong)) {
            self.drain().await;
        }
        read
    }

    async fn whole_body(&mut self) -> Result<Whole, BodyFault> {
        let announced = usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > self.body_bytes_max {
            return Err(BodyFault::TooLong);
        }
        if self.body.is_end_stream() {
            return Ok(Whole::default());
        }
        let revoked = self.share.as_mut().and_then(BodyShare::take_revoked);
        let mut whole = Collecting {
            bytes_max: self.body_bytes_max,
            announced,
            wait: Duration::from_millis(self.body_wait_ms_max),
            until: None,
            share: self.share.as_ref(),
            revoked,
            permit: None,
        };
        let bytes = whole.collect(&mut self.body).await?;
        Ok(Whole {
            bytes,
            permit: whole.permit,
        })
    }

    /// Reads on where a body is too long, and forgets what it reads: a client that is still writing would be cut off
    /// before it reads why it is refused. One that asks first (`Expect`) has not begun to write.
    async fn drain(&mut self) {
        if self.head.headers.contains_key(http::header::EXPECT) {
            return;
        }
        let body = &mut self.body;
        let forget = async move {
            let mut drained = 0;
            while drained < DRAINED_BYTES_MAX {
                match next_data(body).await {
                    Ok(Some(part)) => drained += part.len(),
                    Ok(None) | Err(_) => return,
                }
            }
        };
        let wait = Duration::from_millis(DRAIN_WAIT_MS_MAX);
        // What is not read by then is cut off.
        drop(tokio::time::timeout(wait, forget).await);
    }
}

/// A body that was read, and its part of the byte budget.
#[derive(Debug, Default)]
pub struct Whole {
    /// Its bytes.
    pub bytes: Bytes,
    permit: Option<BodyPermit>,
}

impl Whole {
    /// Frees the bytes and returns their permit, for what was made of them.
    #[must_use]
    pub fn into_permit(self) -> impl Send + use<> {
        self.permit
    }
}

/// A body on its way in.
struct Collecting<'s> {
    bytes_max: usize,
    /// How long it will be at least.
    announced: usize,
    wait: Duration,
    /// Until when, once something of it is waited for.
    until: Option<Instant>,
    share: Option<&'s BodyShare>,
    revoked: Option<Revoked>,
    /// Reserved as soon as there is more than one piece.
    permit: Option<BodyPermit>,
}

impl Collecting<'_> {
    async fn collect(&mut self, body: &mut Incoming) -> Result<Bytes, BodyFault> {
        let Some(first) = self.next(body).await? else {
            return Ok(Bytes::new());
        };
        if first.len() > self.bytes_max {
            return Err(BodyFault::TooLong);
        }
        if body.is_end_stream() {
            return Ok(first);
        }
        self.reserve(first.len().max(self.announced)).await?;
        let Some(second) = self.next(body).await? else {
            return Ok(first);
        };
        let mut whole = BytesMut::with_capacity(self.announced.max(first.len() + second.len()));
        whole.extend_from_slice(&first);
        let mut more = Some(second);
        while let Some(part) = more {
            let length = whole.len() + part.len();
            if length > self.bytes_max {
                return Err(BodyFault::TooLong);
            }
            self.reserve(length).await?;
            whole.extend_from_slice(&part);
            more = self.next(body).await?;
        }
        Ok(whole.freeze())
    }

    async fn next(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, BodyFault> {
        // What is there takes no timer.
        let there = std::future::poll_fn(|cx| Poll::Ready(poll_data(body, cx)));
        if let Poll::Ready(data) = there.await {
            return data;
        }
        let until = self.until();
        let data = unless_revoked(&mut self.revoked, next_data(body));
        tokio::time::timeout_at(until, data)
            .await
            .unwrap_or(Err(BodyFault::TooSlow))
    }

    fn until(&mut self) -> Instant {
        *self.until.get_or_insert_with(|| Instant::now() + self.wait)
    }

    async fn reserve(&mut self, bytes: usize) -> Result<(), BodyFault> {
        let until = self.until();
        let Some(share) = self.share else {
            return Ok(());
        };
        let permit = self.permit.get_or_insert_with(|| share.permit());
        let reserve = async {
            permit
                .reserve(bytes)
                .await
                .ok_or(BodyFault::BudgetExhausted)
        };
        let reserved = unless_revoked(&mut self.revoked, reserve);
        tokio::time::timeout_at(until, reserved)
            .await
            .unwrap_or(Err(BodyFault::BudgetExhausted))
    }
}

/// Returns the result of `work`, or that the credential was revoked before.
async fn unless_revoked<T>(
    revoked: &mut Option<Revoked>,
    work: impl Future<Output = Result<T, BodyFault>>,
) -> Result<T, BodyFault> {
    let Some(revoked) = revoked else {
        return work.await;
    };
    tokio::select! {
        biased;
        () = revoked => Err(BodyFault::Revoked),
        done = work => done,
    }
}

/// The next piece of data; trailers are passed over.
async fn next_data(body: &mut Incoming) -> Result<Option<Bytes>, BodyFault> {
    std::future::poll_fn(|cx| poll_data(body, cx)).await
}

fn poll_data(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyFault>> {
    while let Some(frame) = ready!(poll_frame(body, cx)) {
        if let Ok(data) = frame.map_err(|_| BodyFault::Broken)?.into_data() {
            return Poll::Ready(Ok(Some(data)));
        }
    }
    Poll::Ready(Ok(None))
}

/// Takes a frame, of which hyper tells the connection: that is the task which runs, and nothing is left to do for it where
/// the body has ended.
fn poll_frame(
    body: &mut Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    let (frame, woken) = quietly(|| Pin::new(&mut *body).poll_frame(cx));
    if let Some(woken) = woken
        && !(frame.is_ready() && body.is_end_stream())
    {
        woken.wake();
    }
    frame
}

/// What a handler answers.
pub type Response = http::Response<ResponseBody>;

/// The body of an answer: whole, or sent as it comes.
#[derive(Debug, Default)]
pub struct ResponseBody(Kind);

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Empty,
    Whole(Bytes),
    Stream(mpsc::Receiver<Bytes>),
    Parts(Box<dyn Parts>),
}

/// The parts of a body, made when the client can take them. A client that goes away drops it.
pub trait Parts: Send + fmt::Debug {
    /// The next part; `None` at the end. An empty part is passed over.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

impl ResponseBody {
    /// A body whose parts are asked for one by one, on the connection's own task.
    #[must_use]
    pub fn parts(parts: Box<dyn Parts>) -> Self {
        Self(Kind::Parts(parts))
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self(if bytes.is_empty() {
            Kind::Empty
        } else {
            Kind::Whole(bytes)
        })
    }
}

impl From<Vec<u8>> for ResponseBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<&'static str> for ResponseBody {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

/// A body that is sent part by part, and its sender. At most `parts_max` parts wait to be sent.
/// Dropping the sender ends the body; a client that goes away drops the body.
#[must_use]
pub fn stream(parts_max: usize) -> (StreamSender, ResponseBody) {
    let (sender, receiver) = mpsc::channel(parts_max.max(1));
    (StreamSender(sender), ResponseBody(Kind::Stream(receiver)))
}

/// Sends the parts of a body.
#[derive(Debug, Clone)]
pub struct StreamSender(mpsc::Sender<Bytes>);

/// Nobody reads the body any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamClosed;

impl fmt::Display for StreamClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client has gone")
    }
}

impl std::error::Error for StreamClosed {}

impl StreamSender {
    /// Sends a part as soon as there is room for it.
    ///
    /// # Errors
    /// Where the client has gone.
    pub async fn send(&self, part: Bytes) -> Result<(), StreamClosed> {
        // An empty part would end the body in the transfer coding of HTTP/1.1.
        if part.is_empty() {
            return Ok(());
        }
        self.0.send(part).await.map_err(|_| StreamClosed)
    }

    /// Sends a part if there is room for it now; `false` where there is not.
    ///
    /// # Errors
    /// Where the client has gone.
    pub fn try_send(&self, part: Bytes) -> Result<bool, StreamClosed> {
        match self.0.try_send(part) {
            Ok(()) => Ok(true),
            Err(mpsc::error::TrySendError::Full(_)) => Ok(false),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(StreamClosed),
        }
    }

    /// Waits until the client has gone.
    pub async fn closed(&self) {
        self.0.closed().await;
    }

    /// Whether the client has gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// A response's body on its way; its end makes the connection idle.
pub(super) struct Sent {
    body: ResponseBody,
    waiting: Arc<Waiting>,
}

impl Sent {
    pub fn new(body: ResponseBody, waiting: Arc<Waiting>) -> Self {
        Self { body, waiting }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.waiting.idle();
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.body.0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                self.body.0 = Kind::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Kind::Stream(parts) => parts
                .poll_recv(cx)
                .map(|part| part.map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Parts(parts) => loop {
                match ready!(parts.poll_part(cx)) {
                    // It would end the body in the transfer coding of HTTP/1.1.
                    Some(part) if part.is_empty() => {}
                    part => return Poll::Ready(part.map(|bytes| Ok(Frame::data(bytes)))),
                }
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.body.0, Kind::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(bytes) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            Kind::Stream(_) | Kind::Parts(_) => SizeHint::default(),
        }
    }
}
