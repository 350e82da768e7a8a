//! One compiled pattern: a literal, or a literal beginning and what may follow.

use regex::{Regex, RegexBuilder};

use crate::paths::PathView;
use crate::paths::canonical::meanings;

use super::glob;
use super::shell::{self, Shell};

/// Bound on one compiled expression, in bytes; a pattern of 1,024 bytes stays far below.
const REGEX_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A compiled glob.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// What every match begins with, folded where case is ignored.
    prefix: String,
    fold: bool,
    /// Of paths: whatever matches is this place or below it. Absent where nothing is fixed.
    anchor: Option<String>,
    rest: Rest,
}

/// Shell glob over the name of a tool or a server, with the syntax of `tool_name` in rules; case is ignored.
#[derive(Debug, Clone)]
pub struct NameGlob(Pattern);

impl NameGlob {
    /// Reads a glob.
    ///
    /// # Errors
    /// A sentence about the glob.
    pub fn parse(text: &str) -> Result<Self, String> {
        Pattern::name(text, true).map(Self)
    }

    /// Returns whether the whole name matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name, &shell::fold(name))
    }
}

/// What may follow the fixed beginning.
#[derive(Debug, Clone)]
enum Rest {
    /// Nothing.
    Nothing,
    /// Nothing, or a slash and anything: the commonest path pattern, which needs no expression.
    Below,
    /// What the whole expression says.
    Regex(Regex),
    /// What the whole glob says.
    Shell(Shell),
}

impl Pattern {
    /// A shell glob over names.
    pub fn name(pattern: &str, fold: bool) -> Result<Self, String> {
        let glob = Shell::parse(pattern, fold).map_err(|e| e.message.to_owned())?;
        let fixed = pattern.split(['*', '?', '[']).next().unwrap_or_default();
        Ok(Self {
            prefix: if fold {
                shell::fold(fixed)
            } else {
                fixed.to_owned()
            },
            fold,
            anchor: None,
            rest: if glob::is_literal(pattern) {
                Rest::Nothing
            } else {
                Rest::Shell(glob)
            },
        })
    }

    /// A path glob; with a view also the places where its fixed beginning leads through links and
    /// `~`, so that a rule about a linked directory means the directory.
    pub fn path(pattern: &str, view: Option<&dyn PathView>) -> Result<Vec<Self>, String> {
        Self::spellings(pattern, view)
            .iter()
            .map(|spelling| Self::one_path(spelling))
            .collect()
    }

    /// The pattern and where else its fixed beginning leads.
    pub fn spellings(pattern: &str, view: Option<&dyn PathView>) -> Vec<String> {
        use unicode_normalization::UnicodeNormalization as _;
        let normal: String = pattern.nfc().collect();
        let expanded = match (normal.strip_prefix("~/"), view.and_then(PathView::home)) {
            (Some(below), Some(home)) => format!("{home}/{below}"),
            _ => normal,
        };
        let mut spellings = vec![expanded.clone()];
        if let Some(view) = view
            && let Some((fixed, rest)) = fixed_beginning(&expanded)
        {
            for place in meanings(fixed, Some(view)).places {
                let spelling = format!("{}{rest}", if place == "/" { "" } else { &place });
                if !spellings.contains(&spelling) {
                    spellings.push(spelling);
                }
            }
        }
        spellings
    }

    fn one_path(spelling: &str) -> Result<Self, String> {
        let regex = glob::path(spelling).map_err(|e| e.message.to_owned())?;
        let trimmed = if spelling.len() > 1 {
            spelling.trim_end_matches('/')
        } else {
            spelling
        };
        // `/tmp/**` includes `/tmp`, and `/a/**/x` includes `/a/x`: the slash is not fixed.
        let fixed = trimmed
            .split_once("/**")
            .map_or(trimmed, |(before, _)| before);
        // Brackets stand for themselves in paths, so only stars and question marks end the prefix.
        let prefix = fixed
            .split(['*', '?'])
            .next()
            .unwrap_or_default()
            .to_owned();
        let wild = trimmed.contains(['*', '?']);
        let pattern = Self {
            anchor: anchor(trimmed, &prefix, wild),
            prefix,
            fold: false,
            rest: Rest::Nothing,
        };
        if !wild {
            Ok(pattern)
        } else if trimmed.strip_suffix("/**") == Some(&pattern.prefix) {
            Ok(Self {
                rest: Rest::Below,
                ..pattern
            })
        } else {
            pattern.with_regex(&regex)
        }
    }

    fn with_regex(mut self, regex: &str) -> Result<Self, String> {
        let built = RegexBuilder::new(regex)
            .size_limit(REGEX_BYTES_MAX)
            .build()
            .map_err(|e| e.to_string())?;
        self.rest = Rest::Regex(built);
        Ok(self)
    }

    /// Whether `text` matches; `folded` is `text` as [`shell::fold`] makes it.
    pub fn matches(&self, text: &str, folded: &str) -> bool {
        let seen = if self.fold { folded } else { text };
        let Some(rest) = seen.strip_prefix(&self.prefix) else {
            return false;
        };
        match &self.rest {
            Rest::Nothing => rest.is_empty(),
            Rest::Below => rest.is_empty() || rest.starts_with('/'),
            Rest::Regex(regex) => regex.is_match(text),
            Rest::Shell(glob) => glob.matches(seen),
        }
    }

    /// A place at or below which everything is that matches; only paths have one.
    pub fn anchor(&self) -> Option<&str> {
        self.anchor.as_deref()
    }

    /// Returns whether it may match a URL: what begins so is spelled in many ways.
    pub fn is_url(&self) -> bool {
        !self.prefix.starts_with(['/', '~'])
    }

    /// The one name that matches, where the pattern is a literal.
    pub fn literal(&self) -> Option<&str> {
        matches!(self.rest, Rest::Nothing).then_some(self.prefix.as_str())
    }
}

/// The place that [`Pattern::anchor`] gives.
fn anchor(pattern: &str, prefix: &str, wild: bool) -> Option<String> {
    let place = if !wild {
        pattern
    } else if let Some((before, after)) = pattern.split_once("/**")
        && before == prefix
        && (after.is_empty() || after.starts_with('/'))
    {
        before
    } else {
        prefix.get(..prefix.rfind('/')?)?
    };
    (!place.is_empty()).then(|| place.to_owned())
}

/// Splits a pattern at the last slash before its first wildcard. `None` where nothing is fixed or
/// the pattern is not absolute.
fn fixed_beginning(pattern: &str) -> Option<(&str, &str)> {
    if !pattern.starts_with('/') {
        return None;
    }
    let wildcard = pattern.find(['*', '?']).unwrap_or(pattern.len());
    let slash = if wildcard == pattern.len() {
        wildcard
    } else {
        pattern.get(..wildcard)?.rfind('/')?
    };
    let (fixed, rest) = pattern.split_at_checked(slash)?;
    (!fixed.is_empty()).then_some((fixed, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_globs_match_whole_names_without_case() {
        for (glob, name, is_match) in [
            ("read_*", "read_file", true),
            ("read_*", "Read_File", true),
            ("read_*", "reads", false),
            ("*_file", "read_file", true),
            ("a*b*c", "axxc", false),
            ("read_?", "read_a", true),
            ("read", "read_file", false),
        ] {
            let read = NameGlob::parse(glob).unwrap();
            assert_eq!(read.matches(name), is_match, "{glob} {name}");
        }
        assert!(NameGlob::parse("a[").is_err());
    }

    /// A short cut says what the whole expression would have said.
    #[test]
    fn short_cuts_agree_with_the_expression() {
        let texts = [
            "", "/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/ab/c", "a", "/a\n/b", "/a/\n", "b/a/c",
        ];
        for pattern in [
            "/a/**", "/a/**/", "/**", "**", "/a/**/c", "/a*/**", "/a/b", "a/**",
        ] {
            let whole = Regex::new(&glob::path(pattern).unwrap()).unwrap();
            let compiled = Pattern::path(pattern, None).unwrap();
            for text in texts {
                let matched = compiled.iter().any(|p| p.matches(text, text));
                assert_eq!(matched, whole.is_match(text), "{pattern} {text:?}");
            }
        }
    }
}
