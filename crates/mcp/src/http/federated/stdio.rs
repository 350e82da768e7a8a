//! All servers in front of one client over standard streams. Requests are taken up in the order in which they come, as
//! by the edge of one server: they go on beside each other on this task.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gate::{Caller, Gate, Reason};
use net::stdio::{FrameReader, FrameWriter};
use net::timers::kept;
use tokio::sync::mpsc;
use tokio::time::Interval;
use toolkit::Trace;
use wire::jsonrpc::Kind;
use wire::{Canonical, FrameEvent, WireError, WireErrorKind};

use super::super::Face;
use super::super::post::{Message, carried_out, salvaged};
use super::super::streams::Streams;
use super::Federation;
use super::lists::result;
use super::messages::Routed;
use super::open::Opening;
use crate::call::Why;
use crate::message::frames::{self, UpstreamFault};
use crate::message::{request, shapes};
use crate::notes::Noted;
use crate::stdio::Ending;
use crate::stdio::runs::Runs;

/// Most messages that wait for the client to read them.
const LINES_MAX: usize = 1_024;
/// How often the journal's health is looked at, in milliseconds.
const TICK_MS: u64 = 250;
/// How long the client may take to read what is left at the end, in milliseconds.
const LAST_FLUSH_MS: u64 = 1_000;

/// What the edge is told at its start.
#[derive(Debug, Clone)]
pub struct StreamsOptions {
    /// The caller.
    pub caller: Caller,
    /// 128 random bits in hex.
    pub session_id: Arc<str>,
    /// How long calls under way may take to end at the end, in milliseconds.
    pub drain_ms: u64,
}

/// The client and what is under way for it.
struct Edge {
    face: Arc<Face>,
    options: StreamsOptions,
    lines: mpsc::Sender<Vec<u8>>,
    federation: Option<Arc<Federation>>,
    running: Runs,
    /// Answers that nothing had to be asked for: at most one for each frame that was read at once.
    said: Vec<Vec<u8>>,
}

impl Face {
    /// Serves the client of these streams until it closes its side, the journal fails, or `end` is ready.
    ///
    /// # Errors
    /// Where the streams cannot be read.
    pub async fn speak(
        self: &Arc<Self>,
        (mut reader, mut writer): (FrameReader, FrameWriter),
        options: StreamsOptions,
        end: impl Future<Output = ()> + Send,
    ) -> io::Result<Ending> {
        let (lines, mut told) = mpsc::channel(LINES_MAX);
        let mut edge = Edge {
            face: Arc::clone(self),
            options,
            lines,
            federation: None,
            running: Runs::default(),
            said: Vec::new(),
        };
        let mut end = std::pin::pin!(end);
        let mut tick = kept(|| tokio::time::interval(Duration::from_millis(TICK_MS)));
        // The client has closed its input; what it wrote before may be unread.
        let mut hung_up = false;
        let ending = loop {
            reader.take_at_most(request::bytes_max(&self.gate));
            if !writer.is_congested() || hung_up {
                edge.drain(&mut reader, hung_up).await;
            }
            edge.running.poll(hung_up);
            let is_said = edge.said.drain(..).try_for_each(|f| writer.send_owned(f));
            if is_said.is_err() || reader.has_ended() {
                break Ending::ClientClosed;
            }
            let (congested, queued) = (writer.is_congested(), !writer.is_empty());
            tokio::select! {
                // A client that has closed its input is read to the end whatever is congested: what is left is
                // bounded by the descriptor's buffer, and its end must be seen.
                read = reader.fill(), if hung_up || !(congested || edge.is_full()) => {
                    hung_up |= !read?;
                }
                Some(frame) = told.recv(), if !congested => {
                    if writer.send_owned(frame).is_err() {
                        break Ending::ClientClosed;
                    }
                }
                flushed = writer.flush(), if queued => {
                    if flushed.is_err() {
                        break Ending::ClientClosed;
                    }
                }
                () = edge.running.woken() => {}
                _ = tick.tick() => {
                    hung_up |= reader.has_hung_up();
                    if self.all_gates().iter().any(|gate| gate.has_failed()) {
                        break Ending::JournalFailed;
                    }
                }
                () = &mut end => break Ending::Signal,
            }
            edge.running.attend();
        };
        edge.end(&ending, (told, writer), &mut tick).await;
        Ok(ending)
    }

    fn all_gates(&self) -> Vec<Arc<Gate>> {
        let servers = self.all_servers();
        servers
            .iter()
            .map(|server| Arc::clone(&server.gate))
            .collect()
    }

    /// Takes a message of a batch or of standard streams; gives the answer where it has one.
    pub(super) async fn one_of_all(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        frame: &[u8],
        arrival: (u64, Trace),
    ) -> Option<Vec<u8>> {
        let canonical = match shapes::of_client(frame) {
            Ok(canonical) => canonical,
            Err(fault) => return Some(self.unreadable(frame, &fault)),
        };
        self.message_of_all(federation, &canonical, arrival).await
    }

    fn unreadable(&self, frame: &[u8], fault: &WireError) -> Vec<u8> {
        self.note(Noted::frame(fault));
        let id = salvaged(frame).unwrap_or_else(|| "null".into());
        frames::bad_frame(&id, fault)
    }

    async fn message_of_all(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        canonical: &Canonical,
        arrival: (u64, Trace),
    ) -> Option<Vec<u8>> {
        let kind = match canonical.envelope() {
            Ok(envelope) => envelope.kind,
            Err(fault) => return Some(self.unreadable(canonical.text().as_bytes(), &fault)),
        };
        let Kind::Request { id, method } = &kind else {
            self.told_all(federation, canonical, &kind).await;
            return None;
        };
        if method == "initialize" {
            return Some(frames::error(id.raw(), -32600, request::OPEN_ALREADY, None));
        }
        match self
            .routed(federation, canonical, (*id, method), &arrival)
            .await
        {
            Routed::Answer(frame) => Some(frame),
            Routed::Message(session, Message::Request(asker, asked, inside), frame) => {
                let guard = inside.map(|(_, guard)| guard);
                let (answer, _) = carried_out(asker, asked, frame, guard).await?;
                Some(session.told(answer))
            }
            Routed::Message(..) => Some(frames::error(id.raw(), -32600, request::ID_IN_USE, None)),
        }
    }
}

impl Edge {
    fn is_full(&self) -> bool {
        !self.running.has_room()
    }

    /// Adds a request that goes on beside the others; its client is told where there is no room.
    fn begin(&mut self, id: &str, answer: impl Future<Output = Option<Vec<u8>>> + Send + 'static) {
        if !self.running.has_room() {
            let busy = frames::upstream_fault(id, UpstreamFault::Busy);
            return self.said.push(busy);
        }
        let lines = self.lines.clone();
        self.running.add(Box::pin(async move {
            if let Some(answer) = answer.await {
                let _ = lines.send(answer).await;
            }
        }));
    }

    /// Takes what was read from the client, as far as there is room for requests; `all` of it at its end.
    async fn drain(&mut self, reader: &mut FrameReader, all: bool) {
        while all || !self.is_full() {
            let Some(event) = reader.next() else {
                return;
            };
            let frame = match event {
                FrameEvent::Frame(frame) => frame.to_vec(),
                FrameEvent::TooLong(head) => {
                    let message = "the frame is longer than limits.request_bytes";
                    let at = request::bytes_max(&self.face.gate);
                    let fault = WireError::new(WireErrorKind::TooLong, at, message);
                    self.said.push(self.face.unreadable(&head, &fault));
                    continue;
                }
            };
            self.take(frame).await;
        }
    }

    async fn take(&mut self, frame: Vec<u8>) {
        let canonical = match shapes::of_client(&frame) {
            Ok(canonical) => canonical,
            Err(fault) => {
                return self.said.push(self.face.unreadable(&frame, &fault));
            }
        };
        let arrival = (self.face.gate.mono_ns(), Trace::default());
        let kind = canonical.envelope().map(|envelope| envelope.kind);
        let federation = match (&self.federation, &kind) {
            (None, Ok(Kind::Request { id, method })) if method == "initialize" => {
                return self.open(id.raw(), &canonical).await;
            }
            (None, Ok(Kind::Request { id, .. })) => {
                let message = "no session is open: send initialize first";
                let answer = frames::error(id.raw(), -32600, message, None);
                return self.said.push(answer);
            }
            (None, _) => return,
            (Some(federation), _) => Arc::clone(federation),
        };
        federation.touch(arrival.0);
        let face = Arc::clone(&self.face);
        if let Some(elements) = canonical.batch() {
            let elements: Vec<Vec<u8>> = elements.map(|e| e.as_bytes().to_vec()).collect();
            if let Err(fault) = federation.may_batch(elements.len()) {
                return self.said.push(face.unreadable(b"", &fault));
            }
            let answers = async move { face.batch_of_all(&federation, elements, arrival).await };
            return self.begin("null", answers);
        }
        let Ok(Kind::Request { id, .. }) = kind else {
            drop(kind);
            // Behind the requests before it: it may take one of them back.
            self.running.poll(true);
            if let Some(answer) = face.message_of_all(&federation, &canonical, arrival).await {
                self.said.push(answer);
            }
            return;
        };
        let id = id.raw().to_owned();
        drop(kind);
        self.begin(&id, async move {
            face.message_of_all(&federation, &canonical, arrival).await
        });
    }

    /// Opens a session with each server. What the client sends meanwhile waits.
    async fn open(&mut self, id: &str, canonical: &Canonical) {
        let federation = self.face.federate(Opening {
            id: Arc::clone(&self.options.session_id),
            caller: &self.options.caller,
            permit: None,
            streams: Arc::new(Streams::lines(self.lines.clone())),
            initialize: canonical.text().as_bytes().to_vec(),
            scan: &canonical.scan(),
        });
        self.federation = Some(Arc::clone(&federation));
        let opened = self.face.joined_result(&federation).await;
        self.said.push(result(id, &opened));
    }

    /// Lets what is under way end, for so long at most, and gives the client what is left.
    async fn end(
        &mut self,
        ending: &Ending,
        (mut told, mut writer): (mpsc::Receiver<Vec<u8>>, FrameWriter),
        tick: &mut Interval,
    ) {
        let drain = Duration::from_millis(self.options.drain_ms);
        let rest = async {
            while !self.running.is_empty() {
                // Also what begins to wait for a person only now.
                self.stop_waiting(ending);
                self.running.poll(false);
                tokio::select! {
                    _ = tick.tick() => {}
                    () = self.running.woken() => {}
                    Some(frame) = told.recv() => drop(writer.send_owned(frame)),
                    flushed = writer.flush(), if !writer.is_empty() => drop(flushed),
                }
            }
        };
        drop(tokio::time::timeout(drain, rest).await);
        self.running.clear();
        while let Ok(frame) = told.try_recv() {
            drop(writer.send_owned(frame));
        }
        let wait = Duration::from_millis(LAST_FLUSH_MS);
        // A client that does not read what is left in time does not get it.
        drop(tokio::time::timeout(wait, writer.flush()).await);
    }

    /// Nothing waits for a person; where it is not the client that ends, nothing new is begun either.
    fn stop_waiting(&self, ending: &Ending) {
        let reason = match ending {
            Ending::ClientClosed => Reason::ApprovalWithdrawn,
            _ => Reason::Draining,
        };
        if *ending != Ending::ClientClosed {
            for gate in self.face.all_gates() {
                gate.drain();
            }
        }
        if let Some(federation) = &self.federation {
            for session in self.face.members(federation) {
                session.under_way.stop_waiting(Why::Refused(reason));
            }
        }
    }
}
