//! Shell globs over names, matched without expressions: a policy may hold thousands of them.
//!
//! Every item between stars stands for exactly one character, so a glob is a beginning, an end, and
//! parts that come in between in this order; the leftmost place for each of them is always good enough.

use std::borrow::Cow;

use super::glob::{GlobError, check};

/// A glob (`*`, `?`, `[abc]`, `[!abc]`) over a whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shell {
    /// What stands between the stars; there is one more of them than of stars in a row.
    parts: Vec<Part>,
}

/// Characters in a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Part {
    items: Vec<Item>,
    /// The same as text, where there is nothing else in it.
    literal: Option<String>,
}

/// What one character may be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    One(char),
    Any,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
        fold: bool,
    },
}

/// A text in which case no longer counts. Character by character, so that the beginning of a folded
/// text is the folded beginning of the text.
pub(super) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let plain = |c| match c {
        'ς' => 'σ',
        'ſ' => 's',
        c => c,
    };
    text.chars()
        .flat_map(char::to_lowercase)
        .map(plain)
        .collect()
}

/// [`fold`], without a copy where a text has no case that counts: most names are written so.
pub(super) fn folded(text: &str) -> Cow<'_, str> {
    let is_folded = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    match text.bytes().all(is_folded) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(fold(text)),
    }
}

impl Shell {
    /// Reads a pattern. With `folded`, texts are given to [`Shell::matches`] as [`fold`] makes them.
    ///
    /// # Errors
    /// Empty or overlong patterns, an unclosed `[`, a range that runs backwards.
    pub fn parse(pattern: &str, folded: bool) -> Result<Self, GlobError> {
        check(pattern)?;
        let mut parts = vec![Vec::new()];
        let mut rest = pattern;
        let mut after_star = false;
        while let Some(ch) = rest.chars().next() {
            rest = rest.get(ch.len_utf8()..).unwrap_or_default();
            if ch == '*' {
                if !after_star {
                    parts.push(Vec::new());
                }
                after_star = true;
                continue;
            }
            after_star = false;
            let Some(part) = parts.last_mut() else { break };
            match ch {
                '?' => part.push(Item::Any),
                '[' => {
                    let (class, behind) = class(rest, folded)?;
                    part.push(class);
                    rest = behind;
                }
                ch if folded => {
                    let mut buffer = [0; 4];
                    part.extend(fold(ch.encode_utf8(&mut buffer)).chars().map(Item::One));
                }
                ch => part.push(Item::One(ch)),
            }
        }
        Ok(Self {
            parts: parts.into_iter().map(Part::of).collect(),
        })
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, behind)) = self.parts.split_first() else {
            return false;
        };
        let Some(text) = first.at_start(text) else {
            return false;
        };
        let Some((last, between)) = behind.split_last() else {
            return text.is_empty();
        };
        let Some(mut text) = last.at_end(text) else {
            return false;
        };
        between.iter().all(|part| match part.find(text) {
            Some(rest) => {
                text = rest;
                true
            }
            None => false,
        })
    }
}

impl Part {
    fn of(items: Vec<Item>) -> Self {
        let literal = items
            .iter()
            .map(|item| match item {
                Item::One(c) => Some(*c),
                Item::Any | Item::Class { .. } => None,
            })
            .collect();
        Self { items, literal }
    }

    /// What follows, where the text begins so.
    fn at_start<'t>(&self, text: &'t str) -> Option<&'t str> {
        if let Some(literal) = &self.literal {
            return text.strip_prefix(literal.as_str());
        }
        let mut chars = text.chars();
        let fits = |item: &Item| chars.next().is_some_and(|c| item.fits(c));
        self.items.iter().all(fits).then_some(chars.as_str())
    }

    /// What goes before, where the text ends so.
    fn at_end<'t>(&self, text: &'t str) -> Option<&'t str> {
        if let Some(literal) = &self.literal {
            return text.strip_suffix(literal.as_str());
        }
        let mut chars = text.chars();
        let fits = |item: &Item| chars.next_back().is_some_and(|c| item.fits(c));
        self.items.iter().rev().all(fits).then_some(chars.as_str())
    }

    /// What follows the first place where it stands.
    fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        if let Some(literal) = &self.literal {
            return text.split_once(literal.as_str()).map(|(_, rest)| rest);
        }
        text.char_indices()
            .find_map(|(at, _)| self.at_start(text.get(at..)?))
    }
}

impl Item {
    fn fits(&self, c: char) -> bool {
        match self {
            Self::One(one) => *one == c,
            Self::Any => true,
            Self::Class {
                negated,
                ranges,
                fold,
            } => {
                let within = |c: char| ranges.iter().any(|(from, to)| (*from..=*to).contains(&c));
                // Folded texts are in lower case; a class may be written in the other.
                (within(c) || (*fold && c.to_uppercase().any(within))) != *negated
            }
        }
    }
}

/// Reads a class behind its `[`; gives it and what follows.
fn class(rest: &str, fold: bool) -> Result<(Item, &str), GlobError> {
    let negated = rest.starts_with(['!', '^']);
    let body_from = usize::from(negated);
    // A `]` that comes first stands for itself, as in POSIX.
    let close = rest
        .char_indices()
        .find(|(at, ch)| *ch == ']' && *at > body_from)
        .map(|(at, _)| at)
        .ok_or(GlobError {
            message: "the bracket [ is never closed",
            hint: "close it with ], or write [[] for a literal bracket",
        })?;
    let mut body = rest.get(body_from..close).unwrap_or_default().chars();
    let mut ranges = Vec::new();
    while let Some(from) = body.next() {
        let mut ahead = body.clone();
        let to = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) => {
                body = ahead;
                to
            }
            _ => from,
        };
        if from > to {
            return Err(GlobError {
                message: "a range in [ ] runs backwards",
                hint: "write the smaller character first, as in [a-z]",
            });
        }
        ranges.push((from, to));
    }
    let class = Item::Class {
        negated,
        ranges,
        fold,
    };
    Ok((class, rest.get(close + 1..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_match_as_in_a_shell() {
        let cases = [
            ("read_*", "READ_FILE", true),
            ("*", "", true),
            ("[rw]*", "write", true),
            ("[!rw]*", "write", false),
            ("[!RW]*", "write", false),
            ("[A-Z]x", "qX", true),
            ("[]]x", "]x", true),
            ("[a-]x", "-x", true),
            ("[--b]x", "ax", true),
            ("a?c", "abc", true),
            ("a?c", "aéc", true),
            ("a.c", "abc", false),
            ("*x*y*", "axbyc", true),
            ("*x*y*", "ayxb", false),
            ("a*a", "a", false),
            ("a**b", "ab", true),
            ("*?b", "b", false),
            ("*[0-9]?z", "a1bz", true),
            ("k*", "\u{212a}ill", true),
            ("ΟΔΟΣ*", "οδος_x", true),
            ("x\nz", "x\nz", true),
        ];
        for (pattern, text, expect) in cases {
            let glob = Shell::parse(pattern, true).unwrap();
            assert_eq!(glob.matches(&fold(text)), expect, "{pattern} on {text}");
        }
        let exact = Shell::parse("tools/*", false).unwrap();
        assert!(exact.matches("tools/call") && !exact.matches("Tools/call"));
        for bad in ["[", "a[b", "[!", "[z-a]", "", " ", &"x".repeat(2_000)] {
            assert!(Shell::parse(bad, true).is_err(), "{bad}");
        }
    }

    /// The definition, as short as it can be written.
    fn defined(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', p @ ..], t) => {
                defined(p, t) || t.split_first().is_some_and(|(_, t)| defined(pattern, t))
            }
            (['?', p @ ..], [_, t @ ..]) => defined(p, t),
            ([c, p @ ..], [d, t @ ..]) if c == d => defined(p, t),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matches_what_the_definition_says(pattern in "[ab*?]{1,8}", text in "[ab]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            let glob = Shell::parse(&pattern, false).unwrap();
            prop_assert_eq!(glob.matches(&text), defined(&chars(&pattern), &chars(&text)));
        }
    }
}
