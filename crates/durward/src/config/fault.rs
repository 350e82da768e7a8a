//! What is wrong with a configuration: where, what, and how to mend it.

use std::fmt;

/// A place in a file, counted from 1; columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a configuration cannot be used. Never holds a value that came from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub at: Position,
    /// Lowercase sentence.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Fault {
    pub fn new(at: Position, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            hint: None,
        }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
