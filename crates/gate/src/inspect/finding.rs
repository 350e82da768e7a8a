//! What was found, without what it was: no record, log or answer tells that.

use std::fmt;
use std::sync::Arc;

use super::json::mask;
use super::outside::TEXTS_MAX;
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
    /// What checkers found that stays in the message as it came.
    left: Left,
}

/// Texts that checkers have named, each with its rule; a rule that named none means the message as a whole. Patterns are
/// looked for again where something is written down, a checker is not asked again.
#[derive(Clone, Default, PartialEq, Eq)]
struct Left(Vec<(Arc<str>, Option<Arc<str>>)>);

impl fmt::Debug for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Left({})", self.0.len())
    }
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

    /// Notes what the rule's checker has named in a message that is refused, or that a person is asked about.
    pub(super) fn add_left(&mut self, rule: &Rule, texts: Vec<String>) {
        self.add(rule, true);
        if texts.is_empty() || texts.len() > TEXTS_MAX {
            self.left.0.push((Arc::clone(&rule.name), None));
            return;
        }
        let texts = texts.into_iter().filter(|text| !text.is_empty());
        let named = texts.map(|text| (Arc::clone(&rule.name), Some(text.into())));
        self.left.0.extend(named);
    }

    /// What is left of a text of the message for a record; none where all of it may stand there.
    pub(crate) fn without_left(&self, text: &str) -> Option<String> {
        let named = self.left.0.iter();
        let named = named.filter_map(|(rule, sought)| Some((rule, sought.as_deref()?)));
        named.fold(None, |left: Option<String>, (rule, sought)| {
            let now = left.as_deref().unwrap_or(text);
            match now.contains(sought) {
                true => Some(now.replace(sought, &mask(rule))),
                false => left,
            }
        })
    }

    /// What stands in the place of every text of the message in a record, where a checker means the message as a whole.
    pub(crate) fn in_place_of_all(&self) -> Option<String> {
        let mut whole = self.left.0.iter().filter(|(_, text)| text.is_none());
        whole.next().map(|(rule, _)| mask(rule))
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
        for left in &other.left.0 {
            if !self.left.0.contains(left) {
                self.left.0.push(left.clone());
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
