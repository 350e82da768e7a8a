//! A peer over HTTP: how it is started, and what it calls the tool.

use crate::error::LabError;
use crate::variant::{Variant, VariantTransport};
use std::ffi::OsString;

/// A peer as the command line names it: `NAME[:PREFIX]=URL -- CMD`.
#[derive(Debug, Clone)]
pub(in super::super) struct WebPeer {
    pub(super) name: String,
    /// Prefix of a tool's name behind it.
    prefix: String,
    line: String,
}

impl std::str::FromStr for WebPeer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("a peer is NAME[:PREFIX]=URL -- CMD, not {text}");
        let (name, line) = text.split_once('=').ok_or_else(wrong)?;
        let (name, prefix) = name.split_once(':').unwrap_or((name, ""));
        if name.is_empty() || line.is_empty() {
            return Err(wrong());
        }
        Variant::parse(name, line, VariantTransport::Http).map_err(|error| error.to_string())?;
        Ok(Self {
            name: name.into(),
            prefix: prefix.into(),
            line: line.into(),
        })
    }
}

impl WebPeer {
    /// How tables call it.
    pub(in super::super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the variant of this peer before a server over stdio (a command) or over HTTP (`--url URL`).
    pub(super) fn before(&self, server: &[OsString], tool: &str) -> Result<Variant, LabError> {
        let arm = Variant::parse(&self.name, &self.line, VariantTransport::Http)?.before(server);
        Ok(match self.prefix.as_str() {
            "" => arm,
            prefix => arm.with_tool(&format!("{prefix}{tool}")),
        })
    }
}
