//! What becomes of the tokens of a walk.

use std::borrow::Cow;

use super::tokens::JsonString;
use crate::text;

/// Is told of each string and of the white space between tokens, in their order, and says where
/// things stand; all other tokens stay as they are. `pos` is always a byte of the frame as it came.
pub(crate) trait Sink<'a> {
    /// A member name, unescaped.
    type Name: Clone + Default;
    /// A part of the text.
    type Part: Clone;

    /// Where the token at `pos` stands.
    fn mark(&self, pos: usize) -> usize;
    /// From a mark to `pos`.
    fn part(&self, mark: usize, pos: usize) -> Self::Part;
    /// White space from `from` to before `to`.
    fn blank(&mut self, from: usize, to: usize);
    /// The plain string `inner` between the quotes at `open` and before `end`: the part between the quotes.
    fn plain(&self, inner: &'a str, open: usize, end: usize) -> Self::Part;
    /// The string between the quotes at `open` and before `end`. `None` where an escape is malformed
    /// or a surrogate stands alone, else the part between the quotes.
    fn string(&mut self, string: &JsonString<'a>, open: usize, end: usize) -> Option<Self::Part>;
    /// The name that was just taken as a string, with the part that came of it.
    fn name(
        &mut self,
        string: &JsonString<'a>,
        unescaped: &Cow<'a, str>,
        part: &Self::Part,
    ) -> Self::Name;
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

    fn blank(&mut self, _: usize, _: usize) {}

    fn plain(&self, inner: &'a str, _: usize, _: usize) -> &'a str {
        inner
    }

    fn string(&mut self, string: &JsonString<'a>, _: usize, _: usize) -> Option<&'a str> {
        (!string.is_escaped || text::is_well_escaped(string.inner)).then_some(string.inner)
    }

    fn name(&mut self, _: &JsonString<'a>, unescaped: &Cow<'a, str>, _: &&'a str) -> Cow<'a, str> {
        unescaped.clone()
    }
}
