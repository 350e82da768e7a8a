//! An arm: a name and the command that is measured under it.

use crate::error::LabError;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A command under a name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Arm {
    /// How reports call it.
    pub(crate) name: String,
    /// The program and its arguments.
    #[serde(serialize_with = "as_text", deserialize_with = "of_text")]
    command: Vec<OsString>,
    /// Where it writes a journal, if it does: its stages are held against the watch.
    #[serde(skip)]
    journal: Option<PathBuf>,
    /// Where it makes its control socket, if that is known: a person can sit there.
    #[serde(skip)]
    control: Option<PathBuf>,
    /// A variable of the environment that it does not get.
    #[serde(skip)]
    hidden_variable: Option<&'static str>,
}

fn of_text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<OsString>, D::Error> {
    let words = Vec::<String>::deserialize(from)?;
    Ok(words.into_iter().map(OsString::from).collect())
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
            journal: None,
            control: None,
            hidden_variable: None,
        }
    }

    /// The same arm with more words behind its own.
    pub(crate) fn before(mut self, words: &[OsString]) -> Self {
        self.command.extend(words.iter().cloned());
        self
    }

    /// The same arm under another name.
    pub(crate) fn named(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// The same arm, whose journal lies in this directory.
    pub(crate) fn with_journal(self, directory: PathBuf) -> Self {
        Self {
            journal: Some(directory),
            ..self
        }
    }

    /// The same arm, whose control socket is made in this directory.
    pub(crate) fn with_control(self, directory: PathBuf) -> Self {
        Self {
            control: Some(directory),
            ..self
        }
    }

    /// The same arm, which does not get this variable.
    pub(crate) fn without_variable(self, name: &'static str) -> Self {
        Self {
            hidden_variable: Some(name),
            ..self
        }
    }

    /// Where its control socket is.
    pub(crate) fn control(&self) -> Option<&Path> {
        self.control.as_deref()
    }

    /// The variable that is kept from it.
    pub(crate) fn hidden_variable(&self) -> Option<&'static str> {
        self.hidden_variable
    }

    /// Where it writes a journal.
    pub(crate) fn journal(&self) -> Option<&Path> {
        self.journal.as_deref()
    }

    /// Its words.
    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
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
