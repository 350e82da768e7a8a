//! The edge of standard streams: one client, one server, from the first frame to the last.
//!
//! Everything happens on one task. What is under way is a bounded set of futures ([`runs`]); frames are
//! read from both sides in turn, and each is taken to its end before the next one is looked at, so what
//! leaves is in the order in which it came. A side that does not read stops the other side's reader.

mod batch;
mod outbox;
mod run;
pub(crate) mod runs;
mod seldom;
mod speaker;

use std::io;
use std::sync::Arc;

use gate::inspect::Inspected;
use gate::{Caller, Gate};
use net::stdio::{FrameReader, FrameWriter};
use toolkit::server::SessionRef;
use wire::{Canonical, FrameEvent, Id, WireError, WireErrorKind};

use crate::call::{Asked, Asker};
use crate::call::{
    Begun, CallGuard, Cancelled, Client as _, ENTRIES_MAX, Lists, Said, Server, ServerOptions,
    UnderWay,
};
use crate::message::batch::{fits, may_hold};
use crate::message::frames::{self, UpstreamFault};
use crate::message::{request, shapes};
use crate::notes::{Note, Noted};
use crate::upstream::{Driver, Link};

use batch::Part;
use outbox::Outbox;
use runs::Runs;
use speaker::{Speaker, Step};

/// What an edge over standard streams is told at its start.
#[derive(Clone, Debug)]
pub struct StdioOptions {
    /// The caller.
    pub caller: Caller,
    /// 128 random bits in hex.
    pub session_id: Arc<str>,
    /// How long calls under way may take to end at the end, in milliseconds.
    pub drain_ms: u64,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The client closed its side.
    ClientClosed,
    /// A signal asked for it.
    Signal,
    /// The server ended by itself: how.
    ServerEnded(String),
    /// The journal failed.
    JournalFailed,
}

gate::closed_set! {
    /// Why a session over standard streams has ended.
    pub enum Ended {
        ClientClosed "client_closed": "the client has closed its side";
        Signal "signal": "a signal asked for the end";
        ServerEnded "server_ended": "the server has ended by itself";
        JournalFailed "journal_failed": "the journal has failed, and nothing may pass without it";
    }
}

impl Ending {
    /// The word in the journal.
    #[must_use]
    pub fn why(&self) -> Ended {
        match self {
            Self::ClientClosed => Ended::ClientClosed,
            Self::Signal => Ended::Signal,
            Self::ServerEnded(_) => Ended::ServerEnded,
            Self::JournalFailed => Ended::JournalFailed,
        }
    }
}

/// A session over standard streams.
pub struct Stdio {
    gate: Arc<Gate>,
    drain_ms: u64,
    reader: FrameReader,
    writer: FrameWriter,
    /// The client has closed its input; what it wrote before may be unread.
    client_hung_up: bool,
    /// The client no longer reads.
    client_gone: bool,
    /// Frames of the client have been read and wait until its server takes more.
    is_behind: bool,
    speaker: Arc<Speaker>,
    link: Arc<Link>,
    /// A child is driven from here; a server over HTTP is read by the calls themselves.
    driver: Option<Driver>,
    runs: Runs<Call>,
}

impl Stdio {
    /// Starts or reaches the server, for the client of these streams.
    ///
    /// # Errors
    /// Where the process cannot be started.
    pub fn open(
        mut client: (FrameReader, FrameWriter),
        server: ServerOptions,
        options: &StdioOptions,
    ) -> io::Result<Self> {
        let gate = Arc::clone(&server.gate);
        client.0.take_at_most(request::bytes_max(&gate));
        let session_id = Arc::clone(&options.session_id);
        let server = Arc::new(Server::new(server, &session_id, Arc::default()));
        let (slot, driver) = server.pool.sole(SessionRef {
            id: Arc::clone(&session_id),
            caller: Arc::clone(&options.caller.subject),
            groups: Arc::default(),
            shares: false,
        })?;
        let link = slot
            .current()
            .ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        let lists = Lists::new(gate.world(), ENTRIES_MAX);
        let speaker = Arc::new(Speaker::new(
            server,
            options.caller.clone(),
            session_id,
            slot,
            UnderWay::new(lists, None),
        ));
        let mut runs = Runs::default();
        runs.add(Box::pin(Arc::clone(&speaker).attend(Arc::clone(&link))));
        Ok(Self {
            gate,
            drain_ms: options.drain_ms,
            reader: client.0,
            writer: client.1,
            client_hung_up: false,
            client_gone: false,
            is_behind: false,
            speaker,
            link,
            driver,
            runs,
        })
    }

    fn outbox(&self) -> &Arc<Outbox> {
        &self.speaker.outbox
    }

    /// Takes the next frame that was read from the client; `false` where there is none.
    fn on_next_client_frame(&mut self, received_ns: u64) -> bool {
        let (read, salvaged) = match self.reader.next() {
            None => return false,
            Some(FrameEvent::Frame(frame)) => {
                let read = shapes::of_client(frame);
                let salvaged = read.is_err().then(|| salvaged(frame)).flatten();
                (read, salvaged)
            }
            Some(FrameEvent::TooLong(head)) => {
                let at = request::bytes_max(&self.gate);
                let message = "the frame is longer than limits.request_bytes";
                let fault = WireError::new(WireErrorKind::TooLong, at, message);
                (Err(fault), salvaged(&head))
            }
        };
        match read {
            Ok(canonical) => self.on_client_frame(canonical, received_ns),
            Err(fault) => self.complain(salvaged, &fault),
        }
        true
    }

    fn on_client_frame(&mut self, canonical: Canonical, received_ns: u64) {
        let Some(batch) = canonical.batch() else {
            return self.on_client_message(canonical, received_ns, None);
        };
        let elements: Vec<Vec<u8>> = batch.map(|e| e.as_bytes().to_vec()).collect();
        match fits(self.speaker.may_batch(), elements.len()) {
            Ok(()) => self.on_client_batch(elements, received_ns),
            Err(fault) => self.complain(None, &fault),
        }
    }

    fn on_client_batch(&mut self, elements: Vec<Vec<u8>>, received_ns: u64) {
        let part = Part::of(self.outbox());
        for element in elements {
            let part = Some(part.clone());
            let read = shapes::of_client(&element).and_then(|canonical| {
                may_hold(&canonical.envelope()?.kind)?;
                Ok(canonical)
            });
            match read {
                Ok(canonical) => self.on_client_message(canonical, received_ns, part),
                Err(fault) => self.reject_frame(&element, &fault, part),
            }
        }
    }

    fn on_client_message(&mut self, canonical: Canonical, received_ns: u64, part: Option<Part>) {
        match self.speaker.server.inspect(canonical) {
            Ok(message) => match self.speaker.read(&message, received_ns) {
                Ok(step) => self.take(step, message.map(Canonical::into_bytes), part),
                Err(fault) => {
                    self.reject_frame(message.message().text().as_bytes(), &fault, part);
                }
            },
            Err(fault) => self.reject_frame(&[], &fault, part),
        }
    }

    /// Answers a frame that cannot be read.
    fn reject_frame(&mut self, frame: &[u8], fault: &WireError, part: Option<Part>) {
        self.pump();
        let answer = self.complaint(salvaged(frame), fault);
        self.answer(part, answer);
    }

    /// Does what a message asks for.
    fn take(&mut self, step: Step, frame: Inspected<Vec<u8>>, part: Option<Part>) {
        if let Step::Request(asker, asked, guard) = step {
            // What was read with it is judged before it is sent, so that one write of the journal serves all.
            return self.begin(Call {
                asker,
                asked,
                guard,
                frame,
                part,
                outbox: Arc::clone(self.outbox()),
            });
        }
        // Whatever else comes is taken behind the calls before it.
        self.pump();
        match step {
            Step::Nothing | Step::Request(..) => {}
            Step::Refuse(answer) => self.answer(part, answer),
            Step::Notify(gate::ControlKind::Cancel, cancelled) => {
                self.cancel(cancelled.as_ref(), frame.into_message());
            }
            Step::Notify(gate::ControlKind::Handshake, _) => self.initialized(frame.into_message()),
            Step::Notify(kind, _) => self.send(kind, frame.into_message()),
            Step::JudgeNotice(asker, received_ns) => {
                if self.runs.has_room() {
                    let frame = frame.into_message();
                    self.runs.add(Box::pin(asker.notify(frame, received_ns)));
                } else {
                    let why = "too many calls are under way; a notification was not passed on";
                    self.outbox()
                        .note(Note::ClientNotificationRefused.with(why));
                }
            }
            Step::Answer(key) => {
                let asker = self.speaker.asker();
                if !self.speaker.under_way.answer(&asker, &key, frame) {
                    self.outbox().note(Note::ClientAnswerUnknown.into());
                }
            }
        }
        self.pump();
    }

    /// Begins a call, which is carried on at the next pump.
    fn begin(&mut self, call: Call) {
        if self.runs.has_room() {
            self.runs.carry(call, Call::carry);
        } else {
            let fault = frames::upstream_fault(call.asked.id(), UpstreamFault::Busy);
            self.answer(call.part, fault);
        }
    }

    /// The client takes back a call. Of one that the server has not heard of it need not hear now.
    fn cancel(&mut self, key: Option<&wire::id::IdKey>, frame: Vec<u8>) {
        let cancelled = key.map_or(Cancelled::Unknown, |key| self.speaker.under_way.cancel(key));
        let frame = match cancelled {
            Cancelled::Unsent => return,
            Cancelled::Unknown => frame,
            Cancelled::Sent(link, number) => {
                let known_as = link.withdraw(number);
                self.pump();
                match known_as {
                    // It came back for a call that goes on under the id that it began with.
                    Some(id) if Id::from_raw(&id).map(Id::key).as_ref() != key => {
                        frames::cancel(&id, "the client cancelled it")
                    }
                    Some(_) | None => frame,
                }
            }
        };
        self.send(gate::ControlKind::Cancel, frame);
    }

    fn initialized(&mut self, frame: Vec<u8>) {
        self.speaker.under_way.client_is_ready();
        let pass = self.link.control(gate::ControlKind::Handshake, frame);
        let link = Arc::clone(&self.link);
        self.runs.add(Box::pin(async move {
            // A server that no longer reads shows at its next turn.
            let _ = link.initialized(pass).await;
        }));
    }

    /// Sends what has no answer. A server that no longer reads shows at its next turn.
    fn send(&mut self, kind: gate::ControlKind, frame: Vec<u8>) {
        if let Err(error) = self.link.send(self.link.control(kind, frame))
            && error.kind() == io::ErrorKind::WouldBlock
        {
            self.outbox().note(
                Note::ClientMessageLost
                    .with("too many messages without an id were waiting for the server"),
            );
        }
    }

    /// An answer of ours, or its place in a batch.
    fn answer(&mut self, part: Option<Part>, answer: Vec<u8>) {
        match part {
            None => self.outbox().post(answer),
            Some(part) => part.answer(answer),
        }
        self.pump();
    }

    /// Tells the client that its frame could not be taken.
    fn complain(&mut self, id: Option<String>, fault: &WireError) {
        let answer = self.complaint(id, fault);
        self.answer(None, answer);
    }

    /// Notes that a frame could not be taken, and words the answer.
    fn complaint(&self, id: Option<String>, fault: &WireError) -> Vec<u8> {
        self.outbox().note(Noted::frame(fault));
        let id = id.unwrap_or_else(|| "null".into());
        // An id out of a broken frame may be in use; then the answer would go to the wrong call.
        let used = Id::from_raw(&id).is_some_and(|id| self.speaker.is_in_use(&id.key()));
        frames::bad_frame(if used { "null" } else { &id }, fault)
    }

    /// Carries on with what was woken, and hands to the writer what that has made for the client.
    fn pump(&mut self) {
        loop {
            // Frames of a child are taken one by one; what reads connections by itself has a budget.
            self.runs.poll(self.driver.is_some());
            let work = self.outbox().work();
            if work.is_empty() {
                break;
            }
            for work in work {
                // Without room it is dropped, and what waited is withdrawn.
                self.runs.add(work);
            }
        }
        for frame in self.outbox().frames() {
            self.client_gone |= self.writer.send_owned(frame).is_err();
        }
    }
}

/// The id that a frame which cannot be read still shows.
fn salvaged(frame: &[u8]) -> Option<String> {
    frames::salvage_id(frame.get(..4096).unwrap_or(frame))
}

/// A call of the client on its way.
struct Call {
    asker: Box<Asker>,
    asked: Box<Asked>,
    guard: CallGuard,
    frame: Inspected<Vec<u8>>,
    part: Option<Part>,
    outbox: Arc<Outbox>,
}

impl Call {
    /// From being judged to its answer.
    async fn carry(self) {
        let Self {
            asker,
            asked,
            guard,
            frame,
            part,
            outbox,
        } = self;
        let id = asked.id().to_owned();
        let mut over = None;
        let answer = match asker.begin(frame, asked, Some(guard)).await {
            Begun::Answered(answer) | Begun::Full(answer) => answer,
            Begun::EraMismatch => frames::upstream_fault(&id, UpstreamFault::EraMismatch),
            Begun::HeaderMismatch(why) => frames::header_mismatch(&id, &why),
            Begun::Running(mut run) => loop {
                match run.next().await {
                    Said::Emit(frame) => outbox.post(frame),
                    Said::Done(answer, _) => {
                        over = run.take_over();
                        break answer;
                    }
                    Said::Gone => return,
                }
            },
        };
        match part {
            None => outbox.post(answer),
            Some(part) => part.answer(answer),
        }
        if let Some(over) = over {
            outbox.end(over);
        }
    }
}
