//! Members of which the protocol knows some: who else could be read as one of them.

use std::borrow::Cow;

use crate::error::WireError;
use crate::fold;
use crate::scan::{Bounds, Member, scan_reply};

/// The members that the protocol knows of an object, as a table for one method and side of it.
///
/// An unknown member is kept, and refused where it is like a known one (see [`fold`]): a reader
/// that folds names would take it for that one.
#[derive(Debug)]
pub struct Shape {
    /// Known names.
    pub known: &'static [&'static str],
    /// Shapes of the values of some known members: of the object itself, or of each object where
    /// the value is an array. A shape may not contain itself.
    pub below: &'static [(&'static str, &'static Shape)],
}

impl Shape {
    /// Knows these names and nothing of their values.
    #[must_use]
    pub const fn flat(known: &'static [&'static str]) -> Self {
        Self { known, below: &[] }
    }

    /// Refuses a raw value in which a member is like a known one, or stands twice. What is neither
    /// an object nor an array of objects has no members.
    ///
    /// # Errors
    /// [`crate::WireErrorKind::AmbiguousMember`]; what [`scan_reply`] refuses.
    pub fn check(&self, value: &str) -> Result<(), WireError> {
        self.check_value(0, value)
    }

    /// Refuses one member of an object of this shape; `at` is for the error.
    pub(crate) fn check_member(&self, at: usize, name: &str, value: &str) -> Result<(), WireError> {
        if let Some(known) = fold::mistaken_for(name, self.known) {
            return Err(WireError::ambiguous_member(at, name, known));
        }
        match self.below.iter().find(|(below, _)| *below == name) {
            Some((_, shape)) => shape.check_value(at, value),
            None => Ok(()),
        }
    }

    fn check_value(&self, at: usize, value: &str) -> Result<(), WireError> {
        let within = |error| WireError { at, ..error };
        let scan = scan_reply(value.as_bytes(), &Bounds::default()).map_err(within)?;
        for (name, value) in &scan.members {
            self.check_member(at, name, value)?;
        }
        let elements = scan.batch.unwrap_or_default();
        let objects = elements.iter().filter(|element| element.starts_with('{'));
        objects
            .into_iter()
            .try_for_each(|element| self.check_value(at, element))
    }
}

/// What an object has under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<'a> {
    /// Nothing, and nothing like it.
    Absent,
    /// The member of this very name: its raw value.
    Exactly(&'a str),
    /// A member that can be read as this one: its name and its raw value. It counts for more than
    /// the member of this very name, which a reader may overwrite with it.
    Like(Cow<'a, str>, &'a str),
}

/// Looks a member up as a reader would that folds names.
#[must_use]
pub fn find<'a>(members: &[Member<'a>], name: &str) -> Found<'a> {
    let mut found = Found::Absent;
    for (key, value) in members {
        if key == name {
            found = Found::Exactly(value);
        } else if fold::same(key, name) {
            return Found::Like(key.clone(), value);
        }
    }
    found
}

#[cfg(test)]
mod tests;
