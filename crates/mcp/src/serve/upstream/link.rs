//! One running server that several clients may share: ids of requests are ours on this side.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gate::{ControlKind, Gate, Pass};
use net::outbound::{Child, describe};
use net::stdio::FrameWriter;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use wire::FrameEvent;

use super::exchange::{Exchange, Incoming, Mailbox};
use crate::frames::{self, UpstreamFault};
use crate::notes::Notes;
use crate::serve::splice::Marks;
use crate::upstream::{Frame, ServerCommand};

/// Most requests under way at one server process.
pub const IN_FLIGHT_MAX: usize = 1_024;
/// How often deadlines and notes are looked at, in milliseconds.
const TICK_MS: u64 = 250;
/// How long a request may wait for a server that does not read, in milliseconds.
const ROOM_WAIT_MS: u64 = 10_000;
/// How long what an ended server has left behind is read, in milliseconds.
const LEFT_BEHIND_MS: u64 = 1_000;

/// A running server.
pub struct Link {
    pub(super) name: Arc<str>,
    pub(super) gate: Arc<Gate>,
    writer: Mutex<Option<FrameWriter>>,
    table: Mutex<Table>,
    next: AtomicU64,
    /// For the driver: something is queued, or the end is wanted.
    wake: Notify,
    /// For senders: the queue has shrunk.
    room: Notify,
    stopping: AtomicBool,
    pub(super) notes: Mutex<Notes>,
    /// Whether only one client's session uses this server.
    pub(super) exclusive: bool,
    /// What belongs to no exchange.
    pub(super) unsolicited: Mailbox,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    open: BTreeMap<u64, Entry>,
    ended: bool,
}

#[derive(Debug)]
struct Entry {
    mailbox: Arc<Mailbox>,
    deadline_ns: u64,
}

/// Why a request was not sent. Nothing of it has left.
#[derive(Debug)]
pub enum Unsent<P> {
    /// The server has ended; the pass may be spent on another.
    Ended(P),
    /// Too much is under way.
    Busy,
}

impl Link {
    /// Starts a server. `place` is given back when it has ended.
    ///
    /// # Errors
    /// Where the process cannot be started.
    pub fn start(
        command: &ServerCommand,
        name: &Arc<str>,
        gate: &Arc<Gate>,
        exclusive: bool,
        place: OwnedSemaphorePermit,
    ) -> io::Result<Arc<Self>> {
        let mut child = Child::spawn(command, name)?;
        let link = Arc::new(Self {
            name: Arc::clone(name),
            gate: Arc::clone(gate),
            writer: Mutex::new(child.take_writer()),
            table: Mutex::default(),
            next: AtomicU64::new(1),
            wake: Notify::new(),
            room: Notify::new(),
            stopping: AtomicBool::new(false),
            notes: Mutex::default(),
            exclusive,
            unsolicited: Mailbox::default(),
        });
        let driven = Arc::clone(&link);
        tokio::spawn(async move {
            driven.drive(&mut child).await;
            child.stop().await;
            driven.flush_notes();
            drop(place);
        });
        Ok(link)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Option<FrameWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.table().ended
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.table().open.is_empty()
    }

    /// Asks for its end; what is under way is answered with an error.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Waits until the server has read what was sent to it before, within a bound.
    ///
    /// # Errors
    /// [`UpstreamFault::Busy`] where it has not.
    pub async fn has_room(&self) -> Result<(), UpstreamFault> {
        if !self.is_congested() {
            return Ok(());
        }
        let wait = async {
            loop {
                let notified = self.room.notified();
                if !self.is_congested() {
                    return;
                }
                notified.await;
            }
        };
        tokio::time::timeout(Duration::from_millis(ROOM_WAIT_MS), wait)
            .await
            .map_err(|_| UpstreamFault::Busy)
    }

    fn is_congested(&self) -> bool {
        self.writer()
            .as_ref()
            .is_some_and(FrameWriter::is_congested)
    }

    /// Sends a request under a number of ours. `marks` says where its own names stand.
    ///
    /// # Errors
    /// An [`Unsent`]; the pass is given back where another server can take it.
    pub fn request<P: Pass<Request = Frame>>(
        self: &Arc<Self>,
        pass: P,
        marks: &Marks,
        deadline_ns: u64,
    ) -> Result<(Exchange, P::Open), Unsent<P>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mailbox = Arc::new(Mailbox::default());
        {
            let mut table = self.table();
            if table.ended {
                return Err(Unsent::Ended(pass));
            }
            if table.open.len() >= IN_FLIGHT_MAX {
                return Err(Unsent::Busy);
            }
            let entry = Entry {
                mailbox: Arc::clone(&mailbox),
                deadline_ns,
            };
            table.open.insert(number, entry);
        }
        let (Frame(frame), open) = pass.spend();
        let text = number.to_string();
        let mut places = [Some(marks.id.clone()), marks.token.clone()];
        places.sort_by_key(|place| place.as_ref().map_or(usize::MAX, |p| p.start));
        let mut parts: Vec<&[u8]> = Vec::with_capacity(5);
        let mut from = 0;
        for place in places.into_iter().flatten() {
            parts.push(frame.get(from..place.start).unwrap_or_default());
            parts.push(text.as_bytes());
            from = place.end;
        }
        parts.push(frame.get(from..).unwrap_or_default());
        if self.write(&parts).is_err() {
            // Some of it may have left: nobody may send it again.
            self.close(number, Incoming::Fault(UpstreamFault::Died));
        }
        let exchange = Exchange {
            link: Arc::clone(self),
            number,
            mailbox,
            ended: false,
        };
        Ok((exchange, open))
    }

    /// Sends what has no answer: a notification, or the answer to a request of the server.
    ///
    /// # Errors
    /// `BrokenPipe` where the server no longer reads.
    pub fn send<P: Pass<Request = Frame>>(&self, pass: P) -> io::Result<P::Open> {
        let (Frame(frame), open) = pass.spend();
        self.write(&[&frame])?;
        Ok(open)
    }

    fn write(&self, parts: &[&[u8]]) -> io::Result<()> {
        let mut writer = self.writer();
        let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let sent = writer.send_parts(parts);
        if !writer.is_empty() {
            self.wake.notify_one();
        }
        sent
    }

    /// Tells the server that nobody waits for this answer any more, and ends the exchange.
    pub fn cancel(&self, number: u64, reason: &str) {
        self.give_up(number, Incoming::Cancelled, reason);
    }

    fn give_up(&self, number: u64, with: Incoming, reason: &str) {
        if !self.close(number, with) {
            return;
        }
        let mut text = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{number},\"reason\":"
        )
        .into_bytes();
        wire::text::push_string(&mut text, reason);
        text.extend_from_slice(b"}}");
        // A server that is gone needs no word of it.
        let _ = self.send(self.gate.control(ControlKind::Cancel, Frame(text)));
    }

    /// Ends an exchange; `false` where it has ended before.
    pub(super) fn close(&self, number: u64, with: Incoming) -> bool {
        let entry = self.table().open.remove(&number);
        entry.is_some_and(|entry| entry.mailbox.put(with))
    }

    /// The mailbox of an exchange.
    pub(super) fn mailbox(&self, number: u64) -> Option<Arc<Mailbox>> {
        self.table()
            .open
            .get(&number)
            .map(|entry| Arc::clone(&entry.mailbox))
    }

    /// The mailbox of the exchange that an untied message most likely belongs to: the newest where
    /// one client asks, the only one where several may.
    pub(super) fn likely_mailbox(&self) -> Option<Arc<Mailbox>> {
        let table = self.table();
        if !self.exclusive && table.open.len() > 1 {
            return None;
        }
        let (_, entry) = table.open.last_key_value()?;
        Some(Arc::clone(&entry.mailbox))
    }

    /// Whether this number was given to a request.
    pub(super) fn was_given(&self, number: u64) -> bool {
        number > 0 && number < self.next.load(Ordering::Relaxed)
    }

    /// What the server says that belongs to no exchange.
    pub async fn unsolicited(&self) -> Incoming {
        self.unsolicited.next().await
    }

    /// Notes something about this server for the journal.
    pub fn note(&self, event: &'static str, message: &str) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(event, message);
    }

    fn flush_notes(&self) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .flush(&self.gate, "", &self.name);
    }

    /// Reads what the server says and writes what is queued, until either side ends it.
    async fn drive(&self, child: &mut Child) {
        let mut tick = tokio::time::interval(Duration::from_millis(TICK_MS));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let queued = self.writer().as_ref().is_some_and(|w| !w.is_empty());
            let reader = child.streams().0;
            tokio::select! {
                read = reader.fill() => {
                    self.drain(child);
                    if !matches!(read, Ok(true)) {
                        break;
                    }
                }
                flushed = self.flush(), if queued => {
                    if flushed.is_err() {
                        break;
                    }
                    self.room.notify_waiters();
                }
                () = self.wake.notified() => {
                    if self.stopping.load(Ordering::Acquire) {
                        break;
                    }
                }
                _ = tick.tick() => self.overdue(),
            }
        }
        if !self.stopping.load(Ordering::Acquire) {
            // What it had written before it ended still counts.
            let left_behind = async {
                while matches!(child.streams().0.fill().await, Ok(true)) {
                    self.drain(child);
                }
            };
            drop(tokio::time::timeout(Duration::from_millis(LEFT_BEHIND_MS), left_behind).await);
            self.note_end(child).await;
        }
        self.end();
    }

    async fn flush(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| match self.writer().as_mut() {
            Some(writer) => writer.poll_flush(cx),
            None => std::task::Poll::Ready(Ok(())),
        })
        .await
    }

    fn drain(&self, child: &mut Child) {
        while let Some(event) = child.streams().0.next() {
            match event {
                FrameEvent::Frame(frame) => self.on_frame(frame.to_vec()),
                FrameEvent::TooLong(head) => {
                    self.note(
                        "server_frame_too_long",
                        "a frame of the server was longer than 16 MiB and was dropped",
                    );
                    self.fail_salvaged(&head, UpstreamFault::Oversize);
                }
            }
        }
    }

    /// Fails the exchange whose number a broken frame still shows.
    pub(super) fn fail_salvaged(&self, frame: &[u8], fault: UpstreamFault) {
        let head = frame.get(..64 * 1024).unwrap_or(frame);
        if let Some(number) = frames::salvage_id(head).and_then(|raw| raw.parse().ok()) {
            self.close(number, Incoming::Fault(fault));
        }
    }

    fn overdue(&self) {
        self.flush_notes();
        let now_ns = self.gate.mono_ns();
        let overdue: Vec<u64> = self
            .table()
            .open
            .iter()
            .filter(|(_, entry)| entry.deadline_ns <= now_ns)
            .map(|(number, _)| *number)
            .collect();
        for number in overdue {
            let fault = Incoming::Fault(UpstreamFault::Timeout);
            self.give_up(number, fault, "timeout");
        }
    }

    async fn note_end(&self, child: &mut Child) {
        const WAIT_MS: u64 = 1_000;
        let how = match child.wait_at_most(WAIT_MS).await {
            Some(status) => describe(status),
            None => "its input or output was closed".into(),
        };
        self.note("server_ended", &format!("the server ended: {how}"));
    }

    /// Nothing is answered from here on.
    fn end(&self) {
        let open = {
            let mut table = self.table();
            table.ended = true;
            std::mem::take(&mut table.open)
        };
        for entry in open.into_values() {
            entry.mailbox.put(Incoming::Fault(UpstreamFault::Died));
        }
        self.unsolicited.put(Incoming::Fault(UpstreamFault::Died));
        *self.writer() = None;
        self.room.notify_waiters();
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
