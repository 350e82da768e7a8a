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
            left.leave_out_secrets();
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

    /// Returns a further text of a call, such as the client's id of the request, as it may be written down.
    pub(super) fn hidden_text<'i>(&self, facts: &Facts, text: &'i str) -> Cow<'i, str> {
        let (way, server) = (way_of(facts), &facts.backend_id);
        if !self.inspect.looks_at(way, server) {
            return Cow::Borrowed(text);
        }
        let left = self.inspect.left_of(way, server, text);
        let finding = facts.inspected.as_ref();
        match finding.and_then(|finding| finding.without_left(&left)) {
            Some(without) => Cow::Owned(without),
            None => left,
        }
    }
}

/// Whether no address in them has a secret.
fn has_no_credentials(facts: &Facts) -> bool {
    let mut texts = facts.uri.known().map(String::as_str).into_iter();
    let is_free = |text: &str| credentials::without(text).is_none();
    let mut paths = facts.paths.known().into_iter().flatten();
    texts.all(is_free)
        && facts.places().all(is_free)
        && paths.all(|path| secrets_of(&path.text).is_empty())
}

/// Returns the secrets in an address without a scheme: as it is written, and as it is decoded.
fn secrets_of(text: &str) -> Vec<String> {
    if !text.contains('@') && !text.contains("%40") {
        return Vec::new();
    }
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    let found = [text, &decoded]
        .into_iter()
        .filter_map(credentials::secret_of);
    found.map(str::to_owned).collect()
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

    /// Leaves out the secrets of addresses that are written like paths.
    fn leave_out_secrets(&mut self) {
        let Fact::Known(paths) = &mut self.paths else {
            return;
        };
        for path in paths {
            for secret in secrets_of(&path.text) {
                let texts = std::iter::once(&mut path.text).chain(&mut path.meaning.places);
                for text in texts {
                    if let Some(left) = credentials::without_secret(text, &secret) {
                        *text = left;
                    }
                }
            }
        }
    }
}

fn known(fact: &mut Fact<String>) -> Option<&mut String> {
    match fact {
        Fact::Known(text) => Some(text),
        Fact::Unknown | Fact::Absent => None,
    }
}
