//! An arm: a name and the command that is measured under it.

use crate::error::LabError;
use serde::Serialize;
use std::ffi::{OsStr, OsString};

/// A command under a name.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Arm {
    /// How reports call it.
    pub(crate) name: String,
    /// The program and its arguments.
    #[serde(serialize_with = "as_text")]
    command: Vec<OsString>,
}

fn as_text<S: serde::Serializer>(command: &[OsString], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(command.iter().map(|word| word.to_string_lossy()))
}

impl Arm {
    /// An arm of words that are already apart.
    pub(crate) fn new(name: impl Into<String>, command: Vec<OsString>) -> Self {
        Self {
            name: name.into(),
            command,
        }
    }

    /// An arm of a command line, split as a POSIX shell splits words; nothing is expanded.
    pub(crate) fn parse(name: &str, line: &str) -> Result<Self, LabError> {
        let words = split(line)
            .map_err(|what| LabError::Usage(format!("the command of arm {name} {what}: {line}")))?;
        if words.is_empty() {
            return Err(LabError::Usage(format!("arm {name} has no command")));
        }
        Ok(Self::new(
            name,
            words.into_iter().map(OsString::from).collect(),
        ))
    }

    pub(crate) fn program(&self) -> &OsStr {
        self.command.first().map_or(OsStr::new(""), |word| word)
    }

    pub(crate) fn arguments(&self) -> &[OsString] {
        self.command.get(1..).unwrap_or_default()
    }
}

fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = letters.next().ok_or("ends with a backslash")?;
                // Between double quotes only these lose their backslash.
                if quote.is_some() && !matches!(next, '"' | '\\' | '$' | '`') {
                    word.get_or_insert_default().push('\\');
                }
                word.get_or_insert_default().push(next);
            }
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            (_, other) => word.get_or_insert_default().push(other),
        }
    }
    if quote.is_some() {
        return Err("has a quote that is not closed");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_as_a_shell_splits_them() {
        for (line, expect) in [
            ("a b  c", &["a", "b", "c"][..]),
            ("a 'b c' \"d e\"", &["a", "b c", "d e"]),
            (r#"a\ b "c\"d" "e\n""#, &["a b", "c\"d", "e\\n"]),
            ("'' x", &["", "x"]),
            (r"'a\b'c", &["a\\bc"]),
            ("  ", &[]),
        ] {
            assert_eq!(split(line).unwrap(), expect, "{line}");
        }
        assert!(split("a 'b").is_err());
        assert!(split("a \\").is_err());
    }
}
