//! One rule: what it looks for, where, and what is done.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::outside::Outside;
use super::secrets::{self, Secret};
use crate::labels::Labels;

/// Most rules of one inspection.
pub const RULES_MAX: usize = 64;
/// Most patterns of one rule.
pub const PATTERNS_MAX: usize = 64;
/// Longest pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1_024;
/// Largest compiled pattern, in bytes.
const PATTERN_SIZE_MAX: usize = 1 << 20;
/// Most matches of one rule in one text that are looked at; what is behind them counts as one more, to its end.
const HITS_MAX: usize = 10_000;

/// What is done where a rule finds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The match is replaced by the rule's name.
    Mask,
    /// The message is refused.
    Deny,
    /// A person is asked.
    Ask,
    /// The session is labelled, and nothing else.
    Label,
}

impl Action {
    /// All, with their words in the configuration.
    pub const ALL: [(&'static str, Self); 4] = [
        ("mask", Self::Mask),
        ("deny", Self::Deny),
        ("ask", Self::Ask),
        ("label", Self::Label),
    ];
}

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From a client to a server.
    Request,
    /// From a server to a client.
    Result,
}

/// What a rule looks for.
#[derive(Debug, Clone)]
pub enum Finds {
    /// Secrets of these kinds.
    Secrets(Vec<&'static Secret>),
    /// Patterns of the user.
    Patterns(Vec<Regex>),
    /// What a checker finds.
    Outside(Outside),
    /// These texts.
    Texts(Vec<String>),
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name, which is what stands in the place of a match.
    pub name: Arc<str>,
    /// What it looks for.
    pub finds: Finds,
    /// Whether it looks at requests.
    pub requests: bool,
    /// Whether it looks at results, and at whatever else a server says.
    pub results: bool,
    /// The servers that it is for; any, where there is none.
    pub servers: Vec<String>,
    /// What is done.
    pub action: Action,
    /// Labels that the session gets where something is found, whatever else is done.
    pub labels: Labels,
}

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleFault {
    /// It is longer than [`PATTERN_BYTES_MAX`].
    TooLong,
    /// It would match where there is nothing.
    Empty,
    /// It is no regular expression, or too large a one: why.
    Unreadable(String),
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "is longer than {PATTERN_BYTES_MAX} bytes"),
            Self::Empty => f.write_str("matches the empty text, so it would match everywhere"),
            Self::Unreadable(why) => write!(f, "is not a regular expression: {why}"),
        }
    }
}

impl std::error::Error for RuleFault {}

/// Compiles a pattern of the user.
///
/// # Errors
/// Why it cannot be used.
pub fn pattern(text: &str) -> Result<Regex, RuleFault> {
    if text.len() > PATTERN_BYTES_MAX {
        return Err(RuleFault::TooLong);
    }
    let built = RegexBuilder::new(text)
        .size_limit(PATTERN_SIZE_MAX)
        .dfa_size_limit(PATTERN_SIZE_MAX)
        .build();
    match built {
        Ok(regex) if regex.is_match("") => Err(RuleFault::Empty),
        Ok(regex) => Ok(regex),
        Err(error) => {
            // The last line says why; those before it paint the place.
            let why = error.to_string();
            let why = why.lines().next_back().unwrap_or_default();
            Err(RuleFault::Unreadable(
                why.trim_start_matches("error: ").to_owned(),
            ))
        }
    }
}

/// A match, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    pub at: Range<usize>,
    pub rule: usize,
}

impl Rule {
    /// Whether it looks at what goes this way to or from a server.
    #[must_use]
    pub fn looks_at(&self, way: Way, server: &str) -> bool {
        let goes = match way {
            Way::Request => self.requests,
            Way::Result => self.results,
        };
        goes && (self.servers.is_empty() || self.servers.iter().any(|own| own == server))
    }

    /// Adds what it finds in a text.
    pub(super) fn find(&self, rule: usize, key: Option<&str>, text: &str, hits: &mut Vec<Hit>) {
        let before = hits.len();
        let mut take = |at: Range<usize>| {
            if hits.len() - before < HITS_MAX {
                hits.push(Hit { at, rule });
                true
            } else {
                let rest = at.start..text.len();
                hits.push(Hit { at: rest, rule });
                false
            }
        };
        match &self.finds {
            Finds::Secrets(kinds) => {
                for kind in kinds {
                    if !secrets::find(kind, key, text, &mut take) {
                        return;
                    }
                }
            }
            // It is asked once about the whole message.
            Finds::Outside(_) => {}
            Finds::Texts(texts) => {
                for sought in texts.iter().filter(|sought| !sought.is_empty()) {
                    for (start, _) in text.match_indices(sought.as_str()) {
                        if !take(start..start + sought.len()) {
                            return;
                        }
                    }
                }
            }
            Finds::Patterns(patterns) => {
                for pattern in patterns {
                    for found in pattern.find_iter(text) {
                        if !found.is_empty() && !take(found.range()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}
