//! JSON text, string by string: what is found in it, and the text with the matches masked.

use std::borrow::Cow;

use super::finding::Finding;
use super::rule::{Action, Hit};
use super::{Inspection, Way};

/// A text and what was found in it.
pub type InspectedText<'t> = (Cow<'t, str>, Option<Finding>);

/// Deepest nesting of which member names are known; below it values are looked at without them.
const DEPTH_MAX: usize = 256;

/// Where the walk is.
struct Walk<'t> {
    raw: &'t str,
    at: usize,
    /// For each open object or array: the name of the member whose value is next, where it is an object.
    open: Vec<Option<Cow<'t, str>>>,
    /// How many are open in all.
    depth: usize,
    /// Below which depth everything is left alone.
    apart_from: Option<usize>,
}

pub(super) fn inspect<'t>(
    inspection: &Inspection,
    from: (Way, &str),
    raw: &'t str,
    apart: &[&str],
) -> InspectedText<'t> {
    let mut finding: Option<Finding> = None;
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut walk = Walk {
        raw,
        at: 0,
        open: Vec::new(),
        depth: 0,
        apart_from: None,
    };
    while let Some(token) = walk.next(apart) {
        let text = match token.is_string {
            true => decoded(token.raw),
            false => Cow::Borrowed(token.raw),
        };
        let hits = inspection.hits(from, token.key.as_deref(), &text);
        if hits.is_empty() {
            continue;
        }
        let finding = finding.get_or_insert_default();
        let masks = noted(inspection, &hits, token.is_name, finding);
        if masks.is_empty() {
            continue;
        }
        let out = out.get_or_insert_with(|| String::with_capacity(raw.len()));
        out.push_str(raw.get(copied..token.start).unwrap_or_default());
        let masked = masked(&text, &masks);
        out.push_str(&serde_json::Value::from(masked).to_string());
        copied = token.end;
    }
    let Some(mut out) = out else {
        return (Cow::Borrowed(raw), finding);
    };
    out.push_str(raw.get(copied..).unwrap_or_default());
    (Cow::Owned(out), finding)
}

/// One text that stands in no JSON.
pub(super) fn inspect_text<'t>(
    inspection: &Inspection,
    from: (Way, &str),
    text: &'t str,
) -> InspectedText<'t> {
    let hits = inspection.hits(from, None, text);
    if hits.is_empty() {
        return (Cow::Borrowed(text), None);
    }
    let mut finding = Finding::default();
    let masks = noted(inspection, &hits, false, &mut finding);
    match masks.is_empty() {
        true => (Cow::Borrowed(text), Some(finding)),
        false => (Cow::Owned(masked(text, &masks)), Some(finding)),
    }
}

pub(super) fn left_of<'t>(
    inspection: &Inspection,
    from: (Way, &str),
    text: &'t str,
) -> Cow<'t, str> {
    let hits = inspection.hits(from, None, text);
    let named = |hit| inspection.rule(hit).map(|rule| (hit, rule.name.as_ref()));
    let masks: Vec<(&Hit, &str)> = hits.iter().filter_map(named).collect();
    match masks.is_empty() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(masked(text, &masks)),
    }
}

/// Notes what was found; gives those matches that are masked, with the names of their rules.
fn noted<'h>(
    inspection: &'h Inspection,
    hits: &'h [Hit],
    is_name: bool,
    finding: &mut Finding,
) -> Vec<(&'h Hit, &'h str)> {
    let mut masks = Vec::new();
    for hit in hits {
        if let Some(rule) = inspection.rule(hit) {
            finding.add(rule, is_name);
            if rule.action == Action::Mask && !is_name {
                masks.push((hit, rule.name.as_ref()));
            }
        }
    }
    masks
}

/// The text with its matches replaced; those that overlap become one.
fn masked(text: &str, masks: &[(&Hit, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for (hit, name) in masks {
        if hit.at.start >= end {
            out.push_str(text.get(end..hit.at.start).unwrap_or_default());
            out.push_str(&mask(name));
        }
        end = end.max(hit.at.end);
    }
    out.push_str(text.get(end..).unwrap_or_default());
    out
}

/// What stands in the place of a match of this rule.
pub(super) fn mask(rule: &str) -> String {
    format!("[masked: {rule}]")
}

/// The characters of a string between its quotes.
fn decoded(inner: &str) -> Cow<'_, str> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    match serde_json::from_str::<String>(&format!("\"{inner}\"")) {
        Ok(text) => Cow::Owned(text),
        // Half of a surrogate pair: it is looked at as it is spelled.
        Err(_) => Cow::Borrowed(inner),
    }
}

/// A string or number.
struct Token<'t> {
    /// Without its quotes.
    raw: &'t str,
    start: usize,
    end: usize,
    is_string: bool,
    is_name: bool,
    /// The member that it is the value of.
    key: Option<Cow<'t, str>>,
}

impl<'t> Walk<'t> {
    fn next(&mut self, apart: &[&str]) -> Option<Token<'t>> {
        let bytes = self.raw.as_bytes();
        loop {
            let byte = *bytes.get(self.at)?;
            match byte {
                b'{' | b'[' => {
                    self.depth += 1;
                    if self.open.len() < DEPTH_MAX {
                        self.open.push(None);
                    }
                    self.at += 1;
                }
                b'}' | b']' => {
                    if self.depth <= self.open.len() {
                        self.open.pop();
                    }
                    self.depth = self.depth.saturating_sub(1);
                    self.at += 1;
                }
                b'"' => {
                    if let Some(token) = self.string(apart) {
                        return Some(token);
                    }
                }
                b'-' | b'0'..=b'9' => {
                    if let Some(token) = self.number() {
                        return Some(token);
                    }
                }
                b',' => {
                    if self.depth == 1 {
                        self.apart_from = None;
                    }
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    fn string(&mut self, apart: &[&str]) -> Option<Token<'t>> {
        let bytes = self.raw.as_bytes();
        let start = self.at;
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'\\') => end += 2,
                Some(b'"') | None => break,
                Some(_) => end += 1,
            }
        }
        let inner = self.raw.get(start + 1..end).unwrap_or_default();
        self.at = (end + 1).min(self.raw.len());
        let mut behind = self.at;
        while bytes.get(behind).is_some_and(u8::is_ascii_whitespace) {
            behind += 1;
        }
        let is_name = bytes.get(behind) == Some(&b':');
        if is_name {
            let name = decoded(inner);
            if self.depth == 1 && apart.contains(&name.as_ref()) {
                self.apart_from = Some(1);
            }
            if self.depth == self.open.len()
                && let Some(open) = self.open.last_mut()
            {
                *open = Some(name);
            }
        }
        self.token(inner, (start, self.at), true, is_name)
    }

    fn number(&mut self) -> Option<Token<'t>> {
        let start = self.at;
        let rest = self.raw.get(start..).unwrap_or_default();
        let length = rest
            .find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'))
            .unwrap_or(rest.len());
        self.at = start + length;
        let raw = rest.get(..length).unwrap_or_default();
        self.token(raw, (start, self.at), false, false)
    }

    fn token(
        &self,
        raw: &'t str,
        (start, end): (usize, usize),
        is_string: bool,
        is_name: bool,
    ) -> Option<Token<'t>> {
        if self.apart_from.is_some() || raw.is_empty() {
            return None;
        }
        // Elements of an array belong to the member that the array is the value of.
        let known = self.depth == self.open.len();
        let key = self.open.iter().rev().take(2).find_map(Clone::clone);
        Some(Token {
            raw,
            start,
            end,
            is_string,
            is_name,
            key: key.filter(|_| known && !is_name),
        })
    }
}
