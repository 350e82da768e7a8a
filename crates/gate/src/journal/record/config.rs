//! Changes of configuration and policy.

use super::event::{Component, ConfigEvent};
use super::members::{Members, key};
use crate::effect::Effect;
use crate::label::Label;

/// A record about configuration or policy.
#[derive(Debug, Clone, Copy)]
pub struct Config<'a> {
    /// What happened.
    pub event: ConfigEvent,
    /// What it happened to: the configuration or the policy.
    pub component: Option<Component>,
    /// The version now.
    pub version: Option<&'a str>,
    /// The version before.
    pub previous_version: Option<&'a str>,
    /// What asked for the change.
    pub change_type: Option<Label>,
    /// The file.
    pub path: Option<&'a str>,
    /// Where the change came from.
    pub source: Option<&'a str>,
    /// Checksum of what is now in force.
    pub checksum: Option<&'a str>,
    /// The rule concerned.
    pub rule_id: Option<&'a str>,
    /// That rule's effect.
    pub effect: Option<Effect>,
    /// A sentence for people.
    pub message: Option<&'a str>,
}

impl Config<'_> {
    /// A record that says no more than what happened.
    #[must_use]
    pub fn of(event: ConfigEvent) -> Self {
        Self {
            event,
            component: None,
            version: None,
            previous_version: None,
            change_type: None,
            path: None,
            source: None,
            checksum: None,
            rule_id: None,
            effect: None,
            message: None,
        }
    }

    pub(super) fn write(&self, members: &mut Members<'_>) {
        members.label(key!("event"), self.event.label());
        members.maybe_label(key!("component"), self.component.map(Component::label));
        members.maybe(key!("version"), self.version);
        members.maybe(key!("previous_version"), self.previous_version);
        members.maybe_label(key!("change_type"), self.change_type.map(Label::as_str));
        members.maybe(key!("path"), self.path);
        members.maybe(key!("source"), self.source);
        members.maybe(key!("checksum"), self.checksum);
        members.maybe(key!("rule_id"), self.rule_id);
        members.maybe_label(key!("effect"), self.effect.map(Effect::label));
        members.maybe(key!("message"), self.message);
    }
}
