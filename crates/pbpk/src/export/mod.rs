//! Models as files of other formats.
//!
//! Invariants: what a format cannot say is refused with the object's path, never left out or bent; numbers
//! are written in the shortest form that reads back to the same bits; nothing is read or run.

mod pkml;
mod sbml;
mod simmodel;
mod xml;

pub use pkml::pkml_with_values;
pub use sbml::sbml;
pub use simmodel::simmodel;

use std::fmt;
use std::io;

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
        }
    }
}

impl std::error::Error for ExportError {}

impl From<io::Error> for ExportError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}
