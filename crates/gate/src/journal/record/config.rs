//! Changes of configuration and policy.

use super::members::Members;

/// A record about configuration or policy: `created`, `loaded`, `updated`, `manual_change_detected`, `validation_failed`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Config<'a> {
    /// What happened.
    pub event: &'a str,
    /// What it happened to: `configuration` or `policy`.
    pub component: Option<&'a str>,
    /// The version now.
    pub version: Option<&'a str>,
    /// The version before.
    pub previous_version: Option<&'a str>,
    /// What sort of change.
    pub change_type: Option<&'a str>,
    /// The file.
    pub path: Option<&'a str>,
    /// Where the change came from.
    pub source: Option<&'a str>,
    /// Checksum of what is now in force.
    pub checksum: Option<&'a str>,
    /// The rule concerned.
    pub rule_id: Option<&'a str>,
    /// That rule's effect.
    pub effect: Option<&'a str>,
    /// A sentence for people.
    pub message: Option<&'a str>,
}

impl Config<'_> {
    pub(super) fn write(&self, members: &mut Members<'_>) {
        members.text("event", self.event);
        members.maybe("component", self.component);
        members.maybe("version", self.version);
        members.maybe("previous_version", self.previous_version);
        members.maybe("change_type", self.change_type);
        members.maybe("path", self.path);
        members.maybe("source", self.source);
        members.maybe("checksum", self.checksum);
        members.maybe("rule_id", self.rule_id);
        members.maybe("effect", self.effect);
        members.maybe("message", self.message);
    }
}
