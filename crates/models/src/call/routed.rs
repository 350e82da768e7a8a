//! A request with the route that serves it, and what the face and the door give a call beside it.

use std::sync::Arc;

use dialects::Endpoint;
use gate::{Origin, Refusal};
use http::HeaderMap;
use tokio::time::Instant;
use toolkit::door::{ApprovalWish, RunBudget};

use super::Unserved;
use crate::catalogue::Route;
use crate::request::{ModelRequest, Unreadable};

/// A request for a model that is served to its caller. Only [`crate::Face::prepare`] makes one, inspected by the rules for
/// the providers of its route.
#[derive(Debug)]
pub struct RoutedRequest {
    pub(crate) request: ModelRequest,
    pub(crate) route: Arc<Route>,
    pub(crate) origin: Origin,
}

impl RoutedRequest {
    /// Returns the name of the model, as the caller wrote it.
    #[must_use]
    pub fn model(&self) -> &str {
        self.request.model()
    }

    /// Returns whether the reply is a stream.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.request.streams()
    }
}

/// A request before it is read.
pub(crate) struct CallSource<'s> {
    pub endpoint: Endpoint,
    pub body: &'s [u8],
    pub headers: &'s HeaderMap,
    pub origin: Origin,
}

/// What a call made in process is bounded by, beside the bounds of the face.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallBounds {
    pub deadline: Option<Instant>,
    pub budget: Option<RunBudget>,
    pub approval: ApprovalWish,
}

/// Why a call has no reply.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The request cannot be read.
    Unreadable(Unreadable),
    /// No model of this name is served to the caller.
    NoModel(String),
    /// The gate refuses it; with a sentence that says more than the reason, if there is one.
    Refused(Box<Refusal>, Option<String>),
    /// No target serves it.
    Unserved(Box<Unserved>),
}

impl From<Unreadable> for CallError {
    fn from(fault: Unreadable) -> Self {
        Self::Unreadable(fault)
    }
}

impl From<Box<Refusal>> for CallError {
    fn from(refusal: Box<Refusal>) -> Self {
        Self::Refused(refusal, None)
    }
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal), None)
    }
}
