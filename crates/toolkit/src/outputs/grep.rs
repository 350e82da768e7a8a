//! Looking for lines in a stream, in linear time and bounded memory.

use std::collections::VecDeque;
use std::fmt;

use regex::bytes::{Regex, RegexBuilder};
use state::SpoolError;

use super::OutputReader;

/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1_024;
/// Largest compiled pattern, in bytes.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;
/// Longest line, in bytes; a longer one is looked at in parts of this length.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// Most matches of one search.
pub const MATCHES_MAX: usize = 1_000;
/// Most lines of context before and after a match.
pub const CONTEXT_MAX: usize = 20;
/// How much one search reads before it says where to go on, in bytes.
const SEARCHED_BYTES_MAX: u64 = 64 * 1024 * 1024;
const BLOCK_BYTES: usize = 256 * 1024;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Grep {
    pattern: Regex,
    /// Lines before and after each match.
    context: usize,
    matches_max: usize,
}

/// A pattern that is none, or takes too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepFault(String);

impl fmt::Display for GrepFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GrepFault {}

/// A place between two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// In bytes from the beginning.
    pub at: u64,
    /// The number of the line that begins there, from 1.
    pub line: u64,
}

impl Default for Position {
    fn default() -> Self {
        Self { at: 0, line: 1 }
    }
}

/// A line, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it begins.
    pub position: Position,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it matches, or stands near one that does.
    pub is_match: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// Lines in order, none twice.
    pub lines: Vec<Line>,
    /// Where to go on; absent where everything was looked at.
    pub next: Option<Position>,
}

impl Grep {
    /// Takes a regular expression; it runs in linear time, so it has no look-around and no references back.
    ///
    /// # Errors
    /// [`GrepFault`] where it is none, too long or too large.
    pub fn new(
        pattern: &str,
        ignore_case: bool,
        context: usize,
        matches_max: usize,
    ) -> Result<Self, GrepFault> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(GrepFault(format!(
                "the pattern has {} bytes, at most {PATTERN_BYTES_MAX} are taken",
                pattern.len()
            )));
        }
        let pattern = RegexBuilder::new(pattern)
            .case_insensitive(ignore_case)
            .size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|error| GrepFault(format!("the pattern cannot be used: {error}")))?;
        Ok(Self {
            pattern,
            context: context.min(CONTEXT_MAX),
            matches_max: matches_max.clamp(1, MATCHES_MAX),
        })
    }
}

/// A search under way.
struct Search<'g> {
    grep: &'g Grep,
    found: Found,
    before: VecDeque<Line>,
    after: usize,
    matches: usize,
}

impl Search<'_> {
    /// Takes the next line; `false` where enough was found.
    fn line(&mut self, position: Position, bytes: &[u8]) -> bool {
        let is_match = self.grep.pattern.is_match(bytes);
        let full = self.matches >= self.grep.matches_max;
        if full && (is_match || self.after == 0) {
            return false;
        }
        let line = Line {
            position,
            bytes: bytes.to_vec(),
            is_match,
        };
        if is_match {
            self.matches += 1;
            self.found.lines.extend(self.before.drain(..));
            self.found.lines.push(line);
            self.after = self.grep.context;
        } else if self.after > 0 {
            self.after -= 1;
            self.found.lines.push(line);
        } else if self.grep.context > 0 {
            if self.before.len() == self.grep.context {
                self.before.pop_front();
            }
            self.before.push_back(line);
        }
        true
    }
}

impl OutputReader {
    /// Looks for lines from a position on. One search reads so much and no more, and says where the next is
    /// to go on.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn grep(&self, grep: &Grep, from: Position) -> Result<Found, SpoolError> {
        let mut search = Search {
            grep,
            found: Found::default(),
            before: VecDeque::new(),
            after: 0,
            matches: 0,
        };
        let mut position = from;
        let mut held: Vec<u8> = Vec::new();
        let mut read_to = from.at;
        loop {
            let block = self.spool.read(read_to, BLOCK_BYTES)?;
            let is_last = block.is_empty();
            read_to += block.len() as u64;
            held.extend_from_slice(&block);
            let mut taken = 0;
            while let Some((line, length)) =
                next_line(held.get(taken..).unwrap_or_default(), is_last)
            {
                if !search.line(position, line) {
                    search.found.next = Some(position);
                    return Ok(search.found);
                }
                let ends = held.get(taken + length - 1) == Some(&b'\n');
                taken += length;
                position.at += length as u64;
                position.line += u64::from(ends);
            }
            held.drain(..taken);
            if is_last {
                return Ok(search.found);
            }
            if position.at - from.at >= SEARCHED_BYTES_MAX {
                search.found.next = Some(position);
                return Ok(search.found);
            }
        }
    }
}

/// The first line and its length with its end; none where its end has not been read yet.
fn next_line(held: &[u8], is_last: bool) -> Option<(&[u8], usize)> {
    let window = held.get(..LINE_BYTES_MAX.min(held.len()))?;
    match window.iter().position(|byte| *byte == b'\n') {
        Some(at) => {
            let line = held.get(..at)?;
            Some((line.strip_suffix(b"\r").unwrap_or(line), at + 1))
        }
        None if held.len() >= LINE_BYTES_MAX || (is_last && !held.is_empty()) => {
            Some((window, window.len()))
        }
        None => None,
    }
}
