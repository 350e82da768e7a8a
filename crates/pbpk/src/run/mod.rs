//! A run: from an individual to a table of outputs.
//!
//! A run starts at time 0 whatever output times are asked for; only those are stored. The order at every time is fixed:
//! integrate to it, store the values, then test the events in file order. Stored values are therefore those before the
//! events of that time, also at the start. Events that depend on states fire at output times, switch times and table
//! restarts only, as in the genuine solver; [`RunOptions::locate_events`] searches the true moment instead:
//! then an event acts where its condition becomes true, and only there. There is no
//! clock in here: a deadline is a question asked of the caller.

mod derivatives;
mod error;
mod events;
mod locate;
mod negative;
mod results;
mod schedule;
mod system;

use crate::compile::{Engine, Instance};
use crate::model::Precision;
pub use crate::model::START;
use crate::solve::{Bdf, Options, SolveError};
pub use crate::watch::Question;
use crate::watch::Watch;

pub use error::{RunError, RunFailure};
use events::State;
pub use results::Results;
use schedule::Schedule;
use system::Running;

/// Tolerances of the second attempt after the solver failed.
const REL_TOL_TIGHT: f64 = 1e-9;
const ABS_TOL_TIGHT: f64 = 1e-12;

/// What a run may do differently from its file.
#[derive(Clone, Copy, Default)]
pub struct RunOptions<'a> {
    /// Relative tolerance instead of the file's.
    pub rel_tol: Option<f64>,
    /// Absolute tolerance (on scaled states) instead of the file's.
    pub abs_tol: Option<f64>,
    /// Internal steps per output interval instead of the file's.
    pub max_steps: Option<u64>,
    /// Negative check instead of the file's.
    pub check_negative: Option<bool>,
    /// How nearly equal output times are recognised.
    pub precision: Precision,
    /// Output times in minutes instead of the file's grid.
    pub times: Option<&'a [f64]>,
    /// Fire state-dependent events where their condition becomes true, not at the next output time.
    pub locate_events: bool,
    /// Test events once at the start, even where 0 is a switch time. The genuine solver then tests them twice, so that an
    /// event that may repeat acts twice.
    pub once_at_start: bool,
    /// Positions of the quantities by which all outputs are derived: exact forward sensitivities in the same run, see
    /// [`Results::derivatives`]. Without tolerances of the caller's such a run takes a relative one of at most 1e-6.
    pub sensitivity_to: &'a [usize],
    /// Cancellation and deadline.
    pub interrupt: Option<Question<'a>>,
    /// Told of the fraction done, at output times.
    pub progress: Option<&'a dyn Fn(f64)>,
}

/// Runs an individual.
///
/// # Errors
/// [`RunFailure`]: the error, with the warnings and counts up to it.
pub fn run(instance: &Instance, options: &RunOptions<'_>) -> Result<Results, Box<RunFailure>> {
    let mut warnings = Vec::new();
    let mut results = Results::new(instance);
    let mut done = simulate(instance, options, &mut results, &mut warnings);
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
        done = simulate(instance, &tighter, &mut results, &mut warnings);
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

/// The options with the tolerances of the one other attempt that the genuine solver makes; nothing where they are tight
/// already.
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

/// The output times: those of the options, else the file's.
fn times(model: &crate::model::Model, options: &RunOptions<'_>) -> Vec<f64> {
    match options.times {
        Some(times) => schedule::usable(times),
        None => model.grid.sorted(options.precision),
    }
}

fn simulate(
    instance: &Instance,
    options: &RunOptions<'_>,
    results: &mut Results,
    warnings: &mut Vec<String>,
) -> Result<(), RunError> {
    let structure = instance.structure();
    let model = structure.model();
    let times = times(model, options);
    if !times.iter().any(|t| *t > START) {
        return Err(RunError::EmptyGrid);
    }
    if model.quantities.is_empty() {
        warnings.push("nothing to simulate: the model holds no quantity".to_owned());
    }
    let settings = schedule::settings(model, options);
    results.settings = settings;
    let schedule = Schedule::new(instance, &times, warnings);
    let mut state = State::new(instance, options.interrupt)?;
    if !options.sensitivity_to.is_empty() {
        derivatives::prepare(&mut state, instance, options)?;
    }
    if settings.check_negative {
        negative::check_start(structure, &state.y, START)?;
    }
    results.reserve(times.len());
    if schedule.stores_start {
        results.store(&mut state, START, settings.abs_tol);
    }
    start_events(&mut state, &schedule, options, warnings)?;

    let mut solver = None;
    if !state.y.is_empty() {
        solver = Some(start_solver(&mut state, settings, options, warnings)?);
    }
    let mut target = vec![0.0; state.y.len()];
    let mut from = START;
    for (i, point) in schedule.points.iter().enumerate() {
        let mut before = None;
        if let Some(solver) = &mut solver {
            solver.set_stop(schedule.stop_from(i));
            let way = (from, point.time);
            before = advance(solver, &mut state, way, options, warnings, &mut target)?;
            results.statistics = solver.statistics();
            from = point.time;
        }
        if point.store {
            results.store(&mut state, point.time, settings.abs_tol);
            if settings.check_negative {
                negative::check(structure, &state.y, settings.abs_tol, point.time)?;
            }
            if let Some(progress) = options.progress {
                progress(point.time_fraction(&times));
            }
        }
        let changed =
            point.test && state.test_events(point.time, before.as_deref(), options.interrupt)?;
        if let Some(solver) = &mut solver
            && (changed || point.restart)
        {
            restart(solver, &mut state, point.time, options, warnings)?;
        }
        if solver.is_none() {
            ask(options, point.time)?;
        }
    }
    Ok(())
}

/// Asks the caller whether to go on, where no solver does so.
fn ask(options: &RunOptions<'_>, time: f64) -> Result<(), RunError> {
    match options.interrupt.and_then(|ask| ask()) {
        None => Ok(()),
        Some(cause) => Err(RunError::Interrupted { time, cause }),
    }
}

/// Tests the events at the start, and once more where 0 is a switch time or a restart of a table.
fn start_events(
    state: &mut State,
    schedule: &Schedule,
    options: &RunOptions<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), RunError> {
    state.test_events(START, None, options.interrupt)?;
    if !schedule.tests_start_again || options.once_at_start {
        return Ok(());
    }
    let first = state.acted().to_vec();
    state.test_events(START, None, options.interrupt)?;
    for &event in state.acted().iter().filter(|e| first.contains(e)) {
        if let Some(event) = state.model().events.get(event) {
            warnings.push(format!(
                "event '{}' repeats at 0: it is tested at the start and again because 0 is a switch time, and acted both times",
                event.name
            ));
        }
    }
    Ok(())
}

fn start_solver(
    state: &mut State,
    settings: crate::model::SolverSettings,
    options: &RunOptions<'_>,
    warnings: &mut Vec<String>,
) -> Result<Bdf, RunError> {
    let solver_options = Options {
        rtol: settings.rel_tol,
        atol: vec![settings.abs_tol],
        h0: (settings.h0 > 0.0).then_some(settings.h0),
        hmin: settings.h_min,
        hmax: settings.h_max,
        max_steps: usize::try_from(settings.max_steps).unwrap_or(usize::MAX),
        ..Options::default()
    };
    let variant = std::sync::Arc::clone(state.engine.variant());
    let watch = Watch::new(options.interrupt);
    let symbolic = variant.symbolic(&watch);
    let symbolic = symbolic.map_err(|cause| RunError::Interrupted { time: START, cause })?;
    let system = Running {
        engine: &mut state.engine,
        tangents: state.tangents.as_mut(),
        stop: None,
        interrupt: options.interrupt,
        warnings,
    };
    let solver = Bdf::with_symbolic(&system, solver_options, symbolic);
    let mut solver = solver.map_err(|source| state.failure(START, source))?;
    restart(&mut solver, state, START, options, warnings)?;
    Ok(solver)
}

fn restart(
    solver: &mut Bdf,
    state: &mut State,
    time: f64,
    options: &RunOptions<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), RunError> {
    let mut system = Running {
        engine: &mut state.engine,
        tangents: state.tangents.as_mut(),
        stop: None,
        interrupt: options.interrupt,
        warnings,
    };
    let mut started = solver.start(&mut system, time, &state.y);
    if started.is_ok() && state.tangents.is_some() {
        started = solver.start_sensitivities(&state.s);
    }
    started.map_err(|source| state.failure(time, source))
}

/// Integrates from one point to the next; with event location, restarting on the way wherever a condition becomes true, and
/// telling what was true just before the end.
fn advance(
    solver: &mut Bdf,
    state: &mut State,
    (from, to): (f64, f64),
    options: &RunOptions<'_>,
    warnings: &mut Vec<String>,
    target: &mut [f64],
) -> Result<Option<Vec<bool>>, RunError> {
    if options.locate_events && state.has_open_events() {
        return locate::advance(solver, state, (from, to), options, warnings, target).map(Some);
    }
    let mut system = Running {
        engine: &mut state.engine,
        tangents: state.tangents.as_mut(),
        stop: solver.stop(),
        interrupt: options.interrupt,
        warnings,
    };
    match solver.advance_to(&mut system, to, target) {
        Ok(()) => {
            state.y.copy_from_slice(target);
            if state.tangents.is_some() {
                let found = solver.output_sensitivities(to, &mut state.s);
                found.map_err(|source| state.failure(to, source))?;
            }
            Ok(None)
        }
        Err(SolveError::Interrupted { time, cause }) => Err(RunError::Interrupted { time, cause }),
        Err(source) => Err(state.failure(to, source)),
    }
}

/// The code and scaled states of an individual at its start, before any event: for cross-checks with other solvers.
///
/// # Errors
/// Formulas that go in circles.
pub fn engine(instance: &Instance) -> Result<(Engine, Vec<f64>), RunError> {
    let state = State::new(instance, None)?;
    Ok((state.engine, state.y))
}

/// As [`engine`], after the events of the start.
///
/// # Errors
/// Formulas that go in circles.
pub fn engine_after_start(instance: &Instance) -> Result<(Engine, Vec<f64>), RunError> {
    let mut state = State::new(instance, None)?;
    let options = RunOptions::default();
    let schedule = Schedule::new(
        instance,
        &times(instance.structure().model(), &options),
        &mut Vec::new(),
    );
    start_events(&mut state, &schedule, &options, &mut Vec::new())?;
    Ok((state.engine, state.y))
}
