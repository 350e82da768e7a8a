//! The sink that writes tokens anew.

use std::borrow::Cow;
use std::ops::Range;

use crate::scan::{JsonString, Sink};
use crate::text;

/// A part of the written text, in bytes.
pub type Part = Range<usize>;

/// A member name in the written text.
#[derive(Debug, Clone, Default)]
pub struct Name {
    at: Part,
    /// Which of the [`Written::unescaped`] it is, where it is written with escapes.
    unescaped: Option<usize>,
}

impl Name {
    /// Where it stands, without its quotes.
    pub(super) fn at(&self) -> Part {
        self.at.clone()
    }

    /// Which of the [`Written::unescaped`] it is, where it is not what stands there.
    pub(super) fn unescaped(&self) -> Option<usize> {
        self.unescaped
    }

    /// The same name, `by` bytes further to the front.
    pub(super) fn shift(&mut self, by: usize) {
        shift(&mut self.at, by);
    }
}

/// Moves a part `by` bytes to the front.
pub(super) fn shift(part: &mut Part, by: usize) {
    *part = part.start.saturating_sub(by)..part.end.saturating_sub(by);
}

/// What was written.
pub(super) struct Written {
    pub(super) text: String,
    /// Names that are written with escapes, as they are without.
    pub(super) unescaped: Vec<Box<str>>,
}

/// Copies the frame in as few runs as it can: up to white space, which it leaves out, and up to a
/// string that is not in its one spelling, which it writes anew.
pub(super) struct Writer<'a> {
    frame: &'a str,
    out: String,
    unescaped: Vec<Box<str>>,
    /// Where the run begins that is not copied yet.
    run: usize,
}

impl<'a> Writer<'a> {
    /// A writer for the canonical form of `frame`, which is seldom longer.
    pub(super) fn of(frame: &'a str) -> Self {
        Self {
            frame,
            out: String::with_capacity(frame.len()),
            unescaped: Vec::new(),
            run: 0,
        }
    }

    /// What was written, when the walk is over.
    pub(super) fn into_written(mut self) -> Written {
        self.flush(self.frame.len(), self.frame.len());
        Written {
            text: self.out,
            unescaped: self.unescaped,
        }
    }

    /// Copies the run up to `end` and begins the next at `next`.
    fn flush(&mut self, end: usize, next: usize) {
        self.out
            .push_str(self.frame.get(self.run..end).unwrap_or_default());
        self.run = next;
    }
}

impl<'a> Sink<'a> for Writer<'a> {
    type Name = Name;
    type Part = Part;

    fn mark(&self, pos: usize) -> usize {
        self.out.len() + pos.saturating_sub(self.run)
    }

    fn part(&self, mark: usize, pos: usize) -> Part {
        mark..self.mark(pos)
    }

    fn blank(&mut self, from: usize, to: usize) {
        self.flush(from, to);
    }

    fn plain(&self, _: &'a str, open: usize, end: usize) -> Part {
        self.mark(open + 1)..self.mark(end - 1)
    }

    fn string(&mut self, string: &JsonString<'a>, open: usize, end: usize) -> Option<Part> {
        if string.is_plain() {
            return Some(self.plain(string.inner, open, end));
        }
        self.flush(open + 1, end - 1);
        let start = self.out.len();
        push_canonical(&mut self.out, string.inner)?;
        Some(start..self.out.len())
    }

    #[inline]
    fn name(&mut self, string: &JsonString<'a>, unescaped: &Cow<'a, str>, part: &Part) -> Name {
        let is_spelled_so =
            string.is_plain() || self.out.get(part.clone()) == Some(unescaped.as_ref());
        let noted = (!is_spelled_so).then(|| {
            self.unescaped.push(unescaped.as_ref().into());
            self.unescaped.len() - 1
        });
        Name {
            at: part.clone(),
            unescaped: noted,
        }
    }
}

/// Writes the inside of a string in its one spelling. `None` where an escape is malformed or a
/// surrogate stands alone.
fn push_canonical(out: &mut String, inner: &str) -> Option<()> {
    let bytes = inner.as_bytes();
    // What lies before `kept` is written; what lies between `kept` and `pos` can be copied.
    let (mut kept, mut pos) = (0, 0);
    while let Some(byte) = bytes.get(pos) {
        let (ch, length) = match (byte, bytes.get(pos + 1)) {
            // Escapes that are already as short as they can be.
            (b'\\', Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't')) => {
                pos += 2;
                continue;
            }
            (b'\\', _) => text::escape(inner.get(pos..)?)?,
            (0xc2, Some(0x85)) => ('\u{85}', 2),
            (0xe2, Some(0x80)) if matches!(bytes.get(pos + 2), Some(0xa8 | 0xa9)) => {
                (inner.get(pos..)?.chars().next()?, 3)
            }
            _ => {
                pos += 1;
                continue;
            }
        };
        out.push_str(inner.get(kept..pos)?);
        match text::escaped(ch) {
            Some(escape) => out.push_str(escape),
            None => out.push(ch),
        }
        pos += length;
        kept = pos;
    }
    out.push_str(inner.get(kept..)?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_has_one_spelling() {
        let cases = [
            ("plain", Some("plain")),
            (r"a\/b", Some("a/b")),
            (r"\u0053\u0065", Some("Se")),
            (r"\u000A\u000d\u0009\u0008\u000C", Some(r"\n\r\t\b\f")),
            (r"\u0022\u005C", Some(r#"\"\\"#)),
            (r"\u0000\u001F\u007f", Some("\\u0000\\u001f\u{7f}")),
            (r"\u00E9\uD83D\uDE00", Some("é😀")),
            ("a\u{85}b\u{2028}c\u{2029}", Some(r"a\u0085b\u2028c\u2029")),
            (r"\u0085\u2028\u2029", Some(r"\u0085\u2028\u2029")),
            ("â\u{a0}\u{2026}…", Some("â\u{a0}\u{2026}…")),
            (r#"\"\\\b\f\n\r\t"#, Some(r#"\"\\\b\f\n\r\t"#)),
            (r"\ud800", None),
            (r"\udc00\ud800", None),
            (r"\ud800\u0041", None),
            (r"\x41", None),
            (r"\u00g0", None),
            (r"\u12", None),
        ];
        for (inner, expect) in cases {
            let mut out = String::new();
            let done = push_canonical(&mut out, inner);
            assert_eq!(done.map(|()| out.as_str()), expect, "{inner:?}");
        }
    }
}
