//! What becomes of the tokens of a walk.

use std::borrow::Cow;

use super::tokens::JsonString;
use crate::text;

/// Takes the tokens of one frame in their order and says where things stand.
pub(crate) trait Sink<'a> {
    /// A member name, unescaped.
    type Name: Clone + Default;
    /// A part of the text.
    type Part: Clone;

    /// Where the next token begins; `pos` is where the walk stands in the frame as it came.
    fn mark(&self, pos: usize) -> usize;
    /// From a mark to the end of the last token.
    fn part(&self, mark: usize, pos: usize) -> Self::Part;
    /// One of `{ } [ ] , :`.
    fn punctuation(&mut self, sign: char);
    /// A number, `true`, `false` or `null`, as spelled.
    fn scalar(&mut self, spelled: &'a str);
    /// A string. `None` where an escape is malformed or a surrogate stands alone, else the part
    /// between the quotes.
    fn string(&mut self, string: &JsonString<'a>) -> Option<Self::Part>;
    /// The name that was just taken as a string, with the part that came of it.
    fn name(&self, unescaped: &Cow<'a, str>, part: &Self::Part) -> Self::Name;
}

/// Slices of the frame as it came; writes nothing.
pub(crate) struct Slices<'a> {
    text: &'a str,
}

impl<'a> Slices<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text }
    }
}

impl<'a> Sink<'a> for Slices<'a> {
    type Name = Cow<'a, str>;
    type Part = &'a str;

    fn mark(&self, pos: usize) -> usize {
        pos
    }

    fn part(&self, mark: usize, pos: usize) -> &'a str {
        self.text.get(mark..pos).unwrap_or_default()
    }

    fn punctuation(&mut self, _: char) {}

    fn scalar(&mut self, _: &'a str) {}

    fn string(&mut self, string: &JsonString<'a>) -> Option<&'a str> {
        (!string.is_escaped || text::is_well_escaped(string.inner)).then_some(string.inner)
    }

    fn name(&self, unescaped: &Cow<'a, str>, _: &&'a str) -> Cow<'a, str> {
        unescaped.clone()
    }
}
