//! What was found, without what it was.

use std::sync::Arc;

use super::rule::{Action, Rule};
use crate::labels::Labels;
use crate::reason::Reason;

/// What was found in one message: rules and counts, as many as there are rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    found: Vec<(Arc<str>, u64)>,
    denied_by: Option<Arc<str>>,
    asked_by: Option<Arc<str>>,
    labels: Labels,
    masked: u64,
    /// The rules whose checkers did not answer.
    unchecked: Vec<Arc<str>>,
}

impl Finding {
    /// Notes a match; `is_name` where it stands in a member's name, which cannot be masked.
    pub(super) fn add(&mut self, rule: &Rule, is_name: bool) {
        let known = self.found.iter().position(|(name, _)| *name == rule.name);
        match known.and_then(|at| self.found.get_mut(at)) {
            Some((_, count)) => *count += 1,
            None => self.found.push((Arc::clone(&rule.name), 1)),
        }
        self.labels = self.labels.with(rule.labels);
        match rule.action {
            Action::Mask if is_name => self.deny(rule),
            Action::Mask => self.masked += 1,
            Action::Deny => self.deny(rule),
            Action::Ask => {
                let _ = self.asked_by.get_or_insert_with(|| Arc::clone(&rule.name));
            }
            Action::Label => {}
        }
    }

    /// Notes that the rule's checker could not be asked.
    pub(super) fn add_unchecked(&mut self, rule: &Rule, passes: bool) {
        if !self.unchecked.contains(&rule.name) {
            self.unchecked.push(Arc::clone(&rule.name));
        }
        if !passes {
            self.deny(rule);
        }
    }

    /// Adds what was found in another part of the same message.
    pub fn join(&mut self, other: &Self) {
        for (name, count) in &other.found {
            match self.found.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known += count,
                None => self.found.push((Arc::clone(name), *count)),
            }
        }
        for (own, its) in [
            (&mut self.denied_by, &other.denied_by),
            (&mut self.asked_by, &other.asked_by),
        ] {
            if own.is_none() {
                own.clone_from(its);
            }
        }
        self.labels = self.labels.with(other.labels);
        self.masked += other.masked;
        for name in &other.unchecked {
            if !self.unchecked.contains(name) {
                self.unchecked.push(Arc::clone(name));
            }
        }
    }

    fn deny(&mut self, rule: &Rule) {
        let _ = self.denied_by.get_or_insert_with(|| Arc::clone(&rule.name));
    }

    /// The rule that refuses the message.
    #[must_use]
    pub fn denied_by(&self) -> Option<&str> {
        self.denied_by.as_deref()
    }

    /// The rule for which a person is asked; one that refuses outranks it.
    #[must_use]
    pub fn asked_by(&self) -> Option<&str> {
        self.asked_by.as_deref()
    }

    /// Why the message is refused that it refuses.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match &self.denied_by {
            Some(rule) if self.unchecked.contains(rule) => Reason::Unchecked,
            _ => Reason::Inspected,
        }
    }

    /// The rules whose checkers could not be asked.
    #[must_use]
    pub fn unchecked(&self) -> &[Arc<str>] {
        &self.unchecked
    }

    /// The labels that the session gets.
    #[must_use]
    pub fn labels(&self) -> Labels {
        self.labels
    }

    /// How many matches were masked.
    #[must_use]
    pub fn masked(&self) -> u64 {
        self.masked
    }

    /// What a record says of it: `RULE:COUNT` for each rule, `RULE:unchecked` where its checker did not answer.
    #[must_use]
    pub fn told(&self) -> Vec<Arc<str>> {
        let one = |(name, count): &(Arc<str>, u64)| Arc::from(format!("{name}:{count}"));
        let unchecked = |name: &Arc<str>| Arc::from(format!("{name}:unchecked"));
        let found = self.found.iter().map(one);
        found.chain(self.unchecked.iter().map(unchecked)).collect()
    }
}
