//! The protocol's end of a built-in server: judged frames in, frames for the client out.
//!
//! Both eras are spoken: a Legacy session after `initialize`, the Modern one in every request whose `_meta`
//! names its revision. Nothing here runs by itself: an [`Exchange`] goes on while it is polled, so a call
//! ends with whoever waits for it.

mod exchange;
mod fault;
mod request;
mod results;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gate::approval::change::Seen;
use gate::facts::Facts;
use gate::journal::OpId;
use gate::{PeerId, Spent};
use share::{ShareLimits, SharePool, Shortage};
use wire::{Revision, id::IdKey};

use crate::cancel::Cancel;
use crate::server::{
    Args, DefinitionFault, DynToolServer, Failure, Identity, JobRecorder, Outcome, PREVIEW_MS_MAX,
    ReplySink, ResourceAsked, ResourceCall, SessionRef, ToolCall, ToolDef, Unfit, check_tools,
};
pub use exchange::{Arrival, CANCEL_WAIT_MS_MAX, Exchange, Reply};
use exchange::{Calling, Place};
pub use request::Message;
use request::{Content, Request, ToolAsked, Wanted};
pub use results::{META_FAILURE, META_REFUSAL, RESULT_BYTES_MAX};

/// Most requests of all sessions of a server that are under way. One caller has half of them if there are others.
pub const SERVER_REQUESTS_MAX: usize = 1024;

/// The revision in whose words a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dialect(Revision);

/// A tool server that is served in this process.
pub struct Builtin {
    id: PeerId,
    server: Arc<dyn DynToolServer>,
    requests: SharePool,
}

/// One client's session with it.
pub struct BuiltinSession {
    builtin: Arc<Builtin>,
    session: SessionRef,
    settled: Mutex<Option<Revision>>,
    open: Arc<Open>,
}

/// The requests of a session that are under way.
#[derive(Default)]
struct Open {
    calls: Mutex<HashMap<IdKey, Cancel>>,
}

/// What passes for a built-in server carry: a frame, read where it was judged.
pub trait Carries {
    /// What was read; `None` where nobody has read the frame yet.
    fn message(&self) -> Option<&Message>;

    /// The frame.
    fn frame(&self) -> &[u8];

    /// Takes out what was read.
    fn into_message(self) -> Option<Message>;
}

/// A frame that was not taken; nothing was done, and the spent pass is still good where it belongs.
#[derive(Debug)]
pub struct Unsent<F> {
    /// The frame as it came.
    pub frame: Spent<F>,
    /// Why.
    pub why: UnsentReason,
}

/// Why a frame was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsentReason {
    /// It was let through for another peer.
    Elsewhere,
    /// Too many requests are under way; try again when some have ended.
    Busy,
}

impl Builtin {
    /// Takes a server, if its definitions can be served; passes for it are made out to `id`.
    ///
    /// # Errors
    /// [`DefinitionFault`].
    pub fn new(id: PeerId, server: Arc<dyn DynToolServer>) -> Result<Arc<Self>, DefinitionFault> {
        check_tools(server.tools())?;
        Ok(Arc::new(Self {
            id,
            server,
            requests: SharePool::new(ShareLimits::half_each(SERVER_REQUESTS_MAX)),
        }))
    }

    /// The name that passes for it are made out to.
    #[must_use]
    pub fn id(&self) -> &PeerId {
        &self.id
    }

    /// Who it is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.server.identity()
    }

    /// As [`ToolServer::caller_revoked`](crate::server::ToolServer::caller_revoked).
    pub fn caller_revoked(&self, caller: &Arc<str>) {
        self.server.caller_revoked(caller);
    }

    /// This process serves from now on.
    pub fn begin(&self) {
        self.server.begin();
    }

    /// As [`crate::server::ToolServer::end`].
    pub fn end(&self) {
        self.server.end();
    }

    /// Where the ends of jobs are recorded that its calls begin.
    pub fn record_jobs(&self, recorder: JobRecorder) {
        self.server.record_jobs(recorder);
    }

    /// What it has counted.
    #[must_use]
    pub fn measures(&self) -> Vec<crate::measure::Measure> {
        self.server.measures()
    }

    /// Its tools.
    #[must_use]
    pub fn tools(&self) -> &[ToolDef] {
        self.server.tools()
    }

    /// Whether it answers requests about resources.
    #[must_use]
    pub fn has_resources(&self) -> bool {
        !self.server.templates().is_empty()
    }

    /// States what the definition of a tool says of every call of it, where there is such a tool.
    pub fn define(&self, tool: &str, facts: &mut Facts) {
        if let Some(tool) = self.tool(tool) {
            tool.define(facts);
        }
    }

    /// States what a call is about, before it is judged. Says nothing of what is no call of a tool.
    ///
    /// # Errors
    /// [`Unfit`] where the call will be answered with a failure whatever is decided, so that nothing more can
    /// be said of it; the facts then stay as they were.
    pub fn describe(&self, message: &Message, facts: &mut Facts) -> Result<(), Unfit> {
        let described = self.described(message, facts);
        if let Err(unfit) = &described {
            let _ = message.unfit.set(unfit.clone());
        }
        described
    }

    fn described(&self, message: &Message, facts: &mut Facts) -> Result<(), Unfit> {
        let Some((call, tool)) = message
            .call()
            .and_then(|call| Some((call, self.tool(call.tool)?)))
        else {
            return Ok(());
        };
        let members = call.arguments.as_ref().map_err(Clone::clone)?;
        let mut stated = facts.clone();
        tool.state(Args::new(members), &mut stated);
        self.server
            .describe(tool, Args::new(members), &message.by, &mut stated)?;
        *facts = stated;
        Ok(())
    }

    /// Notes what a call is judged by that it stands and falls with.
    pub fn note_judged(&self, message: &mut Message, facts: &Facts) {
        let Some(call) = message.call_to_note() else {
            return;
        };
        let bound = self.tool(call.tool).and_then(|tool| tool.binds);
        let judged = bound.map(|fact| facts.get(fact)).unwrap_or_default();
        call.bound = judged.known().and_then(|value| value.text().map(Arc::from));
    }

    /// What a call would write, for the person who is asked about it; none where its arguments say so themselves.
    pub async fn preview(&self, message: &Message) -> Option<Seen> {
        let call = message.call()?;
        let (tool, members) = (self.tool(call.tool)?, call.arguments.as_ref().ok()?);
        let looking = self
            .server
            .preview_boxed(tool, Args::new(members), &message.by);
        let most = std::time::Duration::from_millis(PREVIEW_MS_MAX);
        tokio::time::timeout(most, looking).await.ok()?
    }

    fn tool(&self, name: &str) -> Option<&ToolDef> {
        self.tools().iter().find(|known| known.name == name)
    }

    /// A session for one client.
    #[must_use]
    pub fn session(self: &Arc<Self>, session: SessionRef) -> BuiltinSession {
        BuiltinSession {
            builtin: Arc::clone(self),
            session,
            settled: Mutex::new(None),
            open: Arc::default(),
        }
    }

    /// Returns how many requests are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.requests.held()
    }
}

impl Open {
    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<IdKey, Cancel>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request; an earlier one of the same id can then no longer be cancelled by it.
    fn note(&self, key: &IdKey, cancel: &Cancel) {
        self.calls().insert(key.clone(), cancel.clone());
    }

    fn forget(&self, key: &IdKey, cancel: &Cancel) {
        let mut calls = self.calls();
        if calls.get(key).is_some_and(|noted| noted.is(cancel)) {
            calls.remove(key);
        }
    }
}

impl BuiltinSession {
    /// Takes a frame that was let through. A request is answered by the exchange; for anything else, such as
    /// a notification, the exchange is over at once.
    ///
    /// # Errors
    /// [`Unsent`] with the frame, where it is for another peer or too many requests are under way.
    pub fn request<F: Carries>(&self, frame: Spent<F>) -> Result<Exchange, Unsent<F>> {
        let unsent = |frame, why| Err(Unsent { frame, why });
        if frame.at() != &self.builtin.id {
            return unsent(frame, UnsentReason::Elsewhere);
        }
        let parsed = match frame.request().message() {
            Some(_) => None,
            None => Some(
                self.builtin
                    .parse(frame.request().frame(), self.session.clone()),
            ),
        };
        let read = parsed.as_ref().or_else(|| frame.request().message());
        let place = match read.and_then(Message::stays).map(|key| self.place(key)) {
            Some(Err(_)) => return unsent(frame, UnsentReason::Busy),
            Some(Ok(place)) => Some(place),
            None => None,
        };
        let op = frame.op();
        let message = match parsed {
            Some(message) => Some(message),
            None => match frame.take(&self.builtin.id) {
                Ok(carried) => carried.into_message(),
                Err(frame) => return unsent(frame, UnsentReason::Elsewhere),
            },
        };
        Ok(message.map_or_else(Exchange::silent, |message| self.take(message, op, place)))
    }

    fn take(&self, message: Message, op: OpId, place: Option<Place>) -> Exchange {
        match message.content {
            Content::Request(request) => self.answer(*request, message.by, op, place),
            Content::Cancelled(id) => {
                self.cancel(&id);
                Exchange::silent()
            }
            Content::Silent => Exchange::silent(),
            Content::Unreadable(error) => {
                Exchange::answered(fault::Fault::Unreadable(error).frame("null"))
            }
        }
    }

    fn answer(&self, request: Request, by: SessionRef, op: OpId, place: Option<Place>) -> Exchange {
        let settled = *self.settled();
        let dialect = request.dialect(settled);
        let progress_token = request.progress_token();
        let id = request.id.clone();
        let wanted = match request.wanted(settled) {
            Ok(wanted) => wanted,
            Err(fault) => return Exchange::answered(fault.frame(&id)),
        };
        let builtin = &self.builtin;
        let reply = match (wanted, place) {
            (Wanted::Initialize(revision), _) => {
                *self.settled() = Some(revision);
                results::initialized(builtin, &id, revision)
            }
            (Wanted::Ping, _) => results::empty(builtin, &id, dialect),
            (Wanted::Discover, _) => results::discovered(builtin, &id),
            (Wanted::ListTools, _) => results::listed(builtin, &id, dialect),
            (Wanted::Listen(tools), Some(place)) => {
                let last = results::empty(builtin, &id, dialect);
                return Exchange::listening(results::listening(&id, tools), last, place);
            }
            (Wanted::ListTemplates, _) => results::templates(builtin, &id, dialect),
            (Wanted::Call(call), Some(place)) => {
                let asked = Asked {
                    id,
                    dialect,
                    progress_token,
                    op,
                    by,
                };
                return self.call(call, asked, place);
            }
            (Wanted::Resources(asked), Some(place)) => {
                let call = ResourceCall {
                    asked,
                    session: by,
                    op,
                };
                return self.resources(call, id, dialect, place);
            }
            // What stays under way has got its place before.
            (Wanted::Listen(_) | Wanted::Call(_) | Wanted::Resources(_), None) => {
                return Exchange::silent();
            }
        };
        Exchange::answered(reply)
    }

    fn call(&self, call: ToolAsked, asked: Asked, place: Place) -> Exchange {
        let builtin = &self.builtin;
        let arguments = match call.arguments {
            Ok(arguments) => arguments,
            Err(unfit) => {
                let outcome = Outcome::Failed(Failure::from(unfit));
                let reply = results::called(builtin, call.tool, &asked.id, asked.dialect, outcome);
                return Exchange::answered(reply);
            }
        };
        let cancel = place.cancel.clone();
        let (sink, news) = ReplySink::new(asked.progress_token.is_some(), cancel.clone());
        let made = ToolCall {
            tool: call.tool,
            arguments,
            session: asked.by,
            op: asked.op,
            shown: call.shown,
            bound: call.bound,
        };
        let (id, dialect, of) = (asked.id, asked.dialect, Arc::clone(builtin));
        let tool = call.tool;
        let outcome = Arc::clone(&builtin.server).call_boxed(made, sink);
        let reply = async move { results::called(&of, tool, &id, dialect, outcome.await) };
        let calling = Calling {
            progress_token: asked.progress_token,
            reply: Box::pin(reply),
            news,
            cancel,
            giving_up: None,
        };
        Exchange::calling(calling, place)
    }

    fn resources(
        &self,
        call: ResourceCall,
        id: String,
        dialect: Dialect,
        place: Place,
    ) -> Exchange {
        let cancel = place.cancel.clone();
        // Nothing is told on the way.
        let (_, news) = ReplySink::new(false, cancel.clone());
        let builtin = Arc::clone(&self.builtin);
        let uri = match call.asked() {
            ResourceAsked::Read { uri } => uri.clone(),
            ResourceAsked::List { .. } => String::new(),
        };
        let answer = Arc::clone(&builtin.server).resources_boxed(call);
        let reply = async move { results::resources(&builtin, &uri, &id, dialect, answer.await) };
        let calling = Calling {
            progress_token: None,
            reply: Box::pin(reply),
            news,
            cancel,
            giving_up: None,
        };
        Exchange::calling(calling, place)
    }

    fn place(&self, key: &IdKey) -> Result<Place, Shortage> {
        let caller = self.session.shares.then_some(&self.session.caller);
        let permit = self.builtin.requests.try_acquire(caller, 1)?;
        let cancel = Cancel::default();
        self.open.note(key, &cancel);
        Ok(Place {
            open: Arc::clone(&self.open),
            key: key.clone(),
            cancel,
            _permit: permit,
        })
    }

    fn settled(&self) -> std::sync::MutexGuard<'_, Option<Revision>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the request with this id, if it is under way.
    pub fn cancel(&self, id: &IdKey) {
        if let Some(cancel) = self.open.calls().get(id) {
            cancel.cancel();
        }
    }

    /// How many requests are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.open.calls().len()
    }

    /// Cancels everything that is under way.
    pub fn close(&self) {
        for cancel in self.open.calls().values() {
            cancel.cancel();
        }
    }
}

impl Drop for BuiltinSession {
    fn drop(&mut self) {
        self.close();
        self.builtin.server.session_ended(&self.session);
    }
}

/// How a call is to be answered.
struct Asked {
    /// Raw JSON.
    id: String,
    dialect: Dialect,
    progress_token: Option<String>,
    op: OpId,
    by: SessionRef,
}

#[cfg(test)]
mod tests;
