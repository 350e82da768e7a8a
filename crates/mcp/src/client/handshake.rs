//! How each era begins.

use super::MODERN_VERSION;
use super::{Client, ClientError, Era, Reply};
use serde_json::{Value, json};
use wire::revision::META_PROTOCOL_VERSION;

/// The `_meta` member with the capabilities of the client of a stateless request.
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` member that names the client of a stateless request.
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

impl Client {
    /// Begins in an era: `initialize` and `notifications/initialized`, or `server/discover`. Every
    /// capability a client can have is declared. Returns the server's answer.
    ///
    /// # Errors
    /// When the server refuses, settles on another revision, or the exchange fails.
    pub fn handshake(&mut self, era: Era) -> Result<Reply, ClientError> {
        match era {
            Era::Legacy(version) => self.initialize(version),
            Era::Modern => self.discover(),
        }
    }

    /// The Legacy handshake, which must settle on this very revision.
    ///
    /// # Errors
    /// As [`Client::handshake`].
    pub fn initialize(&mut self, version: &'static str) -> Result<Reply, ClientError> {
        self.era = Some(Era::Legacy(version));
        let reply = self.request("initialize", initialize_params(version))?;
        settled_on(&reply, Era::Legacy(version))?;
        self.notify("notifications/initialized", &json!({}))?;
        Ok(reply)
    }

    /// The Modern probe, which must list 2026-07-28.
    ///
    /// # Errors
    /// As [`Client::handshake`].
    pub fn discover(&mut self) -> Result<Reply, ClientError> {
        self.era = Some(Era::Modern);
        let reply = self.request("server/discover", json!({}))?;
        settled_on(&reply, Era::Modern)?;
        Ok(reply)
    }
}

/// What `initialize` says of this client.
pub(super) fn initialize_params(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": capabilities(), "clientInfo": client_info()})
}

/// Whether the server's answer to a handshake is a yes to this very revision.
pub(super) fn settled_on(reply: &Reply, era: Era) -> Result<(), ClientError> {
    let result = reply.result().ok();
    let settled = match era {
        Era::Legacy(version) => result
            .and_then(|result| result.get("protocolVersion"))
            .is_some_and(|settled| settled == version),
        Era::Modern => result
            .and_then(|result| result.get("supportedVersions"))
            .and_then(Value::as_array)
            .is_some_and(|versions| versions.contains(&MODERN_VERSION.into())),
    };
    match settled {
        true => Ok(()),
        false => Err(ClientError::Handshake {
            line: reply.line().to_owned(),
        }),
    }
}

/// Adds to `params` what the era requires of a request; what is there stays.
pub(super) fn dress(era: Option<Era>, mut params: Value) -> Value {
    if era == Some(Era::Modern)
        && let Some(members) = params.as_object_mut()
        && let Some(meta) = members
            .entry("_meta")
            .or_insert_with(|| json!({}))
            .as_object_mut()
    {
        meta.entry(META_PROTOCOL_VERSION)
            .or_insert_with(|| MODERN_VERSION.into());
        meta.entry(META_CAPABILITIES).or_insert_with(capabilities);
        meta.entry(META_CLIENT).or_insert_with(client_info);
    }
    params
}

fn capabilities() -> Value {
    json!({"roots": {}, "sampling": {}, "elicitation": {}})
}

fn client_info() -> Value {
    json!({"name": "raw-client", "version": env!("CARGO_PKG_VERSION")})
}
