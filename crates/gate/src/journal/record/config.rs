//! Changes of configuration and policy.

use serde::Serialize;

/// A record about configuration or policy: `created`, `loaded`, `updated`, `manual_change_detected`, `validation_failed`.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Config<'a> {
    /// What happened.
    pub event: &'a str,
    /// What it happened to: `configuration` or `policy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<&'a str>,
    /// The version now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<&'a str>,
    /// The version before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_version: Option<&'a str>,
    /// What sort of change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_type: Option<&'a str>,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'a str>,
    /// Where the change came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'a str>,
    /// Checksum of what is now in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<&'a str>,
    /// The rule concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<&'a str>,
    /// That rule's effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<&'a str>,
    /// A sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
}
