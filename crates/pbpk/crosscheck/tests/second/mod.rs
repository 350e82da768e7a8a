//! The second solver: diffsol on the compiled rates of an individual, beside our own run.

use std::cell::RefCell;

use diffsol::{MatrixCommon, NalgebraLU, NalgebraMat, OdeBuilder, OdeSolverMethod};
use pbpk::compile::{Instance, Structure};
use pbpk::run::RunOptions;

const REL_TOL: f64 = 1e-9;

/// How many absolute tolerances apart two values may lie whatever their size: each solver errs by some of them in a
/// value that has died out. The bound is that of the comparison with the genuine solver.
const ABS_TOLS_ALLOWED: f64 = 100.0;
/// How many times our own error two values may lie apart: where a model amplifies errors (a state that nearly dies out
/// and grows again), the other solver errs as much. Our error is measured against a run with far tighter tolerances,
/// which would be as wrong as the first if the engine were.
const OWN_ERRORS_ALLOWED: f64 = 3.0;

/// Largest difference of a state relative to what is allowed, both at tight tolerances, with the path and time of it;
/// or why one of the two gives no numbers. Allowed is the part `allowed` of the state's peak, and at least
/// [`ABS_TOLS_ALLOWED`] absolute tolerances and [`OWN_ERRORS_ALLOWED`] times our own error. Only models whose events
/// act at the start can be compared.
pub fn distance(instance: &Instance, allowed: f64) -> Result<(f64, String), String> {
    let structure = instance.structure().clone();
    let states: Vec<usize> = structure.states().to_vec();
    let (engine, y0) = pbpk::run::engine_after_start(instance).map_err(|e| e.to_string())?;
    let pattern = engine.pattern().clone();
    let n = y0.len();
    let engine = RefCell::new(engine);
    let entries = RefCell::new(vec![0.0; pattern.nnz()]);
    let abs_tol = structure.model().solver.abs_tol * 1e-3;
    let of_states = Structure::new(
        std::sync::Arc::new(structure.model().clone()),
        states.clone(),
    );
    let of_states = of_states.map_err(|e| e.to_string())?;
    let options = RunOptions {
        rel_tol: Some(REL_TOL),
        abs_tol: Some(abs_tol),
        ..RunOptions::default()
    };
    let run = |options: &RunOptions<'_>| {
        let ran = pbpk::run::run(&Instance::new(&of_states), options);
        ran.map_err(|e| format!("ours: {e}"))
    };
    let ours = run(&options)?;
    let problem = OdeBuilder::<NalgebraMat<f64>>::new()
        .t0(ours.times[0])
        .h0(1e-10)
        .rtol(REL_TOL)
        .atol([abs_tol])
        .rhs_implicit(
            |y, _p, t, dy| engine.borrow_mut().rhs(t, y, dy),
            |y, _p, t, v, out| {
                let mut values = entries.borrow_mut();
                engine.borrow_mut().jacobian(t, y, &mut values);
                out.fill(0.0);
                for column in 0..n {
                    for k in pattern.col_ptr[column]..pattern.col_ptr[column + 1] {
                        out[pattern.row_idx[k]] += values[k] * v[column];
                    }
                }
            },
        )
        .init(|_p, _t, y| y.copy_from_slice(&y0), n)
        .build()
        .map_err(|e| format!("diffsol: {e}"))?;
    let solver = problem.bdf::<NalgebraLU<f64>>();
    let mut solver = solver.map_err(|e| format!("diffsol: {e}"))?;
    // A handful of times over the whole grid; the first is the start, where ours shows the values before the events.
    let count = 12.min(ours.times.len() - 1);
    let picks: Vec<usize> = (1..=count)
        .map(|i| i * (ours.times.len() - 1) / count)
        .collect();
    let times: Vec<f64> = picks.iter().map(|i| ours.times[*i]).collect();
    let solved = solver.solve_dense(&times);
    let (theirs, _) = solved.map_err(|e| format!("diffsol: {e}"))?;
    let mut tight: Option<pbpk::run::Results> = None;
    let mut worst = (0.0, String::new());
    for (s, q) in states.iter().enumerate() {
        let quantity = &structure.model().quantities[*q];
        let mine: Vec<f64> = ours.column(s).collect();
        let peak = mine.iter().map(|v| v.abs()).fold(0.0, f64::max);
        // The solvers see a state divided by its scale, and hold the tolerance there.
        let band = (allowed * peak).max(ABS_TOLS_ALLOWED * abs_tol * quantity.scale.abs());
        for (k, row) in picks.iter().enumerate() {
            let other = theirs.inner()[(s, k)] * quantity.scale;
            let mut gap = (mine[*row] - other).abs() / band;
            if gap > 1.0 {
                let tight = match &tight {
                    Some(tight) => tight,
                    None => tight.insert(run(&RunOptions {
                        rel_tol: Some(REL_TOL * 1e-3),
                        abs_tol: Some(abs_tol * 1e-4),
                        ..options
                    })?),
                };
                let own = (mine[*row] - tight.values[row * states.len() + s]).abs();
                gap = (mine[*row] - other).abs() / band.max(OWN_ERRORS_ALLOWED * own);
            }
            if gap > worst.0 || gap.is_nan() {
                let (time, mine) = (ours.times[*row], mine[*row]);
                worst = (
                    gap,
                    format!("{} at {time}: {mine} and {other}", quantity.path),
                );
            }
        }
    }
    Ok(worst)
}
