//! Protocol revisions and the rules by which a request chooses one.
//! Source: the MCP specification, revisions 2024-11-05 to 2026-07-28.

use super::fault::RequestFault;
use crate::json;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The revisions with an `initialize` handshake, oldest first.
pub const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision without a handshake.
pub const MODERN_VERSION: &str = "2026-07-28";
/// `_meta` key: the revision a Modern request speaks. Required.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key: capabilities of the client of a stateless request. Required.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key: who the client of a Modern request is.
pub const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key: who the server of a Modern result is.
pub const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The revisions in which one frame may hold several messages.
const BATCH_VERSIONS: [&str; 2] = ["2024-11-05", "2025-03-26"];

/// Which eras a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum RevisionSet {
    /// Legacy and Modern, chosen per request.
    #[default]
    Both,
    /// Only revisions with `initialize`.
    Legacy,
    /// Only 2026-07-28.
    Modern,
}

/// The era one request is served in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RevisionKind {
    Legacy(&'static str),
    Modern,
}

/// The members of `params` that route a request, in any method.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RoutingParams<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    pub(crate) meta: Option<RoutingMeta<'a>>,
    #[serde(borrow, default, rename = "protocolVersion")]
    pub(crate) version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestId")]
    pub(crate) request_id: Option<&'a RawValue>,
}

/// The members of `_meta` that a server acts on.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RoutingMeta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
}

impl<'a> RoutingParams<'a> {
    pub(crate) fn read(raw: Option<&'a RawValue>) -> Result<Self, RequestFault> {
        let Some(raw) = raw else {
            return Ok(Self::default());
        };
        json::object(raw.get().as_bytes())
            .map_err(|error| RequestFault::InvalidParams(format!("params cannot be read: {error}")))
    }

    /// Returns whether `_meta` names a revision, as every Modern request does.
    pub(crate) fn names_version(&self) -> bool {
        self.version_named().is_some()
    }

    /// Returns the revision that `_meta` names.
    pub(crate) fn version_named(&self) -> Option<&str> {
        self.meta.as_ref()?.version.as_deref()
    }

    /// Returns whether `_meta` holds both keys that a Modern request must have.
    pub(crate) fn has_modern_meta(&self) -> bool {
        self.meta
            .as_ref()
            .is_some_and(|meta| meta.version.is_some() && meta.capabilities.is_some())
    }
}

impl RevisionSet {
    fn legacy(self) -> bool {
        self != Self::Modern
    }

    pub(crate) fn modern(self) -> bool {
        self != Self::Legacy
    }

    /// Returns the era of a request other than `initialize`, given the revision `initialize` settled on.
    pub(crate) fn of(
        self,
        method: &str,
        params: &RoutingParams<'_>,
        session: Option<&'static str>,
    ) -> Result<RevisionKind, RequestFault> {
        if self.modern()
            && let Some(version) = params.version_named()
        {
            return modern(version, params);
        }
        match session {
            Some(version) => Ok(RevisionKind::Legacy(version)),
            None if self.legacy() && method == "ping" => Ok(RevisionKind::Legacy("2025-11-25")),
            None if self.modern() => Err(RequestFault::InvalidParams(format!(
                "_meta lacks {META_VERSION}; name a revision, or send initialize first"
            ))),
            None if method == "server/discover" => Err(RequestFault::UnknownMethod(method.into())),
            None => Err(RequestFault::InvalidRequest(
                "the session is not initialized; send initialize first".into(),
            )),
        }
    }

    /// Returns the Legacy revision for a client that asked for `requested`: the same if spoken, else the newest.
    pub(crate) fn negotiate(self, requested: &str) -> Result<&'static str, RequestFault> {
        if !self.legacy() {
            return Err(RequestFault::UnsupportedVersion {
                requested: requested.into(),
            });
        }
        Ok(LEGACY_VERSIONS
            .into_iter()
            .find(|version| *version == requested)
            .unwrap_or("2025-11-25"))
    }
}

fn modern(version: &str, params: &RoutingParams<'_>) -> Result<RevisionKind, RequestFault> {
    if version != MODERN_VERSION {
        return Err(RequestFault::UnsupportedVersion {
            requested: version.into(),
        });
    }
    let capabilities = params.meta.as_ref().and_then(|meta| meta.capabilities);
    if capabilities.is_some_and(|value| value.get().starts_with('{')) {
        return Ok(RevisionKind::Modern);
    }
    Err(RequestFault::InvalidParams(format!(
        "_meta lacks {META_CAPABILITIES}, an object; send {{}} if there are none"
    )))
}

/// Returns whether a session of this revision may send several messages in one frame.
pub(crate) fn batches(session: Option<&'static str>) -> bool {
    session.is_some_and(|version| BATCH_VERSIONS.contains(&version))
}
