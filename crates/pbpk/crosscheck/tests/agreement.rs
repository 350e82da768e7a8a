//! A second, independent solver (diffsol) on the same compiled rates agrees with ours on three models.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails where its helpers do"
)]

#[expect(dead_code, reason = "the tests of the library use the rest")]
#[path = "../../tests/it/common/mod.rs"]
mod common;

use std::cell::RefCell;

use diffsol::{MatrixCommon, NalgebraLU, NalgebraMat, OdeBuilder, OdeSolverMethod};
use pbpk::run::RunOptions;

/// Both at tight tolerances; largest difference of a state relative to its peak at most 1e-5.
fn check(file: &str) {
    let instance = common::instance(common::load(file));
    let structure = instance.structure().clone();
    let states: Vec<usize> = structure.states().to_vec();
    let (engine, y0) = pbpk::run::engine_after_start(&instance).unwrap();
    let pattern = engine.pattern().clone();
    let n = y0.len();
    let engine = RefCell::new(engine);
    let entries = RefCell::new(vec![0.0; pattern.nnz()]);
    let abs_tol = structure.model().solver.abs_tol * 1e-3;
    let ours = {
        let model = structure.model().clone();
        let of_states =
            pbpk::compile::Structure::new(std::sync::Arc::new(model), states.clone()).unwrap();
        common::run(
            &pbpk::compile::Instance::new(&of_states),
            &RunOptions {
                rel_tol: Some(1e-9),
                abs_tol: Some(abs_tol),
                ..RunOptions::default()
            },
        )
    };
    let problem = OdeBuilder::<NalgebraMat<f64>>::new()
        .t0(ours.times[0])
        .h0(1e-10)
        .rtol(1e-9)
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
        .unwrap();
    let mut solver = problem.bdf::<NalgebraLU<f64>>().unwrap();
    // A handful of times over the whole grid; the first is the start, where ours shows the values before the events.
    let picks: Vec<usize> = (1..=12).map(|i| i * (ours.times.len() - 1) / 12).collect();
    let times: Vec<f64> = picks.iter().map(|i| ours.times[*i]).collect();
    let (theirs, _) = solver.solve_dense(&times).unwrap();
    for (s, q) in states.iter().enumerate() {
        let scale = structure.model().quantities[*q].scale;
        let path = &structure.model().quantities[*q].path;
        let mine: Vec<f64> = ours.column(s).collect();
        let peak = mine
            .iter()
            .map(|v| v.abs())
            .fold(0.0, f64::max)
            .max(1e5 * abs_tol);
        for (k, row) in picks.iter().enumerate() {
            let other = theirs.inner()[(s, k)] * scale;
            assert!(
                (mine[*row] - other).abs() <= 1e-5 * peak,
                "{file}: {path} at {}: {} and {other}",
                ours.times[*row],
                mine[*row]
            );
        }
    }
}

#[test]
fn whole_body_bolus() {
    check("pkml/pksim_simple_simulation.pkml");
}

#[test]
fn platelet_cascade() {
    check("pkml/pksim_S1_concentrBased.pkml");
}

#[test]
fn old_whole_body() {
    check("simmodel/PKSim_Input_01.xml");
}
