//! Why a run ended early.

use std::fmt;

use crate::solve::{Interrupt, SolveError, SolverStatistics};

/// Why a run ended early. Times are in minutes.
#[derive(Debug, Clone, PartialEq)]
pub enum RunError {
    /// No output time above 0.
    EmptyGrid,
    /// A value that cannot be compared with an observation: no number, or not positive where logarithms are compared.
    NotComparable {
        /// Time of the observation.
        time: f64,
        /// The value.
        value: f64,
    },
    /// Derivatives by this quantity are not defined, or not known to be complete.
    NoDerivative {
        /// Its path.
        path: String,
        /// Why.
        reason: String,
    },
    /// A start value is negative although that is forbidden.
    NegativeStart {
        /// Paths.
        paths: Vec<String>,
        /// Start time.
        time: f64,
    },
    /// A state became negative although that is forbidden.
    Negative {
        /// Paths.
        paths: Vec<String>,
        /// Output time.
        time: f64,
    },
    /// An event made quantities define each other.
    Cycle {
        /// Their paths.
        paths: Vec<String>,
        /// Time of the event.
        time: f64,
    },
    /// Start values or rates are not finite.
    CannotStart {
        /// Path of the first such state.
        path: String,
        /// Start time.
        time: f64,
    },
    /// More internal steps than allowed before an output time.
    TooMuchWork {
        /// The output time on the way to which it happened.
        time: f64,
        /// The time reached.
        reached: f64,
        /// The step limit.
        limit: usize,
    },
    /// The solver gave up.
    Solver {
        /// The output time on the way to which it happened.
        time: f64,
        /// The state at fault, if one is known.
        path: Option<String>,
        /// The solver's reason.
        source: SolveError,
    },
    /// The caller asked to stop.
    Interrupted {
        /// Time reached.
        time: f64,
        /// Who asked.
        cause: Interrupt,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotComparable { time, value } => {
                write!(
                    f,
                    "the value {value} at t = {time} cannot be compared with the observation"
                )
            }
            Self::NoDerivative { path, reason } => {
                write!(f, "no derivatives by '{path}': {reason}")
            }
            Self::EmptyGrid => {
                f.write_str("the output grid is empty: at least one output time must be above 0")
            }
            Self::NegativeStart { paths, time } => {
                write!(
                    f,
                    "negative initial value at t = {time} of {}, which must not be negative",
                    paths.join(", ")
                )
            }
            Self::Negative { paths, time } => {
                write!(
                    f,
                    "negative value at t = {time} of {}, which must not be negative; tighten the tolerances or allow negative values",
                    paths.join(", ")
                )
            }
            Self::Cycle { paths, time } => write!(
                f,
                "cyclic formulas through an event at t = {time}: {}",
                paths.join(" -> ")
            ),
            Self::CannotStart { path, time } => write!(
                f,
                "the model cannot start at t = {time}: '{path}' or its rate is not finite"
            ),
            Self::TooMuchWork {
                time,
                reached,
                limit,
            } => write!(
                f,
                "too much work on the way to t = {time}: more than {limit} internal steps (the step limit, MxStep), reached t = {reached}; raise the limit or loosen the tolerances"
            ),
            Self::Solver { time, path, source } => {
                write!(f, "on the way to t = {time}: {source}")?;
                path.as_ref()
                    .map_or(Ok(()), |path| write!(f, " ('{path}')"))
            }
            Self::Interrupted { time, cause } => write!(f, "{cause} at t = {time}"),
        }
    }
}

impl std::error::Error for RunError {}

impl RunError {
    /// Returns whether the genuine solver starts again with tighter tolerances after this.
    pub(super) fn asks_for_tolerances(&self) -> bool {
        matches!(
            self,
            Self::Solver {
                source: SolveError::ErrorTest { .. } | SolveError::Convergence { .. },
                ..
            }
        )
    }
}

/// An error of a run and what was noted until then.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFailure {
    /// What ended the run.
    pub error: RunError,
    /// Warnings, the error's own text last.
    pub warnings: Vec<String>,
    /// Counts.
    pub statistics: SolverStatistics,
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for RunFailure {}
