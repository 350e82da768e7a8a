//! What one session has under way: calls of the client by id, requests of the server by id, and our
//! own questions to the client's person.

use ahash::AHashMap as HashMap;
use gate::inspect::Inspected;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::{ControlKind, InFlight, Reason, Ticket};
use tokio::sync::Notify;
use wire::id::IdKey;
use wire::{Id, Revision};

use super::client::Asker;
use super::form;
use super::input_required::only_client;
use super::lists::Lists;
use crate::notes::Note;
use crate::upstream::{Frame, Link};

/// Most requests of a server that its client has not answered.
pub const SERVER_REQUESTS_MAX: usize = 256;

/// Why something no longer waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Whoever asked has taken it back, and wants no answer.
    Withdrawn,
    /// It is refused for this reason.
    Refused(Reason),
}

/// Told when something is no longer to wait for a person.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    why: Mutex<Option<Why>>,
    told: Notify,
}

impl Stop {
    pub fn tell(&self, why: Why) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.told.notify_one();
    }

    fn said(&self) -> Option<Why> {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is told.
    pub async fn heard(&self) -> Why {
        loop {
            if let Some(why) = self.said() {
                return why;
            }
            self.told.notified().await;
        }
    }
}

/// Ready when the client takes the call back. A call that came before the end is waited for.
pub(super) async fn withdrawn(stop: &Stop) {
    if let Why::Refused(_) = stop.heard().await {
        std::future::pending::<()>().await;
    }
}

/// How far a call has come.
#[derive(Debug, Clone)]
enum Progress {
    /// It has been read.
    Begun,
    /// Its client has taken it back before it was sent.
    TakenBack,
    /// It waits for a person.
    Waits(Arc<Stop>),
    /// At which server it is, and under which number.
    Sent(Arc<Link>, u64),
    /// The same, and it lasts for as long as its client stays.
    Lasts(Arc<Link>, u64),
}

/// What became of a cancellation.
#[derive(Debug)]
pub(crate) enum Cancelled {
    /// No call of this id is under way.
    Unknown,
    /// The server has not heard of the call, nor will it.
    Unsent,
    /// The call is at this server, under this number.
    Sent(Arc<Link>, u64),
}

/// A question of ours to the client's person.
#[derive(Debug)]
struct OpenForm {
    /// The question's name.
    name: String,
    only_client: bool,
    /// Told where the client answers without an answer, and nobody else may.
    unanswered: Arc<Stop>,
}

/// A request of the server.
#[derive(Debug)]
struct Ask {
    link: Arc<Link>,
    epoch: u64,
    kind: AskKind,
}

#[derive(Debug)]
enum AskKind {
    /// Being judged; told when the server takes it back.
    Open(Arc<Stop>),
    Ping,
    Judged(InFlight),
}

/// What a session has under way.
pub(crate) struct UnderWay {
    calls: Mutex<HashMap<IdKey, Progress>>,
    asked: Mutex<HashMap<IdKey, Ask>>,
    /// As many as calls may wait.
    forms: Mutex<HashMap<IdKey, OpenForm>>,
    lists: Mutex<Lists>,
    /// What client and server have agreed on.
    revision: Mutex<Option<Revision>>,
    /// The client has said that it is initialized.
    is_ready: AtomicBool,
}

impl UnderWay {
    /// Nothing yet. `lists` is what the client has been shown, `revision` what was agreed on.
    pub fn new(lists: Lists, revision: Option<Revision>) -> Self {
        Self {
            calls: Mutex::default(),
            asked: Mutex::default(),
            forms: Mutex::default(),
            lists: Mutex::new(lists),
            revision: Mutex::new(revision),
            is_ready: AtomicBool::new(false),
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<IdKey, Progress>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<IdKey, Ask>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forms(&self) -> MutexGuard<'_, HashMap<IdKey, OpenForm>> {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the client has been shown.
    pub fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision that client and server have agreed on.
    pub fn revision(&self) -> Option<Revision> {
        *self.revision.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Client and server have agreed on a revision.
    pub fn agreed_on(&self, revision: Option<Revision>) {
        *self.revision.lock().unwrap_or_else(PoisonError::into_inner) = revision;
    }

    /// The client has said that it is initialized.
    pub fn client_is_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    /// Whether it has.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// How many calls of the client are under way.
    pub fn count(&self) -> usize {
        self.calls().len()
    }

    /// Whether a call is under way that will end by itself.
    pub fn has_ending(&self) -> bool {
        let lasts = |progress: &Progress| matches!(progress, Progress::Lasts(..));
        self.calls().values().any(|progress| !lasts(progress))
    }

    /// Whether a call under way has this id.
    pub fn has_id(&self, key: &IdKey) -> bool {
        self.calls().contains_key(key)
    }

    /// Takes an id for a call; none where it is in use.
    pub fn take_id(self: &Arc<Self>, key: IdKey) -> Option<CallGuard> {
        let mut calls = self.calls();
        if calls.contains_key(&key) {
            return None;
        }
        calls.insert(key.clone(), Progress::Begun);
        drop(calls);
        Some(CallGuard {
            under_way: Arc::clone(self),
            key,
        })
    }

    /// The client takes back a call. One that is at its server is the caller's to cancel there.
    pub fn cancel(&self, key: &IdKey) -> Cancelled {
        let mut calls = self.calls();
        match calls.get_mut(key) {
            None => Cancelled::Unknown,
            Some(Progress::Waits(stop)) => {
                stop.tell(Why::Withdrawn);
                Cancelled::Unsent
            }
            Some(Progress::Sent(link, number) | Progress::Lasts(link, number)) => {
                Cancelled::Sent(Arc::clone(link), *number)
            }
            Some(begun @ (Progress::Begun | Progress::TakenBack)) => {
                *begun = Progress::TakenBack;
                Cancelled::Unsent
            }
        }
    }

    /// Takes an id for a request of the server; none where it is in use or there are too many.
    pub(super) fn ask(self: &Arc<Self>, id: &str, link: &Arc<Link>) -> Option<AskGuard> {
        let key = Id::from_raw(id)?.key();
        // The ids of our own questions are nobody else's.
        if form::is_own(&key) {
            return None;
        }
        let mut asked = self.asked();
        // What an ended server or session has asked nobody waits for.
        asked.retain(|_, ask| !ask.link.has_ended() && ask.link.epoch() == ask.epoch);
        if asked.len() >= SERVER_REQUESTS_MAX || asked.contains_key(&key) {
            return None;
        }
        let stop = Arc::new(Stop::default());
        let ask = Ask {
            link: Arc::clone(link),
            epoch: link.epoch(),
            kind: AskKind::Open(Arc::clone(&stop)),
        };
        asked.insert(key.clone(), ask);
        let under_way = Arc::clone(self);
        Some(AskGuard {
            under_way,
            key,
            stop,
        })
    }

    /// The server takes back a request; `false` where the client has heard of it, or there is none.
    pub(super) fn withdraw_asked(&self, key: &IdKey) -> bool {
        match self.asked().get(key).map(|ask| &ask.kind) {
            Some(AskKind::Open(stop)) => {
                stop.tell(Why::Withdrawn);
                true
            }
            Some(AskKind::Ping | AskKind::Judged(_)) | None => false,
        }
    }

    /// Opens a question of ours; what is given is told where it stays without an answer.
    pub(super) fn open_form(&self, id: &IdKey, ticket: &Ticket<Frame>) -> Arc<Stop> {
        let unanswered = Arc::new(Stop::default());
        let open = OpenForm {
            name: ticket.id().to_string(),
            only_client: only_client(ticket),
            unanswered: Arc::clone(&unanswered),
        };
        self.forms().insert(id.clone(), open);
        unanswered
    }

    /// Closes a question of ours; `false` where it was answered or closed before.
    pub(super) fn close_form(&self, id: &IdKey) -> bool {
        self.forms().remove(id).is_some()
    }

    /// The client answers a question of ours; `false` where there is none of this id.
    fn answer_form(&self, asker: &Asker, key: &IdKey, frame: &[u8]) -> bool {
        let Some(open) = self.forms().remove(key) else {
            return false;
        };
        let said = form::answer(frame, &asker.caller.subject, open.only_client);
        let is_taken = said.is_taken(&asker.server.gate, &open.name);
        match (is_taken, open.only_client) {
            (true, _) => {}
            (false, true) => open.unanswered.tell(Why::Refused(Reason::ApprovalUnfit)),
            (false, false) => asker.client.note(Note::ElicitationUnanswered.into()),
        }
        true
    }

    /// The client answers a request of the server or of ours; `false` where there is none of this id.
    pub fn answer(&self, asker: &Asker, key: &IdKey, frame: Inspected<Vec<u8>>) -> bool {
        if self.answer_form(asker, key, frame.message()) {
            return true;
        }
        let Some(Ask { link, kind, .. }) = self.asked().remove(key) else {
            return false;
        };
        match kind {
            AskKind::Open(stop) => {
                let kind = AskKind::Open(stop);
                let epoch = link.epoch();
                self.asked().insert(key.clone(), Ask { link, epoch, kind });
                return false;
            }
            AskKind::Ping => {
                let pass = link.control(ControlKind::Ping, frame.into_message());
                // A server that has ended needs no answer.
                let _ = link.send(pass);
            }
            AskKind::Judged(flight) => asker.answer_server(link, flight, frame),
        }
        true
    }

    /// Nothing waits for a person any more.
    pub fn stop_waiting(&self, why: Why) {
        for call in self.calls().values() {
            if let Progress::Waits(stop) = call {
                stop.tell(why);
            }
        }
        for ask in self.asked().values() {
            if let AskKind::Open(stop) = &ask.kind {
                stop.tell(why);
            }
        }
    }

    /// The session is over: what waits is withdrawn, what is at its server is cancelled there.
    pub fn end(&self) {
        self.stop_waiting(Why::Withdrawn);
        let calls: Vec<Progress> = self.calls().values().cloned().collect();
        for call in calls {
            if let Progress::Sent(link, number) | Progress::Lasts(link, number) = call {
                link.cancel(number, "the session has ended");
            }
        }
        self.asked().clear();
    }
}

impl std::fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnderWay")
            .field("calls", &self.count())
            .finish_non_exhaustive()
    }
}

/// A call's id, free again when the call has ended.
#[derive(Debug)]
pub(crate) struct CallGuard {
    under_way: Arc<UnderWay>,
    key: IdKey,
}

impl CallGuard {
    /// The call was sent: this is how to cancel it.
    pub(super) fn sent(&self, link: &Arc<Link>, number: u64, lasts: bool) {
        let sent = match lasts {
            true => Progress::Lasts(Arc::clone(link), number),
            false => Progress::Sent(Arc::clone(link), number),
        };
        let before = self.under_way.calls().insert(self.key.clone(), sent);
        let is_taken_back = match before {
            Some(Progress::TakenBack) => true,
            Some(Progress::Waits(stop)) => stop.said() == Some(Why::Withdrawn),
            Some(Progress::Begun | Progress::Sent(..) | Progress::Lasts(..)) | None => false,
        };
        if is_taken_back {
            link.cancel(number, "the client cancelled");
        }
    }

    /// The call waits for a person, or for its server's list: this is how to say that its client no longer
    /// does.
    pub(super) fn waits(&self, stop: &Arc<Stop>) {
        let waits = Progress::Waits(Arc::clone(stop));
        if let Some(Progress::TakenBack) = self.under_way.calls().insert(self.key.clone(), waits) {
            stop.tell(Why::Withdrawn);
        }
    }

    /// The call waits no longer; whether its client has taken it back meanwhile.
    pub(super) fn goes_on(&self, stop: &Stop) -> bool {
        // Who cancels tells the stop while holding this.
        let mut calls = self.under_way.calls();
        calls.insert(self.key.clone(), Progress::Begun);
        stop.said() == Some(Why::Withdrawn)
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.under_way.calls().remove(&self.key);
    }
}

/// The id of a request of the server, free again unless the request passes.
pub(super) struct AskGuard {
    under_way: Arc<UnderWay>,
    key: IdKey,
    stop: Arc<Stop>,
}

impl AskGuard {
    /// Told when the server takes the request back.
    pub fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// It passes as a ping.
    pub fn ping(self) {
        self.set(AskKind::Ping);
    }

    /// It passes as judged.
    pub fn judged(self, flight: InFlight) {
        self.set(AskKind::Judged(flight));
    }

    fn set(&self, kind: AskKind) {
        if let Some(ask) = self.under_way.asked().get_mut(&self.key) {
            ask.kind = kind;
        }
    }
}

impl Drop for AskGuard {
    fn drop(&mut self) {
        let mut asked = self.under_way.asked();
        if asked
            .get(&self.key)
            .is_some_and(|ask| matches!(ask.kind, AskKind::Open(_)))
        {
            asked.remove(&self.key);
        }
    }
}
