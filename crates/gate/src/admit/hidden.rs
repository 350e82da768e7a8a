//! What the inspection finds in a call's facts is in no record of it: a rule that refuses or asks leaves the call as it
//! came, and a path is recorded as it was decoded.

use std::borrow::Cow;

use crate::facts::{Direction, Fact, Facts};
use crate::inspect::Way;

use super::World;

impl World {
    /// Facts as they may be written down and told to others.
    pub(super) fn hidden<'f>(&self, facts: &'f Facts) -> Cow<'f, Facts> {
        let way = match facts.direction {
            Direction::ToServer => Way::Request,
            Direction::ToClient => Way::Result,
        };
        if !self.inspect.looks_at(way, &facts.backend_id) {
            return Cow::Borrowed(facts);
        }
        let mut left = facts.clone();
        left.rewrite(
            |text| match self.inspect.left_of(way, &facts.backend_id, text) {
                Cow::Borrowed(_) => None,
                Cow::Owned(left) => Some(left),
            },
        );
        Cow::Owned(left)
    }
}

impl Facts {
    /// Puts others in the place of texts that somebody else has chosen, where `change` gives one.
    fn rewrite(&mut self, change: impl Fn(&str) -> Option<String>) {
        let put = |text: &mut String| {
            if let Some(other) = change(text) {
                *text = other;
            }
        };
        put(&mut self.method);
        for fact in [&mut self.tool_name, &mut self.uri] {
            if let Fact::Known(text) = fact {
                put(text);
            }
        }
        if let Fact::Known(paths) = &mut self.paths {
            for path in paths {
                put(&mut path.text);
                path.meaning.places.iter_mut().for_each(put);
            }
        }
        self.rewrite_beside(&change);
    }
}
