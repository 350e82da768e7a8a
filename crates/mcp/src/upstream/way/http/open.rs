//! Sending a message and taking the beginning of what comes back: connecting again, opening the
//! session again, and one more try where that does no harm.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use net::outbound::http::{HttpFault, Reply, StatusCode, header};
use wire::jsonrpc::member;
use wire::{Bounds, Era, SseParser, scan_reply};

use super::outline::Outline;
use super::session::{HttpSession, session_id_of};
use super::{ERROR_BYTES_MAX, RECONNECT_PAUSE_MS, older, renew};
use crate::message::era;
use crate::message::frames::{self, Failure, UpstreamFault as Fault};
use crate::message::method::{self, Repeat};
use crate::upstream::message_bytes_max;

/// What has begun to come back.
pub(super) enum Opened {
    /// The message was accepted; nothing comes back on it.
    Accepted,
    /// One message (or a batch).
    Body(Bytes),
    /// A stream of events.
    Stream(Box<Events>),
}

/// A stream of events that is being read.
pub(super) struct Events {
    pub reply: Reply,
    pub parser: SseParser,
}

impl Events {
    pub(super) fn new(session: &HttpSession, reply: Reply) -> Self {
        Self {
            reply,
            parser: SseParser::new(message_bytes_max(&session.gate)),
        }
    }

    /// The name of the first event that carries something; none where there is no such event.
    pub(super) async fn first_name(&mut self) -> Option<Vec<u8>> {
        loop {
            while let Some(event) = self.parser.next().ok()? {
                if !event.data.is_empty() {
                    return Some(event.name.to_vec());
                }
            }
            let bytes = self.reply.chunk().await.ok()??;
            self.parser.push(&bytes);
        }
    }

    /// The data of the next event that is a message; `None` at the end of the stream. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            while let Some(event) = self
                .parser
                .next()
                .map_err(|_| Failure::from(Fault::Oversize))?
            {
                let message = matches!(event.name, b"" | b"message");
                if message && !event.data.is_empty() {
                    return Ok(Some(event.data.to_vec()));
                }
            }
            match self.reply.chunk().await {
                Ok(Some(bytes)) => self.parser.push(&bytes),
                Ok(None) => return Ok(None),
                Err(fault) => return Err(failure_of(&fault)),
            }
        }
    }
}

/// What has begun to come back, and how many more tries may be made.
pub(super) type Outcome = Result<(Opened, u8), Failure>;

/// Sends the message. `retries` more tries are made where they can do no harm.
pub(super) async fn open(
    session: Arc<HttpSession>,
    outline: Arc<Outline>,
    body: Bytes,
    mut retries: u8,
) -> Outcome {
    let mut renewed = false;
    // How an earlier try ended that may have been worked on.
    let mut lost = None;
    loop {
        let generation = session.generation();
        let reply = match send(&session, &outline, &body).await {
            Ok(reply) => reply,
            Err(fault) if retries > 0 && may_have_been_lost(&fault) => {
                if !is_repeatable(&session, &outline) {
                    return Err(failure_of(&fault));
                }
                retries -= 1;
                lost = Some(fault);
                continue;
            }
            Err(fault) => return Err(failure_of(lost.as_ref().unwrap_or(&fault))),
        };
        match read(&session, &outline, reply).await? {
            Read::Opened(opened) => return Ok((opened, retries)),
            Read::SessionUnknown if renewed => return Err(Fault::SessionLost.into()),
            Read::SessionUnknown => {
                Box::pin(renew::renew(&session, generation)).await?;
                renewed = true;
            }
        }
    }
}

/// Sends a message, connecting again for a while where nobody listens: nothing was sent then.
pub(super) async fn send(
    session: &HttpSession,
    outline: &Outline,
    body: &Bytes,
) -> Result<Reply, HttpFault> {
    let mut pause = Duration::from_millis(RECONNECT_PAUSE_MS);
    let wait = Duration::from_millis(session.reconnect_ms_max);
    let mut failed_at = None;
    loop {
        match session.post(outline, body).await {
            Err(HttpFault::Unreachable(_) | HttpFault::NotSent)
                if failed_at.get_or_insert_with(Instant::now).elapsed() < wait =>
            {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            outcome => return outcome,
        }
    }
}

/// Whether the message may or may not have been worked on.
fn may_have_been_lost(fault: &HttpFault) -> bool {
    match fault {
        HttpFault::Broken | HttpFault::NotSent => true,
        HttpFault::Unreachable(_)
        | HttpFault::ConnectTimeout
        | HttpFault::Tls(_)
        | HttpFault::Busy
        | HttpFault::HeadTimeout
        | HttpFault::HeadTooLong
        | HttpFault::BodyTooLong
        | HttpFault::Malformed => false,
    }
}

/// Whether the message may be sent again although it may have been worked on.
pub(super) fn is_repeatable(session: &HttpSession, outline: &Outline) -> bool {
    match method::of(&outline.method).repeat {
        Repeat::Never => false,
        Repeat::Always => true,
        Repeat::AsToolSays => outline
            .name
            .as_deref()
            .is_some_and(|tool| session.tools().is_repeatable(tool)),
    }
}

enum Read {
    Opened(Opened),
    SessionUnknown,
}

async fn read(session: &HttpSession, outline: &Outline, mut reply: Reply) -> Result<Read, Failure> {
    let status = reply.status();
    if status.is_redirection() {
        return Err(redirected(&reply));
    }
    if reply.headers().contains_key(header::CONTENT_ENCODING) {
        return Err(
            Fault::UnfitReply.because("it is compressed, but compression was not requested")
        );
    }
    if !status.is_success() {
        // Rare, and so large that every call would carry room for it.
        return Box::pin(refused(session, outline, reply)).await;
    }
    if outline.method == "initialize" {
        let id = session_id_of(&reply).map_err(|()| {
            Fault::UnfitReply.because("its session id is given twice or is not fit for a header")
        })?;
        session.is_open(id, None);
        session.has_opened();
    }
    if !outline.is_request() {
        // What little may follow is read, so that the connection can be used again.
        drop(reply.bytes(ERROR_BYTES_MAX).await);
        return Ok(Read::Opened(Opened::Accepted));
    }
    match content_of(&reply)? {
        Content::Json => {
            let bytes = reply.bytes(message_bytes_max(&session.gate)).await;
            let bytes = bytes.map_err(|fault| failure_of(&fault))?;
            Ok(Read::Opened(Opened::Body(bytes)))
        }
        Content::Events => Ok(Read::Opened(Opened::Stream(Box::new(Events::new(
            session, reply,
        ))))),
        Content::Nothing => Ok(Read::Opened(Opened::Accepted)),
    }
}

enum Content {
    Json,
    Events,
    Nothing,
}

fn content_of(reply: &Reply) -> Result<Content, Failure> {
    let value = reply
        .header(&header::CONTENT_TYPE)
        .map_err(|_| Fault::UnfitReply.because("its content type is given twice"))?;
    let Some(value) = value else {
        if reply.status() == StatusCode::OK {
            return Err(Fault::UnfitReply.because("it has no content type"));
        }
        return Ok(Content::Nothing);
    };
    let kind = value.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Ok(Content::Json)
    } else if kind.eq_ignore_ascii_case("text/event-stream") {
        Ok(Content::Events)
    } else {
        let kind: String = kind.chars().take(64).collect();
        Err(Fault::UnfitReply.because(format!(
            "its content type is {}, not application/json or text/event-stream",
            kind.escape_debug()
        )))
    }
}

/// A stream that was asked for with GET.
pub(super) fn stream_of(session: &HttpSession, reply: Reply) -> Result<Events, Failure> {
    if reply.status().is_redirection() {
        return Err(redirected(&reply));
    }
    if !reply.status().is_success() {
        return Err(status_failure(reply.status()));
    }
    if reply.headers().contains_key(header::CONTENT_ENCODING) {
        return Err(
            Fault::UnfitReply.because("it is compressed, but compression was not requested")
        );
    }
    match content_of(&reply)? {
        Content::Events => Ok(Events::new(session, reply)),
        Content::Json | Content::Nothing => {
            Err(Fault::UnfitReply.because("a stream of events was requested"))
        }
    }
}

/// A reply whose status is an error: a message all the same, a session that is gone, or a failure.
async fn refused(
    session: &HttpSession,
    outline: &Outline,
    mut reply: Reply,
) -> Result<Read, Failure> {
    let status = reply.status();
    let json = matches!(content_of(&reply), Ok(Content::Json));
    let body = reply.bytes(ERROR_BYTES_MAX).await.unwrap_or_default();
    let in_session = session.era() != Some(Era::Modern)
        && session.has_session()
        && outline.method != "initialize";
    if in_session && (status == StatusCode::NOT_FOUND || complains_of_session(status, &body)) {
        return Ok(Read::SessionUnknown);
    }
    if let (true, Some((id, _))) = (json, &outline.id)
        && let Some(error) = error_message(&body, id)
    {
        return Ok(Read::Opened(Opened::Body(error)));
    }
    let modern = outline.version.is_some();
    if modern && complains_of_session(status, &body) {
        return Err(Fault::EraMismatch.because(era::sentence(Era::Modern)));
    }
    let opens = matches!(&*outline.method, "initialize" | "server/discover");
    if opens && older::is_spoken(session, status).await {
        let status = status.as_u16();
        return Err(Fault::HttpStatus.because(format!("status {status}; {}", older::ADVICE)));
    }
    Err(status_failure(status))
}

/// Some servers say 400 where the specification says 404.
fn complains_of_session(status: StatusCode, body: &[u8]) -> bool {
    status == StatusCode::BAD_REQUEST
        && String::from_utf8_lossy(body)
            .to_ascii_lowercase()
            .contains("session")
}

/// The body, if it is an error message. Whatever id it has, it is about our request: servers that
/// have not read the request do not know its id, and not all say `null`.
fn error_message(body: &[u8], id: &str) -> Option<Bytes> {
    let bounds = Bounds::default();
    let scan = scan_reply(body, &bounds).ok()?;
    member(&scan.members, "id")?;
    let error = scan_reply(member(&scan.members, "error")?.as_bytes(), &bounds).ok()?;
    member(&error.members, "code")?;
    Some(frames::with_id(&scan, id).into())
}

fn status_failure(status: StatusCode) -> Failure {
    let fault = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Fault::Unauthorized,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Fault::Overloaded,
        _ => Fault::HttpStatus,
    };
    Failure {
        status: Some(status.as_u16()),
        ..fault.because(format!("status {}", status.as_u16()))
    }
}

fn redirected(reply: &Reply) -> Failure {
    /// Longest part of a target that is shown, in characters.
    const SHOWN_CHARS_MAX: usize = 200;
    let place = match reply.header(&header::LOCATION) {
        Ok(Some(location)) => location,
        _ => "nowhere",
    };
    // Not the query: keys are often found there.
    let place = place.split(['?', '#']).next().unwrap_or_default();
    let place: String = place.chars().take(SHOWN_CHARS_MAX).collect();
    Fault::Redirected.because(format!(
        "status {} to {}",
        reply.status().as_u16(),
        place.escape_debug()
    ))
}

/// What a fault of the connection means to a caller.
pub(super) fn failure_of(fault: &HttpFault) -> Failure {
    let kind = match fault {
        HttpFault::Unreachable(_) | HttpFault::ConnectTimeout | HttpFault::NotSent => {
            Fault::Unreachable
        }
        HttpFault::Tls(_) => Fault::Tls,
        HttpFault::Busy => Fault::Busy,
        HttpFault::HeadTimeout => return Fault::Timeout.into(),
        HttpFault::HeadTooLong | HttpFault::Malformed => Fault::UnfitReply,
        HttpFault::BodyTooLong => return Fault::Oversize.into(),
        HttpFault::Broken => return Fault::Broken.into(),
    };
    kind.because(fault.to_string())
}
