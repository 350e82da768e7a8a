//! What answers requests over HTTP: a face claims paths, and the binary routes to it.
//!
//! The types of request and response are the server's own (`Q`, `S`), so that nothing here knows how bodies
//! are read and written.

mod body;
mod challenge;
mod route;

use std::sync::Arc;

use gate::Caller;
use gate::identity::IdentityFault;

use crate::server::BoxFuture;
use crate::trace::Trace;
pub use body::object;
pub use challenge::Challenge;
pub use route::{Clash, ROUTES_MAX, Route, Routes};

/// On whose behalf a face makes a request of its own, and the run that it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Behalf<'a> {
    /// Who asked the face.
    pub caller: &'a Caller,
    /// What the headers of that request said about its run.
    pub trace: &'a Trace,
}

/// Who may ask at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'p> {
    /// Everybody: nobody looks who it is.
    Open,
    /// Whoever has one of the operator's keys, or is the local user.
    Keyed,
    /// Whoever is known, users with accounts included.
    Account,
    /// Whoever is known, users with accounts included: the face shows each caller its own servers only.
    Servers,
    /// Whoever is known and may use this server.
    Server(&'p str),
}

/// One dialect over HTTP: it owns paths and answers what comes there, refusals included.
pub trait Face<Q, S>: Send + Sync {
    /// Its name, for messages about its routes.
    fn name(&self) -> &'static str;

    /// The paths that it claims; always the same.
    fn routes(&self) -> &[Route];

    /// Who may ask at this path, which is one of its own.
    fn scope<'p>(&'p self, path: &'p str) -> Scope<'p> {
        let _ = path;
        Scope::Keyed
    }

    /// Answers a request. Who was not identified is refused by the face, in its own dialect, except where it
    /// answers everybody.
    fn handle(&self, who: Result<Caller, IdentityFault>, request: Q) -> BoxFuture<'_, S>;

    /// Ends what a revoked caller has open between requests: sessions, processes. What holds the caller's
    /// [`RevocationFlag`](gate::RevocationFlag) ends by itself.
    fn on_revoked(&self, caller: &Arc<str>) {
        let _ = caller;
    }

    /// Time has passed: what is too old goes. Called a few times a second, and now and then while nothing happens.
    fn tick(&self) {}

    /// The end is near: nothing new is begun, what is under way may end.
    fn quiet(&self) {}

    /// The end has come: what is under way is cancelled.
    fn cancel_all(&self) {}
}
