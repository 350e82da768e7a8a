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
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gate::facts::Facts;
use gate::journal::OpId;
use gate::{PeerId, Spent};
use wire::{Revision, id::IdKey};

use crate::cancel::Cancel;
use crate::server::{
    Args, DefinitionFault, DynToolServer, Failure, Identity, Outcome, ReplySink, SessionRef,
    ToolCall, ToolDef, Unfit, check_tools, read_arguments,
};
pub use exchange::{Arrival, CANCEL_WAIT_MS_MAX, Exchange};
use exchange::{Calling, Place};
use request::{Message, Request, Wanted};
pub use results::{META_FAILURE, RESULT_BYTES_MAX};

/// Most requests of one session that are under way.
pub const SESSION_REQUESTS_MAX: usize = 64;
/// Most requests of all sessions of a server that are under way.
pub const SERVER_REQUESTS_MAX: usize = 1024;

/// The revision in whose words a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dialect(Revision);

/// A tool server that is served in this process.
pub struct Builtin {
    id: PeerId,
    server: Arc<dyn DynToolServer>,
    under_way: AtomicUsize,
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

/// Too many requests are under way; nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Busy;

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
            under_way: AtomicUsize::new(0),
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

    /// Its tools.
    #[must_use]
    pub fn tools(&self) -> &[ToolDef] {
        self.server.tools()
    }

    /// States what a call is about, before it is judged. `arguments` is the raw JSON of the call.
    ///
    /// # Errors
    /// [`Unfit`] where the call will be answered with a failure whatever is decided, so that nothing more can
    /// be said of it; the facts then stay as they were.
    pub fn describe(
        &self,
        tool: &str,
        arguments: Option<&str>,
        session: &SessionRef,
        facts: &mut Facts,
    ) -> Result<(), Unfit> {
        let known = self.tools().iter().find(|known| known.name == tool);
        let Some(tool) = known else {
            return Err(Unfit::member("", format!("unknown tool {tool}")));
        };
        let members = read_arguments(arguments, &tool.input)?;
        self.server
            .describe(tool, Args::new(&members), session, facts)
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

    /// How many requests are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    fn enter(&self) -> Result<(), Busy> {
        let entered = self
            .under_way
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| {
                (open < SERVER_REQUESTS_MAX).then_some(open + 1)
            });
        entered.map(drop).map_err(|_| Busy)
    }

    fn leave(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Open {
    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<IdKey, Cancel>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request; an earlier one of the same id can then no longer be cancelled by it.
    fn note(&self, key: &IdKey, cancel: &Cancel) -> Result<(), Busy> {
        let mut calls = self.calls();
        if calls.len() >= SESSION_REQUESTS_MAX {
            return Err(Busy);
        }
        calls.insert(key.clone(), cancel.clone());
        Ok(())
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
    pub fn request<F: AsRef<[u8]>>(&self, frame: Spent<F>) -> Result<Exchange, Unsent<F>> {
        if frame.at() != &self.builtin.id {
            let why = UnsentReason::Elsewhere;
            return Err(Unsent { frame, why });
        }
        match self.take(frame.request().as_ref(), frame.op()) {
            Ok(exchange) => Ok(exchange),
            Err(Busy) => Err(Unsent {
                frame,
                why: UnsentReason::Busy,
            }),
        }
    }

    fn take(&self, frame: &[u8], op: OpId) -> Result<Exchange, Busy> {
        let settled = *self.settled();
        match Message::read(frame, settled) {
            Message::Request(id, request) => self.answer(id, *request, op),
            Message::Cancelled(id) => {
                self.cancel(&id.key());
                Ok(Exchange::silent())
            }
            Message::Silent => Ok(Exchange::silent()),
            Message::Unreadable(fault) => Ok(Exchange::answered(fault.frame("null"))),
        }
    }

    fn answer(&self, id: wire::Id<'_>, request: Request, op: OpId) -> Result<Exchange, Busy> {
        let dialect = request.dialect;
        let wanted = match request.wanted {
            Ok(wanted) => wanted,
            Err(fault) => return Ok(Exchange::answered(fault.frame(id.raw()))),
        };
        let builtin = &self.builtin;
        let reply = match wanted {
            Wanted::Initialize(revision) => {
                *self.settled() = Some(revision);
                results::initialized(builtin, id.raw(), revision)
            }
            Wanted::Ping => results::empty(builtin, id.raw(), dialect),
            Wanted::Discover => results::discovered(builtin, id.raw()),
            Wanted::ListTools => results::listed(builtin, id.raw(), dialect),
            Wanted::Listen => {
                let place = self.place(id.key(), Cancel::default())?;
                let last = results::empty(builtin, id.raw(), dialect);
                return Ok(Exchange::listening(
                    results::listening(id.raw()),
                    last,
                    place,
                ));
            }
            Wanted::Call {
                tool,
                arguments,
                progress_token,
            } => {
                let asked = Asked {
                    id,
                    dialect,
                    progress_token,
                    op,
                };
                return self.call(&tool, arguments.as_deref(), asked);
            }
        };
        Ok(Exchange::answered(reply))
    }

    fn call(
        &self,
        tool: &str,
        arguments: Option<&str>,
        asked: Asked<'_>,
    ) -> Result<Exchange, Busy> {
        let builtin = &self.builtin;
        let id = asked.id;
        let Some(tool) = builtin.tools().iter().find(|known| known.name == tool) else {
            let fault = fault::Fault::UnknownTool(tool.to_owned());
            return Ok(Exchange::answered(fault.frame(id.raw())));
        };
        let arguments = match read_arguments(arguments, &tool.input) {
            Ok(arguments) => arguments,
            Err(unfit) => {
                let outcome = Outcome::Failed(Failure::from(unfit));
                let reply = results::called(builtin, tool.name, id.raw(), asked.dialect, outcome);
                return Ok(Exchange::answered(reply));
            }
        };
        let (sink, news) = ReplySink::new(asked.progress_token.is_some());
        let cancel = sink.cancel().clone();
        let place = self.place(id.key(), cancel.clone())?;
        let call = ToolCall {
            tool: tool.name,
            arguments,
            session: self.session.clone(),
            op: asked.op,
        };
        let calling = Calling {
            builtin: Arc::clone(builtin),
            tool: tool.name,
            id: id.raw().to_owned(),
            dialect: asked.dialect,
            progress_token: asked.progress_token,
            outcome: Arc::clone(&builtin.server).call_boxed(call, sink),
            news,
            cancel,
            giving_up: None,
        };
        Ok(Exchange::calling(calling, place))
    }

    fn place(&self, key: IdKey, cancel: Cancel) -> Result<Place, Busy> {
        self.builtin.enter()?;
        if let Err(busy) = self.open.note(&key, &cancel) {
            self.builtin.leave();
            return Err(busy);
        }
        Ok(Place {
            open: Arc::clone(&self.open),
            builtin: Arc::clone(&self.builtin),
            key,
            cancel,
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
struct Asked<'a> {
    id: wire::Id<'a>,
    dialect: Dialect,
    progress_token: Option<String>,
    op: OpId,
}

#[cfg(test)]
mod tests;
