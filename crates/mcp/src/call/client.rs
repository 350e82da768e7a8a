//! Whoever makes calls, as the life of a call sees them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use gate::approval::Question;
use gate::journal::{Digest, OpId};
use gate::{Caller, ControlKind, Origin, PeerId, Refusal, RunId};
use wire::Era;

use super::server::{Reader, Server, Shown};
use super::suspended::Lot;
use super::under_way::{CallGuard, Stop, UnderWay, withdrawn};
use crate::describe::Context;
use crate::message::era;
use crate::message::frames::Failure;
use crate::notes::{Note, Noted};
use crate::reading_pool::ReadingPool;
use crate::upstream::{News, Slot, taken};

/// Longest id that is kept in the journal, in characters.
const REQUEST_ID_CHARS_MAX: usize = 256;

/// Something that goes on by itself.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How an edge reaches one client.
pub(crate) trait Client: Send + Sync {
    /// Gives the client a message that belongs to no call under way; waits for one that reads slowly.
    fn tell(&self, frame: Vec<u8>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// The same, without waiting.
    fn post(&self, frame: Vec<u8>);

    /// Carries on with something beside the client's calls.
    fn beside(&self, work: Work);

    /// Resolves when the client disconnects or its credential is revoked.
    fn gone(&self) -> Work;

    /// Whether it reads so slowly that news which it can do without should not be sent.
    fn is_slow(&self) -> bool {
        false
    }

    /// Counts news that were not sent because of that.
    fn has_missed_news(&self) {}

    /// A message of its server as the client is told it.
    fn told(&self, frame: Vec<u8>) -> Vec<u8> {
        frame
    }

    /// Whether it speaks HTTP: its headers repeat what its requests say, and caches may stand between.
    fn is_over_http(&self) -> bool;

    /// Returns the threads that read its long calls; `None` if they are read where they arrive.
    fn reading_pool(&self) -> Option<&ReadingPool> {
        None
    }

    /// Notes something about it for the journal.
    fn note(&self, noted: Noted<'_>);

    /// Learns of a step of its request that the answer has in words only.
    fn on_step(&self, _: CallStep<'_>) {}

    /// Whether a call ends if a person would have to be asked.
    fn withdraws_questions(&self) -> bool {
        false
    }
}

/// A step of a request, for clients in process.
#[derive(Debug)]
pub(crate) enum CallStep<'s> {
    /// It may be sent, as this operation.
    Permitted(OpId),
    /// It waits for a person.
    Asks(&'s Question),
    /// The gate refused it.
    Refused(&'s Refusal),
    /// The server did not do its part.
    Failed(&'s Failure),
}

/// Who asks.
#[derive(Clone)]
pub(crate) struct Asker {
    pub server: Arc<Server>,
    pub caller: Caller,
    pub session_id: Arc<str>,
    pub client_id: Option<Arc<str>>,
    /// Absent before the client has said which it speaks.
    pub era: Option<Era>,
    /// Whether a Legacy client can show its person a form.
    pub elicits: bool,
    pub slot: Arc<Slot>,
    pub shown: Arc<Shown>,
    /// What its session has under way; absent where there are no sessions.
    pub under_way: Option<Arc<UnderWay>>,
    /// Calls of Modern clients that wait for these to come back.
    pub lot: Arc<Lot>,
    pub client: Arc<dyn Client>,
    /// Whether a list may be what its server has listed before.
    pub recalls: bool,
}

/// An id as it is recorded: its beginning, where it is long.
fn shortened(id: &str) -> String {
    if id.len() <= REQUEST_ID_CHARS_MAX {
        return id.to_owned();
    }
    id.chars().take(REQUEST_ID_CHARS_MAX).collect()
}

impl Asker {
    pub(super) fn is_modern(&self) -> bool {
        self.era == Some(Era::Modern)
    }

    /// Whether its client speaks the Modern era, and its server an earlier one.
    pub(super) fn is_bridged(&self) -> bool {
        self.is_modern() && self.slot.is_legacy()
    }

    pub(super) fn reader(&self) -> Reader<'_> {
        Reader {
            caller: &self.caller,
            session_id: &self.session_id,
            leaves_unfit_out: self.is_modern() && self.client.is_over_http(),
            shown: &self.shown,
        }
    }

    pub(super) fn with_context<T>(&self, describe: impl FnOnce(&Context<'_>) -> T) -> T {
        self.server
            .with_context(&self.caller, &self.shown, describe)
    }

    pub(super) fn origin(
        &self,
        id: &str,
        arguments_digest: Option<Digest>,
        received_ns: u64,
        (run, parent_op): (Option<RunId>, Option<OpId>),
    ) -> Origin {
        Origin {
            request_id: shortened(id),
            session_id: Arc::clone(&self.session_id),
            era: self.era.map(|era| era::Spoken(era).into()),
            client_id: self.client_id.clone(),
            transport: self.server.pool.means().transport(),
            run,
            parent_op,
            arguments_digest,
            received_ns,
            waited: false,
        }
    }

    /// The client as a destination.
    pub(super) fn peer(&self) -> PeerId {
        PeerId::client(Arc::clone(&self.session_id))
    }

    /// A message of the protocol's own for this client.
    pub(super) fn passed(&self, kind: ControlKind, frame: Vec<u8>) -> Option<Vec<u8>> {
        let client = self.peer();
        let pass = self.server.gate.control(kind, &client, frame);
        Some(taken(pass, &client)?.0)
    }

    /// News of the server for this client; `None` where the client need not hear of them: they take
    /// back a request that it has not been told of, ask for something that is judged where a result asks for it, are of a
    /// resource that another client has subscribed to, or it reads too slowly.
    pub fn news(&self, news: &mut News) -> Option<Vec<u8>> {
        if news.changes_tools {
            self.server.tools_changed();
        }
        if let (Some(key), Some(under_way)) = (&news.cancels, &self.under_way)
            && under_way.withdraw_asked(key)
        {
            return None;
        }
        if news.tie.is_none()
            && let Some(uri) = &news.updates
            && self.slot.is_shared()
            && !self.slot.subscribers.has(&self.session_id, uri)
        {
            return None;
        }
        // Who wants the server's log in the Modern era says so with each request, which an earlier one does not know.
        if self.is_bridged() && is_log(&news.frame) {
            return None;
        }
        if asks_for_input(&news.frame) {
            self.client.note(Note::ServerNotificationDropped.into());
            return None;
        }
        if news.is_droppable && self.client.is_slow() {
            self.client.has_missed_news();
            return None;
        }
        if !self.inspect_news(news) {
            return None;
        }
        self.passed(ControlKind::News, std::mem::take(&mut news.frame))
    }

    /// Waits for something that a call needs before it is judged: nothing comes of it where the client has gone or
    /// has taken the call back, and of the latter it is told whether it happened.
    pub(in crate::call) async fn before_judging<T>(
        &self,
        guard: Option<&CallGuard>,
        wait: impl Future<Output = T>,
    ) -> (Option<T>, bool) {
        let stop = Arc::new(Stop::default());
        if let Some(guard) = guard {
            guard.waits(&stop);
        }
        let came = tokio::select! {
            came = wait => Some(came),
            () = withdrawn(&stop) => None,
            () = self.client.gone() => None,
        };
        let is_withdrawn = guard.is_some_and(|guard| guard.goes_on(&stop));
        (came, is_withdrawn)
    }
}

/// Whether news ask the client for something, as the state of a task may: the client hears of that in a result, which is
/// judged. A frame of the gate's has no blanks between its tokens.
fn asks_for_input(frame: &[u8]) -> bool {
    std::str::from_utf8(frame).is_ok_and(|frame| frame.contains("\"inputRequests\":"))
}

fn is_log(frame: &[u8]) -> bool {
    const LOG: &str = "\"method\":\"notifications/message\"";
    std::str::from_utf8(frame).is_ok_and(|frame| frame.contains(LOG))
}
