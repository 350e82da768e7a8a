//! A run: from an individual to a table of outputs.
//!
//! A run starts at time 0 for any output times, and stores the rows of these; [`OspVersion`] has what releases of the
//! genuine solver do otherwise at the start. The order at every time is fixed: integrate to it, store the values, then
//! test the events in file order. Stored values are therefore those before the events of that time, also at the start.
//! Events that depend on states fire at output times, switch times and table restarts only, as in the genuine solver;
//! [`RunOptions::locate_events`] searches the true moment instead: then an event acts where its condition becomes true,
//! and only there. There is no clock in here: a deadline is a question asked of the caller.

mod checkpoint;
mod course;
mod derivatives;
mod error;
mod events;
mod locate;
mod negative;
mod release;
mod results;
mod schedule;
mod system;

use crate::compile::{Instance, ModelEngine};
pub use crate::model::START;
use crate::model::TimePrecision;
pub use crate::watch::Question;

pub use checkpoint::{CheckpointError, RunCheckpoint, resume, run_until};
use course::{RunCourse, start_events, times};
pub use error::{RunError, RunFailure};
use events::EventState;
pub use release::{OspVersion, UnknownRelease};
pub use results::Results;
use schedule::IntegrationSchedule;

/// Tolerances of the second attempt after the solver failed.
const REL_TOL_TIGHT: f64 = 1e-9;
const ABS_TOL_TIGHT: f64 = 1e-12;

/// Takes the time of a row and its values, one for each output.
pub type Sink<'a> = &'a (dyn Fn(f64, &[f64]) + Sync);

/// Callback for the part of the time span that is done, from 0 to 1.
pub type Tell<'a> = &'a (dyn Fn(f64) + Sync);

/// Deviations of a run from its file. The options are `Send` and `Sync`, and so have to be the functions in them: a
/// server may make them on one thread and run on another.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Relative tolerance instead of the file's.
    pub rel_tol: Option<f64>,
    /// Absolute tolerance (on scaled states) instead of the file's.
    pub abs_tol: Option<f64>,
    /// Internal steps per output interval instead of the file's.
    pub max_steps: Option<u64>,
    /// Longest internal step in minutes instead of the file's; 0 for none.
    pub max_step: Option<f64>,
    /// Negative check instead of the file's.
    pub check_negative: Option<bool>,
    /// How nearly equal output times are recognised.
    pub precision: TimePrecision,
    /// Output times in minutes instead of the file's grid.
    pub times: Option<&'a [f64]>,
    /// Fire state-dependent events where their condition becomes true, not at the next output time.
    pub locate_events: bool,
    /// Release of the OSP solver that the run follows.
    pub osp_version: OspVersion,
    /// Test events once at the start for any release.
    pub once_at_start: bool,
    /// Positions of the quantities by which all outputs are derived: exact forward sensitivities in the same run, see
    /// [`Results::derivatives`]. Without tolerances of the caller's such a run takes a relative one of at most 1e-6.
    pub sensitivity_to: &'a [usize],
    /// Cancellation and deadline.
    pub interrupt: Option<Question<'a>>,
    /// Callback for the part done: at output times, and between them at each thousandth of the time span that is
    /// reached. A restart with reduced tolerances begins again at 0.
    pub progress: Option<Tell<'a>>,
    /// Callback for every row of outputs at its time, instead of keeping them in [`Results::values`]. A restart with
    /// reduced tolerances repeats the rows from the first time.
    pub sink: Option<Sink<'a>>,
}

/// Runs an individual.
///
/// # Errors
/// [`RunFailure`]: the error, with the warnings and counts up to it.
pub fn run(instance: &Instance, options: &RunOptions<'_>) -> Result<Results, Box<RunFailure>> {
    attempts(instance, options, |options, results, warnings| {
        let mut course = RunCourse::new(instance, options, results, warnings)?;
        course.begin(results, warnings)?;
        course.follow(results, warnings, f64::INFINITY)
    })
}

/// Carries out a run, and once more with reduced tolerances if the solver asks for that.
fn attempts(
    instance: &Instance,
    options: &RunOptions<'_>,
    mut attempt: impl FnMut(&RunOptions<'_>, &mut Results, &mut Vec<String>) -> Result<(), RunError>,
) -> Result<Results, Box<RunFailure>> {
    let mut warnings = Vec::new();
    let mut results = Results::new(instance);
    let mut done = attempt(options, &mut results, &mut warnings);
    if let Err(error) = &done
        && error.asks_for_tolerances()
        && let Some(tighter) = tightened(instance.structure().model(), options)
    {
        warnings.push(format!(
            "{error}; started again with tolerances reduced to {:e} (relative) and {:e} (absolute)",
            tighter.rel_tol.unwrap_or_default(),
            tighter.abs_tol.unwrap_or_default()
        ));
        results = Results::new(instance);
        done = attempt(&tighter, &mut results, &mut warnings);
    }
    match done {
        Ok(()) => {
            results.warnings = warnings;
            Ok(results)
        }
        Err(error) => {
            warnings.push(error.to_string());
            Err(Box::new(RunFailure {
                error,
                warnings,
                statistics: results.statistics,
            }))
        }
    }
}

/// Returns the options with the tolerances of the one other attempt that the genuine solver makes; nothing if they are
/// tight already.
fn tightened<'a>(model: &crate::model::Model, options: &RunOptions<'a>) -> Option<RunOptions<'a>> {
    let settings = schedule::settings(model, options);
    let lower = |value: f64, bound: f64| {
        if value > bound {
            bound.min(value / 10.0)
        } else {
            value
        }
    };
    let (rel_tol, abs_tol) = (
        lower(settings.rel_tol, REL_TOL_TIGHT),
        lower(settings.abs_tol, ABS_TOL_TIGHT),
    );
    let changed = rel_tol != settings.rel_tol || abs_tol != settings.abs_tol;
    changed.then_some(RunOptions {
        rel_tol: Some(rel_tol),
        abs_tol: Some(abs_tol),
        ..*options
    })
}

/// Returns the code and scaled states of an individual at its start, before any event: for cross-checks with other
/// solvers.
///
/// # Errors
/// Formulas that go in circles.
pub fn engine(instance: &Instance) -> Result<(ModelEngine, Vec<f64>), RunError> {
    let state = EventState::new(instance, None)?;
    Ok((state.engine, state.y))
}

/// As [`engine`], after the events of the start.
///
/// # Errors
/// Formulas that go in circles.
pub fn engine_after_start(instance: &Instance) -> Result<(ModelEngine, Vec<f64>), RunError> {
    let mut state = EventState::new(instance, None)?;
    let options = RunOptions::default();
    let times = times(instance.structure().model(), &options);
    let schedule = IntegrationSchedule::new(instance, &times, options.osp_version, &mut Vec::new());
    start_events(&mut state, &schedule, &options, &mut Vec::new())?;
    Ok((state.engine, state.y))
}
