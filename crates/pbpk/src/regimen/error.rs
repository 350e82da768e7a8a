//! Why a regimen cannot be given.

use std::fmt;

use crate::watch::Interrupt;

/// Why a regimen cannot be given to a model.
#[derive(Debug, Clone, PartialEq)]
pub enum RegimenError {
    /// The text is no regimen.
    Notation {
        /// The text.
        text: String,
        /// The fault, and the notation.
        what: String,
    },
    /// The model has no such application, or several.
    Container {
        /// Name of the application in the regimen.
        wanted: String,
        /// Containers of the applications of the model.
        known: Vec<String>,
    },
    /// The application does not take it.
    Unfit {
        /// Its container.
        container: String,
        /// Why.
        what: String,
    },
    /// A bound was crossed.
    TooMany {
        /// Name of the bound.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// No steady state.
    Unsteady {
        /// Doses that were tried.
        doses: usize,
        /// Outputs that still change.
        outputs: Vec<String>,
    },
    /// The model cannot be run to its steady state.
    Run {
        /// The error of the run.
        message: String,
    },
    /// The caller asked to stop.
    Interrupted {
        /// Who asked.
        cause: Interrupt,
    },
}

impl From<Interrupt> for RegimenError {
    fn from(cause: Interrupt) -> Self {
        Self::Interrupted { cause }
    }
}

impl fmt::Display for RegimenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Notation { text, what } => write!(f, "regimen '{text}': {what}"),
            Self::Container { wanted, known } if known.is_empty() => write!(
                f,
                "the model has no application for the regimen{wanted}: none of its containers has a Start time and a dose"
            ),
            Self::Container { wanted, known } => write!(
                f,
                "name one application for the regimen{wanted} with container=PATH; the model has {}",
                known.join(", ")
            ),
            Self::Unfit { container, what } => write!(f, "the application '{container}' {what}"),
            Self::TooMany { what, limit } => write!(f, "the regimen has more than {limit} {what}"),
            Self::Unsteady { doses, outputs } => write!(
                f,
                "no steady state after {doses} doses: {} of the outputs still change, {} among them",
                outputs.len(),
                outputs.first().map_or("", String::as_str)
            ),
            Self::Run { message } => write!(f, "the steady state cannot be found: {message}"),
            Self::Interrupted { cause } => write!(f, "{cause} while doses were added"),
        }
    }
}

impl std::error::Error for RegimenError {}
