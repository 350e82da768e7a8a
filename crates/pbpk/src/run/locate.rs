//! True event location: the moment at which a condition becomes true, by bisection on the solver's interpolant.

use super::course::restart;
use super::events::EventState;
use super::system::{RunContext, RunProgress};
use super::{RunError, RunOptions};
use crate::solve::BdfSolver;

/// Bisections of one step: the moment is known to 2⁻⁴⁸ of it.
const BISECTIONS: usize = 48;

/// Looks within one step, at least.
const LOOKS_MIN: f64 = 32.0;
/// Looks over the time between two points, at least: a condition may follow the time alone, of which the steps know
/// nothing.
const LOOKS_BETWEEN_POINTS: f64 = 1024.0;

/// Integrates from one point of the schedule to the next, restarting wherever a condition becomes true on the way.
/// Gives back what was true just before the end: an event that was true before does not act there again.
pub(super) fn advance(
    solver: &mut BdfSolver,
    state: &mut EventState,
    (start, end): (f64, f64),
    options: &RunOptions<'_>,
    progress: &RunProgress<'_>,
    warnings: &mut Vec<String>,
    target: &mut [f64],
) -> Result<Vec<bool>, RunError> {
    let mut from = start.min(end);
    let mut before = state.truths(from, &state.y.clone());
    let mut steps = 0_usize;
    let limit = solver.options().max_steps.max(1);
    loop {
        // The interpolant reaches back over one step: first what is left of the last one, then one more.
        if solver.time() <= from {
            let wanted = just_beyond(solver, end);
            let way = (wanted, end);
            step(solver, state, way, options, progress, warnings, target)?;
            steps += 1;
        }
        if steps > limit {
            return Err(RunError::TooMuchWork {
                time: end,
                reached: solver.time(),
                limit,
            });
        }
        let to = solver.time().min(end);
        let share = (to - from) / (end - start) * LOOKS_BETWEEN_POINTS;
        let looks = LOOKS_MIN.max(share.ceil()) as usize;
        let found = look(solver, state, &mut before, (from, to), looks, target);
        let Some(moment) = found.map_err(|source| state.failure(end, source))? else {
            from = to;
            if to >= end {
                state.y.copy_from_slice(target);
                return Ok(before);
            }
            continue;
        };
        state.y.copy_from_slice(target);
        if moment >= end {
            return Ok(before);
        }
        if state.test_events(moment, Some(&before), options.interrupt)? {
            restart(solver, state, moment, options, warnings)?;
        }
        from = moment;
        before = state.truths(moment, &state.y.clone());
        if !state.has_open_events() {
            let way = (end, end);
            step(solver, state, way, options, progress, warnings, target)?;
            state.y.copy_from_slice(target);
            return Ok(before);
        }
    }
}

/// Looks at the conditions in equal parts of a step, and gives back the moment at which one becomes true; `before` is
/// what was true before it, and `target` the state there, or at the end of the step.
fn look(
    solver: &BdfSolver,
    state: &mut EventState,
    before: &mut Vec<bool>,
    (from, to): (f64, f64),
    looks: usize,
    target: &mut [f64],
) -> Result<Option<f64>, crate::solve::SolveError> {
    let mut last = from;
    for i in 1..=looks {
        let time = if i == looks {
            to
        } else {
            from + (to - from) * (i as f64 / looks as f64)
        };
        solver.output(time, target)?;
        let now = state.truths(time, target);
        if newly_true(before, &now) {
            let moment = bisect(solver, state, before, last, time, target)?;
            solver.output(moment, target)?;
            return Ok(Some(moment));
        }
        *before = now;
        last = time;
    }
    Ok(None)
}

/// Integrates to `wanted` on the way to `end`.
fn step(
    solver: &mut BdfSolver,
    state: &mut EventState,
    (wanted, end): (f64, f64),
    options: &RunOptions<'_>,
    progress: &RunProgress<'_>,
    warnings: &mut Vec<String>,
    target: &mut [f64],
) -> Result<(), RunError> {
    let mut system = RunContext {
        engine: &mut state.engine,
        tangents: None,
        stop: solver.stop(),
        interrupt: options.interrupt,
        progress,
        warnings,
    };
    let advanced = solver.advance_to(&mut system, wanted, target);
    advanced.map_err(|source| state.failure(end, source))
}

fn newly_true(before: &[bool], after: &[bool]) -> bool {
    before.iter().zip(after).any(|(b, a)| *a && !*b)
}

/// Returns the first moment in (from, to] at which a condition is true that was false before.
fn bisect(
    solver: &BdfSolver,
    state: &mut EventState,
    before: &[bool],
    from: f64,
    to: f64,
    target: &mut [f64],
) -> Result<f64, crate::solve::SolveError> {
    // The interpolant reaches back over one step only.
    let (mut low, mut high) = (from.max(solver.time() - solver.statistics().last_step), to);
    for _ in 0..BISECTIONS {
        let middle = low + 0.5 * (high - low);
        if middle <= low || middle >= high {
            break;
        }
        solver.output(middle, target)?;
        if newly_true(before, &state.truths(middle, target)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// Returns a time a little beyond the newest point, far enough for the solver to notice.
fn just_beyond(solver: &BdfSolver, end: f64) -> f64 {
    let (time, step) = (solver.time(), solver.statistics().last_step);
    let little = if step > 0.0 {
        1e-12 * (time.abs() + step)
    } else {
        1e-9 * (end - time)
    };
    (time + little).min(end)
}
