//! Why a command failed, and what to do about it.

use std::io::{self, Write};

use super::{FAILED, MISUSED, OK};
use crate::compile::CompileError;
use crate::error::{LoadError, SetError};
use crate::population::PlanError;
use crate::regimen::RegimenError;
use crate::run::RunFailure;
use crate::watch::Interrupt;

/// A message, perhaps a hint, and the exit code.
pub(super) struct CommandFailure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl CommandFailure {
    /// Returns a request that makes no sense.
    pub(super) fn misuse(message: String) -> Self {
        Self {
            message,
            hint: None,
            code: MISUSED,
        }
    }

    /// Something that did not work.
    pub(super) fn failure(message: String) -> Self {
        Self {
            message,
            hint: None,
            code: FAILED,
        }
    }

    /// Something that could not be written, or that took too long.
    pub(super) fn not_written(e: &io::Error, what: &str) -> Self {
        Self::failure(match interrupt(e) {
            Some(cause) => format!("{cause} while results were written"),
            None => format!("{what}: {e}"),
        })
    }

    pub(super) fn with_hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }

    /// Writes the message and returns the code. A reader that went away is no failure.
    pub(super) fn report(&self, err: &mut (dyn Write + Send)) -> u8 {
        if self.code == OK {
            return OK;
        }
        let hint = self
            .hint
            .as_ref()
            .map(|h| format!("hint: {h}\n"))
            .unwrap_or_default();
        // A failed write has no other output.
        let _ = write!(err, "error: {}\n{hint}", self.message);
        self.code
    }
}

/// What asked the reading or writing to stop, if that is why it failed.
pub(super) fn interrupt(e: &io::Error) -> Option<Interrupt> {
    e.get_ref()?.downcast_ref::<Interrupt>().copied()
}

impl From<io::Error> for CommandFailure {
    fn from(e: io::Error) -> Self {
        if e.kind() == io::ErrorKind::BrokenPipe {
            return Self {
                message: String::new(),
                hint: None,
                code: OK,
            };
        }
        Self::not_written(&e, "cannot write")
    }
}

impl From<LoadError> for CommandFailure {
    fn from(e: LoadError) -> Self {
        let hint = match &e {
            LoadError::UnsupportedRoot { .. } => {
                Some("export the simulation itself (not a building block) from PK-Sim or MoBi")
            }
            LoadError::Xml { .. } => Some("the file may be cut off; export or copy it again"),
            LoadError::ChangedWhileRead { .. } => {
                Some("wait until the file is written, then try again")
            }
            _ => None,
        };
        Self {
            message: e.to_string(),
            hint: hint.map(str::to_owned),
            code: FAILED,
        }
    }
}

impl From<RegimenError> for CommandFailure {
    fn from(e: RegimenError) -> Self {
        match e {
            RegimenError::Interrupted { .. }
            | RegimenError::Run { .. }
            | RegimenError::Unsteady { .. } => Self::failure(e.to_string()),
            _ => Self::misuse(e.to_string()),
        }
    }
}

impl From<SetError> for CommandFailure {
    fn from(e: SetError) -> Self {
        let hint = match &e {
            SetError::UnknownPath { .. } => Some(
                "`durward sim params MODEL 'PATTERN'` lists paths; * stands for part of a name, ** for any number of levels",
            ),
            _ => None,
        };
        Self {
            message: e.to_string(),
            hint: hint.map(str::to_owned),
            code: MISUSED,
        }
    }
}

impl From<CompileError> for CommandFailure {
    fn from(e: CompileError) -> Self {
        Self::failure(e.to_string())
    }
}

impl From<PlanError> for CommandFailure {
    fn from(e: PlanError) -> Self {
        match e {
            PlanError::Set(e) => e.into(),
            PlanError::Compile(e) => e.into(),
            PlanError::Interrupted(_) => Self::failure(e.to_string()),
        }
    }
}

impl From<Box<RunFailure>> for CommandFailure {
    fn from(e: Box<RunFailure>) -> Self {
        Self::failure(e.to_string())
    }
}
