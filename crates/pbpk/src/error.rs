//! What can go wrong while a model is read, changed or bound, each with its place.

use std::fmt;

use crate::formula::FormulaError;
use crate::watch::Interrupt;

/// Why a file could not become a model.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadError {
    /// The file could not be opened or read.
    Io {
        /// The file as it was named.
        file: String,
        /// The system's words.
        message: String,
    },
    /// The file had another size or time after reading than before.
    ChangedWhileRead {
        /// The file as it was named.
        file: String,
    },
    /// The text is not well-formed XML, or is cut off.
    Xml {
        /// Line, from 1.
        line: u64,
        /// Fault, for people.
        message: String,
    },
    /// A named bound was crossed.
    Limit {
        /// Name of the bound, with its unit.
        what: &'static str,
        /// The bound.
        limit: u64,
        /// Line, from 1 (0: before any line).
        line: u64,
    },
    /// A project of PK-Sim or MoBi, which holds simulations and is none.
    Project,
    /// The document is something else than a simulation.
    UnsupportedRoot {
        /// The root element found.
        found: String,
    },
    /// An element or attribute that must be there is not, or says nothing usable.
    Invalid {
        /// Line, from 1 (0: known only after the whole file was read).
        line: u64,
        /// Fault, for people.
        message: String,
    },
    /// An id that no object in the file has.
    UnknownId {
        /// The id.
        id: String,
        /// Who names it.
        used_by: String,
    },
    /// A path that leads nowhere from the object that uses it.
    UnresolvedPath {
        /// The path as written.
        path: String,
        /// The object with the formula that uses it.
        used_by: String,
    },
    /// A formula that cannot be understood.
    Formula {
        /// The object or formula it belongs to.
        owner: String,
        /// The text.
        text: String,
        /// What and where.
        source: FormulaError,
    },
    /// Quantities that define each other.
    Cycle {
        /// Their paths, each using the next, the last the first.
        paths: Vec<String>,
    },
    /// The caller asked to stop.
    Interrupted {
        /// Who asked.
        cause: Interrupt,
    },
}

impl From<Interrupt> for LoadError {
    fn from(cause: Interrupt) -> Self {
        Self::Interrupted { cause }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, message } => write!(f, "cannot read {file}: {message}"),
            Self::ChangedWhileRead { file } => write!(
                f,
                "{file} changed while it was read; read it again when it is complete"
            ),
            Self::Xml { line, message } => write!(f, "line {line}: not well-formed xml: {message}"),
            Self::Limit { what, limit, line } => write!(f, "line {line}: more than {limit} {what}"),
            Self::Project => f.write_str(
                "this is a project of PK-Sim or MoBi (.pksim5, .mbp3), not a simulation; open it there, export the simulation as .pkml (\"Export to MoBi...\" in PK-Sim, \"Save as pkml\" in MoBi) and give that file",
            ),
            Self::UnsupportedRoot { found } => {
                write!(
                    f,
                    "unsupported root element '{found}': expected SimulationTransfer (pkml) or Simulation (SimModel xml)"
                )
            }
            Self::Invalid { line: 0, message } => write!(f, "{message}"),
            Self::Invalid { line, message } => write!(f, "line {line}: {message}"),
            Self::UnknownId { id, used_by } => write!(f, "unknown id '{id}' used by {used_by}"),
            Self::UnresolvedPath { path, used_by } => {
                write!(f, "path '{path}' used by {used_by} leads to nothing")
            }
            Self::Formula {
                owner,
                text,
                source,
            } => write!(f, "formula of {owner}: {source} in '{text}'"),
            Self::Cycle { paths } => write!(f, "cyclic formulas: {}", paths.join(" -> ")),
            Self::Interrupted { cause } => write!(f, "{cause} while the model was read"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Why a parameter could not be set.
#[derive(Debug, Clone, PartialEq)]
pub enum SetError {
    /// No quantity has this path.
    UnknownPath {
        /// The path asked for.
        path: String,
        /// The most similar paths of the model, best first.
        nearest: Vec<String>,
    },
    /// The path names several quantities instead of one.
    Ambiguous {
        /// The path asked for.
        path: String,
        /// How many it names.
        count: usize,
    },
    /// Observers and variables with a rate cannot be set to a constant.
    NotSettable {
        /// The path.
        path: String,
        /// Why not.
        reason: &'static str,
    },
    /// The value is not a number.
    NotANumber {
        /// The path.
        path: String,
    },
    /// The value lies outside the bounds of the file.
    OutOfRange {
        /// The path.
        path: String,
        /// The value, in base units.
        value: f64,
        /// The lower bound, if any.
        min: Option<f64>,
        /// The upper bound, if any.
        max: Option<f64>,
    },
    /// The unit does not belong to the quantity's dimension.
    Unit {
        /// The path.
        path: String,
        /// The unit asked for.
        unit: String,
        /// What would be accepted.
        accepted: Vec<String>,
    },
    /// The change would make quantities define each other.
    Cycle {
        /// Their paths.
        paths: Vec<String>,
    },
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPath { path, nearest } => {
                write!(f, "no quantity has the path '{path}'")?;
                if nearest.is_empty() {
                    Ok(())
                } else {
                    write!(f, "; nearest: {}", nearest.join(", "))
                }
            }
            Self::Ambiguous { path, count } => {
                write!(f, "'{path}' names {count} quantities, one is needed")
            }
            Self::NotSettable { path, reason } => write!(f, "'{path}' cannot be set: {reason}"),
            Self::NotANumber { path } => write!(f, "the value for '{path}' is not a number"),
            Self::OutOfRange {
                path,
                value,
                min,
                max,
            } => {
                write!(f, "{value} is outside the range of '{path}' (")?;
                match (min, max) {
                    (Some(a), Some(b)) => write!(f, "{a} to {b})"),
                    (Some(a), None) => write!(f, "at least {a})"),
                    (None, Some(b)) => write!(f, "at most {b})"),
                    (None, None) => write!(f, "no bounds)"),
                }
            }
            Self::Unit {
                path,
                unit,
                accepted,
            } => {
                write!(
                    f,
                    "unit '{unit}' does not fit '{path}'; accepted: {}",
                    accepted.join(", ")
                )
            }
            Self::Cycle { paths } => write!(f, "cyclic formulas: {}", paths.join(" -> ")),
        }
    }
}

impl std::error::Error for SetError {}
