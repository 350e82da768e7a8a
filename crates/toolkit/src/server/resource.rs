//! What a server has to read beside its tools: resources, and templates of their URIs.

use std::sync::Arc;

use gate::journal::OpId;
use serde_json::{Value, json};

use super::call::SessionRef;
use super::reply::Failure;

/// A kind of resource: what its URIs look like (RFC 6570), and what is behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    /// The URI with its variables in braces.
    pub uri: &'static str,
    /// The name for programs.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// What it holds.
    pub about: &'static str,
    /// The media type.
    pub media_type: &'static str,
}

/// A resource, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// The name for programs.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// The media type.
    pub media_type: &'static str,
}

/// What is read of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The media type.
    pub media_type: &'static str,
    /// The text, or bytes in base64.
    pub body: Body,
}

/// Text, or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A text.
    Text(String),
    /// Bytes in base64.
    Base64(String),
}

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

    /// The request's name in the journal.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.op
    }
}

impl Template {
    /// As MCP lists it; titles came with revision 2025-06-18.
    pub(crate) fn listed(&self, titled: bool) -> Value {
        let mut listed = json!({
            "uriTemplate": self.uri, "name": self.name, "description": self.about, "mimeType": self.media_type,
        });
        entitle(&mut listed, self.title, titled);
        listed
    }
}

impl Resource {
    /// As MCP lists it; titles came with revision 2025-06-18.
    pub(crate) fn listed(&self, titled: bool) -> Value {
        let mut listed = json!({"uri": self.uri, "name": self.name, "mimeType": self.media_type});
        entitle(&mut listed, &self.title, titled);
        listed
    }
}

fn entitle(listed: &mut Value, title: &str, titled: bool) {
    if let (true, Some(members)) = (titled, listed.as_object_mut()) {
        members.insert("title".to_owned(), title.into());
    }
}

impl Contents {
    /// As MCP sends them.
    pub(crate) fn json(&self, uri: &str) -> Value {
        let (name, body) = match &self.body {
            Body::Text(text) => ("text", text),
            Body::Base64(bytes) => ("blob", bytes),
        };
        json!({"uri": uri, "mimeType": self.media_type, name: body})
    }
}
