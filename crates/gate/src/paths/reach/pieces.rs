//! Where in a string a path may begin.

use super::texts::{comes_before, ends_piece};

/// A part of a string that may be a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    /// The part, up to where most readers end it.
    pub text: &'t str,
    /// It stands behind `=` or `@`, as the value of something.
    pub is_value: bool,
    /// Up to the end of the string, where that is more: a name may have blanks.
    pub whole: Option<&'t str>,
}

/// Longest piece in bytes: a path that is longer cannot be opened.
const PIECE_BYTES_MAX: usize = 8 * 1024;

/// The pieces of a string in which more may stand than one path. Of a `command` every word counts, else
/// those that look like paths, and values. Reads each byte a bounded number of times.
pub(super) fn pieces(text: &str, command: bool) -> impl Iterator<Item = Piece<'_>> {
    let mut before: Option<char> = None;
    let mut values_left = 4_u8;
    let mut ends = NextMatch::default();
    let (mut signs, mut dots) = (NextMatch::default(), NextMatch::default());
    text.char_indices().filter_map(move |(at, c)| {
        let prev = before.replace(c);
        // An option's letter has its value right behind it: `-I/etc`.
        let is_behind_option = prev.is_some() && c == '/' && is_option(text.get(..at)?);
        if !(is_behind_option || prev.map_or(command, comes_before)) || ends_piece(c) {
            return None;
        }
        let rest = text.get(at..)?;
        if prev == Some(':') && rest.starts_with("//") {
            // The authority of a URI; its scheme begins a piece of its own.
            return None;
        }
        let end = ends
            .at_or_after(text, at, ends_piece)
            .min(floor(text, at + PIECE_BYTES_MAX));
        let has_sign = signs.at_or_after(text, at, |c| matches!(c, '/' | '\\' | '$')) < end;
        let mut has_dot = || dots.at_or_after(text, at, |c| c == '.') < end;
        let is_value = matches!(prev, Some('=' | '@'));
        let begins = c == '~';
        let is_worth =
            begins || is_behind_option || has_sign || is_value && end > at || command && has_dot();
        if !is_worth {
            return None;
        }
        let piece = text.get(at..end)?;
        let mut whole = None;
        if is_value && piece.len() < rest.len() && values_left > 0 {
            values_left -= 1;
            whole = rest.get(..floor(rest, PIECE_BYTES_MAX));
        }
        Some(Piece {
            text: piece,
            is_value,
            whole,
        })
    })
}

/// The next place in a text where something matches. It is looked for once, however many starts lie before it.
#[derive(Debug, Default)]
struct NextMatch {
    found: Option<usize>,
}

impl NextMatch {
    /// Returns the first byte at or after `at` where a character matches; the length of the text if none does. `at` never
    /// decreases from one call to the next.
    fn at_or_after(&mut self, text: &str, at: usize, matches: impl Fn(char) -> bool) -> usize {
        match self.found {
            Some(found) if found >= at => found,
            _ => {
                let rest = text.get(at..).unwrap_or_default();
                let found = rest.find(matches).map_or(text.len(), |offset| at + offset);
                *self.found.insert(found)
            }
        }
    }
}

/// Whether a text ends with an option of one letter: `-I`.
fn is_option(text: &str) -> bool {
    let mut back = text.chars().rev();
    back.next().is_some_and(|c| c.is_ascii_alphabetic())
        && back.next() == Some('-')
        && back.next().is_none_or(char::is_whitespace)
}

/// Returns the last character boundary of `text` at or before `at`.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_behind_signs() {
        let found = |text: &'static str, command| -> Vec<&str> {
            pieces(text, command).map(|piece| piece.text).collect()
        };
        for (text, command, expect) in [
            ("--file=/etc/x", false, &["/etc/x"][..]),
            ("@secret/x", false, &["secret/x"]),
            ("cat /etc/x|wc", false, &["/etc/x"]),
            ("cat x.pem", true, &["x.pem"]),
            ("see x.pem", false, &[]),
            ("-I/etc", false, &["/etc"]),
            ("host:/etc/x", false, &["/etc/x"]),
            ("a=b c", false, &["b"]),
        ] {
            assert_eq!(found(text, command), expect, "{text}");
        }
    }
}
