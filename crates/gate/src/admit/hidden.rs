//! What the inspection finds in a call's facts is in no record of it: a rule that refuses or asks leaves the call as it
//! came, and a path is recorded as it was decoded. Nor are the passwords and tokens of addresses, whatever the rules look for.

use std::borrow::Cow;

use crate::facts::{Direction, Fact, Facts};
use crate::inspect::Way;

use super::{World, credentials};

impl World {
    /// Facts as they may be written down and told to others.
    pub(super) fn hidden<'f>(&self, facts: &'f Facts) -> Cow<'f, Facts> {
        let way = way_of(facts);
        let is_looked_at = self.inspect.looks_at(way, &facts.backend_id);
        let is_free = has_no_credentials(facts);
        if is_free && !is_looked_at {
            return Cow::Borrowed(facts);
        }
        let mut left = facts.clone();
        if !is_free {
            left.rewrite_places(credentials::without);
        }
        if !is_looked_at {
            return Cow::Owned(left);
        }
        left.rewrite(
            |text| match self.inspect.left_of(way, &facts.backend_id, text) {
                Cow::Borrowed(_) => None,
                Cow::Owned(left) => Some(left),
            },
        );
        if let Some(finding) = &facts.inspected {
            left.rewrite(|text| finding.without_left(text));
            if let Some(mask) = finding.in_place_of_all() {
                left.rewrite_places(|_| Some(mask.clone()));
            }
        }
        Cow::Owned(left)
    }

    /// The client's own name of a request, as it may be written down.
    pub(super) fn hidden_id<'i>(&self, facts: &Facts, id: &'i str) -> Cow<'i, str> {
        let (way, server) = (way_of(facts), &facts.backend_id);
        match self.inspect.looks_at(way, server) {
            true => self.inspect.left_of(way, server, id),
            false => Cow::Borrowed(id),
        }
    }
}

/// Whether no address in them has a secret.
fn has_no_credentials(facts: &Facts) -> bool {
    let mut texts = facts.uri.known().map(String::as_str).into_iter();
    let is_free = |text: &str| credentials::without(text).is_none();
    texts.all(is_free) && facts.places().all(is_free)
}

/// Which way a call goes.
fn way_of(facts: &Facts) -> Way {
    match facts.direction {
        Direction::ToServer => Way::Request,
        Direction::ToClient => Way::Result,
    }
}

impl Facts {
    /// Puts others in the place of texts that somebody else has chosen, where `change` gives one.
    fn rewrite(&mut self, change: impl Fn(&str) -> Option<String>) {
        let names = [Some(&mut self.method), known(&mut self.tool_name)];
        for text in names.into_iter().flatten() {
            if let Some(other) = change(text) {
                *text = other;
            }
        }
        self.rewrite_places(change);
    }

    /// The same of all but the names of method and tool.
    fn rewrite_places(&mut self, change: impl Fn(&str) -> Option<String>) {
        let put = |text: &mut String| {
            if let Some(other) = change(text) {
                *text = other;
            }
        };
        known(&mut self.uri).into_iter().for_each(put);
        if let Fact::Known(paths) = &mut self.paths {
            for path in paths {
                put(&mut path.text);
                path.meaning.places.iter_mut().for_each(put);
            }
        }
        self.rewrite_beside(&change);
    }
}

fn known(fact: &mut Fact<String>) -> Option<&mut String> {
    match fact {
        Fact::Known(text) => Some(text),
        Fact::Unknown | Fact::Absent => None,
    }
}
