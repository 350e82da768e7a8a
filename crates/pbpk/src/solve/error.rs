//! Why an integration stopped.

use std::fmt;

use crate::watch::Interrupt;

/// Why an integration stopped. Times are in the unit of the system.
#[derive(Debug, Clone, PartialEq)]
pub enum SolveError {
    /// An option has a value that makes no sense.
    Option {
        /// Which one.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The expected value.
        rule: &'static str,
    },
    /// The Jacobian pattern is malformed.
    Pattern {
        /// Column at fault.
        column: usize,
        /// Its fault.
        what: &'static str,
    },
    /// A slice or a pattern does not have the dimension of the system.
    Dimension {
        /// States of the system.
        expected: usize,
        /// The given value.
        found: usize,
    },
    /// `advance_to` before `start`.
    NotStarted,
    /// The time asked for lies before the last step.
    Behind {
        /// Time asked for.
        time: f64,
        /// Earliest time that can still be given.
        earliest: f64,
    },
    /// The time asked for lies after the stop time, or is not a number.
    PastStop {
        /// Time asked for.
        time: f64,
        /// Stop time.
        stop: f64,
    },
    /// More internal steps than allowed between two output times.
    TooManySteps {
        /// Time reached.
        time: f64,
        /// The limit.
        limit: usize,
    },
    /// The local error could not be brought below the tolerance.
    ErrorTest {
        /// Time reached.
        time: f64,
        /// Step at which it was given up.
        step: f64,
    },
    /// Newton's iteration did not converge even with a fresh Jacobian and tiny steps.
    Convergence {
        /// Time reached.
        time: f64,
        /// Step at which it was given up.
        step: f64,
    },
    /// The right-hand side is not finite at the start.
    NonFiniteStart {
        /// Start time.
        time: f64,
        /// First state with a derivative that is not finite.
        state: usize,
    },
    /// The right-hand side was not finite too often.
    NonFinite {
        /// Time reached.
        time: f64,
        /// First state with a derivative that is not finite.
        state: usize,
        /// How often.
        count: usize,
    },
    /// A state is exactly zero (or not a number) although its tolerance is relative only.
    Weight {
        /// Time reached.
        time: f64,
        /// The state.
        state: usize,
    },
    /// The tolerances ask for more digits than double precision has.
    TooAccurate {
        /// Time reached.
        time: f64,
        /// Factor by which the tolerances would have to grow.
        factor: f64,
    },
    /// The caller asked to stop.
    Interrupted {
        /// Time reached.
        time: f64,
        /// Who asked.
        cause: Interrupt,
    },
}

impl fmt::Display for SolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option { name, value, rule } => write!(f, "{name} {value} {rule}"),
            Self::Pattern { column, what } => {
                write!(f, "jacobian pattern, column {column}: {what}")
            }
            Self::Dimension { expected, found } => {
                write!(f, "expected {expected} values, found {found}")
            }
            Self::NotStarted => f.write_str("the solver was not given a start point"),
            Self::Behind { time, earliest } => {
                write!(
                    f,
                    "output time {time} lies before {earliest}; ask for times in ascending order"
                )
            }
            Self::PastStop { time, stop } => {
                write!(f, "output time {time} lies after the stop time {stop}")
            }
            Self::TooManySteps { time, limit } => {
                write!(
                    f,
                    "too much work: more than {limit} steps between two output times, at t = {time}; raise the step limit or loosen the tolerances"
                )
            }
            Self::ErrorTest { time, step } => {
                write!(
                    f,
                    "error test failed repeatedly at t = {time} with step {step}; loosen the tolerances or look for a discontinuity there"
                )
            }
            Self::Convergence { time, step } => {
                write!(
                    f,
                    "corrector did not converge at t = {time} with step {step}; look for a formula that jumps or grows without bound there"
                )
            }
            Self::NonFiniteStart { time, state } => {
                write!(
                    f,
                    "the derivative of state {state} is not finite at the start, t = {time}"
                )
            }
            Self::NonFinite { time, state, count } => {
                write!(
                    f,
                    "{count} right-hand sides were not finite, last for state {state} at t = {time}"
                )
            }
            Self::Weight { time, state } => {
                write!(
                    f,
                    "state {state} has no usable tolerance at t = {time}; give an absolute tolerance above zero"
                )
            }
            Self::TooAccurate { time, factor } => {
                write!(
                    f,
                    "tolerances too tight for double precision at t = {time}; raise them by at least {factor}"
                )
            }
            Self::Interrupted { time, cause } => write!(f, "{cause} at t = {time}"),
        }
    }
}

impl std::error::Error for SolveError {}
