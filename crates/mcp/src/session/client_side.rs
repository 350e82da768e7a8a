//! Frames from the client.

use gate::facts::{Facts, ResourceType};
use gate::journal::Status;
use gate::{Call, ControlKind, Origin, Outcome};
use wire::id::IdKey;
use wire::jsonrpc::{Envelope, Kind, member};
use wire::revision::META_PROTOCOL_VERSION;
use wire::scan::Scan;
use wire::{Bounds, Era, Id, WireError, WireErrorKind, scan_request};

use crate::frames::{self, UpstreamFault};
use crate::input_required::Return;
use crate::method::{self, Class};
use crate::request;
use crate::upstream::Frame;
use crate::{ask_client, describe};

use super::asking::Side;
use super::open::{Batch, Open, OpenKind};
use super::{Flow, Session, sent};

/// Most messages in one batch.
const BATCH_MAX: usize = 256;

/// What a frame of the client asks for, owned, so that the frame itself can move on.
enum Step {
    Request {
        id: String,
        key: IdKey,
        deadline_ns: u64,
        step: RequestStep,
    },
    Notify(ControlKind, Option<IdKey>),
    Answer(IdKey),
    Nothing,
}

enum RequestStep {
    Pass(ControlKind, OpenKind, Box<Facts>, Box<Origin>),
    Judge(Box<Facts>, Box<Origin>),
    /// The client comes back with an answer of its person.
    Return(Return, Box<Facts>, Box<Origin>),
    Refuse(Vec<u8>),
}

impl Session {
    /// Takes one frame of the client.
    pub(super) async fn on_client_frame(&mut self, frame: Vec<u8>, received_ns: u64) -> Flow {
        let bounds = Bounds::default();
        let scan = match scan_request(&frame, &bounds) {
            Ok(scan) => scan,
            Err(fault) => return self.complain(&frame, &fault),
        };
        if let Some(elements) = &scan.batch {
            if !self.batches_allowed() {
                let fault = WireError {
                    kind: WireErrorKind::BatchNotAllowed,
                    at: 0,
                    message: "no revision of the protocol that has batches is agreed on; send the messages one by one",
                };
                return self.complain(b"", &fault);
            }
            let elements: Vec<Vec<u8>> = elements.iter().map(|e| e.as_bytes().to_vec()).collect();
            return self.on_client_batch(elements, received_ns).await;
        }
        self.on_client_message(frame, received_ns, None).await
    }

    async fn on_client_batch(&mut self, elements: Vec<Vec<u8>>, received_ns: u64) -> Flow {
        if elements.is_empty() || elements.len() > BATCH_MAX {
            let fault = WireError {
                kind: WireErrorKind::TooMany,
                at: 0,
                message: "a batch has 1 to 256 messages",
            };
            return self.complain(b"", &fault);
        }
        let number = self.next_batch;
        self.next_batch += 1;
        // One more than any: the batch is complete only when all elements have been looked at.
        self.table.batches.insert(
            number,
            Batch {
                missing: 1,
                parts: Vec::new(),
            },
        );
        for element in elements {
            let flow = self
                .on_client_message(element, received_ns, Some(number))
                .await;
            if flow != Flow::Go {
                return flow;
            }
        }
        self.batch_step(number, None)
    }

    /// Takes one message of the client. The future is boxed by no one: batches do not nest.
    async fn on_client_message(
        &mut self,
        frame: Vec<u8>,
        received_ns: u64,
        batch: Option<u64>,
    ) -> Flow {
        let step = match self.read_client_message(&frame, received_ns) {
            Ok(step) => step,
            Err(fault) => {
                let answer = self.complaint(&frame, &fault);
                self.expect_batch_part(batch);
                return self.deliver(batch, answer);
            }
        };
        match step {
            Step::Nothing => Flow::Go,
            Step::Notify(kind, cancelled) => self.on_client_notification(kind, cancelled, frame),
            Step::Answer(key) => self.on_client_answer(&key, frame),
            Step::Request {
                id,
                key,
                deadline_ns,
                step,
            } => {
                self.expect_batch_part(batch);
                let open = |kind, deadline_ns| Open {
                    id: id.clone(),
                    sent_id: None,
                    kind,
                    batch,
                    deadline_ns,
                };
                match step {
                    RequestStep::Refuse(answer) => self.deliver(batch, answer),
                    RequestStep::Pass(control, kind, facts, origin) => {
                        let to = self.upstream.id();
                        let asked =
                            self.gate
                                .admit_control(control, &facts, &origin, to, Frame(frame));
                        match asked {
                            Ok(pass) => {
                                self.table.insert(key, open(kind, deadline_ns));
                                sent(self.upstream.send_pass(pass))
                            }
                            Err(refusal) => self.deliver(batch, frames::refused(&id, &refusal)),
                        }
                    }
                    RequestStep::Return(back, facts, origin) => {
                        let open = open(OpenKind::Plain, deadline_ns);
                        self.came_back(key, open, &frame, (&back, &facts, &origin))
                    }
                    RequestStep::Judge(facts, origin) => {
                        let call = Call {
                            caller: self.options.caller.clone(),
                            facts: *facts,
                            origin: *origin,
                            targets: self.upstream.id().into(),
                            request: Frame(frame),
                        };
                        self.judge(call, key, open(OpenKind::Plain, deadline_ns))
                            .await
                    }
                }
            }
        }
    }

    fn on_client_notification(
        &mut self,
        kind: ControlKind,
        cancelled: Option<IdKey>,
        mut frame: Vec<u8>,
    ) -> Flow {
        let cancelled = cancelled.map(|key| self.table.sent_as(key));
        // The server has not heard of a call that still waits, nor will it.
        if let Some(key) = &cancelled
            && (self.withdraw(&(Side::Client, key.clone())) || self.withdraw_judging(key))
        {
            return Flow::Go;
        }
        if let Some(open) = cancelled.and_then(|key| self.table.take(&key)) {
            self.close_batch_part(&open);
            if let Some(id) = &open.sent_id {
                frame = frames::cancel(id, "the client cancelled it");
            }
            drop(open);
        }
        if kind == ControlKind::Handshake {
            self.lists.client_is_ready();
        }
        let pass = self.gate.control(kind, self.upstream.id(), Frame(frame));
        sent(self.upstream.send_pass(pass))
    }

    /// Through the gate: sent and noted as open, kept until a person has answered, or refused.
    async fn judge(&mut self, call: Call<Frame>, key: IdKey, open: Open) -> Flow {
        let admission = self.gate.admit(call).await;
        self.admitted(admission, (Side::Client, key), open)
    }

    /// Reads a message and decides what it asks for, without sending anything.
    fn read_client_message(&mut self, frame: &[u8], received_ns: u64) -> Result<Step, WireError> {
        let scan = scan_request(frame, &Bounds::default())?;
        let envelope = Envelope::of(&scan)?;
        match &envelope.kind {
            Kind::Request { id, method } => Ok(self.read_request(*id, method, &scan, received_ns)),
            Kind::Notification { method } => {
                let Some(kind) = method::of_client_notification(method) else {
                    self.note(
                        "client_notification_dropped",
                        "a notification of an unknown kind was not passed on",
                    );
                    return Ok(Step::Nothing);
                };
                let cancelled = (kind == ControlKind::Cancel)
                    .then(|| {
                        member(&scan.params, "requestId")
                            .and_then(Id::from_raw)
                            .map(Id::key)
                    })
                    .flatten();
                Ok(Step::Notify(kind, cancelled))
            }
            Kind::Response { id: Some(id), .. } => Ok(Step::Answer(id.key())),
            Kind::Response { id: None, .. } => {
                self.note(
                    "client_answer_without_id",
                    "an error without an id was not passed on",
                );
                Ok(Step::Nothing)
            }
        }
    }

    fn read_request(
        &mut self,
        id: Id<'_>,
        method: &str,
        scan: &Scan<'_>,
        received_ns: u64,
    ) -> Step {
        let key = id.key();
        let deadline_ns = self.deadline_ns(method, scan, received_ns);
        let refuse = |answer| Step::Request {
            id: id.raw().to_owned(),
            key: id.key(),
            deadline_ns,
            step: RequestStep::Refuse(answer),
        };
        if self.table.has(&key) {
            let message = request::ID_IN_USE;
            self.note("client_id_in_use", message);
            return refuse(frames::error(id.raw(), -32600, message, None));
        }
        if self.table.is_full() {
            self.note(UpstreamFault::Busy.label(), UpstreamFault::Busy.sentence());
            return refuse(frames::upstream_fault(id.raw(), UpstreamFault::Busy));
        }
        self.learn_of_client(method, scan);
        let pass = |session: &Self, kind, open| {
            let facts = describe::control_request(method, &session.context());
            let origin = session.origin(id.raw(), scan, received_ns);
            RequestStep::Pass(kind, open, Box::new(facts), Box::new(origin))
        };
        let modern = self.era == Some(Era::Modern);
        let back = || Return::of(scan).filter(|_| modern);
        let step = match request::classify(method, scan) {
            Class::Control(kind) => {
                let open = match method {
                    "initialize" => OpenKind::Initialize,
                    "server/discover" => OpenKind::Discover,
                    _ => OpenKind::Plain,
                };
                pass(self, kind, open)
            }
            Class::List(list) => {
                let first = member(&scan.params, "cursor").is_none_or(|raw| raw == "null");
                pass(self, ControlKind::List, OpenKind::List { list, first })
            }
            Class::Judged(_) if let Some(back) = back() => {
                let facts = describe::control_request(method, &self.context());
                let origin = self.origin(id.raw(), scan, received_ns);
                RequestStep::Return(back, Box::new(facts), Box::new(origin))
            }
            Class::Judged(reaches_for) => {
                self.read_judged(id, method, reaches_for, scan, received_ns)
            }
        };
        Step::Request {
            id: id.raw().to_owned(),
            key,
            deadline_ns,
            step,
        }
    }

    /// States the facts of a request that is to be judged.
    fn read_judged(
        &mut self,
        id: Id<'_>,
        method: &str,
        reaches_for: Option<ResourceType>,
        scan: &Scan<'_>,
        received_ns: u64,
    ) -> RequestStep {
        match describe::client_request(method, reaches_for, scan, &self.context()) {
            Ok(mut facts) => {
                if let (Some(_), Some(tool)) = (facts.quarantine, facts.tool_name.known()) {
                    facts.quarantine = self.definitions.quarantine_now(tool);
                }
                let origin = self.origin(id.raw(), scan, received_ns);
                RequestStep::Judge(Box::new(facts), Box::new(origin))
            }
            Err(message) => {
                self.note("client_params_unusable", message);
                RequestStep::Refuse(frames::error(id.raw(), -32602, message, None))
            }
        }
    }

    /// When a request is given up.
    fn deadline_ns(&self, method: &str, scan: &Scan<'_>, received_ns: u64) -> u64 {
        let wait_ms = match method {
            // A subscription lasts until one side ends it.
            "subscriptions/listen" => return u64::MAX,
            "tools/call" => member(&scan.params, "name")
                .and_then(wire::jsonrpc::string)
                .and_then(|tool| self.options.tool_timeouts_ms.get(&*tool).copied()),
            _ => None,
        };
        let wait_ms = wait_ms.unwrap_or(self.options.call_timeout_ms);
        received_ns.saturating_add(wait_ms.saturating_mul(1_000_000))
    }

    /// Learns era and client program from what every first request says.
    fn learn_of_client(&mut self, method: &str, scan: &Scan<'_>) {
        let info = if method == "initialize" {
            self.era = Some(Era::Legacy);
            self.client_elicits =
                member(&scan.params, "capabilities").is_some_and(ask_client::can_elicit);
            member(&scan.params, "clientInfo").map(str::to_owned)
        } else if self.era == Some(Era::Modern) {
            return;
        } else {
            let Some(meta) = member(&scan.params, "_meta") else {
                return;
            };
            let Ok(meta) = serde_json::from_str::<serde_json::Value>(meta) else {
                return;
            };
            if meta.get(META_PROTOCOL_VERSION).is_none() {
                return;
            }
            self.era = Some(Era::Modern);
            meta.get(request::META_CLIENT).map(ToString::to_string)
        };
        self.client_id = info.as_deref().and_then(request::client_name);
    }

    fn origin(&self, id: &str, scan: &Scan<'_>, received_ns: u64) -> Origin {
        Origin {
            request_id: id.chars().take(256).collect(),
            session_id: self.session_id.clone(),
            era: self.era.map(Era::label),
            client_id: self.client_id.clone(),
            transport: self.upstream.transport(),
            arguments_digest: member(&scan.params, "arguments")
                .map(|raw| self.gate.digest(raw.as_bytes())),
            received_ns,
        }
    }

    /// The client answers a request of the server.
    fn on_client_answer(&mut self, key: &IdKey, frame: Vec<u8>) -> Flow {
        if let Some(at) = self.table.server_pings.iter().position(|k| k == key) {
            self.table.server_pings.remove(at);
            let to = self.upstream.id();
            let pass = self.gate.control(ControlKind::Ping, to, Frame(frame));
            return sent(self.upstream.send_pass(pass));
        }
        if let Some(about) = self.table.elicitations.get(key).cloned() {
            return self.on_elicited(key, &about, &frame);
        }
        let Some(flight) = self.table.server_requests.remove(key) else {
            self.note(
                "client_answer_unknown",
                "an answer to no open request of the server was not passed on",
            );
            return Flow::Go;
        };
        let mut flight = flight;
        flight.reply_arrived();
        match self.upstream.send_pass(flight.answer(Frame(frame))) {
            Ok(flight) => {
                flight.finish(Outcome {
                    status: Status::Success,
                    ..Outcome::default()
                });
                Flow::Go
            }
            Err(_) => Flow::UpstreamGone,
        }
    }

    /// Tells the client that its frame could not be taken.
    pub(super) fn complain(&mut self, frame: &[u8], fault: &WireError) -> Flow {
        let answer = self.complaint(frame, fault);
        self.tell_client(&answer)
    }

    /// Notes that a frame could not be taken, and words the answer.
    fn complaint(&mut self, frame: &[u8], fault: &WireError) -> Vec<u8> {
        self.note(fault.kind.label(), fault.message);
        let id =
            frames::salvage_id(frame.get(..4096).unwrap_or(frame)).unwrap_or_else(|| "null".into());
        // An id out of a broken frame may be in use; then the answer would go to the wrong call.
        let used = Id::from_raw(&id).is_some_and(|id| self.table.has(&id.key()));
        frames::bad_frame(if used { "null" } else { &id }, fault)
    }

    /// Only where a revision that has them is agreed on: `initialize` itself may not be in one.
    fn batches_allowed(&self) -> bool {
        self.era != Some(Era::Modern) && self.revision.is_some_and(wire::Revision::has_batches)
    }
}
