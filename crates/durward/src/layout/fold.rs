//! Long lines go on below where their last column begins, between words.

use std::io::{self, Write};

/// Longest line that is looked at, in bytes; a longer one is passed on as it comes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// How far a line without columns goes on to the right of its beginning.
const INDENT: usize = 2;
/// Where a numbered paragraph goes on.
const NUMBERED: usize = 3;

/// Folds the lines that are written through it. A line that is not ended is passed on when this is flushed.
pub struct Folded<W> {
    inner: W,
    width: Option<usize>,
    line: Vec<u8>,
    /// The beginning of this line has been passed on.
    is_begun: bool,
}

impl<W: Write> Folded<W> {
    /// Folds at this width; without one everything is passed on as it comes.
    pub fn new(inner: W, width: Option<usize>) -> Self {
        Self {
            inner,
            width,
            line: Vec::new(),
            is_begun: false,
        }
    }

    fn pass(&mut self, is_ended: bool) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let text = std::str::from_utf8(&line).ok();
        match (text, self.width) {
            (Some(text), Some(width)) if is_ended && !self.is_begun => {
                self.inner.write_all(folded(text, width).as_bytes())?;
            }
            _ => self.inner.write_all(&line)?,
        }
        self.is_begun = !is_ended && (self.is_begun || !line.is_empty());
        match is_ended {
            true => self.inner.write_all(b"\n"),
            false => Ok(()),
        }
    }
}

impl<W: Write> Write for Folded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.width.is_none() {
            return self.inner.write(bytes);
        }
        let (part, is_ended) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => (bytes.get(..at).unwrap_or(bytes), true),
            None => (bytes, false),
        };
        self.line.extend_from_slice(part);
        if is_ended || self.line.len() > LINE_BYTES_MAX {
            self.pass(is_ended)?;
        }
        Ok(part.len() + usize::from(is_ended))
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.line.is_empty() {
            self.pass(false)?;
        }
        self.inner.flush()
    }
}

/// The line in lines of this width. A word that is longer than its line is left whole, so that it can be copied.
pub fn folded(line: &str, width: usize) -> String {
    let hang = column(line, width);
    lines(line, width, hang).join("\n")
}

/// The line in lines of this width, which go on at this column.
pub fn lines(line: &str, width: usize, hang: usize) -> Vec<String> {
    if shown(line) <= width {
        return vec![line.to_owned()];
    }
    let mut lines = Vec::new();
    let mut current = String::new();
    // Whether there is a word in the current line already.
    let mut has_word = false;
    for piece in pieces(line) {
        let is_blank = piece.starts_with(' ');
        if !is_blank && has_word && shown(&current) + shown(piece) > width {
            current.truncate(current.trim_end().len());
            lines.push(std::mem::replace(&mut current, " ".repeat(hang)));
        }
        has_word |= !is_blank;
        current.push_str(piece);
    }
    current.truncate(current.trim_end().len());
    lines.push(current);
    lines
}

/// The same, with words that are longer than their line in parts: no line is longer.
pub fn bounded(line: &str, width: usize, hang: usize) -> Vec<String> {
    let hang = hang.min(width / 2);
    let mut out = Vec::new();
    for line in lines(line, width, hang) {
        let mut rest: Vec<char> = line.chars().collect();
        while rest.len() > width.max(1) {
            let after = rest.split_off(width.max(1));
            out.push(rest.iter().collect());
            rest = std::iter::repeat_n(' ', hang).chain(after).collect();
        }
        out.push(rest.iter().collect());
    }
    out
}

/// Words and the blanks between them.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let is_blank = rest.starts_with(' ');
        let end = rest.find(|c| (c == ' ') != is_blank).unwrap_or(rest.len());
        let (piece, after) = rest.split_at_checked(end)?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Characters that take room: all but those of colours.
pub fn shown(text: &str) -> usize {
    let mut characters = 0;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' => {
                let _ = rest.find(char::is_ascii_alphabetic);
            }
            _ => characters += 1,
        }
    }
    characters
}

/// Where the last column in the left three fifths of a line begins; a line without columns is indented.
fn column(line: &str, width: usize) -> usize {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() < line.len() && rest.starts_with(". ") {
        return NUMBERED;
    }
    let mut found = None;
    let mut at = 0;
    for piece in pieces(line) {
        let is_gap = piece.len() >= 2 && piece.starts_with(' ');
        at += shown(piece);
        if is_gap && at > indent && at <= width * 3 / 5 {
            found = Some(at);
        }
    }
    found.unwrap_or((indent + INDENT).min(width / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_below_their_last_column() {
        for (line, width, expected) in [
            ("short", 10, "short"),
            ("12. One two three", 12, "12. One two\n   three"),
            (
                "error: one two three four",
                14,
                "error: one two\n  three four",
            ),
            (
                "path      /a/b and /c",
                18,
                "path      /a/b and\n          /c",
            ),
            (
                "  no       rule: a, b, c",
                20,
                "  no       rule: a,\n           b, c",
            ),
            ("key   0123456789abcdef", 10, "key\n      0123456789abcdef"),
            ("0123456789abcdef", 10, "0123456789abcdef"),
            ("", 10, ""),
            ("\x1b[31mred words\x1b[0m", 9, "\x1b[31mred words\x1b[0m"),
        ] {
            assert_eq!(folded(line, width), expected);
        }
    }

    #[test]
    fn words_that_are_longer_than_a_line_are_broken_where_no_line_may_be_longer() {
        assert_eq!(
            bounded("key 0123456789abcdef end", 10, 4),
            ["key", "    012345", "    6789ab", "    cdef", "    end"]
        );
        for width in 0..20 {
            let lines = bounded("a bb ccc dddd eeeee ffffff ggggggg", width, 4);
            assert!(
                lines.iter().all(|line| line.len() <= width.max(1)),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn a_prompt_is_shown_before_its_line_ends_and_other_output_is_left_alone() {
        let mut out = Folded::new(Vec::new(), Some(10));
        out.write_all(b"one two three\nsure? ").unwrap();
        assert_eq!(out.inner, b"one two\n  three\n");
        out.flush().unwrap();
        assert_eq!(out.inner, b"one two\n  three\nsure? ");
        out.write_all(b"yes, it is quite sure\n\n").unwrap();
        assert!(out.inner.ends_with(b"sure? yes, it is quite sure\n\n"));
        let mut out = Folded::new(Vec::new(), None);
        out.write_all(b"one two three four five six").unwrap();
        assert_eq!(out.inner, b"one two three four five six");
    }
}
