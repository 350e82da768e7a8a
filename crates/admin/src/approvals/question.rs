//! Data that instances send about waiting calls. Members that a later version adds are kept.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A call that waits, as its instance describes it: the data of `gate::approval::Question` as any version sends it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ApprovalQuestion {
    /// Id, of eight letters and digits.
    pub id: String,
    /// `to_server`, or `to_client` if a server asks its client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    /// Method of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_method: Option<String>,
    /// Tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// URI of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// First path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// First path that is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    /// First path that is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest_path: Option<String>,
    /// How many further places the paths may lead to.
    #[serde(default)]
    pub more_places: u64,
    /// Arguments on one line, cut if they are long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Change of a file that the call would make, line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<String>,
    /// Whether part of the call is too long to be shown.
    #[serde(default)]
    pub is_cut: bool,
    /// Side effects that the tool is known to have.
    #[serde(default)]
    pub side_effects: Vec<String>,
    /// Server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_id: Option<String>,
    /// Caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<String>,
    /// Client program, as it names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Rule that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Description of that rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Calls that gave the session its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labelled_by: Vec<String>,
    /// Whether a yes can be remembered.
    #[serde(default)]
    pub can_cache: bool,
    /// For how long, in seconds.
    #[serde(default)]
    pub cache_ttl_seconds: u64,
    /// How long the call still waits, in milliseconds.
    #[serde(default)]
    pub remaining_ms: u64,
    /// Ids, times and channels, and members of a later version.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// A call that no longer waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct EndedQuestion {
    /// Id of the call.
    pub id: String,
    /// How it ended: an answer, a timeout, or a client that withdrew it.
    pub outcome: String,
}

/// Rules or settings that could not be reloaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ReloadFailure {
    /// When, UTC.
    #[serde(default)]
    pub at: String,
    /// Why.
    #[serde(default)]
    pub message: String,
    /// Further members.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// An event of an instance that concerns a person who approves calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum ApprovalEvent {
    /// A call waits.
    Asked(Box<ApprovalQuestion>),
    /// A call no longer waits.
    Ended(EndedQuestion),
    /// A reload failed; the earlier rules stay in force.
    ReloadFailed(ReloadFailure),
    /// An event of a later version.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

/// An event, and the instance that it is from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct InstanceEvent {
    /// Control socket of the instance.
    pub socket: PathBuf,
    /// The event.
    #[serde(flatten)]
    pub event: ApprovalEvent,
}
