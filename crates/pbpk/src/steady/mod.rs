//! The steady state of an individual: the end values of its states without further changes.
//!
//! The model is run to a time and to twice that time; if no state differs between the two, that is the steady state,
//! else the time is made longer. Events and infusions act as in any run, so a model that is dosed again and again has
//! none.

use std::fmt;

use crate::compile::Instance;
use crate::run::{Results, RunFailure, RunOptions, run};

/// Runs are at least as tight as this, so that their own errors do not look like changes.
const REL_TOL_MAX: f64 = 1e-8;
/// Differences of so many absolute tolerances count as none.
const ABS_TOLS: f64 = 100.0;
/// By how much the time grows from one attempt to the next.
const GROWTH: f64 = 4.0;
/// A file's longest step fits its own span of hours; over years it is raised to this part of the time that is run.
const STEPS_MIN: f64 = 2000.0;

/// What counts as steady, and how long is waited for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyOptions {
    /// Largest change relative to the value.
    pub change_max: f64,
    /// First time that is looked at, in minutes.
    pub from: f64,
    /// Longest time that is run to, in minutes.
    pub until: f64,
}

impl Default for SteadyOptions {
    fn default() -> Self {
        Self {
            change_max: 1e-6,
            from: 1440.0,
            until: 1e8,
        }
    }
}

/// Values at the end, by output of the individual's structure.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyState {
    /// When nothing changed any more, in minutes.
    pub time: f64,
    /// The values then.
    pub values: Vec<f64>,
}

/// Why there is no steady state.
#[derive(Debug)]
pub enum SteadyError {
    /// A run failed.
    Run(Box<RunFailure>),
    /// Something still changes.
    Changing {
        /// Until when it was run, in minutes.
        time: f64,
        /// Places among the outputs of what still changes.
        outputs: Vec<usize>,
    },
}

impl fmt::Display for SteadyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(failure) => failure.error.fmt(f),
            Self::Changing { time, outputs } => {
                let count = outputs.len();
                write!(f, "{count} states still change after {time} min")
            }
        }
    }
}

impl std::error::Error for SteadyError {}

/// Looks for the steady state of all outputs but those that `ignored` names by place.
///
/// # Errors
/// [`SteadyError`].
pub fn steady(
    individual: &Instance,
    ignored: &[usize],
    wanted: &SteadyOptions,
    options: &RunOptions<'_>,
) -> Result<SteadyState, SteadyError> {
    let file = individual.structure().model().solver;
    let rel_tol = options.rel_tol.unwrap_or(file.rel_tol).min(REL_TOL_MAX);
    let mut span = wanted.from;
    loop {
        let times = [span, 2.0 * span];
        let tight = RunOptions {
            rel_tol: Some(rel_tol),
            times: Some(&times),
            max_step: (file.h_max > 0.0).then_some(file.h_max.max(2.0 * span / STEPS_MIN)),
            ..*options
        };
        let results = run(individual, &tight).map_err(SteadyError::Run)?;
        let changing = changing(&results, wanted.change_max);
        let open: Vec<usize> = changing.filter(|o| !ignored.contains(o)).collect();
        if open.is_empty() {
            let values = (0..results.paths.len()).filter_map(|o| results.column(o).last());
            return Ok(SteadyState {
                time: span,
                values: values.collect(),
            });
        }
        if 2.0 * span * GROWTH > wanted.until {
            return Err(SteadyError::Changing {
                time: 2.0 * span,
                outputs: open,
            });
        }
        span *= GROWTH;
    }
}

/// Returns the positions of the outputs with two different values.
fn changing(results: &Results, change_max: f64) -> impl Iterator<Item = usize> + '_ {
    let floor = ABS_TOLS * results.settings.abs_tol;
    (0..results.paths.len()).filter(move |o| {
        let mut two = results.column(*o);
        let (a, b) = (two.next(), two.next());
        let same = |a: f64, b: f64| (a - b).abs() <= change_max * b.abs() + floor;
        !a.zip(b).is_some_and(|(a, b)| same(a, b))
    })
}
