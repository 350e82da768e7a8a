//! What a server has to read beside its tools: resources, and templates of their URIs.

use serde_json::{Value, json};

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
