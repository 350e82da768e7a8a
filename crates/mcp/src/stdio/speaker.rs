//! The one client of standard streams: what it has said of itself, and what it asks for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::inspect::Inspected;
use gate::{Caller, ControlKind};
use wire::id::IdKey;
use wire::jsonrpc::{Kind, member};
use wire::revision::META_PROTOCOL_VERSION;
use wire::scan::Scan;
use wire::{Canonical, Era, Id, Revision, WireError};

use super::outbox::Outbox;
use crate::call::{
    Asked, Asker, CallGuard, Client as _, IncomingRequest, Lot, Question, Server, Shown, UnderWay,
    form,
};
use crate::message::frames::{self, UpstreamFault};
use crate::message::method::{self, Notice};
use crate::message::request;
use crate::notes::Note;
use crate::upstream::{Heard, Hearing, IN_FLIGHT_MAX, Incoming, Link, Slot};
use toolkit::Trace;

/// What a client has said of itself.
#[derive(Debug, Default, Clone)]
struct Said {
    era: Option<Era>,
    client_id: Option<Arc<str>>,
    /// It can show its person a form.
    elicits: bool,
}

/// The client, as all that goes on shares it.
pub(super) struct Speaker {
    pub server: Arc<Server>,
    pub caller: Caller,
    pub session_id: Arc<str>,
    pub slot: Arc<Slot>,
    pub shown: Arc<Shown>,
    pub under_way: Arc<UnderWay>,
    pub lot: Arc<Lot>,
    pub outbox: Arc<Outbox>,
    said: Mutex<Said>,
}

/// What a message of the client asks for, without its frame.
pub(super) enum Step {
    Request(Box<Asker>, Box<Asked>, CallGuard),
    Refuse(Vec<u8>),
    Notify(ControlKind, Option<IdKey>),
    /// A notification that is judged; when it was read.
    JudgeNotice(Box<Asker>, u64),
    Answer(IdKey),
    Nothing,
}

impl Speaker {
    pub fn new(
        server: Arc<Server>,
        caller: Caller,
        session_id: Arc<str>,
        slot: Arc<Slot>,
        under_way: UnderWay,
    ) -> Self {
        Self {
            shown: server.nothing_shown(),
            server,
            caller,
            session_id,
            slot,
            under_way: Arc::new(under_way),
            lot: Arc::default(),
            outbox: Arc::default(),
            said: Mutex::default(),
        }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This client as the one who asks.
    pub fn asker(&self) -> Asker {
        let Said {
            era,
            client_id,
            elicits,
        } = self.said().clone();
        Asker {
            server: Arc::clone(&self.server),
            caller: self.caller.clone(),
            session_id: Arc::clone(&self.session_id),
            client_id,
            era,
            elicits,
            slot: Arc::clone(&self.slot),
            shown: Arc::clone(&self.shown),
            under_way: Some(Arc::clone(&self.under_way)),
            lot: Arc::clone(&self.lot),
            client: Arc::clone(&self.outbox) as _,
            recalls: false,
        }
    }

    /// Whether its revision has batches, where one is agreed on: `initialize` itself may not be in one.
    pub fn may_batch(&self) -> Option<bool> {
        let is_modern = self.said().era == Some(Era::Modern);
        let revision = self.under_way.revision();
        revision.map(|revision| !is_modern && revision.has_batches())
    }

    /// Whether an id belongs to a call that is under way or kept.
    pub fn is_in_use(&self, key: &IdKey) -> bool {
        self.under_way.has_id(key)
            || self.lot.has_id(key)
            || self.slot.current().is_some_and(|link| link.has_id(key))
    }

    /// Reads a message and decides what it asks for, without sending anything.
    pub fn read(
        &self,
        message: &Inspected<Canonical>,
        received_ns: u64,
    ) -> Result<Step, WireError> {
        let canonical = message.message();
        let envelope = canonical.envelope()?;
        let scan = canonical.scan();
        match &envelope.kind {
            Kind::Request { id, method } => Ok(self.request(&IncomingRequest {
                message,
                scan: &scan,
                id: *id,
                method,
                received_ns,
                trace: &Trace::default(),
            })),
            Kind::Notification { method } => Ok(self.notification(method, &scan, received_ns)),
            Kind::Response { id: Some(id), .. } => Ok(Step::Answer(id.key())),
            Kind::Response { id: None, .. } => {
                self.outbox.note(Note::ClientAnswerWithoutId.into());
                Ok(Step::Nothing)
            }
        }
    }

    fn notification(&self, method: &str, scan: &Scan<'_>, received_ns: u64) -> Step {
        let kind = match method::of_client_notification(method) {
            Notice::Control(kind) => kind,
            Notice::Judged => return Step::JudgeNotice(Box::new(self.asker()), received_ns),
            Notice::Foreign => {
                self.outbox.note(Note::ClientNotificationDropped.into());
                return Step::Nothing;
            }
        };
        let cancelled = || Some(Id::from_raw(member(&scan.params, "requestId")?)?.key());
        let cancelled = (kind == ControlKind::Cancel).then(cancelled).flatten();
        Step::Notify(kind, cancelled)
    }

    fn request(&self, asked: &IncomingRequest<'_>) -> Step {
        let key = asked.id.key();
        let refused =
            |message: &str| Step::Refuse(frames::error(asked.id.raw(), -32600, message, None));
        if self.is_in_use(&key) {
            self.outbox
                .note(Note::ClientIdInUse.with(request::ID_IN_USE));
            return refused(request::ID_IN_USE);
        }
        if self.under_way.count() + self.lot.count() >= IN_FLIGHT_MAX {
            let fault = UpstreamFault::Busy;
            self.outbox.note(fault.into());
            return Step::Refuse(frames::upstream_fault(asked.id.raw(), fault));
        }
        self.learn(asked);
        let Some(guard) = self.under_way.take_id(key) else {
            return refused(request::ID_IN_USE);
        };
        let asker = self.asker();
        let read = asker.read(asked);
        Step::Request(Box::new(asker), Box::new(read), guard)
    }

    /// Learns era and client program from what every first request says.
    fn learn(&self, asked: &IncomingRequest<'_>) {
        let params = &asked.scan.params;
        let mut said = self.said();
        if asked.method == "initialize" {
            *said = Said {
                era: Some(Era::Legacy),
                client_id: member(params, "clientInfo").and_then(request::client_name),
                elicits: member(params, "capabilities").is_some_and(form::can_elicit),
            };
        } else if said.era != Some(Era::Modern) && said.client_id.is_none() {
            let Some(meta) = member(params, "_meta") else {
                return;
            };
            let Ok(meta) = serde_json::from_str::<serde_json::Value>(meta) else {
                return;
            };
            if meta.get(META_PROTOCOL_VERSION).is_some() {
                let info = meta.get(request::META_CLIENT).map(ToString::to_string);
                said.era = Some(Era::Modern);
                if let Some(link) = self.slot.current() {
                    link.agreed_on(Some(Revision::V2026_07_28));
                }
                said.client_id = info.as_deref().and_then(request::client_name);
            }
        }
    }

    /// Passes on what the server says that belongs to no exchange, until it ends.
    pub async fn attend(self: Arc<Self>, link: Arc<Link>) {
        let mut hearing = Hearing::new(&self.slot, &link);
        loop {
            let incoming = match hearing.next().await {
                Heard::Said(incoming) => incoming,
                Heard::Reopened => {
                    for frame in self.asker().lists_anew() {
                        self.outbox.post(frame);
                    }
                    continue;
                }
            };
            match incoming {
                Incoming::Notification(mut news) => {
                    if let Some(frame) = self.asker().news(&mut news) {
                        self.outbox.post(frame);
                    }
                }
                Incoming::Request { id, method, frame } => {
                    let question = Question { id, method, frame };
                    if let Some(frame) = self.asker().pass_on(&link, question, None).await {
                        self.outbox.post(frame);
                    }
                }
                Incoming::Found(_) => {}
                Incoming::Fault(_) | Incoming::Response(_) | Incoming::Cancelled => return,
            }
        }
    }
}
