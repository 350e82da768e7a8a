//! One message sent, and all that comes back on it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use wire::jsonrpc::{Kind, member, string};
use wire::{Bounds, Era, scan_reply};

use super::open::{self, Events, Opened, Outcome};
use super::outline::Outline;
use super::session::HttpSession;
use crate::message::frames::{self, Failure, UpstreamFault as Fault};
use crate::message::reply::{IS_ERROR, Reply, place};
use crate::message::shapes;
use crate::notes::Note;

/// Most times that a message is sent again although it may have been worked on, where that does no harm.
const RETRIES_MAX: u8 = 1;
/// Most times that a broken stream is resumed without anything new on it.
const RESUMES_MAX: u8 = 5;
/// Shortest, usual and longest wait before a stream is resumed, in milliseconds.
const RESUME_MS: (u64, u64, u64) = (50, 1_000, 30_000);
/// How long the end of a stream is waited for after its answer, in milliseconds, so that the
/// connection can be used again.
const LINGER_MS_MAX: u64 = 250;

/// What comes from the server on an exchange.
#[derive(Debug)]
pub enum Incoming {
    /// A notification or a request of the server.
    Message(Vec<u8>),
    /// The answer, under the id that was asked with. Nothing follows.
    Response(Reply),
    /// There will be no answer. Nothing follows.
    Failed(Failure),
    /// Something was dropped and is to be noted, in these words.
    Odd(Note, &'static str),
}

/// One message sent, and all that comes back on it. Dropped early it closes its connection: to a
/// server of the Modern era that cancels the call.
pub struct Exchange {
    session: Arc<HttpSession>,
    outline: Arc<Outline>,
    body: Bytes,
    stage: Stage,
    queue: VecDeque<Incoming>,
    resumes_left: u8,
    retries_left: u8,
}

enum Stage {
    Opening(Pin<Box<dyn Future<Output = Outcome> + Send>>),
    Stream(Box<Events>),
    /// The answer was given out; the stream may not have ended.
    Answered(Option<Box<Events>>),
}

impl Exchange {
    pub(super) fn new(session: Arc<HttpSession>, outline: Outline, body: Bytes) -> Self {
        let outline = Arc::new(outline);
        let held_back = outline.is_request().then(|| session.held_back()).flatten();
        let what = (Arc::clone(&session), Arc::clone(&outline), body.clone());
        let opening = async move {
            if let Some(mut held_back) = held_back {
                // Without a session there is nobody to be told, which is seen soon enough.
                drop(held_back.wait_for(|held| !*held).await);
            }
            let (session, outline, body) = what;
            open::open(session, outline, body, RETRIES_MAX).await
        };
        Self {
            session,
            outline,
            body,
            stage: Stage::Opening(Box::pin(opening)),
            queue: VecDeque::new(),
            resumes_left: RESUMES_MAX,
            retries_left: 0,
        }
    }

    /// The id of the request as spelled; absent for other messages, which have no answer.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.outline.id.as_ref().map(|(raw, _)| raw.as_str())
    }

    /// The next thing that comes back; `None` after the answer or failure, and once a message that
    /// wants no answer was accepted. Cancel-safe.
    pub async fn next(&mut self) -> Option<Incoming> {
        loop {
            if let Some(incoming) = self.queue.pop_front() {
                return Some(incoming);
            }
            match &mut self.stage {
                Stage::Answered(_) => return None,
                Stage::Opening(opening) => {
                    let outcome = opening.as_mut().await;
                    self.stage = Stage::Answered(None);
                    self.on_opened(outcome);
                }
                Stage::Stream(events) => match events.next().await {
                    Ok(Some(frame)) => {
                        self.resumes_left = RESUMES_MAX;
                        self.on_frame(frame, false);
                    }
                    Ok(None) => self.on_stream_end(Fault::NoAnswer.into()),
                    Err(failure) => self.on_stream_end(failure),
                },
            }
        }
    }

    /// After the answer: waits for the end of the stream, so that the connection can be used again.
    pub async fn finish(self) {
        let Stage::Answered(Some(mut events)) = self.stage else {
            return;
        };
        let end = async { while let Ok(Some(_)) = events.next().await {} };
        drop(tokio::time::timeout(Duration::from_millis(LINGER_MS_MAX), end).await);
    }

    /// The same, without keeping the caller waiting.
    pub fn finish_aside(mut self) {
        let Stage::Answered(Some(events)) = &mut self.stage else {
            return;
        };
        // More often than not the end has come with the answer.
        let mut now = Context::from_waker(Waker::noop());
        let end = std::pin::pin!(events.next()).poll(&mut now);
        if !matches!(end, Poll::Ready(Ok(None) | Err(_))) {
            tokio::spawn(self.finish());
        }
    }

    fn on_opened(&mut self, outcome: Outcome) {
        let opened = outcome.map(|(opened, retries_left)| {
            self.retries_left = retries_left;
            opened
        });
        match opened {
            Ok(Opened::Accepted) if self.outline.is_request() => {
                self.queue
                    .push_back(Incoming::Failed(Fault::NoAnswer.into()));
            }
            Ok(Opened::Accepted) => {}
            Ok(Opened::Body(bytes)) => self.on_body(&bytes),
            Ok(Opened::Stream(events)) => self.stage = Stage::Stream(events),
            Err(failure) => self.queue.push_back(Incoming::Failed(failure)),
        }
    }

    /// A reply that is not a stream: one message, or in the oldest revisions a batch.
    fn on_body(&mut self, bytes: &Bytes) {
        // One message, which nearly every reply is, is read below and only there.
        let is_list = bytes.trim_ascii_start().starts_with(b"[");
        let batch = is_list
            .then(|| scan_reply(bytes, &Bounds::default()).ok()?.batch)
            .flatten();
        let elements: Option<Vec<Vec<u8>>> =
            batch.map(|batch| batch.iter().map(|e| e.as_bytes().to_vec()).collect());
        match elements {
            Some(elements) => elements
                .into_iter()
                .for_each(|frame| self.on_frame(frame, true)),
            None => self.on_frame(bytes.to_vec(), true),
        }
        let answered = |i: &Incoming| matches!(i, Incoming::Response(_) | Incoming::Failed(_));
        if !self.queue.iter().any(answered) {
            self.queue
                .push_back(Incoming::Failed(Fault::NoAnswer.into()));
        }
    }

    /// Takes a message. `alone`: it is the body of a reply to our request, and to no other.
    fn on_frame(&mut self, frame: Vec<u8>, alone: bool) {
        let incoming = self.sort(frame, alone);
        if matches!(incoming, Incoming::Response(_) | Incoming::Failed(_)) {
            let stage = std::mem::replace(&mut self.stage, Stage::Answered(None));
            if let Stage::Stream(events) = stage {
                self.stage = Stage::Answered(Some(events));
            }
        }
        self.queue.push_back(incoming);
    }

    /// What a frame is to this exchange.
    fn sort(&self, frame: Vec<u8>, alone: bool) -> Incoming {
        let garbage = |frame: &[u8]| {
            let ours = frames::salvage_id(frame.get(..64 * 1024).unwrap_or(frame))
                .and_then(|raw| wire::Id::from_raw(&raw).map(wire::Id::key))
                .is_some_and(|key| self.is_ours(&key));
            if alone || ours {
                Incoming::Failed(Fault::Garbage.into())
            } else {
                Incoming::Odd(Note::ServerGarbage, Note::ServerGarbage.sentence())
            }
        };
        let Ok(canonical) = shapes::of_server(&frame) else {
            return garbage(&frame);
        };
        let frame = canonical.text().as_bytes();
        let Ok(envelope) = canonical.envelope() else {
            return garbage(frame);
        };
        match envelope.kind {
            Kind::Request { .. } | Kind::Notification { .. } => {
                Incoming::Message(canonical.into_bytes())
            }
            Kind::Response { id: Some(id), .. } if !self.is_ours(&id.key()) => Incoming::Odd(
                Note::ServerAnswerUnknown,
                Note::ServerAnswerUnknown.sentence(),
            ),
            Kind::Response { id, is_error } => {
                if !is_error {
                    self.learn(envelope.payload.unwrap_or_default());
                }
                let parts = match (id, self.id()) {
                    (Some(id), _) => envelope.payload.and_then(|payload| {
                        Some((place(frame, id.raw())?, place(frame, payload)?))
                    }),
                    // An error about a request whose id the server could not read: it is this one.
                    (None, Some(own)) => {
                        return Reply::read(frames::with_id(&canonical.scan(), own))
                            .map_or_else(|| garbage(frame), Incoming::Response);
                    }
                    (None, None) => None,
                };
                match parts {
                    Some((id, payload)) => Incoming::Response(Reply {
                        is_tool_error: !is_error
                            && canonical.reply_member(IS_ERROR) == Some("true"),
                        frame: canonical.into_bytes(),
                        id,
                        payload,
                        is_error,
                    }),
                    None => garbage(frame),
                }
            }
        }
    }

    fn is_ours(&self, key: &wire::id::IdKey) -> bool {
        self.outline.id.as_ref().is_some_and(|(_, own)| own == key)
    }

    /// Learns what later messages depend on, before anyone sees the answer.
    fn learn(&self, result: &str) {
        match self.outline.method.as_ref() {
            "initialize" => {
                let bounds = Bounds::default();
                let version = scan_reply(result.as_bytes(), &bounds)
                    .ok()
                    .and_then(|scan| {
                        let raw = member(&scan.members, "protocolVersion")?;
                        Some(string(raw)?.into_owned())
                    });
                if let Some(version) = version {
                    self.session.has_version(&version);
                }
            }
            "tools/list" => self.session.tools().learn(result),
            _ => {}
        }
    }

    /// The stream ended before the answer: it is resumed where the server gave a place to resume
    /// from, else asked again where that does no harm, else given up.
    fn on_stream_end(&mut self, failure: Failure) {
        let Stage::Stream(events) = &self.stage else {
            return;
        };
        let lost = matches!(failure.fault, Fault::NoAnswer | Fault::Broken);
        let place = events.parser.last_event_id().map(str::to_owned);
        let (shortest, usual, longest) = RESUME_MS;
        let wait_ms = events.parser.retry_ms().unwrap_or(usual);
        match place {
            Some(place) if lost && self.is_legacy() && self.resumes_left > 0 => {
                self.resumes_left -= 1;
                let wait = Duration::from_millis(wait_ms.clamp(shortest, longest));
                let session = Arc::clone(&self.session);
                self.stage = Stage::Opening(Box::pin(resume(session, place, wait, failure)));
            }
            None if lost && self.retries_left > 0 && self.is_repeatable() => {
                let again = open::open(
                    Arc::clone(&self.session),
                    Arc::clone(&self.outline),
                    self.body.clone(),
                    self.retries_left - 1,
                );
                self.stage = Stage::Opening(Box::pin(again));
            }
            _ => {
                self.stage = Stage::Answered(None);
                self.queue.push_back(Incoming::Failed(failure));
            }
        }
    }

    fn is_legacy(&self) -> bool {
        self.outline.version.is_none() && self.session.era() != Some(Era::Modern)
    }

    fn is_repeatable(&self) -> bool {
        open::is_repeatable(&self.session, &self.outline)
    }
}

async fn resume(
    session: Arc<HttpSession>,
    place: String,
    wait: Duration,
    failure: Failure,
) -> Outcome {
    tokio::time::sleep(wait).await;
    let Ok(reply) = session.get(Some(&place)).await else {
        return Err(failure);
    };
    match open::stream_of(&session, reply) {
        Ok(mut events) => {
            events.parser.resume_after(place);
            Ok((Opened::Stream(Box::new(events)), 0))
        }
        Err(_) => Err(failure),
    }
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange")
            .field("outline", &self.outline)
            .finish_non_exhaustive()
    }
}
