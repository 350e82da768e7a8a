//! Reading JSON with positions, so that an error in a policy can say where.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A policy that cannot be used: where, what, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Lowercase sentence.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.message
        )?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PolicyError {}

/// The text being read.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    pub text: &'a str,
}

/// One member of an object: its name, where the name's value stands, and the value.
pub(super) struct Entry<'a> {
    pub name: Cow<'a, str>,
    pub value: &'a RawValue,
}

impl<'a> Document<'a> {
    /// An error at a slice of the text.
    pub fn error(self, at: &str, message: impl Into<String>, hint: Option<String>) -> PolicyError {
        let offset = (at.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        self.error_at(offset.min(self.text.len()), message, hint)
    }

    fn error_at(
        self,
        offset: usize,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> PolicyError {
        let before = self.text.get(..offset).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        PolicyError {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            message: message.into(),
            hint,
        }
    }

    /// Where the character of this number stands in a string as it is written, quotes and escapes
    /// included.
    pub fn inside(written: &str, number: usize) -> &str {
        let mut rest = written.get(1..).unwrap_or(written);
        for _ in 0..number {
            let pair = rest.get(6..).is_some_and(|next| next.starts_with("\\u"));
            let high = rest
                .get(2..6)
                .and_then(|hex| u16::from_str_radix(hex, 16).ok())
                .is_some_and(|unit| (0xd800..0xdc00).contains(&unit));
            let length = match rest.as_bytes() {
                [b'\\', b'u', ..] if high && pair => 12,
                [b'\\', b'u', ..] => 6,
                [b'\\', ..] => 2,
                _ => rest.chars().next().map_or(0, char::len_utf8),
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        rest
    }

    /// An error of the JSON reader within `part` of the text.
    pub fn json_error(self, part: &str, error: &serde_json::Error) -> PolicyError {
        let text = error.to_string();
        let message = text
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned();
        let start = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let line = error.line().max(1) - 1;
        let line_start: usize = part.split_inclusive('\n').take(line).map(str::len).sum();
        let offset = start + line_start + error.column().saturating_sub(1);
        self.error_at(offset.min(self.text.len()), message, None)
    }

    /// The members of an object, each name once.
    pub fn entries(self, part: &'a str) -> Result<Vec<Entry<'a>>, PolicyError> {
        let entries: Entries<'a> =
            serde_json::from_str(part).map_err(|e| self.json_error(part, &e))?;
        for (at, entry) in entries.0.iter().enumerate() {
            if entries
                .0
                .iter()
                .take(at)
                .any(|earlier| earlier.name == entry.name)
            {
                return Err(self.error(
                    entry.value.get(),
                    format!("\"{}\" is given twice", entry.name),
                    Some("keep one of the two".into()),
                ));
            }
        }
        Ok(entries.0)
    }

    /// The elements of a list.
    pub fn list(self, part: &'a str) -> Result<Vec<&'a RawValue>, PolicyError> {
        serde_json::from_str(part).map_err(|e| self.json_error(part, &e))
    }

    /// A string.
    pub fn string(self, value: &'a RawValue, what: &str) -> Result<String, PolicyError> {
        serde_json::from_str(value.get()).map_err(|_| {
            self.error(
                value.get(),
                format!("{what} is not a string"),
                Some("put it in double quotes".into()),
            )
        })
    }

    /// A string or a list of strings, with where each stands.
    pub fn strings(
        self,
        value: &'a RawValue,
        what: &str,
    ) -> Result<Vec<(String, &'a str)>, PolicyError> {
        if value.get().starts_with('[') {
            self.list(value.get())?
                .into_iter()
                .map(|element| Ok((self.string(element, what)?, element.get())))
                .collect()
        } else {
            let message = format!("{what} is neither a string nor a list of strings");
            let text = serde_json::from_str(value.get())
                .map_err(|_| self.error(value.get(), message, None))?;
            Ok(vec![(text, value.get())])
        }
    }

    /// An unknown name, with the nearest that is known. Points at the name.
    pub fn unknown(self, entry: &Entry<'a>, what: &str, known: &[&str]) -> PolicyError {
        let value = entry.value.get();
        let offset = (value.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..offset).unwrap_or_default();
        // An escaped name is not found by its text; then the value has to do.
        let at = before
            .rfind(&format!("\"{}\"", entry.name))
            .and_then(|at| self.text.get(at..));
        self.unknown_word(at.unwrap_or(value), &entry.name, what, known)
    }

    /// An unknown word, with the nearest that is known.
    pub fn unknown_word(self, at: &str, word: &str, what: &str, known: &[&str]) -> PolicyError {
        let hint = nearest(word, known).map_or_else(
            || format!("known are: {}", known.join(", ")),
            |near| format!("did you mean \"{near}\"?"),
        );
        self.error(at, format!("unknown {what} \"{word}\""), Some(hint))
    }
}

/// The nearest of `known` to `word`, if it is near enough to be meant.
#[must_use]
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

struct Entries<'a>(Vec<Entry<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<Entry<'de>>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    entries.push(Entry {
                        name: Cow::Owned(name),
                        value,
                    });
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(Reader).map(Entries)
    }
}
