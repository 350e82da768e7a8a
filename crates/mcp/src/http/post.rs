//! POST: messages of clients.

use std::sync::Arc;

use ::http::header::CONTENT_ENCODING;
use ::http::{HeaderMap, StatusCode};
use gate::inspect::Inspected;
use net::http::server::{Request, Response, Whole, single};
use wire::jsonrpc::Kind;
use wire::scan::Scan;
use wire::{Canonical, Era, Id, Revision, WireError};

use super::answer::{self, PROTOCOL_VERSION, SESSION_ID};
use super::legacy::{Introduction, legacy_revision};
use super::modern::{self, Meta};
use super::refused::Refused;
use super::reply::legacy_answer;
use super::session::Session;
use super::stateless_client::StatelessClient;
use super::{Caller, Face};
use crate::call::{
    Asked, Asker, Basis, Begun, CallGuard, Cancelled, IncomingRequest, Said, Server,
};
use crate::federation::Spelling;
use crate::message::batch;
use crate::message::frames::{self, UpstreamFault};
use crate::message::method::{self, Notice};
use crate::message::request;
use crate::message::shapes;
use crate::notes::{Note, Noted};
use crate::upstream::Slot;
use toolkit::Trace;

/// What is noted of a Modern request that is refused.
pub(super) const UNFIT: &str = "a request is not what its revision demands";

/// A message read from its frame, as far as it decides where it goes.
pub(super) enum Message {
    /// The answer is known already.
    Answered(Response),
    /// `initialize`: its id and the client program.
    Initialize {
        id: String,
        client: Introduction,
    },
    /// A request, and the session that it is made in.
    Request(Box<Asker>, Box<Asked>, Option<(Arc<Session>, CallGuard)>),
    Notification(Arc<Session>, String, Option<wire::id::IdKey>),
    /// A notification where there are no sessions.
    Stray,
    Answer(Arc<Session>, wire::id::IdKey),
    Batch(Arc<Session>, Vec<Vec<u8>>),
}

impl Message {
    /// What it took to find out who sends it.
    pub fn identified(&mut self, identity_ns: u64) {
        if let Self::Request(asker, ..) = self {
            asker.caller.identity_ns = identity_ns;
        }
    }
}

/// A message as it is taken.
pub(super) struct ReceivedMessage<'m> {
    pub message: &'m Inspected<Canonical>,
    /// What was noted of it when it was written anew.
    pub scan: &'m Scan<'m>,
    /// What its headers say about its run.
    pub trace: &'m Trace,
    pub received_ns: u64,
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
        let body = match self.body(&mut request).await {
            Ok(body) => body,
            Err(response) => return *response,
        };
        let canonical = shapes::of_client(&body.bytes);
        let message = match canonical.and_then(|canonical| server.inspect(canonical)) {
            Ok(message) => message,
            Err(fault) => return self.bad_frame(&body.bytes, &fault),
        };
        // What waits for a place at its server takes as much as what is read.
        let _permit = body.into_permit();
        let headers = &request.head.headers;
        let arrival = (received_ns, Trace::of(headers));
        self.take((server, caller), headers, message, arrival).await
    }

    /// Reads an inspected message and does what it asks for.
    pub(super) async fn take(
        self: &Arc<Self>,
        (server, caller): (&Arc<Server>, &Caller),
        headers: &HeaderMap,
        inspected: Inspected<Canonical>,
        arrival: (u64, Trace),
    ) -> Response {
        let message = {
            let came = ReceivedMessage {
                message: &inspected,
                scan: &inspected.message().scan(),
                trace: &arrival.1,
                received_ns: arrival.0,
            };
            self.read(server, caller, headers, &came)
        };
        let frame = inspected.map(Canonical::into_bytes);
        self.taken(message, frame, (server, caller), arrival).await
    }

    /// The body of a message.
    pub(super) async fn body(&self, request: &mut Request) -> Result<Whole, Box<Response>> {
        if let Some(refusal) = unfit(&request.head.headers) {
            return Err(Box::new(refusal));
        }
        request.take_at_most(request::bytes_max(&self.gate));
        let mut body = request.read_whole().await.map_err(|fault| {
            self.note(Noted::body(fault));
            Box::new(answer::body_fault(fault))
        })?;
        if self.options.is_lenient
            && let Some(repaired) = wire::lenient::repair(&body.bytes)
        {
            body.bytes = repaired.into();
        }
        Ok(body)
    }

    /// Does what a message asks for.
    pub(super) async fn taken(
        self: &Arc<Self>,
        message: Message,
        frame: Inspected<Vec<u8>>,
        (server, caller): (&Arc<Server>, &Caller),
        arrival: (u64, Trace),
    ) -> Response {
        match message {
            Message::Answered(response) => response,
            Message::Initialize { id, client } => {
                Box::pin(self.open(server, caller, frame.into_message(), id, client)).await
            }
            Message::Request(asker, asked, inside) => {
                let id = asked.id().to_owned();
                let (session, guard) = inside.unzip();
                // What it needs only until it is sent is not carried along while it is answered.
                match Box::pin(asker.begin(frame, asked, guard)).await {
                    Begun::Answered(answer) => answer::json(StatusCode::OK, answer),
                    Begun::Full(answer) => answer::full(answer),
                    Begun::EraMismatch => self.era_mismatch(&id),
                    Begun::HeaderMismatch(why) => {
                        self.note(Note::ModernRequestRefused.with(UNFIT));
                        *modern::header_mismatch(&id, &why)
                    }
                    Begun::Running(run) => match session {
                        Some(session) => legacy_answer(run, session).await,
                        None => self.modern_answer(run.into(), caller).await,
                    },
                }
            }
            Message::Notification(session, method, cancelled) => {
                let frame = frame.into_message();
                Box::pin(self.notified(&session, &method, cancelled, frame)).await;
                answer::accepted()
            }
            Message::Stray => answer::accepted(),
            Message::Answer(session, key) => self.answered(&session, &key, frame),
            Message::Batch(session, elements) => {
                Box::pin(self.batch(&session, elements, arrival)).await
            }
        }
    }

    fn answered(
        &self,
        session: &Arc<Session>,
        key: &wire::id::IdKey,
        frame: Inspected<Vec<u8>>,
    ) -> Response {
        if !session.under_way.answer(&session.asker(), key, frame) {
            self.note(Note::ClientAnswerUnknown.into());
        }
        answer::accepted()
    }

    fn era_mismatch(&self, id: &str) -> Response {
        self.note(Noted::fallback());
        let frame = modern::era_mismatch(id, Revision::V2026_07_28.name());
        answer::json(StatusCode::BAD_REQUEST, frame)
    }

    pub(super) fn read(
        self: &Arc<Self>,
        server: &Arc<Server>,
        caller: &Caller,
        headers: &HeaderMap,
        came: &ReceivedMessage<'_>,
    ) -> Message {
        let (canonical, scan) = (came.message.message(), came.scan);
        if let Some(elements) = &scan.batch {
            return match self.batch_session(server, caller, headers, elements.len()) {
                Ok(session) => {
                    let elements = elements.iter().map(|e| e.as_bytes().to_vec()).collect();
                    Message::Batch(session, elements)
                }
                Err(response) => Message::Answered(*response),
            };
        }
        let envelope = match canonical.envelope() {
            Ok(envelope) => envelope,
            Err(fault) => {
                let frame = canonical.text().as_bytes();
                return Message::Answered(self.bad_frame(frame, &fault));
            }
        };
        let meta = Meta::of(scan);
        match &envelope.kind {
            Kind::Request { id, method } if is_modern(headers, &meta) => {
                let asked = IncomingRequest {
                    message: came.message,
                    scan,
                    id: *id,
                    method,
                    received_ns: came.received_ns,
                    trace: came.trace,
                };
                self.modern(server, caller, headers, meta, &asked)
            }
            Kind::Notification { .. } if is_modern(headers, &meta) => Message::Stray,
            Kind::Request { id, method } if method == "initialize" => Message::Initialize {
                id: id.raw().to_owned(),
                client: Introduction::of(scan),
            },
            kind => match self.session(server, caller, headers) {
                Ok(session) => {
                    let mut message = self.in_session(&session, kind, came);
                    message.identified(caller.identity_ns);
                    message
                }
                Err(response) => Message::Answered(*response),
            },
        }
    }

    /// A request where there are no sessions.
    fn modern(
        self: &Arc<Self>,
        server: &Arc<Server>,
        caller: &Caller,
        headers: &HeaderMap,
        meta: Meta,
        request: &IncomingRequest<'_>,
    ) -> Message {
        let (id, scan) = (request.id.raw(), request.scan);
        let mut checked = modern::check(id, request.method, scan, &meta, headers);
        if checked.is_ok() && request.method == "tools/call" {
            let mirrored = server.check_headers(scan, headers);
            checked = mirrored.map_err(|why| modern::header_mismatch(id, &why));
        }
        if let Err(response) = checked {
            self.note(Note::ModernRequestRefused.with(UNFIT));
            return Message::Answered(*response);
        }
        let slot = server.pool.slot(Era::Modern, caller, None);
        let asker = self.passing((server, slot), caller, meta.client_id, None);
        let mut asked = asker.read(request);
        let finding = request.message.finding();
        if finding.is_none_or(|finding| finding.masked() == 0) {
            // They repeat arguments, also those that are masked.
            asked.mirror(headers);
        }
        Message::Request(Box::new(asker), Box::new(asked), None)
    }

    /// Who asks a server where there are no sessions.
    pub(super) fn passing(
        self: &Arc<Self>,
        (server, slot): (&Arc<Server>, Arc<Slot>),
        caller: &Caller,
        client_id: Option<Arc<str>>,
        spelling: Option<Spelling>,
    ) -> Asker {
        Asker {
            server: Arc::clone(server),
            caller: caller.clone(),
            session_id: Arc::clone(&self.no_session),
            client_id,
            era: Some(Era::Modern),
            elicits: false,
            slot,
            shown: server.shown_to(&caller.subject),
            under_way: None,
            lot: Arc::clone(&self.lot),
            client: Arc::new(StatelessClient {
                face: Arc::clone(self),
                caller: caller.clone(),
                spelling,
            }),
            recalls: false,
        }
    }

    /// A message of a session.
    pub(super) fn in_session(
        &self,
        session: &Arc<Session>,
        kind: &Kind<'_>,
        came: &ReceivedMessage<'_>,
    ) -> Message {
        let canonical = came.message.message();
        match kind {
            Kind::Request { id, method } => {
                let Some(guard) = session.under_way.take_id(id.key()) else {
                    self.note(Note::ClientIdInUse.with(request::ID_IN_USE));
                    let frame = frames::error(id.raw(), -32600, request::ID_IN_USE, None);
                    return Message::Answered(answer::json(StatusCode::OK, frame));
                };
                let asker = session.asker();
                let asked = asker.read(&IncomingRequest {
                    message: came.message,
                    scan: came.scan,
                    id: *id,
                    method,
                    received_ns: came.received_ns,
                    trace: came.trace,
                });
                let inside = Some((Arc::clone(session), guard));
                Message::Request(Box::new(asker), Box::new(asked), inside)
            }
            Kind::Notification { method } => {
                let cancelled = canonical
                    .param("requestId")
                    .and_then(Id::from_raw)
                    .map(Id::key);
                Message::Notification(Arc::clone(session), method.to_string(), cancelled)
            }
            Kind::Response { id: Some(id), .. } => Message::Answer(Arc::clone(session), id.key()),
            Kind::Response { id: None, .. } => {
                self.note(Note::ClientAnswerWithoutId.into());
                Message::Answered(answer::accepted())
            }
        }
    }

    /// A notification of a session's client.
    pub(super) async fn notified(
        &self,
        session: &Arc<Session>,
        method: &str,
        cancelled: Option<wire::id::IdKey>,
        frame: Vec<u8>,
    ) {
        match method::of_client_notification(method) {
            Notice::Foreign => self.note(Note::ClientNotificationDropped.into()),
            Notice::Judged => session.asker().notify(frame, self.gate.mono_ns()).await,
            Notice::Control(gate::ControlKind::Cancel) => {
                let cancelled = cancelled.map(|key| session.under_way.cancel(&key));
                if let Some(Cancelled::Sent(link, number)) = cancelled {
                    link.cancel(number, "the client cancelled");
                }
            }
            Notice::Control(gate::ControlKind::Handshake) => {
                session.under_way.client_is_ready();
                session.slot.initialized(frame).await;
            }
            Notice::Control(kind) => {
                if let Some(link) = session.slot.current() {
                    // A server that has ended needs no news.
                    drop(link.send(link.control(kind, frame)));
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
        let refuse = |fault: WireError| Box::new(self.bad_frame(b"", &fault));
        if !headers.contains_key(&SESSION_ID) {
            batch::fits(None, length).map_err(refuse)?;
        }
        let session = self.session(server, caller, headers)?;
        let has_batches = session.revision().is_some_and(Revision::has_batches);
        batch::fits(Some(has_batches), length).map_err(refuse)?;
        Ok(session)
    }

    /// Takes the messages of a batch at once and answers when all are answered.
    async fn batch(
        self: &Arc<Self>,
        session: &Arc<Session>,
        elements: Vec<Vec<u8>>,
        arrival: (u64, Trace),
    ) -> Response {
        let mut running = tokio::task::JoinSet::new();
        for element in elements {
            let (face, session, arrival) = (Arc::clone(self), Arc::clone(session), arrival.clone());
            running.spawn(async move { face.element(&session, element, arrival).await });
        }
        let answers: Vec<Vec<u8>> = running.join_all().await.into_iter().flatten().collect();
        match batch::joined(&answers) {
            Some(frame) => answer::json(StatusCode::OK, frame),
            None => answer::accepted(),
        }
    }

    pub(super) async fn element(
        self: &Arc<Self>,
        session: &Arc<Session>,
        frame: Vec<u8>,
        arrival: (u64, Trace),
    ) -> Option<Vec<u8>> {
        let (answer, _) = self.element_resting(session, frame, arrival).await?;
        Some(answer)
    }

    /// The same, and what the answer rests on where it is a list that may be remembered.
    pub(super) async fn element_resting(
        self: &Arc<Self>,
        session: &Arc<Session>,
        frame: Vec<u8>,
        (received_ns, trace): (u64, Trace),
    ) -> Option<(Vec<u8>, Option<Basis>)> {
        let plain = |answer| Some((answer, None));
        let read = shapes::of_client(&frame).and_then(|canonical| {
            let inspected = session.server.inspect(canonical)?;
            let kind = inspected.message().envelope()?.kind;
            batch::may_hold(&kind)?;
            let message = {
                let came = ReceivedMessage {
                    message: &inspected,
                    scan: &inspected.message().scan(),
                    trace: &trace,
                    received_ns,
                };
                self.in_session(session, &kind, &came)
            };
            drop(kind);
            Ok((message, inspected.map(Canonical::into_bytes)))
        });
        let (message, frame) = match read {
            Ok(read) => read,
            Err(fault) => {
                self.note(Noted::frame(&fault));
                let id = salvaged(&frame).unwrap_or_else(|| "null".into());
                return plain(frames::bad_frame(&id, &fault));
            }
        };
        match message {
            Message::Request(asker, asked, inside) => {
                let guard = inside.map(|(_, guard)| guard);
                carried_out(asker, asked, frame, guard).await
            }
            Message::Notification(session, method, cancelled) => {
                let frame = frame.into_message();
                Box::pin(self.notified(&session, &method, cancelled, frame)).await;
                None
            }
            Message::Answer(session, key) => {
                session.under_way.answer(&session.asker(), &key, frame);
                None
            }
            // An id that is in use; what else is answered at once answers no request.
            Message::Answered(_) => {
                let id = salvaged(frame.message())?;
                plain(frames::error(&id, -32600, request::ID_IN_USE, None))
            }
            Message::Initialize { .. } | Message::Stray | Message::Batch(..) => None,
        }
    }

    /// Tells the client that its frame could not be taken.
    pub(super) fn bad_frame(&self, frame: &[u8], fault: &WireError) -> Response {
        self.bad_message(salvaged(frame), fault)
    }

    /// The same where the id was salvaged before.
    pub(super) fn bad_message(&self, id: Option<String>, fault: &WireError) -> Response {
        self.note(Noted::frame(fault));
        let id = id.unwrap_or_else(|| "null".into());
        answer::json(StatusCode::BAD_REQUEST, frames::bad_frame(&id, fault))
    }
}

/// Carries a request out whose client is told of its news beside; gives the answer, and what that rests on where it is a
/// list that may be remembered.
pub(super) async fn carried_out(
    asker: Box<Asker>,
    asked: Box<Asked>,
    frame: Inspected<Vec<u8>>,
    guard: Option<CallGuard>,
) -> Option<(Vec<u8>, Option<Basis>)> {
    let (id, client) = (asked.id().to_owned(), Arc::clone(&asker.client));
    let answer = match asker.begin(frame, asked, guard).await {
        Begun::Answered(answer) | Begun::Full(answer) => answer,
        Begun::EraMismatch => frames::upstream_fault(&id, UpstreamFault::EraMismatch),
        Begun::HeaderMismatch(why) => frames::header_mismatch(&id, &why),
        Begun::Running(mut run) => loop {
            match run.next().await {
                Said::Emit(news) => client.tell(news).await,
                Said::Done(answer, _) => return Some((answer, run.take_basis())),
                Said::Gone => return None,
            }
        },
    };
    Some((answer, None))
}

pub(super) fn salvaged(frame: &[u8]) -> Option<String> {
    frames::salvage_id(frame.get(..4096).unwrap_or(frame))
}

/// The answer to a request whose headers say that it cannot be taken.
fn unfit(headers: &HeaderMap) -> Option<Response> {
    if !answer::says_json(headers) {
        return Some(answer::fault(Refused::ContentType));
    }
    if headers.contains_key(CONTENT_ENCODING) {
        return Some(answer::fault(Refused::ContentEncoding));
    }
    if !answer::accepts(headers, &["application/json", "text/event-stream"]) {
        return Some(answer::fault(Refused::Accept));
    }
    None
}

/// Whether a message is of the era without sessions: it says so in its body, or only in its header.
pub(super) fn is_modern(headers: &HeaderMap, meta: &Meta) -> bool {
    if meta.version.is_some() {
        return true;
    }
    if headers.contains_key(&SESSION_ID) {
        return false;
    }
    match single(headers, &PROTOCOL_VERSION) {
        Ok(Some(version)) => legacy_revision(version).is_none(),
        Ok(None) | Err(_) => false,
    }
}
