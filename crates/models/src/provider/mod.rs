//! What answers a request: a provider of models.

mod fault;
mod fault_table;

use std::borrow::Cow;
use std::fmt;
use std::task::{Context, Poll};

use bytes::Bytes;
use dialects::Endpoint;
use dialects::translate::ProviderForm;
use gate::{Caller, Origin, PeerId, Spent};
use http::HeaderMap;
use tokio::time::Instant;
use toolkit::server::BoxFuture;

use crate::key::Key;
use crate::request::ModelRequest;
pub use fault::{Fault, FaultScope, Remedy, Trouble};

/// Where and until when a request goes.
#[derive(Debug, Clone, Copy)]
pub struct Address<'a> {
    /// The provider's own name for the model.
    pub model: &'a str,
    /// The head of the reply is there by then, or the request has failed.
    pub until: Instant,
    /// The caller of the request.
    pub caller: &'a Caller,
    /// Where the request came from.
    pub origin: &'a Origin,
}

/// A provider of models. It takes nothing but a spent pass.
pub trait Provider: Send + Sync {
    /// Its name in the configuration, in rules and in records.
    fn peer(&self) -> &PeerId;

    /// What it has to offer.
    fn offer(&self) -> &Offer;

    /// What it has to offer for one model; its name is not looked at where all are alike.
    fn offer_of(&self, model: &str) -> Offer {
        let _ = model;
        self.offer().clone()
    }

    /// What else the provider takes for the name of this model. Rules and prices hold for all of its names.
    fn other_names(&self, model: &str) -> Vec<String> {
        let _ = model;
        Vec::new()
    }

    /// Sends a request and waits for the head of its reply. Where none comes, the pass is given back, so
    /// that the same request can go to another target of its call.
    fn send<'a>(&'a self, spent: Spent<ModelRequest>, to: Address<'a>) -> BoxFuture<'a, Sent>;

    /// Returns whether it makes calls of its own through the gate, as agents do. Those are counted; the request itself is on no
    /// budget and not cached, is part of a run, and its models are listed by their bare names as well.
    fn makes_calls(&self) -> bool {
        false
    }

    /// Returns its keys that rest.
    fn resting_keys(&self) -> Vec<RestingKey> {
        Vec::new()
    }

    /// Time has passed: what was not used for long goes.
    fn tick(&self) {}
}

/// A key that is not used for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestingKey {
    /// Its place among the provider's keys, from 1.
    pub number: usize,
    /// The model that it rests for; all where absent.
    pub model: Option<String>,
    /// Why it rests.
    pub why: Trouble,
    /// How long it still rests, in milliseconds.
    pub left_ms: u64,
}

/// What a provider has to offer.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// Its models; where the list is empty, any name is passed on.
    pub models: Vec<String>,
    /// Models that are named in lists where any name is passed on.
    pub examples: Vec<String>,
    /// The endpoints that it serves.
    pub endpoints: Vec<Endpoint>,
    /// Those of them whose requests are translated for it.
    pub translated: Vec<Endpoint>,
}

/// What became of a request.
#[derive(Debug)]
pub enum Sent {
    /// The provider answers it.
    Reply(Reply),
    /// It does not.
    Unserved(Spent<ModelRequest>, Fault),
}

/// An answer whose head has come: a success by its status.
pub struct Reply {
    /// The pass, until the first byte has gone to the caller.
    pub spent: Spent<ModelRequest>,
    /// Its headers.
    pub headers: HeaderMap,
    /// The form that it has, where that is not the form in which the caller asks.
    pub format: Option<ProviderForm>,
    /// Hints of the request that the provider was not told of.
    pub left_out: Vec<Cow<'static, str>>,
    /// The key that the provider was shown: nothing that repeats it goes to the caller.
    pub key: Option<Key>,
    /// Its body. Dropped before the end, it ends the provider's work.
    pub body: Box<dyn ReplyBody>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// The body of a reply, as it comes.
pub trait ReplyBody: Send {
    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// Where it ends before its end.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Trouble>>;
}
