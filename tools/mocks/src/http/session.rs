//! One machine and its streams.

use super::stream::{EventStream, StreamItem};
use crate::json::{self, RpcEnvelope};
use crate::server::{ChangeEvent, MachineAction, ProtocolMachine};
use crate::stdio::complain;
use serde_json::value::RawValue;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How many streams one session keeps at most, open and done; the oldest make room.
const STREAMS_MAX: usize = 1024;
/// How many of them are kept after their answer was sent, to be read again.
const SETTLED_MAX: usize = 64;

/// A Legacy session, or the place of Modern requests.
pub(super) struct HttpSession {
    /// Empty in the Modern era.
    pub(super) id: String,
    /// The Legacy revision that was settled on.
    pub(super) version: String,
    machine: Mutex<Box<dyn ProtocolMachine>>,
    streams: Mutex<Vec<Arc<EventStream>>>,
    /// What belongs to no request goes here.
    pub(super) standalone: Arc<EventStream>,
    opened: AtomicU64,
    /// When it was last used, on the clock of its table.
    pub(super) used: AtomicU64,
}

/// Work that remains after a message.
#[derive(Default)]
pub(super) struct MessageEffects {
    pub(super) events: Vec<ChangeEvent>,
    pub(super) end: Option<u8>,
}

impl HttpSession {
    pub(super) fn legacy(
        id: String,
        version: String,
        machine: Box<dyn ProtocolMachine>,
    ) -> Arc<Self> {
        Self::new(id, version, machine, EventStream::new(0, ""))
    }

    /// Returns a place for Modern requests that share a machine.
    pub(super) fn stateless(machine: Box<dyn ProtocolMachine>) -> Arc<Self> {
        let standalone = EventStream::new(0, "");
        standalone.close();
        Self::new(String::new(), String::new(), machine, standalone)
    }

    /// Returns a place for one Modern request: all that its machine sends goes to its stream.
    pub(super) fn of_request(machine: Box<dyn ProtocolMachine>, request: &str) -> Arc<Self> {
        let stream = EventStream::new(0, request);
        let session = Self::new(String::new(), String::new(), machine, stream);
        session.streams().push(Arc::clone(&session.standalone));
        session
    }

    fn new(
        id: String,
        version: String,
        machine: Box<dyn ProtocolMachine>,
        standalone: EventStream,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            version,
            machine: Mutex::new(machine),
            streams: Mutex::default(),
            standalone: Arc::new(standalone),
            opened: AtomicU64::new(0),
            used: AtomicU64::new(0),
        })
    }

    /// Returns the machine, for as long as one message takes.
    pub(super) fn machine(&self) -> MutexGuard<'_, Box<dyn ProtocolMachine>> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn streams(&self) -> MutexGuard<'_, Vec<Arc<EventStream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the stream of a request; the id is raw JSON.
    pub(super) fn open(&self, request: &str) -> Arc<EventStream> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let stream = Arc::new(EventStream::new(number, request));
        let mut streams = self.streams();
        let settled = streams.iter().filter(|stream| stream.is_settled()).count();
        let oldest = if settled > SETTLED_MAX {
            streams.iter().position(|stream| stream.is_settled())
        } else {
            (streams.len() >= STREAMS_MAX).then_some(0)
        };
        if let Some(oldest) = oldest {
            streams.remove(oldest).close();
        }
        streams.push(Arc::clone(&stream));
        stream
    }

    /// Removes a stream that no client can resume.
    pub(super) fn forget(&self, stream: &Arc<EventStream>) {
        self.streams().retain(|other| !Arc::ptr_eq(other, stream));
    }

    /// Returns the stream with this number, if it is kept.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        if number == 0 {
            return Some(Arc::clone(&self.standalone));
        }
        let streams = self.streams();
        streams
            .iter()
            .find(|stream| stream.number == number)
            .cloned()
    }

    /// Ends every stream.
    pub(super) fn close(&self) {
        for stream in self.streams().iter() {
            stream.close();
        }
        self.standalone.close();
    }

    /// Lets the machine see an event and sends what it owes.
    pub(super) fn event(&self, event: &ChangeEvent) {
        let mut actions = Vec::new();
        let mut machine = self.machine();
        machine.event(event, &mut actions);
        self.place(actions, None);
    }

    /// Routes the actions of a machine; `current` is the stream of the current message.
    pub(super) fn place(
        &self,
        actions: Vec<MachineAction>,
        current: Option<&Arc<EventStream>>,
    ) -> MessageEffects {
        let mut aftermath = MessageEffects::default();
        let now = Instant::now();
        let here = current.unwrap_or(&self.standalone);
        for action in actions {
            match action {
                MachineAction::Send(frame) => self.send(now, frame, here),
                MachineAction::SendLater { after, frame, .. } => {
                    self.send(now + after, frame, here)
                }
                MachineAction::Withdraw { id } => self.withdraw(&id),
                MachineAction::Publish(event) => aftermath.events.push(event),
                MachineAction::HangUp => here.push(now, StreamItem::HangUp),
                MachineAction::SendRaw(bytes) => here.push(now, StreamItem::Raw(bytes)),
                MachineAction::Complain { bytes } => complain(bytes),
                // A server over HTTP runs until it is stopped.
                MachineAction::Linger(_) => {}
                MachineAction::End(code) => aftermath.end = Some(code),
            }
        }
        aftermath
    }

    fn send(&self, due: Instant, bytes: Vec<u8>, here: &Arc<EventStream>) {
        if answers(&bytes, &here.request) {
            return here.push(
                due,
                StreamItem::Frame {
                    bytes,
                    answers: true,
                },
            );
        }
        let elsewhere = answered_id(&bytes).and_then(|id| {
            let streams = self.streams();
            let open = streams.iter().rev();
            let mut open = open.filter(|stream| stream.request == id && !stream.is_settled());
            open.next().cloned()
        });
        match elsewhere {
            Some(stream) => stream.push(
                due,
                StreamItem::Frame {
                    bytes,
                    answers: true,
                },
            ),
            None => here.push(
                due,
                StreamItem::Frame {
                    bytes,
                    answers: false,
                },
            ),
        }
    }

    /// A request that was cancelled gets no answer.
    fn withdraw(&self, id: &str) {
        let streams = self.streams();
        if let Some(stream) = streams.iter().rev().find(|stream| stream.request == id) {
            stream.close();
        }
    }
}

/// Returns whether a frame of ours is the response to the request with this id, raw JSON; an array always is.
pub(super) fn answers(frame: &[u8], id: &str) -> bool {
    let rest = frame
        .strip_prefix(br#"{"jsonrpc":"2.0","id":"#)
        .and_then(|rest| rest.strip_prefix(id.as_bytes()));
    match rest {
        Some(rest) => rest.starts_with(br#","result""#) || rest.starts_with(br#","error""#),
        None => frame.starts_with(b"["),
    }
}

/// Returns the id of a frame that is a response.
fn answered_id(frame: &[u8]) -> Option<String> {
    let envelope: RpcEnvelope<'_> = json::object(frame).ok()?;
    let is_response = envelope.result.is_some() || envelope.error.is_some();
    envelope
        .id
        .filter(|_| is_response)
        .map(RawValue::get)
        .map(str::to_owned)
}
