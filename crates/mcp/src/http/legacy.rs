//! Opening, listening to and ending Legacy sessions.

use std::sync::{Arc, Weak};

use ::http::{HeaderMap, HeaderValue, StatusCode};
use gate::journal::{Auth, AuthEvent, EndReason, Record, Status};
use net::http::server::{Request, Response, single};
use share::SharePermit;
use wire::jsonrpc::member;
use wire::scan::Scan;
use wire::{Era, Revision};

use super::answer::{self, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use super::refused::Refused;
use super::session::{Member, Opening, Session};
use super::streams::{StreamFault, Streams};
use super::{Caller, Face};
use crate::call::{Client as _, Question, Server, form};
use crate::message::era;
use crate::message::frames::{self, Failure, UpstreamFault};
use crate::message::reply::Reply;
use crate::message::request;
use crate::notes::Noted;
use crate::upstream::{Heard, Hearing, Incoming, Link, News, Slot};

/// What a client says of itself in `initialize`.
#[derive(Debug, Default, Clone)]
pub(super) struct Introduction {
    /// The program.
    pub id: Option<Arc<str>>,
    /// Whether it can show its person a form.
    pub elicits: bool,
}

impl Introduction {
    /// Reads it out of the request.
    pub fn of(scan: &Scan<'_>) -> Self {
        Self {
            id: member(&scan.params, "clientInfo").and_then(request::client_name),
            elicits: member(&scan.params, "capabilities").is_some_and(form::can_elicit),
        }
    }
}

/// What a session is opened with.
pub(super) struct ToOpen<'o> {
    pub server: &'o Arc<Server>,
    pub caller: &'o Caller,
    pub session_id: Arc<str>,
    pub client: Introduction,
    pub permit: Option<SharePermit>,
    pub member: Option<Member>,
}

/// Why a session is not opened.
pub(super) enum NotOpened {
    /// The server cannot be asked, or does not answer.
    Unreached(Failure),
    /// It answers with an error.
    Refused(Reply),
}

impl Face {
    /// `initialize`: opens the server's session and ours.
    pub(super) async fn open(
        self: &Arc<Self>,
        server: &Arc<Server>,
        caller: &Caller,
        frame: Vec<u8>,
        id: String,
        client: Introduction,
    ) -> Response {
        let Some(permit) = self.session_permit(caller) else {
            let refused = Refused::TooManySessions;
            self.note(refused.into());
            return answer::refusal(&id, refused, refused.sentence());
        };
        let session_id: Arc<str> = match self.lot.random() {
            Ok(random) => random.into(),
            Err(error) => {
                tracing::error!("no randomness for a session id: {error}");
                return answer::fault(Refused::NoRandomness);
            }
        };
        let asked = ToOpen {
            server,
            caller,
            session_id,
            client,
            permit: Some(permit),
            member: None,
        };
        match self.begin_session(asked, frame).await {
            Err(NotOpened::Unreached(failure)) => {
                let frame = frames::upstream_failure(&id, &failure);
                match failure.fault {
                    UpstreamFault::NoPlace => answer::full(frame),
                    _ => answer::json(StatusCode::OK, frame),
                }
            }
            Err(NotOpened::Refused(reply)) => self.not_opened(&id, &reply),
            Ok((session, result)) => Self::opened(&session, &id, &result),
        }
    }

    /// Opens a session with a server; gives it with what the server has answered to `initialize`.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn begin_session(
        self: &Arc<Self>,
        asked: ToOpen<'_>,
        frame: Vec<u8>,
    ) -> Result<(Arc<Session>, String), NotOpened> {
        let ToOpen {
            server,
            caller,
            session_id,
            client,
            permit,
            member,
        } = asked;
        let slot = server.pool.slot(Era::Legacy, caller, Some(&session_id));
        let opening = Abandoned {
            server,
            caller: &caller.subject,
            session_id: &session_id,
            kept: false,
        };
        let result = match server.pool.open(&slot, frame).await {
            Err(failure) => {
                self.note(failure.fault.into());
                return Err(NotOpened::Unreached(failure));
            }
            Ok(Err(reply)) => {
                // Its message is text of the server, as its instructions are.
                self.gate.list_read(&caller.subject, &server.name);
                return Err(NotOpened::Refused(reply));
            }
            Ok(Ok(result)) => result,
        };
        opening.keep();
        let said = server.screen_handshake(&result, &caller.subject, &session_id);
        let result = said.unwrap_or(result);
        let session = Arc::new(Session::new(
            Opening {
                id: session_id,
                server: Arc::clone(server),
                caller: Caller {
                    // What it took belongs to this request alone.
                    identity_ns: 0,
                    ..caller.clone()
                },
                client_id: client.id,
                elicits: client.elicits,
                result: &result,
                slot,
                permit,
                member,
                lot: Arc::clone(&self.lot),
                reading: Arc::clone(&self.reading),
                notes: Arc::clone(&self.notes),
            },
            self.gate.mono_ns(),
        ));
        self.record(&session, AuthEvent::SessionStarted, None);
        self.sessions.add(Arc::clone(&session));
        if session.caller.is_revoked() {
            // Revoked before the session was listed: nothing else ends it.
            self.end(&session, EndReason::AuthExpired);
        }
        if session.slot.attend() {
            tokio::spawn(attend(Arc::downgrade(self), Arc::clone(&session.slot)));
        }
        Ok((session, result))
    }

    fn opened(session: &Session, id: &str, result: &str) -> Response {
        let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
        let mut response = answer::json(StatusCode::OK, frame.into_bytes());
        if let Ok(value) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(&SESSION_ID, value);
        }
        response
    }

    /// The server does not open a session: its own answer, or that it speaks another era.
    fn not_opened(&self, id: &str, reply: &Reply) -> Response {
        if era::is_mismatch(Era::Legacy, era::Asked::Initialize, reply.payload()) {
            let fault = UpstreamFault::EraMismatch;
            self.note(fault.into());
            return answer::json(StatusCode::OK, frames::upstream_fault(id, fault));
        }
        answer::json(StatusCode::OK, reply.clone().respelled(id, None))
    }

    /// The session that a request names.
    pub(super) fn session(
        &self,
        server: &Server,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Arc<Session>, Box<Response>> {
        let session = self.named_session(headers, |id| {
            self.sessions.find(id, &caller.subject, &server.name)
        })?;
        session.touch(self.gate.about_ns());
        Ok(session)
    }

    /// What `find` finds under the id of the session that a request names.
    pub(super) fn named_session<S>(
        &self,
        headers: &HeaderMap,
        find: impl FnOnce(&str) -> Option<S>,
    ) -> Result<S, Box<Response>> {
        let refuse = |refused: Refused, message: &str| {
            self.note(Noted::of(refused, message));
            Err(Box::new(answer::fault_with(refused, message)))
        };
        let id = match single(headers, &SESSION_ID) {
            Ok(Some(id)) => id,
            Ok(None) => {
                let missing = Refused::SessionMissing;
                return refuse(missing, missing.sentence());
            }
            Err(message) => return refuse(Refused::SessionUnreadable, message),
        };
        match single(headers, &PROTOCOL_VERSION) {
            Ok(Some(version)) if legacy_revision(version).is_none() => {
                let refused = Refused::ProtocolVersion;
                return refuse(refused, refused.sentence());
            }
            Ok(_) => {}
            Err(message) => return refuse(Refused::ProtocolVersion, message),
        }
        match find(id) {
            Some(session) => Ok(session),
            None => {
                let unknown = Refused::SessionUnknown;
                refuse(unknown, unknown.sentence())
            }
        }
    }

    /// GET: the stream of what belongs to no request, or of one that was lost.
    pub(super) fn listen(&self, server: &Server, caller: &Caller, request: &Request) -> Response {
        let session = |headers: &HeaderMap| self.session(server, caller, headers);
        listening(request, session, |session| &session.streams)
    }

    /// DELETE: the client is done.
    pub(super) fn delete(&self, server: &Server, caller: &Caller, request: &Request) -> Response {
        match self.session(server, caller, &request.head.headers) {
            Ok(session) => {
                self.end(&session, EndReason::Normal);
                let mut response = answer::accepted();
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
            Err(response) => *response,
        }
    }

    /// Ends a session, and writes it down once.
    pub(super) fn end(&self, session: &Session, why: EndReason) {
        if self.sessions.end(session) {
            self.record(session, AuthEvent::SessionEnded, Some(why));
        }
    }

    /// Writes down that a session begins or ends. A journal that fails here fails the gate as well.
    fn record(&self, session: &Session, event: AuthEvent, end_reason: Option<EndReason>) {
        let record = Auth {
            status: Some(Status::Success),
            subject_id: Some(&session.caller.subject),
            mcp_session_id: Some(&session.id),
            end_reason,
            ..Auth::of(event)
        };
        drop(self.gate.record(&Record::Auth(&record)));
    }
}

/// GET: the stream of what belongs to no request of a session, or of one that was lost.
pub(super) fn listening<S>(
    request: &Request,
    session: impl FnOnce(&HeaderMap) -> Result<Arc<S>, Box<Response>>,
    streams: impl FnOnce(&S) -> &Streams,
) -> Response {
    let headers = &request.head.headers;
    if !headers.contains_key(&SESSION_ID) {
        // The Modern era has no such stream.
        return answer::not_allowed("POST");
    }
    if !answer::accepts(headers, &["text/event-stream"]) {
        let message = "the client must accept text/event-stream";
        return answer::fault_with(Refused::Accept, message);
    }
    let session = match session(headers) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    let opened = match single(headers, &LAST_EVENT_ID) {
        Ok(after) => streams(&session).read(after),
        Err(_) => Err(StreamFault::UnknownEvent),
    };
    answer::stream(opened)
}

/// The revision in a request's header, where it is a published one of the Legacy era.
pub(super) fn legacy_revision(header: &str) -> Option<Revision> {
    Revision::parse(header).filter(|revision| revision.era() == Era::Legacy)
}

/// A session that is being opened, undone where its client goes away or its server refuses.
struct Abandoned<'o> {
    server: &'o Server,
    caller: &'o Arc<str>,
    session_id: &'o Arc<str>,
    kept: bool,
}

impl Abandoned<'_> {
    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.server.pool.leave(self.caller, self.session_id);
        }
    }
}

/// Passes on what a server says that belongs to no exchange, for as long as its slot is in use.
pub(super) async fn attend(face: Weak<Face>, slot: Arc<Slot>) {
    let mut is_first = true;
    while let Some(link) = slot.next_link().await {
        if !std::mem::take(&mut is_first) {
            let Some(face) = face.upgrade() else {
                return;
            };
            face.tell_of_lists_anew(&slot);
        }
        let mut hearing = Hearing::new(&slot, &link);
        loop {
            let heard = hearing.next().await;
            let Some(face) = face.upgrade() else {
                return;
            };
            let incoming = match heard {
                Heard::Said(incoming) => incoming,
                Heard::Reopened => {
                    face.tell_of_lists_anew(&slot);
                    continue;
                }
            };
            match incoming {
                Incoming::Notification(news) => face.tell_all(&slot, news).await,
                Incoming::Request { id, method, frame } => {
                    let question = Question { id, method, frame };
                    face.ask_client(&slot, &link, question).await;
                }
                Incoming::Found(_) => {}
                Incoming::Fault(_) | Incoming::Response(_) | Incoming::Cancelled => break,
            }
        }
    }
}

impl Face {
    /// Tells the clients of a server that it may have other lists than before.
    fn tell_of_lists_anew(&self, slot: &Arc<Slot>) {
        for session in self.sessions.at(slot) {
            for frame in session.asker().lists_anew() {
                session.post(frame);
            }
        }
    }

    async fn tell_all(&self, slot: &Arc<Slot>, news: News) {
        for session in self.sessions.at(slot) {
            if let Some(frame) = session.asker().news(&mut news.clone()) {
                session.tell(frame).await;
            }
        }
    }

    async fn ask_client(&self, slot: &Arc<Slot>, link: &Arc<Link>, question: Question) {
        let sessions = self.sessions.at(slot);
        let [session] = sessions.as_slice() else {
            let message = "nobody can answer this request: several clients share this server";
            let refused = frames::error(&question.id, -32603, message, None);
            link.refuse(refused);
            return;
        };
        if let Some(frame) = session.asker().pass_on(link, question, None).await {
            session.tell(frame).await;
        }
    }
}
