//! True event location: the moment at which a condition becomes true, by bisection on the solver's interpolant.

use super::events::State;
use super::system::Running;
use super::{RunError, RunOptions, restart};
use crate::solve::Bdf;

/// Bisections of one step: the moment is known to 2⁻⁴⁸ of it.
const BISECTIONS: usize = 48;

/// Integrates to `end`, restarting wherever a condition becomes true within a step.
pub(super) fn advance(
    solver: &mut Bdf,
    state: &mut State,
    end: f64,
    options: &RunOptions<'_>,
    warnings: &mut Vec<String>,
    target: &mut [f64],
) -> Result<(), RunError> {
    let mut from = solver.time().min(end);
    let mut before = state.truths(from, &state.y.clone());
    let mut steps = 0_usize;
    let limit = solver.options().max_steps.max(1);
    loop {
        // A target just beyond the newest point makes the solver take exactly one step.
        let wanted = if solver.time() >= end {
            end
        } else {
            just_beyond(solver, end)
        };
        step(solver, state, wanted, end, options, warnings, target)?;
        steps += 1;
        if steps > limit {
            return Err(RunError::TooMuchWork {
                time: end,
                reached: solver.time(),
                limit,
            });
        }
        let to = solver.time().min(end);
        solver
            .output(to, target)
            .map_err(|source| state.failure(end, source))?;
        let after = state.truths(to, target);
        if !newly_true(&before, &after) {
            before = after;
            from = to;
            if to >= end {
                state.y.copy_from_slice(target);
                return Ok(());
            }
            continue;
        }
        let moment =
            bisect(solver, state, &before, from, to, target).map_err(|e| state.failure(end, e))?;
        solver
            .output(moment, target)
            .map_err(|source| state.failure(end, source))?;
        state.y.copy_from_slice(target);
        if moment >= end {
            return Ok(());
        }
        if state.test_events(moment)? {
            restart(solver, state, moment, options, warnings)?;
        }
        from = moment;
        before = state.truths(moment, &state.y.clone());
        if !state.has_open_events() {
            step(solver, state, end, end, options, warnings, target)?;
            state.y.copy_from_slice(target);
            return Ok(());
        }
    }
}

/// Integrates to `wanted` on the way to `end`.
fn step(
    solver: &mut Bdf,
    state: &mut State,
    wanted: f64,
    end: f64,
    options: &RunOptions<'_>,
    warnings: &mut Vec<String>,
    target: &mut [f64],
) -> Result<(), RunError> {
    let mut system = Running {
        engine: &mut state.engine,
        stop: solver.stop(),
        interrupt: options.interrupt,
        warnings,
    };
    let advanced = solver.advance_to(&mut system, wanted, target);
    advanced.map_err(|source| state.failure(end, source))
}

fn newly_true(before: &[bool], after: &[bool]) -> bool {
    before.iter().zip(after).any(|(b, a)| *a && !*b)
}

/// The first moment in (from, to] at which a condition is true that was false before.
fn bisect(
    solver: &Bdf,
    state: &mut State,
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

/// A time a little beyond the newest point, far enough for the solver to notice.
fn just_beyond(solver: &Bdf, end: f64) -> f64 {
    let (time, step) = (solver.time(), solver.statistics().last_step);
    let little = if step > 0.0 {
        1e-12 * (time.abs() + step)
    } else {
        1e-9 * (end - time)
    };
    (time + little).min(end)
}
