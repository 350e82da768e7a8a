//! The three methods of the endpoint.

use super::headers::{self, EVENTS, HeaderRules, JSON, LAST_EVENT_ID, SESSION_ID};
use super::reply::{self, EventScript};
use super::session::{HttpSession, MessageEffects, answers};
use super::stream::{EventStream, StreamItem};
use super::{HttpServer, ReplyForm};
use crate::json::{self, RpcEnvelope};
use crate::server::{LEGACY_VERSIONS, MachineAction, RequestFault, RevisionSet, RoutingParams};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use net::http::server::Response;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Parts of a body that routing needs.
struct PostBody<'a> {
    bytes: &'a [u8],
    /// None for what is no object: a batch, or nothing that can be read.
    envelope: Option<RpcEnvelope<'a>>,
}

impl<'a> PostBody<'a> {
    fn read(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            envelope: json::object(bytes).ok(),
        }
    }

    /// Returns the id of a request, raw JSON; empty if it is unknown, `None` for messages without an answer.
    fn request(&self) -> Option<&'a str> {
        match &self.envelope {
            Some(envelope) if envelope.method.is_empty() => None,
            Some(envelope) => envelope.id.map(RawValue::get),
            None => Some(""),
        }
    }

    fn names_version(&self) -> bool {
        let params = self
            .envelope
            .as_ref()
            .map(|e| RoutingParams::read(e.params));
        params.is_some_and(|params| params.is_ok_and(|params| params.names_version()))
    }
}

impl HttpServer {
    pub(super) async fn post(&self, headers: &HeaderMap, bytes: &[u8]) -> Response {
        if !headers::lists(headers, &CONTENT_TYPE, JSON) {
            let text = "content-type is application/json";
            return reply::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
        }
        if !headers::lists(headers, &ACCEPT, JSON) || !headers::lists(headers, &ACCEPT, EVENTS) {
            let text = "accept lists application/json and text/event-stream";
            return reply::refusal(StatusCode::NOT_ACCEPTABLE, text);
        }
        let body = PostBody::read(bytes);
        match self.is_modern(headers, &body) {
            Ok(true) => self.modern(headers, &body).await,
            Ok(false) => self.legacy(headers, &body).await,
            Err(fault) => {
                let id = body.request().filter(|id| !id.is_empty());
                reply::fault(StatusCode::BAD_REQUEST, id.unwrap_or("null"), &fault)
            }
        }
    }

    fn is_modern(&self, headers: &HeaderMap, body: &PostBody<'_>) -> Result<bool, RequestFault> {
        let rules = headers::rules(headers)?;
        Ok(match (self.site.eras, rules) {
            (RevisionSet::Modern, _) => true,
            (RevisionSet::Legacy, HeaderRules::Modern) => {
                let text = format!("use one of the revisions {}", LEGACY_VERSIONS.join(", "));
                return Err(RequestFault::InvalidRequest(text));
            }
            (RevisionSet::Legacy, _) | (RevisionSet::Both, HeaderRules::Legacy) => false,
            (RevisionSet::Both, HeaderRules::Modern) => true,
            (RevisionSet::Both, HeaderRules::Open) => {
                !headers.contains_key(SESSION_ID) && body.names_version()
            }
        })
    }

    async fn modern(&self, headers: &HeaderMap, body: &PostBody<'_>) -> Response {
        let bad = |id, fault: &RequestFault| reply::fault(StatusCode::BAD_REQUEST, id, fault);
        let Some(envelope) = &body.envelope else {
            let fault =
                RequestFault::InvalidRequest("a body holds one message, a JSON object".into());
            return bad("null", &fault);
        };
        let id = envelope.id.map(RawValue::get);
        if envelope.method.is_empty() {
            let fault =
                RequestFault::InvalidRequest("a body holds a request or a notification".into());
            return bad(id.unwrap_or("null"), &fault);
        }
        let mut machine = (self.site.open)();
        let params = RoutingParams::read(envelope.params).unwrap_or_default();
        let sound = params.has_modern_meta();
        if sound && let Err(fault) = headers::mirror(headers, envelope, &params, &*machine) {
            return bad(id.unwrap_or("null"), &fault);
        }
        let mut actions = Vec::new();
        if let Some(shared) = &self.shared {
            let stream = id.map(|id| shared.open(id));
            let aftermath = {
                let mut machine = shared.machine();
                machine.handle(body.bytes, &mut actions);
                shared.place(actions, stream.as_ref())
            };
            self.settle(aftermath);
            return self.finish(shared, stream, Some(sound)).await;
        }
        machine.handle(body.bytes, &mut actions);
        let Some(id) = id else {
            return reply::empty(StatusCode::ACCEPTED);
        };
        if let Some(frame) = only_answer(&mut actions, id) {
            let status = reply::status(&frame, true, sound);
            // A status that says what is wrong has a document, never a stream.
            if self.site.form == ReplyForm::Auto || status != StatusCode::OK {
                return reply::document(status, frame);
            }
            actions.push(MachineAction::Send(frame));
        }
        let session = HttpSession::of_request(machine, id);
        self.remember(&session);
        let aftermath = session.place(actions, None);
        self.settle(aftermath);
        let stream = Arc::clone(&session.standalone);
        self.finish(&session, Some(stream), Some(sound)).await
    }

    async fn legacy(&self, headers: &HeaderMap, body: &PostBody<'_>) -> Response {
        let opens = body
            .envelope
            .as_ref()
            .is_some_and(|envelope| envelope.method == "initialize");
        if opens {
            return self.initialize(body);
        }
        let session = match self.session(headers) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        let request = body.request();
        let mut actions = Vec::new();
        let (stream, aftermath) = {
            let mut machine = session.machine();
            machine.handle(body.bytes, &mut actions);
            if let Some(frame) = request.and_then(|id| only_answer(&mut actions, id)) {
                let status = reply::status(&frame, false, true);
                if self.site.form == ReplyForm::Auto || status != StatusCode::OK {
                    return reply::document(status, frame);
                }
                actions.push(MachineAction::Send(frame));
            }
            // A batch without a request in it, or the like: nothing is owed.
            let request = request.filter(|id| !id.is_empty() || !actions.is_empty());
            let stream = request.map(|id| session.open(id));
            let aftermath = session.place(actions, stream.as_ref());
            (stream, aftermath)
        };
        self.settle(aftermath);
        self.finish(&session, stream, None).await
    }

    /// Opens a session if the machine settles on a revision.
    fn initialize(&self, body: &PostBody<'_>) -> Response {
        let mut machine = (self.site.open)();
        let mut actions = Vec::new();
        machine.handle(body.bytes, &mut actions);
        let id = body.request().unwrap_or("null");
        let Some(frame) = only_answer(&mut actions, id) else {
            return reply::refusal(StatusCode::BAD_REQUEST, "initialize is a request");
        };
        let version = serde_json::from_slice::<Value>(&frame).ok();
        let version = version
            .as_ref()
            .and_then(|answer| answer.pointer("/result/protocolVersion"))
            .and_then(Value::as_str);
        let Some(version) = version else {
            return reply::document(reply::status(&frame, true, true), frame);
        };
        let session = self.sessions.add(version.to_owned(), machine);
        if self.site.form == ReplyForm::Auto {
            return reply::in_session(reply::document(StatusCode::OK, frame), &session.id);
        }
        let stream = session.open(id);
        session.place(vec![MachineAction::Send(frame)], Some(&stream));
        reply::in_session(self.as_events(&session, stream, true), &session.id)
    }

    /// Returns the session that a request names.
    fn session(&self, headers: &HeaderMap) -> Result<Arc<HttpSession>, Box<Response>> {
        let refuse = |status, text: &str| Err(Box::new(reply::refusal(status, text)));
        match headers::value(headers, &SESSION_ID) {
            Ok(Some(id)) => match self.sessions.get(id) {
                Some(session) => Ok(session),
                None => refuse(
                    StatusCode::NOT_FOUND,
                    "there is no such session; initialize again",
                ),
            },
            Ok(None) => refuse(
                StatusCode::BAD_REQUEST,
                "mcp-session-id is missing; send initialize first",
            ),
            Err(_) => refuse(StatusCode::BAD_REQUEST, "mcp-session-id is doubled"),
        }
    }

    fn settle(&self, aftermath: MessageEffects) {
        self.publish(&aftermath.events);
        if let Some(code) = aftermath.end {
            self.end_with(code);
        }
    }

    /// Returns the response to a message: its form depends on the first item of the stream. `modern` is true if the
    /// request had its required members.
    async fn finish(
        &self,
        session: &Arc<HttpSession>,
        stream: Option<Arc<EventStream>>,
        modern: Option<bool>,
    ) -> Response {
        let Some(stream) = stream else {
            return reply::empty(StatusCode::ACCEPTED);
        };
        let legacy = modern.is_none();
        if self.site.form == ReplyForm::Events {
            return self.as_events(session, stream, legacy);
        }
        let Some(first) = stream.next(0).await else {
            // Withdrawn: a client that cancelled does not wait for a document.
            return reply::empty(StatusCode::ACCEPTED);
        };
        match first.item {
            StreamItem::Frame {
                bytes,
                answers: true,
            } if !stream.has_more() => {
                session.forget(&stream);
                let sound = modern.unwrap_or(true);
                reply::document(reply::status(&bytes, !legacy, sound), bytes)
            }
            StreamItem::Raw(bytes) => reply::raw(bytes),
            _ => reply::events(EventScript {
                session: Arc::clone(session),
                stream,
                reader: 0,
                ids: legacy,
                again: Vec::new(),
                first: Some(first),
            }),
        }
    }

    fn as_events(
        &self,
        session: &Arc<HttpSession>,
        stream: Arc<EventStream>,
        legacy: bool,
    ) -> Response {
        reply::events(EventScript {
            session: Arc::clone(session),
            stream,
            reader: 0,
            ids: legacy,
            again: Vec::new(),
            first: None,
        })
    }

    /// Opens the stream of a session that belongs to no request, or goes on with one that was cut.
    pub(super) fn get(&self, headers: &HeaderMap) -> Response {
        if headers::rules(headers) == Ok(HeaderRules::Modern)
            || self.site.eras == RevisionSet::Modern
        {
            return reply::method_not_allowed();
        }
        if !headers::lists(headers, &ACCEPT, EVENTS) {
            let text = "accept lists text/event-stream";
            return reply::refusal(StatusCode::NOT_ACCEPTABLE, text);
        }
        let session = match self.session(headers) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        let cut = match headers::value(headers, &LAST_EVENT_ID) {
            Ok(Some(id)) => id.split_once('-').and_then(|(stream, event)| {
                Some((stream.parse::<u64>().ok()?, event.parse::<u64>().ok()?))
            }),
            Ok(None) => Some((0, u64::MAX)),
            Err(_) => None,
        };
        let cut = cut.and_then(|(number, event)| Some((session.stream(number)?, event)));
        let Some((stream, event)) = cut else {
            let text = "last-event-id names no event of this session";
            return reply::refusal(StatusCode::BAD_REQUEST, text);
        };
        let reader = stream.take_over();
        reply::events(EventScript {
            again: stream.sent_after(event),
            session,
            stream,
            reader,
            ids: true,
            first: None,
        })
    }

    /// Ends a session.
    pub(super) fn delete(&self, headers: &HeaderMap) -> Response {
        if headers::rules(headers) == Ok(HeaderRules::Modern)
            || self.site.eras == RevisionSet::Modern
        {
            return reply::method_not_allowed();
        }
        match self.session(headers) {
            Ok(session) => {
                self.sessions.remove(&session.id);
                reply::empty(StatusCode::NO_CONTENT)
            }
            Err(refused) => *refused,
        }
    }
}

/// Returns the answer, if it is all that a machine wants to send.
fn only_answer(actions: &mut Vec<MachineAction>, request: &str) -> Option<Vec<u8>> {
    match actions.as_slice() {
        [MachineAction::Send(frame)] if answers(frame, request) || answers(frame, "null") => {
            match actions.pop() {
                Some(MachineAction::Send(frame)) => Some(frame),
                _ => None,
            }
        }
        _ => None,
    }
}
