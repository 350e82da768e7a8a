//! One running server, or one session with a server, that several clients may share: the names of
//! requests under way, and where what comes back belongs.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ahash::AHashMap as HashMap;
use gate::{ControlKind, Gate, Pass, PeerId};
use toolkit::breaker::{Breaker, Rejected};
use wire::id::IdKey;
use wire::{Id, Revision};

use super::exchange::{Exchange, Incoming, Mailbox};
use super::kept::{Heard, Kept};
use super::way::{Peer, Reading};
use super::{Frame, elsewhere};
use crate::byte_budget::ByteBudget;
use crate::message::announced::Announced;
use crate::message::frames::{self, Failure, UpstreamFault};
use crate::message::splice::Marks;
use crate::notes::{Noted, Notes};

/// Most requests under way at one server process or session.
pub const IN_FLIGHT_MAX: usize = 1_024;
/// Most ids of ended requests that are remembered, so that a late answer is known for what it is.
const ENDED_MAX: usize = 1_024;

/// By what names a server knows requests, and who is told what belongs to none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// Numbers of ours: several clients share the server.
    Shared,
    /// Numbers of ours, although one client's session uses the server alone.
    Exclusive,
    /// As the one client spells them.
    AsSpelled,
}

/// What a link is made of.
pub(super) struct Making {
    pub name: Arc<str>,
    pub gate: Arc<Gate>,
    pub naming: Naming,
    pub peer: Arc<dyn Peer>,
    /// Of the server, whichever its links.
    pub breaker: Arc<Breaker>,
    pub notes: Arc<Mutex<Notes>>,
    /// Byte budget of the lists that all links of the server keep.
    pub kept_of_server: Arc<ByteBudget>,
    /// The session that notes are about; empty where there is none.
    pub session_id: Arc<str>,
}

/// A running server, or a session with one over HTTP.
pub struct Link {
    made: Making,
    table: Mutex<Table>,
    next: AtomicU64,
    /// What belongs to no exchange.
    pub(super) unsolicited: Mailbox,
    /// What its server has listed.
    pub(super) kept: Kept,
    /// No revision without batches is agreed on.
    may_batch: AtomicBool,
}

#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<u64, Entry>,
    /// Numbers by the id as its client spelled it.
    spelled: HashMap<IdKey, u64>,
    /// Such ids that have ended.
    ended_ids: VecDeque<IdKey>,
    ended: bool,
}

#[derive(Debug)]
struct Entry {
    mailbox: Arc<Mailbox>,
    deadline_ns: u64,
    /// The id as the server knows it, where that is no number of ours.
    spelled: Option<(String, IdKey)>,
}

impl Table {
    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.open.remove(&number)?;
        if let Some((_, key)) = &entry.spelled {
            self.spelled.remove(key);
            self.ended_ids.push_back(key.clone());
            if self.ended_ids.len() > ENDED_MAX {
                self.ended_ids.pop_front();
            }
        }
        Some(entry)
    }
}

/// Why a request was not sent. Nothing of it has left.
#[derive(Debug)]
pub enum Unsent<P> {
    /// The server has ended; the pass may be spent on another.
    Ended(P),
    /// Too much is under way.
    Busy,
    /// The server fails so often that it is spared for a while.
    Spared(Rejected),
    /// The pass is made out to another server.
    Elsewhere(P),
}

impl Link {
    pub(super) fn new(made: Making) -> Self {
        Self {
            kept: Kept::new(&made.kept_of_server),
            made,
            table: Mutex::default(),
            next: AtomicU64::new(1),
            unsolicited: Mailbox::default(),
            may_batch: AtomicBool::new(true),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name that passes for it are made out to.
    #[must_use]
    pub fn id(&self) -> &PeerId {
        self.made.peer.id()
    }

    /// A pass for the protocol's own traffic to this server.
    pub fn control(&self, kind: ControlKind, frame: Vec<u8>) -> gate::Control<Frame> {
        self.made.gate.control(kind, self.id(), Frame::from(frame))
    }

    /// Tells the server that its request does not pass. One that is gone needs no answer.
    pub fn refuse(&self, answer: Vec<u8>) {
        drop(self.send(self.control(ControlKind::Complaint, answer)));
    }

    /// The gate whose passes it takes.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate> {
        &self.made.gate
    }

    pub(super) fn naming(&self) -> Naming {
        self.made.naming
    }

    /// Client and server have agreed on a revision, or the client speaks one.
    pub fn agreed_on(&self, revision: Option<Revision>) {
        let may_batch = revision.is_none_or(Revision::has_batches);
        self.may_batch.store(may_batch, Ordering::Relaxed);
    }

    /// Whether the server may send several messages in one frame.
    pub(super) fn may_batch(&self) -> bool {
        self.may_batch.load(Ordering::Relaxed)
    }

    /// Client and server have opened a session, with this result.
    pub(super) fn opened(&self, result: &str) {
        self.kept.opened(result);
    }

    /// What the server announces since it opened its session again; none where it has not.
    pub(super) fn announced_again(&self) -> Option<Announced> {
        self.made.peer.announced_again()
    }

    /// For how long everything is heard that the server says by itself; none where it is not.
    pub(super) fn heard(&self) -> Option<Heard> {
        self.made.peer.heard()
    }

    /// Whether the server is not spared.
    pub(super) fn is_worth_asking(&self) -> bool {
        let now_ns = self.made.gate.about_ns();
        self.made.breaker.worth_trying(now_ns).is_ok()
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

    /// Whether a request under way has this id, as its client spelled it.
    #[must_use]
    pub fn has_id(&self, key: &IdKey) -> bool {
        self.table().spelled.contains_key(key)
    }

    /// Changes when the server has forgotten what it has asked so far.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.made.peer.epoch()
    }

    /// Ready when the epoch is another than this one; gives it.
    pub(super) async fn reopened(&self, since: u64) -> u64 {
        self.made.peer.reopened(since).await
    }

    /// Asks for its end; what is under way is answered with an error.
    pub fn stop(&self) {
        self.made.peer.stop(self);
    }

    /// Whether so much waits to be read by the server that its client should pause.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.made.peer.is_congested()
    }

    /// Waits until nothing keeps its client from sending any more.
    pub async fn drained(&self) {
        while self.made.peer.is_congested() {
            // A server that reads nothing for long is still waited for.
            let _ = self.made.peer.has_room().await;
        }
    }

    /// Waits until the server has read what was sent to it before, within a bound.
    ///
    /// # Errors
    /// [`UpstreamFault::Busy`] where it has not.
    pub async fn has_room(&self) -> Result<(), UpstreamFault> {
        // The edge of a client that is alone pauses instead.
        if self.made.naming == Naming::AsSpelled || !self.made.peer.is_congested() {
            return Ok(());
        }
        self.made.peer.has_room().await
    }

    /// Sends a request. `marks` says where its own names stand. Over HTTP it leaves as soon as the
    /// exchange is read.
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
        let own = self.made.naming != Naming::AsSpelled;
        let (spent, open, leave) = {
            let mut table = self.table();
            if table.ended {
                return Err(Unsent::Ended(pass));
            }
            if table.open.len() >= IN_FLIGHT_MAX {
                return Err(Unsent::Busy);
            }
            let now_ns = self.made.gate.about_ns();
            let leave = self.made.breaker.admit(now_ns).map_err(Unsent::Spared)?;
            let (spent, open) = pass.spend(self.id()).map_err(Unsent::Elsewhere)?;
            let spelled = (!own).then(|| marks.spelled_id(&spent.request().bytes));
            let spelled = spelled.flatten();
            if let Some((_, key)) = &spelled {
                table.spelled.insert(key.clone(), number);
            }
            let entry = Entry {
                mailbox: Arc::clone(&mailbox),
                deadline_ns,
                spelled,
            };
            table.open.insert(number, entry);
            (spent, open, leave)
        };
        let text = own.then(|| number.to_string());
        let reading = match self.made.peer.request(spent, marks, text.as_deref()) {
            Ok(reading) => reading,
            Err(error) => {
                let fault = match error.kind() {
                    io::ErrorKind::WouldBlock => UpstreamFault::Busy,
                    // Some of it may have left: nobody may send it again.
                    _ => UpstreamFault::Died,
                };
                self.close(number, Incoming::Fault(fault.into()));
                Reading::Link
            }
        };
        let exchange = Exchange::new(Arc::clone(self), number, mailbox, reading, leave);
        Ok((exchange, open))
    }

    /// Sends what has no answer: a notification, or the answer to a request of the server.
    ///
    /// # Errors
    /// `BrokenPipe` where the server no longer reads, `WouldBlock` where too much is on its way. What
    /// goes wrong later is noted.
    pub fn send<P: Pass<Request = Frame>>(&self, pass: P) -> io::Result<P::Open> {
        let (spent, open) = pass.spend(self.id()).map_err(elsewhere)?;
        self.made.peer.send(spent, &self.made.notes)?;
        Ok(open)
    }

    /// Tells the server that its client is ready, and listens to what it says by itself.
    ///
    /// # Errors
    /// `BrokenPipe` where the server no longer reads.
    pub async fn initialized<P: Pass<Request = Frame>>(
        self: &Arc<Self>,
        pass: P,
    ) -> io::Result<P::Open> {
        let (spent, open) = pass.spend(self.id()).map_err(elsewhere)?;
        self.made.peer.initialized(spent, self).await?;
        Ok(open)
    }

    /// Tells the server that nobody waits for this answer any more, and ends the exchange.
    pub fn cancel(&self, number: u64, reason: &str) {
        self.give_up(number, Incoming::Cancelled, reason);
    }

    /// Ends an exchange of which its client itself tells the server; gives the id that the server
    /// knows it by, none where it has ended before.
    #[must_use]
    pub fn withdraw(&self, number: u64) -> Option<String> {
        let entry = self.table().remove(number)?;
        entry.mailbox.put(Incoming::Cancelled);
        Some(Self::known_as(number, &entry))
    }

    /// Cancels everything under way, because we end.
    pub(super) fn cancel_all(&self) {
        let open: Vec<u64> = self.table().open.keys().copied().collect();
        for number in open {
            let fault = Incoming::Fault(UpstreamFault::Stopping.into());
            self.give_up(number, fault, "shutting down");
        }
    }

    /// Ends everything under way without a word to the server.
    pub(crate) fn close_all(&self, with: Option<&Failure>) {
        let open = {
            let mut table = self.table();
            table.spelled.clear();
            std::mem::take(&mut table.open)
        };
        for entry in open.into_values() {
            entry.mailbox.put(match with {
                Some(failure) => Incoming::Fault(failure.clone()),
                None => Incoming::Cancelled,
            });
        }
    }

    fn known_as(number: u64, entry: &Entry) -> String {
        match &entry.spelled {
            Some((raw, _)) => raw.clone(),
            None => number.to_string(),
        }
    }

    /// Ends an exchange with this, and tells the server that nobody waits for it any more.
    pub(super) fn give_up(&self, number: u64, with: Incoming, reason: &str) {
        let Some(entry) = self.table().remove(number) else {
            return;
        };
        let id = Self::known_as(number, &entry);
        entry.mailbox.put(with);
        let frame = frames::cancel(&id, reason);
        // A server that is gone needs no word of it.
        drop(self.send(self.control(ControlKind::Cancel, frame)));
    }

    /// Ends an exchange; `false` where it has ended before.
    pub(super) fn close(&self, number: u64, with: Incoming) -> bool {
        let entry = self.table().remove(number);
        entry.is_some_and(|entry| entry.mailbox.put(with))
    }

    /// Takes an exchange out whose reader has its end; `false` where it has ended before.
    pub(super) fn take(&self, number: u64) -> bool {
        self.table().remove(number).is_some()
    }

    /// The mailbox of an exchange.
    pub(super) fn mailbox(&self, number: u64) -> Option<Arc<Mailbox>> {
        self.table()
            .open
            .get(&number)
            .map(|entry| Arc::clone(&entry.mailbox))
    }

    /// The mailbox of the exchange that an untied message most likely belongs to: the newest where
    /// one client asks, the only one where several may. None where each call has a stream, and where
    /// all that is said reaches the one client the same way.
    pub(super) fn likely_mailbox(&self, has_streams: bool) -> Option<Arc<Mailbox>> {
        if has_streams || self.made.naming == Naming::AsSpelled {
            return None;
        }
        let table = self.table();
        if self.made.naming == Naming::Shared && table.open.len() > 1 {
            return None;
        }
        let (_, entry) = table.open.last_key_value()?;
        Some(Arc::clone(&entry.mailbox))
    }

    /// Whether only one client's session uses this server.
    pub(super) fn is_exclusive(&self) -> bool {
        self.made.naming != Naming::Shared
    }

    /// The number of the request that an id of the server's belongs to: `Err` where it has ended,
    /// with whether there ever was one.
    pub(super) fn number_of(&self, id: &str) -> Result<u64, bool> {
        let table = self.table();
        if self.made.naming == Naming::AsSpelled {
            let key = Id::from_raw(id).map(Id::key).ok_or(false)?;
            let number = table.spelled.get(&key).copied();
            return number.ok_or_else(|| table.ended_ids.contains(&key));
        }
        let number: u64 = id.parse().map_err(|_| false)?;
        if table.open.contains_key(&number) {
            return Ok(number);
        }
        Err(number > 0 && number < self.next.load(Ordering::Relaxed))
    }

    /// What the server says that belongs to no exchange.
    pub async fn unsolicited(&self) -> Incoming {
        self.unsolicited.next().await
    }

    /// Notes something about this server for the journal.
    pub fn note(&self, noted: Noted<'_>) {
        note(&self.made.notes, noted);
    }

    pub(crate) fn flush_notes(&self) {
        self.made
            .notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .flush(&self.made.gate, &self.made.session_id, &self.made.name);
    }

    /// Fails the exchange whose name a broken frame still shows.
    pub(super) fn fail_salvaged(&self, frame: &[u8], fault: UpstreamFault) {
        let head = frame.get(..64 * 1024).unwrap_or(frame);
        let number = frames::salvage_id(head).and_then(|raw| self.number_of(&raw).ok());
        if let Some(number) = number {
            self.close(number, Incoming::Fault(fault.into()));
        }
    }

    /// To be called now and then: gives up what took too long, and writes notes down.
    pub(crate) fn look_after(&self) {
        self.flush_notes();
        self.made.peer.tick();
        let now_ns = self.made.gate.mono_ns();
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

    /// Nothing is answered from here on, for this reason.
    pub(crate) fn end(&self, why: &Failure) {
        self.table().ended = true;
        self.kept.clear();
        self.close_all(Some(why));
        self.unsolicited.put(Incoming::Fault(why.clone()));
    }
}

pub(super) fn note(notes: &Mutex<Notes>, noted: Noted<'_>) {
    notes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .add(noted);
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("name", &self.made.name)
            .finish_non_exhaustive()
    }
}
