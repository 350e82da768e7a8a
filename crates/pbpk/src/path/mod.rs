//! Paths as people write them: whole paths, patterns with `*` and `**`, and suggestions.
//!
//! `*` matches any characters inside one element, `**` as an element for any number of elements. The simulation's name
//! may be first or be left out.

mod assignment;
mod display;
mod nearest;
mod pattern;

pub use assignment::{AssignmentEffect, assign, parse, to_base};
pub use display::{DisplayUnit, display, in_base};
pub use nearest::nearest;
pub use pattern::PathPattern;

use crate::error::SetError;
use crate::model::{Model, Quantity};

/// How many near paths an error offers.
const NEAREST_SHOWN: usize = 3;

/// Positions of the quantities that a path or pattern names, in file order.
///
/// # Errors
/// [`SetError::UnknownPath`] with the nearest paths if there is none.
pub fn find(model: &Model, text: &str) -> Result<Vec<usize>, SetError> {
    find_among(model, text, |_| true)
}

/// As [`find`], among the quantities that `wanted` accepts.
///
/// # Errors
/// [`SetError::UnknownPath`] with the nearest paths if there is none.
pub fn find_among(
    model: &Model,
    text: &str,
    wanted: impl Fn(&Quantity) -> bool,
) -> Result<Vec<usize>, SetError> {
    let text = text.trim();
    let candidates = || {
        model
            .quantities
            .iter()
            .enumerate()
            .filter(|(_, q)| wanted(q))
    };
    let pattern = PathPattern::new(text, model.delimiter);
    let prefix = format!("{}{}", model.name, model.delimiter);
    let is_named = |path: &str| {
        pattern.matches(path)
            || path
                .strip_prefix(&prefix)
                .is_some_and(|rest| pattern.matches(rest))
            || text
                .strip_prefix(&prefix)
                .is_some_and(|rest| PathPattern::new(rest, model.delimiter).matches(path))
    };
    // An exact path wins over what it would mean as a pattern: names may hold stars.
    if let Some((exact, _)) = candidates().find(|(_, q)| q.path == text) {
        return Ok(vec![exact]);
    }
    let found: Vec<usize> = candidates()
        .filter(|(_, q)| is_named(&q.path))
        .map(|(i, _)| i)
        .collect();
    if found.is_empty() {
        let nearest = nearest(
            text,
            candidates().map(|(_, q)| q.path.as_str()),
            NEAREST_SHOWN,
        );
        return Err(SetError::UnknownPath {
            path: text.to_owned(),
            nearest,
        });
    }
    Ok(found)
}

/// Returns the one quantity that a path names.
///
/// # Errors
/// [`SetError::UnknownPath`] or [`SetError::Ambiguous`].
pub fn find_one(model: &Model, text: &str) -> Result<usize, SetError> {
    match find(model, text)?.as_slice() {
        [one] => Ok(*one),
        several => Err(SetError::Ambiguous {
            path: text.to_owned(),
            count: several.len(),
        }),
    }
}
