//! The inspection of what is sent and answered: secrets by their looks, patterns of the user, and what is
//! done where one is found. The same for every face; off unless rules are given.
//!
//! It reads JSON text as the gate's side wrote it and gives back either nothing or another text. What it
//! finds is never kept: a [`Finding`] names rules and counts, no contents.

mod escapes;
mod finding;
mod inspected;
mod json;
mod outside;
mod pieces;
mod rule;
pub mod secrets;

use std::borrow::Cow;

pub use finding::Finding;
pub use inspected::Inspected;
pub use json::InspectedText;
pub use outside::{About, Checked, Checker, Checking, Outside, Question, TEXTS_MAX};
pub use pieces::{HELD_BYTES, Pieces};
pub use rule::{
    Action, Finds, PATTERN_BYTES_MAX, PATTERNS_MAX, RULES_MAX, Rule, RuleFault, Way, pattern,
};

/// A compiled pattern.
pub use regex::Regex;

use rule::Hit;

/// Stands before a rule's name where it decides about a call: policies have names of their own.
pub const RULE_PREFIX: &str = "inspect:";

/// The rules in force. Without any it costs one look at an empty list.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    rules: Vec<Rule>,
}

impl Inspection {
    /// These rules. Where several find the same place, all are told of it and all act.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Whether there is nothing to look for.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether any rule looks at what goes this way to or from a server.
    #[must_use]
    pub fn looks_at(&self, way: Way, server: &str) -> bool {
        self.rules.iter().any(|rule| rule.looks_at(way, server))
    }

    /// The rules that look at what goes this way to or from any of these servers, whichever it is.
    #[must_use]
    pub fn for_any(&self, way: Way, servers: &[&str]) -> Self {
        let looks = |rule: &&Rule| servers.iter().any(|server| rule.looks_at(way, server));
        let ours = self.rules.iter().filter(looks).map(|rule| Rule {
            servers: Vec::new(),
            ..rule.clone()
        });
        Self::new(ours.collect())
    }

    /// Looks at a JSON value. Members of the value itself that are called as one of `apart` are left alone.
    ///
    /// A match in a string or number is masked where its rule says so. One in a member's name cannot be:
    /// it would be another member, so what was to be masked is denied.
    #[must_use]
    pub fn value<'t>(
        &self,
        way: Way,
        server: &str,
        raw: &'t str,
        apart: &[&str],
    ) -> (Cow<'t, str>, Option<Finding>) {
        if self.is_off() {
            return (Cow::Borrowed(raw), None);
        }
        json::inspect(self, (way, server), raw, apart)
    }

    /// Looks at a text that is no JSON, as a whole.
    #[must_use]
    pub fn text<'t>(
        &self,
        way: Way,
        server: &str,
        text: &'t str,
    ) -> (Cow<'t, str>, Option<Finding>) {
        json::inspect_text(self, (way, server), text)
    }

    /// What is left of a text for a record: each match is masked, whatever its rule does about it.
    #[must_use]
    pub fn left_of<'t>(&self, way: Way, server: &str, text: &'t str) -> Cow<'t, str> {
        json::left_of(self, (way, server), text)
    }

    /// What the rules find in one text. `key` is the name of the member that it is the value of.
    fn hits(&self, (way, server): (Way, &str), key: Option<&str>, text: &str) -> Vec<Hit> {
        let mut hits = Vec::new();
        let find = |text: &str, found: &mut Vec<Hit>| {
            for (number, rule) in self.rules.iter().enumerate() {
                if rule.looks_at(way, server) {
                    rule.find(number, key, text, found);
                }
            }
        };
        find(text, &mut hits);
        escapes::undone(text, &mut hits, find);
        hits.sort_by_key(|hit| (hit.at.start, hit.at.end));
        hits
    }

    fn rule(&self, hit: &Hit) -> Option<&Rule> {
        self.rules.get(hit.rule)
    }
}

#[cfg(test)]
mod tests;
