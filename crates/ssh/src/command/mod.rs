//! What a command is: read into words once, judged by them, and written for the login shell so that the
//! program gets exactly these words.
//!
//! Nothing expands: `*`, `~` and `$HOME` are the characters that they are. What only a shell can do (pipes,
//! redirections, substitutions, a second command) cannot be read, and is refused before anything else.

mod context;
mod looks;
mod program;
mod quote;
mod words;

use std::fmt;

pub use context::{Context, VALUE_CHARS_MAX, VARIABLES_MAX, check_name, is_of};
pub(crate) use program::SUDO;
pub use program::{Operand, Part, Uses};
pub use quote::{QuoteFault, quoted};
pub use words::{COMMAND_CHARS_MAX, WORDS_MAX};

/// A command, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    argv: Vec<String>,
}

/// Why a text is no command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFault {
    /// What is wrong and what to do, lowercase.
    pub wrong: String,
}

impl CommandFault {
    fn new(wrong: impl Into<String>) -> Self {
        Self {
            wrong: wrong.into(),
        }
    }
}

impl fmt::Display for CommandFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.wrong)
    }
}

impl std::error::Error for CommandFault {}

impl Command {
    /// Reads a line as a shell reads quotes, and no further.
    ///
    /// # Errors
    /// [`CommandFault`] for what is not one program with its words.
    pub fn read(line: &str) -> Result<Self, CommandFault> {
        Self::of(words::read(line)?)
    }

    /// A command of these words.
    ///
    /// # Errors
    /// [`CommandFault`] where they have no program, or one that cannot be named, or characters that no word
    /// may have.
    pub fn of(argv: Vec<String>) -> Result<Self, CommandFault> {
        let Some(program) = argv.first() else {
            return Err(CommandFault::new("the command is empty"));
        };
        words::check_program(program)?;
        if program == SUDO {
            // Its options change who runs what; a word with a = would set a variable.
            match argv.get(1) {
                Some(inner) if inner != SUDO && !inner.starts_with('-') && !inner.contains('=') => {
                    words::check_program(inner)?;
                }
                _ => {
                    let wrong = "sudo takes no options here: write sudo PROGRAM WORDS";
                    return Err(CommandFault::new(wrong));
                }
            }
        }
        for word in &argv {
            words::check_characters(word)?;
        }
        if argv.len() > WORDS_MAX {
            return Err(CommandFault::new(format!(
                "the command has more than {WORDS_MAX} words"
            )));
        }
        Ok(Self { argv })
    }

    /// The program, as written.
    #[must_use]
    pub fn program(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    /// All words, the program first.
    #[must_use]
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// What is known of what it does and of its operands.
    #[must_use]
    pub fn uses(&self) -> Uses<'_> {
        program::uses(&self.argv)
    }

    /// The same command with other places for its paths, in the order of its operands.
    ///
    /// # Errors
    /// [`CommandFault`] where a place has characters that no word may have.
    pub(crate) fn with_paths(
        &self,
        uses: &Uses<'_>,
        places: &mut impl Iterator<Item = String>,
    ) -> Result<Self, CommandFault> {
        let mut argv = self.argv.clone();
        let paths = uses.operands.iter().filter(|o| o.part == Part::Path);
        for operand in paths {
            let (Some(word), Some(place)) = (argv.get_mut(operand.word), places.next()) else {
                return Err(CommandFault::new("a path has no place"));
            };
            let before = word.len().saturating_sub(operand.text.len());
            word.truncate(before);
            word.push_str(&place);
        }
        Self::of(argv)
    }

    /// As the login shell is to read it.
    ///
    /// # Errors
    /// [`QuoteFault`] where it would be longer than servers take.
    pub fn quoted(&self) -> Result<String, QuoteFault> {
        quoted(&self.argv)
    }
}

#[cfg(test)]
mod tests;
