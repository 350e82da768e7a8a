//! Frames from the server.

use gate::journal::{ResponseSummary, Status};
use gate::{Call, ControlKind, Origin, Outcome};
use wire::id::IdKey;
use wire::jsonrpc::{Envelope, Kind, member};
use wire::scan::Scan;
use wire::{Bounds, Era, Id, scan_reply, scan_request};

use crate::frames::{self, Failure, UpstreamFault};
use crate::method::{self, Class, List};
use crate::upstream::{Frame, taken};
use crate::{ask_client, describe, descriptions, era, listing, reply, request};

use super::asking::Side;
use super::inputs::Answered;
use super::open::{Open, OpenKind, SERVER_REQUESTS_MAX};
use super::{Flow, Session, sent};

impl Session {
    /// Takes one frame of the server.
    pub(super) async fn on_server_frame(&mut self, frame: Vec<u8>) -> Flow {
        let bounds = Bounds::default();
        let scan = match scan_reply(&frame, &bounds) {
            Ok(scan) => scan,
            Err(fault) => return self.server_garbage(&frame, fault.message),
        };
        if let Some(elements) = &scan.batch {
            if self.era == Some(Era::Modern) || self.revision.is_some_and(|r| !r.has_batches()) {
                return self.server_garbage(
                    &frame,
                    "the server sent a batch, and this revision has none",
                );
            }
            let elements: Vec<Vec<u8>> = elements.iter().map(|e| e.as_bytes().to_vec()).collect();
            let mut flow = Flow::Go;
            for element in elements {
                flow = flow.or(self.on_server_message(element).await);
            }
            return flow;
        }
        self.on_server_message(frame).await
    }

    async fn on_server_message(&mut self, frame: Vec<u8>) -> Flow {
        let bounds = Bounds::default();
        let Ok(scan) = scan_reply(&frame, &bounds) else {
            return self.server_garbage(&frame, "an element of a batch is not a message");
        };
        let envelope = match Envelope::of(&scan) {
            Ok(envelope) => envelope,
            Err(fault) => return self.server_garbage(&frame, fault.message),
        };
        match &envelope.kind {
            Kind::Response {
                id: Some(id),
                is_error,
            } => {
                let payload = envelope.payload.unwrap_or_default();
                self.on_server_answer(&frame, &scan, *id, *is_error, payload)
                    .await
            }
            Kind::Response { id: None, .. } => {
                self.note(
                    "server_error_without_id",
                    "an error without an id was not passed on",
                );
                Flow::Go
            }
            Kind::Notification { method } => {
                let cancelled = (method == "notifications/cancelled")
                    .then(|| scan_request(&frame, &bounds).ok())
                    .flatten()
                    .and_then(|scan| Id::from_raw(member(&scan.params, "requestId")?).map(Id::key));
                // The client has not heard of a request that still waits, nor will it.
                if cancelled.is_some_and(|key| self.withdraw(&(Side::Server, key))) {
                    return Flow::Go;
                }
                self.on_server_notification(&frame, method)
            }
            Kind::Request { id, method } => {
                let (raw, method) = (id.raw().to_owned(), method.to_string());
                if let Err(fault) = scan_request(&frame, &bounds) {
                    return self.server_garbage(&frame, fault.message);
                }
                self.on_server_request(frame, &raw, &method).await
            }
        }
    }

    async fn on_server_answer(
        &mut self,
        frame: &[u8],
        scan: &Scan<'_>,
        id: Id<'_>,
        is_error: bool,
        payload: &str,
    ) -> Flow {
        let key = id.key();
        let Some(open) = self.table.take(&key) else {
            self.note_stray_answer(&key);
            return Flow::Go;
        };
        let Open {
            id: wanted,
            kind,
            batch,
            ..
        } = match self.within_bound(open, frame) {
            Ok(open) => open,
            Err(flow) => return flow,
        };
        let renamed = (id.raw() != wanted).then(|| frames::with_id(scan, &wanted));
        let refused = is_error.then(|| self.era_refusal(&kind, &wanted, payload));
        let mut answer = refused.flatten().or(renamed);
        match kind {
            OpenKind::Initialize | OpenKind::Discover | OpenKind::List { .. } if is_error => {}
            OpenKind::Plain => {}
            OpenKind::Initialize | OpenKind::Discover => {
                let is_initialize = matches!(kind, OpenKind::Initialize);
                if let Some(result) = self.on_introduction(is_initialize, payload) {
                    answer = Some(with_result(answer, frame, &result, &wanted));
                }
            }
            OpenKind::List { list, first } => match self.filtered(list, first, frame, payload) {
                Ok(None) => {}
                Ok(Some(result)) => {
                    answer = Some(with_result(answer, frame, &result, &wanted));
                }
                Err(message) => {
                    self.note("server_list_unreadable", message);
                    answer = Some(frames::upstream_fault(&wanted, UpstreamFault::Garbage));
                }
            },
            OpenKind::Call(flight) => {
                let answered = Answered {
                    flight,
                    id: wanted,
                    key,
                    batch,
                    frame,
                    renamed: answer,
                    is_error,
                    payload,
                };
                return self.on_call_answer(answered).await;
            }
        }
        self.deliver_bytes(batch, answer.as_deref().unwrap_or(frame))
    }

    fn note_stray_answer(&mut self, key: &IdKey) {
        if self.table.has_ended(key) {
            let message = "a second or late answer to a call was dropped";
            self.note("server_answered_again", message);
        } else {
            let message = "an answer to no call under way was dropped";
            self.note("server_answer_unknown", message);
        }
    }

    /// The answer to a call whose error says that the server speaks the other era.
    fn era_refusal(&mut self, kind: &OpenKind, id: &str, error: &str) -> Option<Vec<u8>> {
        let era = self.era?;
        if !era::is_mismatch(era, kind.asked(), error) {
            return None;
        }
        self.note(UpstreamFault::EraMismatch.label(), &era::sentence(era));
        Some(era::refusal(id, era, error))
    }

    /// Hands the call back if its reply may be passed on; else the call is answered with an error.
    fn within_bound(&mut self, open: Open, frame: &[u8]) -> Result<Open, Flow> {
        let Err((failure, summary)) = reply::within_bound(&self.gate, frame) else {
            return Ok(open);
        };
        self.note(failure.fault.label(), failure.fault.sentence());
        Err(self.end_failed(open, &failure, Some(summary)))
    }

    /// The list's result as the client may see it; `None` where it may see all.
    fn filtered(
        &mut self,
        list: List,
        first: bool,
        frame: &[u8],
        payload: &str,
    ) -> Result<Option<String>, &'static str> {
        let Some(listed) = reply::list(list, frame, payload)? else {
            return Ok(None);
        };
        if list == List::Tools {
            for row in &listed.entries {
                self.schemas.learn(&row.label, &row.input_schema);
            }
        }
        let labels = listed.entries.iter().map(|row| row.label.clone());
        self.lists.take(list, first, labels, self.gate.world());
        let now_ms = self.gate.wall_ms();
        let (shown, findings) = self.definitions.take(list, &listed, first, now_ms);
        self.tell(findings);
        Ok(listing::filter(
            list,
            &listed,
            &shown,
            &self.gate,
            &self.context(),
        ))
    }

    /// The server has said what it is. Gives another result where its instructions had to be cleaned.
    fn on_introduction(&mut self, is_initialize: bool, payload: &str) -> Option<String> {
        if is_initialize {
            self.revision = request::version_of(payload);
            self.lists.learn_capabilities(payload);
        }
        let screened = descriptions::instructions(payload, self.definitions.options());
        self.tell(screened.findings);
        screened.text
    }

    fn on_server_notification(&mut self, frame: &[u8], method: &str) -> Flow {
        if self.client_writer.is_congested() && method::is_droppable(method) {
            self.dropped_notifications += 1;
            return Flow::Go;
        }
        let pass = self.gate.control(ControlKind::News, &self.client, frame);
        match taken(pass, &self.client) {
            Some((frame, ())) => self.tell_client(frame),
            None => Flow::Go,
        }
    }

    /// A request of the server to its client: judged like any other call, in the other direction.
    async fn on_server_request(&mut self, frame: Vec<u8>, id: &str, method: &str) -> Flow {
        let Some(key) = Id::from_raw(id).map(Id::key) else {
            return Flow::Go;
        };
        let waiting = self.table.asking.keys().filter(|k| k.0 == Side::Server);
        let under_way = self.table.server_requests.len() + self.table.server_pings.len();
        let full = under_way + waiting.count() >= SERVER_REQUESTS_MAX;
        let ours = matches!(&key, IdKey::Text(text) if text.starts_with(ask_client::ID_PREFIX));
        let waits = self.table.asking.contains_key(&(Side::Server, key.clone()));
        if full || ours || waits || self.table.server_requests.contains_key(&key) {
            let message = "too many requests under way, or this id is in use";
            return self.answer_server(frames::error(id, -32600, message, None));
        }
        if let Class::Control(kind) = method::of_server_request(method) {
            self.table.server_pings.push_back(key);
            let pass = self.gate.control(kind, &self.client, frame);
            return match taken(pass, &self.client) {
                Some((frame, ())) => self.tell_client(&frame),
                None => Flow::Go,
            };
        }
        let facts = describe::server_request(method, &self.context());
        let origin = Origin {
            request_id: id.chars().take(256).collect(),
            session_id: self.session_id.clone(),
            era: self.era.map(Era::label),
            client_id: self.client_id.clone(),
            transport: self.upstream.transport(),
            arguments_digest: Some(self.gate.digest(&frame)),
            received_ns: self.gate.mono_ns(),
        };
        let open = Open {
            id: id.to_owned(),
            sent_id: None,
            kind: OpenKind::Plain,
            batch: None,
            deadline_ns: u64::MAX,
        };
        let request = Frame(frame);
        let admission = self
            .gate
            .admit(Call {
                caller: self.options.caller.clone(),
                facts,
                origin,
                targets: (&self.client).into(),
                request,
            })
            .await;
        self.admitted(admission, (Side::Server, key), open)
    }

    /// Tells the server that its request did not pass.
    pub(super) fn answer_server(&mut self, answer: Vec<u8>) -> Flow {
        let kind = ControlKind::Complaint;
        let pass = self.gate.control(kind, self.upstream.id(), Frame(answer));
        sent(self.upstream.send_pass(pass))
    }

    /// A frame of the server that is no message. Where it still shows the id of a call under way,
    /// that call is answered with an error; else it is dropped and noted.
    pub(super) fn server_garbage(&mut self, frame: &[u8], message: &str) -> Flow {
        self.note("server_garbage", message);
        self.fail_salvaged(frame, UpstreamFault::Garbage)
    }

    /// Answers the call whose id a broken frame still shows.
    pub(super) fn fail_salvaged(&mut self, frame: &[u8], fault: UpstreamFault) -> Flow {
        let head = frame.get(..64 * 1024).unwrap_or(frame);
        let raw = frames::salvage_id(head);
        let open = raw
            .as_deref()
            .and_then(Id::from_raw)
            .and_then(|id| self.table.take(&id.key()));
        open.map_or(Flow::Go, |open| self.fail(open, &fault.into()))
    }

    /// The transport says that a call will have no answer.
    pub(super) fn on_server_failure(&mut self, id: &str, failure: &Failure) -> Flow {
        let detail = failure.detail.as_deref().unwrap_or("no detail");
        self.note(failure.fault.label(), detail);
        let open = Id::from_raw(id).and_then(|id| self.table.take(&id.key()));
        open.map_or(Flow::Go, |open| self.fail(open, failure))
    }

    /// Answers a call that its server did not.
    pub(super) fn fail(&mut self, open: Open, failure: &Failure) -> Flow {
        self.end_failed(open, failure, None)
    }

    fn end_failed(
        &mut self,
        open: Open,
        failure: &Failure,
        response: Option<ResponseSummary>,
    ) -> Flow {
        let answer = frames::upstream_failure(&open.id, failure);
        let flow = self.deliver(open.batch, answer);
        if let OpenKind::Call(flight) = open.kind {
            flight.finish(Outcome {
                status: Status::Failure,
                error_code: Some(i64::from(frames::UPSTREAM_CODE)),
                reason: Some(failure.fault.label()),
                response,
            });
        }
        flow
    }
}

/// The answer with another result: the one that was begun, or else the frame as it came. What cannot
/// be put together is an error, never the frame unchanged.
fn with_result(begun: Option<Vec<u8>>, frame: &[u8], result: &str, id: &str) -> Vec<u8> {
    let source = begun.as_deref().unwrap_or(frame);
    match scan_reply(source, &Bounds::default()) {
        Ok(scan) => frames::with_result(&scan, result),
        Err(_) => frames::upstream_fault(id, UpstreamFault::Garbage),
    }
}
