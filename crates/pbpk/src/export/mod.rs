//! Models as files of other formats.
//!
//! Invariants: a model that a format cannot express is refused with the object's path, never left out or bent; numbers
//! are written in the shortest form that reads back to the same bits; nothing is read or run. A text is whole before
//! the first byte of it is written, so that a refusal or an interruption leaves no half of one behind.

mod pkml;
mod sbml;
mod simmodel;
mod xml;

pub use pkml::{pkml_with_values, pkml_with_values_watched};
pub use sbml::{sbml, sbml_watched};
pub use simmodel::{simmodel, simmodel_watched};

use std::fmt;
use std::io;

use crate::watch::{Interrupt, Watch};

/// Bytes of text that make a unit of work.
const BYTES_OF_A_UNIT: usize = 256;

/// Why a model cannot be written.
#[derive(Debug)]
pub enum ExportError {
    /// The writer failed.
    Io(io::Error),
    /// The format cannot say this.
    Unsupported {
        /// The format.
        format: &'static str,
        /// Path or name of the object.
        object: String,
        /// What cannot be said.
        what: String,
    },
    /// The caller asked to stop.
    Interrupted(Interrupt),
}

impl ExportError {
    fn unsupported(format: &'static str, object: &str, what: impl Into<String>) -> Self {
        Self::Unsupported {
            format,
            object: object.to_owned(),
            what: what.into(),
        }
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => write!(f, "cannot write the export: {e}"),
            Self::Unsupported {
                format,
                object,
                what,
            } => write!(f, "{format} cannot express '{object}': {what}"),
            Self::Interrupted(cause) => write!(f, "{cause} while the model was exported"),
        }
    }
}

impl std::error::Error for ExportError {}

/// Counts text that was made.
fn count_text(bytes: usize, watch: &Watch<'_>) -> Result<(), Interrupt> {
    watch.work(1 + bytes / BYTES_OF_A_UNIT)
}

impl From<Interrupt> for ExportError {
    fn from(cause: Interrupt) -> Self {
        Self::Interrupted(cause)
    }
}

impl From<io::Error> for ExportError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}
