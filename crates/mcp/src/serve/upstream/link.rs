//! One running server, or one session with a server over HTTP, that several clients may share: ids of
//! requests are ours on this side.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::{ControlKind, Gate, Pass, PeerId};

use super::exchange::{Exchange, Incoming, Mailbox};
use super::process::Process;
use super::remote::Remote;
use crate::frames::{self, Failure, UpstreamFault};
use crate::notes::Notes;
use crate::serve::splice::Marks;
use crate::upstream::{Frame, elsewhere};

/// Most requests under way at one server process or session.
pub const IN_FLIGHT_MAX: usize = 1_024;

/// A running server, or a session with one over HTTP.
pub struct Link {
    pub(super) name: Arc<str>,
    /// The name that passes for it are made out to.
    pub(in crate::serve) id: PeerId,
    pub(super) gate: Arc<Gate>,
    pub(super) way: Way,
    table: Mutex<Table>,
    next: AtomicU64,
    pub(super) notes: Arc<Mutex<Notes>>,
    /// Whether only one client's session uses this server.
    pub(super) exclusive: bool,
    /// What belongs to no exchange.
    pub(super) unsolicited: Mailbox,
}

/// How messages leave for it.
pub(super) enum Way {
    Process(Process),
    Http(Remote),
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
    /// The pass is made out to another server.
    Elsewhere(P),
}

impl Link {
    pub(super) fn new(name: &Arc<str>, gate: &Arc<Gate>, exclusive: bool, way: Way) -> Self {
        Self {
            name: Arc::clone(name),
            id: PeerId::server(Arc::clone(name)),
            gate: Arc::clone(gate),
            way,
            table: Mutex::default(),
            next: AtomicU64::new(1),
            notes: Arc::default(),
            exclusive,
            unsolicited: Mailbox::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Whether it is a session over HTTP.
    pub(super) fn is_over_http(&self) -> bool {
        match &self.way {
            Way::Process(_) => false,
            Way::Http(_) => true,
        }
    }

    /// Changes when the server has forgotten what it has asked so far.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        match &self.way {
            Way::Process(_) => 0,
            Way::Http(remote) => remote.epoch(),
        }
    }

    /// Asks for its end; what is under way is answered with an error.
    pub fn stop(&self) {
        match &self.way {
            Way::Process(process) => process.stop(),
            Way::Http(remote) => {
                self.end();
                remote.stop(&self.name, &self.gate, &self.notes);
            }
        }
    }

    /// Waits until the server has read what was sent to it before, within a bound.
    ///
    /// # Errors
    /// [`UpstreamFault::Busy`] where it has not.
    pub async fn has_room(&self) -> Result<(), UpstreamFault> {
        match &self.way {
            Way::Process(process) => process.has_room().await,
            // Calls wait for a connection each for itself.
            Way::Http(_) => Ok(()),
        }
    }

    /// Sends a request under a number of ours. `marks` says where its own names stand. Over HTTP it
    /// leaves as soon as the exchange is read.
    ///
    /// # Errors
    /// An [`Unsent`]; the pass is given back where another server can take it.
    pub fn request<P: Pass<Request = Frame>>(
        self: &Arc<Self>,
        pass: P,
        marks: &Marks,
        deadline_ns: u64,
    ) -> Result<(Exchange, P::Open), Unsent<P>> {
        if !pass.is_for(&self.id) {
            return Err(Unsent::Elsewhere(pass));
        }
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
        let text = number.to_string();
        let (spent, open) = pass.spend(&self.id).map_err(Unsent::Elsewhere)?;
        let http = match &self.way {
            Way::Process(process) => {
                let Frame(frame) = spent.take(&self.id).map_err(|_| Unsent::Busy)?;
                if process.write(&marks.renamed(&frame, &text)).is_err() {
                    // Some of it may have left: nobody may send it again.
                    self.close(number, Incoming::Fault(UpstreamFault::Died.into()));
                }
                None
            }
            Way::Http(remote) => {
                let exchange = remote.exchange(spent, marks, &text);
                Some(exchange.map_err(|_| Unsent::Busy)?)
            }
        };
        let exchange = Exchange {
            link: Arc::clone(self),
            number,
            mailbox,
            http,
            ended: false,
        };
        Ok((exchange, open))
    }

    /// Sends what has no answer: a notification, or the answer to a request of the server.
    ///
    /// # Errors
    /// `BrokenPipe` where the server no longer reads, `WouldBlock` where too much is on its way. What
    /// goes wrong later is noted.
    pub fn send<P: Pass<Request = Frame>>(&self, pass: P) -> io::Result<P::Open> {
        let (spent, open) = pass.spend(&self.id).map_err(elsewhere)?;
        match &self.way {
            Way::Process(process) => {
                let Frame(frame) = spent.take(&self.id).map_err(elsewhere)?;
                process.write(&[&frame])?;
            }
            Way::Http(remote) => remote.send(spent, &self.notes)?,
        }
        Ok(open)
    }

    /// Tells the server that its request does not pass.
    ///
    /// # Errors
    /// As [`Link::send`].
    pub fn refuse(&self, answer: Vec<u8>) -> io::Result<()> {
        let kind = ControlKind::Complaint;
        self.send(self.gate.control(kind, &self.id, Frame(answer)))
    }

    /// Tells the server that its client is ready, and listens to what it says by itself.
    ///
    /// # Errors
    /// `BrokenPipe` where the server no longer reads.
    pub async fn initialized<P: Pass<Request = Frame>>(
        self: &Arc<Self>,
        pass: P,
    ) -> io::Result<P::Open> {
        match &self.way {
            Way::Process(_) => self.send(pass),
            Way::Http(remote) => {
                // A call that overtook it would be refused.
                let (spent, open) = pass.spend(&self.id).map_err(elsewhere)?;
                remote.deliver(spent, &self.notes).await?;
                remote.listen(self);
                Ok(open)
            }
        }
    }

    /// Tells the server that nobody waits for this answer any more, and ends the exchange.
    pub fn cancel(&self, number: u64, reason: &str) {
        self.give_up(number, Incoming::Cancelled, reason);
    }

    /// Cancels everything under way, because we end.
    pub(super) fn cancel_all(&self) {
        let open: Vec<u64> = self.table().open.keys().copied().collect();
        for number in open {
            let fault = Incoming::Fault(UpstreamFault::Stopping.into());
            self.give_up(number, fault, "shutting down");
        }
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
        let _ = self.send(
            self.gate
                .control(ControlKind::Cancel, &self.id, Frame(text)),
        );
    }

    /// Ends an exchange; `false` where it has ended before.
    pub(super) fn close(&self, number: u64, with: Incoming) -> bool {
        let entry = self.table().open.remove(&number);
        entry.is_some_and(|entry| entry.mailbox.put(with))
    }

    /// Takes an exchange out whose reader has its end; `false` where it has ended before.
    pub(super) fn take(&self, number: u64) -> bool {
        self.table().open.remove(&number).is_some()
    }

    /// The mailbox of an exchange.
    pub(super) fn mailbox(&self, number: u64) -> Option<Arc<Mailbox>> {
        self.table()
            .open
            .get(&number)
            .map(|entry| Arc::clone(&entry.mailbox))
    }

    /// The mailbox of the exchange that an untied message most likely belongs to: the newest where
    /// one client asks, the only one where several may. None over HTTP, where each call has a stream.
    pub(super) fn likely_mailbox(&self) -> Option<Arc<Mailbox>> {
        if self.is_over_http() {
            return None;
        }
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
        note(&self.notes, event, message);
    }

    pub(super) fn flush_notes(&self) {
        flush_notes(&self.notes, &self.gate, &self.name);
    }

    /// Fails the exchange whose number a broken frame still shows.
    pub(super) fn fail_salvaged(&self, frame: &[u8], fault: UpstreamFault) {
        let head = frame.get(..64 * 1024).unwrap_or(frame);
        if let Some(number) = frames::salvage_id(head).and_then(|raw| raw.parse().ok()) {
            self.close(number, Incoming::Fault(fault.into()));
        }
    }

    /// To be called now and then: gives up what took too long, and writes notes down.
    pub(super) fn look_after(&self) {
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
            let fault = Incoming::Fault(UpstreamFault::Timeout.into());
            self.give_up(number, fault, "timeout");
        }
    }

    /// Nothing is answered from here on.
    pub(super) fn end(&self) {
        let open = {
            let mut table = self.table();
            table.ended = true;
            std::mem::take(&mut table.open)
        };
        let died = || Incoming::Fault(Failure::from(UpstreamFault::Died));
        for entry in open.into_values() {
            entry.mailbox.put(died());
        }
        self.unsolicited.put(died());
    }
}

pub(super) fn note(notes: &Mutex<Notes>, event: &'static str, message: &str) {
    notes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .add(event, message);
}

pub(super) fn flush_notes(notes: &Mutex<Notes>, gate: &Gate, name: &str) {
    notes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .flush(gate, "", name);
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
