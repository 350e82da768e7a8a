//! A request about resources, and its answer.

use std::sync::Arc;

use gate::journal::OpId;

use super::call::SessionRef;
use super::reply::Failure;
use super::resource::{Contents, Resource};

/// What a request about resources asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceAsked {
    /// The resources of the caller: the first page, or the one that this cursor leads to.
    List {
        /// Given out with the page before.
        cursor: Option<String>,
    },
    /// The contents of one.
    Read {
        /// Its URI, as the client wrote it.
        uri: String,
    },
}

/// The answer to such a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceAnswer {
    /// A page of the list.
    Page {
        /// Resources of the caller.
        resources: Vec<Resource>,
        /// Where the next page begins, where there is one.
        next: Option<String>,
    },
    /// Contents of one.
    Contents(Contents),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceFault {
    /// The caller has no such resource.
    Missing(String),
    /// The request is wrong: a URI of another form, a cursor that was not given out, more than is sent at a time.
    Unfit(String),
    /// It could not be read.
    Failed(Failure),
}

/// A request about resources that the gate has let through. Only this crate makes one, out of a spent pass.
#[derive(Debug)]
pub struct ResourceCall {
    pub(crate) asked: ResourceAsked,
    pub(crate) session: SessionRef,
    pub(crate) op: OpId,
}

impl ResourceCall {
    /// What it asks for.
    #[must_use]
    pub fn asked(&self) -> &ResourceAsked {
        &self.asked
    }

    /// Who asks, by the name in rules and records.
    #[must_use]
    pub fn caller(&self) -> &Arc<str> {
        &self.session.caller
    }

    /// Whether the one who asks belongs to this group.
    #[must_use]
    pub fn is_of(&self, group: &str) -> bool {
        self.session.groups.iter().any(|own| **own == *group)
    }

    /// The request's name in the journal.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.op
    }
}
