//! POST: messages of clients.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use net::http::server::{Request, Response, StreamSender, single, stream};
use wire::jsonrpc::{Envelope, Kind, member};
use wire::scan::Scan;
use wire::{Bounds, Era, Id, Revision, WireError, WireErrorKind, scan_request};

use super::answer::{self, PROTOCOL_VERSION, SESSION_ID};
use super::call::{Asker, Begun, Run, Said};
use super::legacy::Client;
use super::modern::{self, Meta};
use super::server::Server;
use super::session::Session;
use super::streams::NEWS;
use super::{Caller, Face};
use crate::frames::{self, UpstreamFault};
use crate::method;
use crate::request;

/// Most messages in one batch.
const BATCH_MAX: usize = 256;
/// Most events of a Modern answer that wait for the client to read them.
const PARTS_MAX: usize = 64;

/// A message read from its frame, as far as it decides where it goes.
enum Message {
    /// The answer is known already.
    Answered(Response),
    /// `initialize`: its id and the client program.
    Initialize {
        id: String,
        client: Client,
    },
    Request(Asker, super::call::Asked, Option<super::session::CallGuard>),
    Notification(Arc<Session>, String, Option<wire::id::IdKey>),
    /// A notification where there are no sessions.
    Stray,
    Answer(Arc<Session>, wire::id::IdKey),
    Batch(Arc<Session>, Vec<Vec<u8>>),
}

impl Face {
    /// Takes a message of a client.
    pub(super) async fn post(
        self: &Arc<Self>,
        server: &Arc<Server>,
        caller: &Caller,
        mut request: Request,
        received_ns: u64,
    ) -> Response {
        let headers = &request.head.headers;
        if !answer::says_json(headers) {
            let message = "the body must be said to be application/json";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return answer::fault(status, -32600, "content_type", message);
        }
        if !answer::accepts(headers, &["application/json", "text/event-stream"]) {
            let message = "the client must accept application/json and text/event-stream";
            return answer::fault(StatusCode::NOT_ACCEPTABLE, -32600, "accept", message);
        }
        let body = match request.read_body().await {
            Ok(body) => body,
            Err(fault) => {
                self.note(fault.label(), fault.sentence());
                return answer::fault(fault.status(), -32600, fault.label(), fault.sentence());
            }
        };
        let frame = on_one_line(body);
        let message = self.read(server, caller, &request.head.headers, &frame, received_ns);
        match message {
            Message::Answered(response) => response,
            Message::Initialize { id, client } => {
                self.open(server, caller, frame, id, client).await
            }
            Message::Request(asker, asked, guard) => {
                let id = asked.id().to_owned();
                match asker.begin(self, frame, asked, guard).await {
                    Begun::Answered(answer) => answer::json(StatusCode::OK, answer),
                    Begun::EraMismatch => self.era_mismatch(&id),
                    Begun::Running(run) if run.session().is_some() => legacy_answer(run).await,
                    Begun::Running(run) => modern_answer(run).await,
                }
            }
            Message::Notification(session, method, cancelled) => {
                self.notified(&session, &method, cancelled, frame).await;
                answer::accepted()
            }
            Message::Stray => answer::accepted(),
            Message::Answer(session, key) => {
                if !session.answer(&key, frame) {
                    self.note(
                        "client_answer_unknown",
                        "an answer to no open request of the server was not passed on",
                    );
                }
                answer::accepted()
            }
            Message::Batch(session, elements) => self.batch(&session, elements, received_ns).await,
        }
    }

    fn era_mismatch(&self, id: &str) -> Response {
        let fault = UpstreamFault::EraMismatch;
        self.note(fault.label(), fault.sentence());
        let frame = modern::era_mismatch(id, Revision::V2026_07_28.name());
        answer::json(StatusCode::BAD_REQUEST, frame)
    }

    fn read(
        &self,
        server: &Arc<Server>,
        caller: &Caller,
        headers: &HeaderMap,
        frame: &[u8],
        received_ns: u64,
    ) -> Message {
        let scan = match scan_request(frame, &Bounds::default()) {
            Ok(scan) => scan,
            Err(fault) => return Message::Answered(self.bad_frame(frame, &fault)),
        };
        if let Some(elements) = &scan.batch {
            return match self.batch_session(server, caller, headers, elements.len()) {
                Ok(session) => {
                    let elements = elements.iter().map(|e| e.as_bytes().to_vec()).collect();
                    Message::Batch(session, elements)
                }
                Err(response) => Message::Answered(*response),
            };
        }
        let envelope = match Envelope::of(&scan) {
            Ok(envelope) => envelope,
            Err(fault) => return Message::Answered(self.bad_frame(frame, &fault)),
        };
        let meta = Meta::of(&scan);
        match &envelope.kind {
            Kind::Request { id, method } if is_modern(headers, &meta) => {
                let checked = modern::check(id.raw(), method, &scan, &meta, headers);
                let checked = checked.and_then(|()| match &**method {
                    "tools/call" => {
                        let checked = server.check_headers(&scan, headers);
                        checked.map_err(|why| modern::header_mismatch(id.raw(), &why))
                    }
                    _ => Ok(()),
                });
                if let Err(response) = checked {
                    self.note(
                        "modern_request_refused",
                        "a request is not what its revision demands",
                    );
                    return Message::Answered(*response);
                }
                let asker = Asker {
                    server: Arc::clone(server),
                    caller: caller.clone(),
                    session_id: Arc::clone(&self.no_session),
                    client_id: meta.client_id,
                    era: Era::Modern,
                    session: None,
                    elicits: meta.elicits,
                    slot: server.pool.slot(Era::Modern, &caller.subject, None),
                    shown: server.shown_to(&caller.subject),
                };
                let mut asked = asker.read(self, frame, &scan, *id, method, received_ns);
                asked.mirror(headers);
                Message::Request(asker, asked, None)
            }
            Kind::Notification { .. } if is_modern(headers, &meta) => Message::Stray,
            Kind::Request { id, method } if method == "initialize" => Message::Initialize {
                id: id.raw().to_owned(),
                client: Client::of(&scan),
            },
            kind => match self.session(server, caller, headers) {
                Ok(session) => self.in_session(&session, caller, kind, frame, &scan, received_ns),
                Err(response) => Message::Answered(*response),
            },
        }
    }

    /// A message of a session.
    fn in_session(
        &self,
        session: &Arc<Session>,
        caller: &Caller,
        kind: &Kind<'_>,
        frame: &[u8],
        scan: &Scan<'_>,
        received_ns: u64,
    ) -> Message {
        match kind {
            Kind::Request { id, method } => {
                let Some(guard) = session.take_id(id.key()) else {
                    self.note("client_id_in_use", request::ID_IN_USE);
                    let frame = frames::error(id.raw(), -32600, request::ID_IN_USE, None);
                    return Message::Answered(answer::json(StatusCode::OK, frame));
                };
                let mut asker = session.asker();
                asker.caller = caller.clone();
                let asked = asker.read(self, frame, scan, *id, method, received_ns);
                Message::Request(asker, asked, Some(guard))
            }
            Kind::Notification { method } => {
                let cancelled = member(&scan.params, "requestId")
                    .and_then(Id::from_raw)
                    .map(Id::key);
                Message::Notification(Arc::clone(session), method.to_string(), cancelled)
            }
            Kind::Response { id: Some(id), .. } => Message::Answer(Arc::clone(session), id.key()),
            Kind::Response { id: None, .. } => {
                self.note(
                    "client_answer_without_id",
                    "an error without an id was not passed on",
                );
                Message::Answered(answer::accepted())
            }
        }
    }

    /// A notification of a session's client.
    async fn notified(
        &self,
        session: &Arc<Session>,
        method: &str,
        cancelled: Option<wire::id::IdKey>,
        frame: Vec<u8>,
    ) {
        match method::of_client_notification(method) {
            None => self.note(
                "client_notification_dropped",
                "a notification of an unknown kind was not passed on",
            ),
            Some(gate::ControlKind::Cancel) => {
                if let Some(key) = cancelled {
                    session.cancel(&key);
                }
            }
            Some(gate::ControlKind::Handshake) => session.slot.initialized(frame).await,
            Some(kind) => {
                if let Some(link) = session.slot.current() {
                    // A server that has ended needs no news.
                    let frame = crate::upstream::Frame(frame);
                    let _ = link.send(self.gate.control(kind, &link.id, frame));
                }
            }
        }
    }

    /// The session of a batch, where its revision has batches.
    fn batch_session(
        &self,
        server: &Arc<Server>,
        caller: &Caller,
        headers: &HeaderMap,
        length: usize,
    ) -> Result<Arc<Session>, Box<Response>> {
        let refuse = |kind, message| {
            let fault = WireError {
                kind,
                at: 0,
                message,
            };
            Box::new(self.bad_frame(b"", &fault))
        };
        if !headers.contains_key(&SESSION_ID) {
            let message = "no revision of the protocol that has batches is agreed on; send the messages one by one";
            return Err(refuse(WireErrorKind::BatchNotAllowed, message));
        }
        let session = self.session(server, caller, headers)?;
        if !session.revision.is_some_and(Revision::has_batches) {
            let message = "the session's revision of the protocol has no batches; send the messages one by one";
            return Err(refuse(WireErrorKind::BatchNotAllowed, message));
        }
        if length == 0 || length > BATCH_MAX {
            let message = "a batch has 1 to 256 messages";
            return Err(refuse(WireErrorKind::TooMany, message));
        }
        Ok(session)
    }

    /// Takes the messages of a batch at once and answers when all are answered.
    async fn batch(
        self: &Arc<Self>,
        session: &Arc<Session>,
        elements: Vec<Vec<u8>>,
        received_ns: u64,
    ) -> Response {
        let mut running = tokio::task::JoinSet::new();
        for element in elements {
            let (face, session) = (Arc::clone(self), Arc::clone(session));
            running.spawn(async move { face.element(&session, element, received_ns).await });
        }
        let answers: Vec<Vec<u8>> = running.join_all().await.into_iter().flatten().collect();
        if answers.is_empty() {
            return answer::accepted();
        }
        let mut frame = vec![b'['];
        frame.extend(answers.join(&b","[..]));
        frame.push(b']');
        answer::json(StatusCode::OK, frame)
    }

    async fn element(
        self: &Arc<Self>,
        session: &Arc<Session>,
        frame: Vec<u8>,
        received_ns: u64,
    ) -> Option<Vec<u8>> {
        let read = scan_request(&frame, &Bounds::default()).and_then(|scan| {
            let envelope = Envelope::of(&scan)?;
            Ok(self.in_session(
                session,
                &session.caller,
                &envelope.kind,
                &frame,
                &scan,
                received_ns,
            ))
        });
        match read {
            Err(fault) => {
                self.note(fault.kind.label(), fault.message);
                Some(frames::bad_frame("null", &fault))
            }
            Ok(Message::Request(asker, asked, guard)) => {
                let id = asked.id().to_owned();
                match asker.begin(self, frame, asked, guard).await {
                    Begun::Answered(answer) => Some(answer),
                    Begun::EraMismatch => {
                        Some(frames::upstream_fault(&id, UpstreamFault::EraMismatch))
                    }
                    Begun::Running(mut run) => loop {
                        match run.next().await {
                            Said::Emit(news) => session.streams.emit(NEWS, &news).await,
                            Said::Done(answer, _) => return Some(answer),
                            Said::Gone => return None,
                        }
                    },
                }
            }
            Ok(Message::Notification(session, method, cancelled)) => {
                self.notified(&session, &method, cancelled, frame).await;
                None
            }
            Ok(Message::Answer(session, key)) => {
                session.answer(&key, frame);
                None
            }
            // An id that is in use; what else is answered at once answers no request.
            Ok(Message::Answered(_)) => {
                salvaged(&frame).map(|id| frames::error(&id, -32600, request::ID_IN_USE, None))
            }
            Ok(Message::Initialize { .. } | Message::Stray | Message::Batch(..)) => None,
        }
    }

    /// Tells the client that its frame could not be taken.
    fn bad_frame(&self, frame: &[u8], fault: &WireError) -> Response {
        self.note(fault.kind.label(), fault.message);
        let id = salvaged(frame).unwrap_or_else(|| "null".into());
        answer::json(StatusCode::BAD_REQUEST, frames::bad_frame(&id, fault))
    }
}

fn salvaged(frame: &[u8]) -> Option<String> {
    frames::salvage_id(frame.get(..4096).unwrap_or(frame))
}

/// Whether a message is of the era without sessions: it says so in its body, or only in its header.
fn is_modern(headers: &HeaderMap, meta: &Meta) -> bool {
    if meta.version.is_some() {
        return true;
    }
    if headers.contains_key(&SESSION_ID) {
        return false;
    }
    match single(headers, &PROTOCOL_VERSION) {
        Ok(Some(version)) => super::call::legacy_revision(version).is_none(),
        Ok(None) | Err(_) => false,
    }
}

/// A frame without line ends, which are white space in JSON and the end of a frame on a pipe.
fn on_one_line(body: Bytes) -> Vec<u8> {
    let mut frame = Vec::from(body);
    if frame.contains(&b'\n') || frame.contains(&b'\r') {
        for byte in &mut frame {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    frame
}

/// Answers a request of a session: as one message, or as a stream where there is more to say.
async fn legacy_answer(run: Box<Run>) -> Response {
    let mut kept = Kept(Some(run));
    let first = match &mut kept.0 {
        Some(run) => run.next().await,
        None => Said::Gone,
    };
    let run = kept.0.take();
    match (first, run) {
        (Said::Done(answer, _), _) => answer::json(StatusCode::OK, answer),
        (Said::Emit(first), Some(run)) => legacy_stream(run, first).await,
        (Said::Gone | Said::Emit(_), _) => answer::accepted(),
    }
}

/// A client that goes away does not cancel in this era: the call ends as it ends and is settled so.
struct Kept(Option<Box<Run>>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(mut run) = self.0.take() {
            tokio::spawn(async move { while matches!(run.next().await, Said::Emit(_)) {} });
        }
    }
}

async fn legacy_stream(mut run: Box<Run>, first: Vec<u8>) -> Response {
    let Some(session) = run.session().cloned() else {
        return answer::accepted();
    };
    // An empty first event would be no message to clients of the older revisions.
    let primed = session.revision.is_some_and(|r| r >= Revision::V2025_11_25);
    let Ok((number, body)) = session.streams.open(primed) else {
        let message = "too many streams are open in this session";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        return answer::fault(status, -32603, "too_many_streams", message);
    };
    tokio::spawn(async move {
        session.streams.emit(number, &first).await;
        loop {
            match run.next().await {
                Said::Emit(frame) => session.streams.emit(number, &frame).await,
                Said::Done(answer, _) => {
                    return session.streams.finish(number, Some(&answer)).await;
                }
                Said::Gone => return session.streams.finish(number, None).await,
            }
        }
    });
    answer::events(body)
}

/// Answers a Modern request. A client that goes away cancels.
async fn modern_answer(mut run: Box<Run>) -> Response {
    match run.next().await {
        Said::Done(answer, code) => answer::json(modern::status(code), answer),
        Said::Gone => answer::accepted(),
        Said::Emit(first) => {
            let (sender, body) = stream(PARTS_MAX);
            tokio::spawn(modern_stream(run, sender, first));
            answer::events(body)
        }
    }
}

async fn modern_stream(mut run: Box<Run>, sender: StreamSender, first: Vec<u8>) {
    const SIGN_OF_LIFE_MS: u64 = 15_000;
    let mut alive = tokio::time::interval(std::time::Duration::from_millis(SIGN_OF_LIFE_MS));
    alive.tick().await;
    let mut frame = Some(first);
    let mut quiet = Box::pin(run.quiet());
    let stay = run.face.stay(&run.asker.caller.subject);
    loop {
        if let Some(frame) = frame.take()
            && sender.send(event(&frame)).await.is_err()
        {
            return;
        }
        tokio::select! {
            said = run.next() => match said {
                Said::Emit(next) => frame = Some(next),
                Said::Done(answer, _) => {
                    // Whether the client still reads it is its own affair.
                    let _ = sender.send(event(&answer)).await;
                    return;
                }
                Said::Gone => return,
            },
            () = sender.closed() => return,
            () = &mut quiet => return,
            () = stay.over() => return,
            _ = alive.tick() => {
                let mut comment = Vec::new();
                wire::sse::push_comment(&mut comment);
                // A client that does not read gets no sign of life.
                let _ = sender.try_send(comment.into());
            }
        }
    }
}

fn event(frame: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(frame.len() + 16);
    wire::sse::push_event(&mut text, None, frame);
    text.into()
}
