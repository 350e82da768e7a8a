//! Standard stiff problems against published solutions, and the laws every integration has to keep.

use pbpk::solve::{
    BdfSolver, Interrupt, OdeSystem, SolveError, SolveOptions, SolverStatistics, SparsityPattern,
};

type Rhs = Box<dyn Fn(f64, &[f64], &mut [f64])>;
type Jac = Box<dyn Fn(f64, &[f64], &mut [f64])>;

/// A small problem with a dense Jacobian, column by column.
struct Problem {
    pattern: SparsityPattern,
    rhs: Rhs,
    jac: Jac,
    interrupt_after: Option<usize>,
    non_finite: Vec<(f64, usize, usize)>,
    evaluations: usize,
}

impl Problem {
    fn new(
        n: usize,
        rhs: impl Fn(f64, &[f64], &mut [f64]) + 'static,
        jac: impl Fn(f64, &[f64], &mut [f64]) + 'static,
    ) -> Self {
        Self {
            pattern: SparsityPattern::dense(n),
            rhs: Box::new(rhs),
            jac: Box::new(jac),
            interrupt_after: None,
            non_finite: Vec::new(),
            evaluations: 0,
        }
    }
}

impl OdeSystem for Problem {
    fn dimension(&self) -> usize {
        self.pattern.n()
    }
    fn pattern(&self) -> &SparsityPattern {
        &self.pattern
    }
    fn rhs(&mut self, t: f64, y: &[f64], dy: &mut [f64]) {
        self.evaluations += 1;
        (self.rhs)(t, y, dy);
    }
    fn jacobian(&mut self, t: f64, y: &[f64], values: &mut [f64]) {
        (self.jac)(t, y, values);
    }
    fn interrupted(&mut self, _t: f64) -> Option<Interrupt> {
        self.interrupt_after
            .filter(|&n| self.evaluations >= n)
            .map(|_| Interrupt::Deadline)
    }
    fn non_finite(&mut self, t: f64, state: usize, count: usize) {
        self.non_finite.push((t, state, count));
    }
}

fn options(rtol: f64, atol: f64) -> SolveOptions {
    SolveOptions {
        rtol,
        atol: vec![atol],
        ..SolveOptions::default()
    }
}

fn run(
    problem: &mut Problem,
    options: SolveOptions,
    y0: &[f64],
    times: &[f64],
) -> (Vec<Vec<f64>>, SolverStatistics) {
    let mut solver = BdfSolver::new(problem, options).unwrap();
    solver.start(problem, 0.0, y0).unwrap();
    let mut out = Vec::new();
    for &t in times {
        let mut y = vec![0.0; y0.len()];
        solver.advance_to(problem, t, &mut y).unwrap();
        out.push(y);
    }
    (out, solver.statistics())
}

fn robertson() -> Problem {
    Problem::new(
        3,
        |_, y, d| {
            d[0] = -0.04 * y[0] + 1e4 * y[1] * y[2];
            d[2] = 3e7 * y[1] * y[1];
            d[1] = -d[0] - d[2];
        },
        |_, y, j| {
            j.copy_from_slice(&[
                -0.04,
                0.04,
                0.0,
                1e4 * y[2],
                -1e4 * y[2] - 6e7 * y[1],
                6e7 * y[1],
                1e4 * y[1],
                -1e4 * y[1],
                0.0,
            ]);
        },
    )
}

fn van_der_pol() -> Problem {
    const EPS: f64 = 1e-6;
    Problem::new(
        2,
        |_, y, d| {
            d[0] = y[1];
            d[1] = ((1.0 - y[0] * y[0]) * y[1] - y[0]) / EPS;
        },
        |_, y, j| {
            j.copy_from_slice(&[
                0.0,
                (-2.0 * y[0] * y[1] - 1.0) / EPS,
                1.0,
                (1.0 - y[0] * y[0]) / EPS,
            ]);
        },
    )
}

fn hires() -> Problem {
    Problem::new(
        8,
        |_, y, d| {
            d[0] = -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007;
            d[1] = 1.71 * y[0] - 8.75 * y[1];
            d[2] = -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4];
            d[3] = 8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3];
            d[4] = -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6];
            d[5] = -280.0 * y[5] * y[7] + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6];
            d[6] = 280.0 * y[5] * y[7] - 1.81 * y[6];
            d[7] = -d[6];
        },
        |_, y, j| {
            j.fill(0.0);
            let mut set = |i: usize, k: usize, v: f64| j[k * 8 + i] = v;
            set(0, 0, -1.71);
            set(0, 1, 0.43);
            set(0, 2, 8.32);
            set(1, 0, 1.71);
            set(1, 1, -8.75);
            set(2, 2, -10.03);
            set(2, 3, 0.43);
            set(2, 4, 0.035);
            set(3, 1, 8.32);
            set(3, 2, 1.71);
            set(3, 3, -1.12);
            set(4, 4, -1.745);
            set(4, 5, 0.43);
            set(4, 6, 0.43);
            set(5, 3, 0.69);
            set(5, 4, 1.71);
            set(5, 5, -280.0 * y[7] - 0.43);
            set(5, 6, 0.69);
            set(5, 7, -280.0 * y[5]);
            for (row, sign) in [(6, 1.0), (7, -1.0)] {
                set(row, 5, sign * 280.0 * y[7]);
                set(row, 6, sign * -1.81);
                set(row, 7, sign * 280.0 * y[5]);
            }
        },
    )
}

fn check(name: &str, found: &[f64], expected: &[f64], rtol: f64) {
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() <= rtol * b.abs(),
            "{name}: state {i} is {a:e}, expected {b:e}"
        );
    }
}

/// Solutions of the "Test Set for Initial Value Problem Solvers" (Mazzia and Magherini), at two tolerances each.
#[test]
fn published_stiff_problems() {
    let robertson_end = [
        0.208_334_014_970_125_5e-7,
        0.833_336_077_033_471_3e-13,
        0.999_999_979_166_505,
    ];
    let hires_end = [
        0.737_131_257_332_566_8e-3,
        0.144_248_572_631_618_5e-3,
        0.588_872_974_096_757_5e-4,
        0.117_565_134_328_314_9e-2,
        0.238_635_619_883_133_1e-2,
        0.623_896_825_274_279_6e-2,
        0.284_999_839_518_576_9e-2,
        0.285_000_160_481_423_1e-2,
    ];
    let van_der_pol_end = [1.706_167_732_170_483, -0.892_809_701_024_797_5];
    let mut hires_start = [0.0; 8];
    hires_start[0] = 1.0;
    hires_start[7] = 0.0057;
    for (rtol, allowed) in [(1e-5, 2e-2), (1e-9, 1e-5)] {
        let (y, _) = run(
            &mut robertson(),
            options(rtol, rtol * 1e-13),
            &[1.0, 0.0, 0.0],
            &[1e11],
        );
        check("robertson", &y[0], &robertson_end, allowed);
        let (y, _) = run(
            &mut hires(),
            options(rtol, rtol * 1e-5),
            &hires_start,
            &[321.8122],
        );
        check("hires", &y[0], &hires_end, allowed);
        let (y, _) = run(
            &mut van_der_pol(),
            options(rtol, rtol * 1e-3),
            &[2.0, 0.0],
            &[1.0, 2.0],
        );
        check("van der pol", &y[1], &van_der_pol_end, allowed);
    }
}

/// The mass of Robertson's reaction is linear in the states; the method keeps it to rounding.
#[test]
fn linear_invariants_are_kept() {
    let times: Vec<f64> = (0..8).map(|k| 0.4 * 10_f64.powi(k)).collect();
    let (rows, statistics) = run(
        &mut robertson(),
        options(1e-6, 1e-12),
        &[1.0, 0.0, 0.0],
        &times,
    );
    for y in rows {
        assert!((y.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
    assert!(
        statistics.jacobians * 4 < statistics.steps,
        "{statistics:?}"
    );
    assert!(statistics.rhs < 2 * statistics.steps, "{statistics:?}");
}

#[test]
fn linear_decay_follows_the_exponential() {
    let mut decay = Problem::new(1, |_, y, d| d[0] = -0.5 * y[0], |_, _, j| j[0] = -0.5);
    let times: Vec<f64> = (1..=40).map(f64::from).collect();
    for rtol in [1e-4, 1e-6, 1e-8, 1e-10] {
        let (rows, _) = run(&mut decay, options(rtol, rtol * 1e-6), &[10.0], &times);
        for (y, t) in rows.iter().zip(&times) {
            let exact = 10.0 * (-0.5 * t).exp();
            assert!(
                (y[0] - exact).abs() <= 10.0 * rtol * 10.0,
                "rtol {rtol:e}, t {t}: {} against {exact}",
                y[0]
            );
        }
    }
}

/// Held at order q and a fixed step, halving the step divides the error by 2^q.
#[test]
fn order_of_convergence() {
    for q in 1..=5_usize {
        let error = |h: f64| {
            let mut p = Problem::new(
                1,
                |t, y, d| d[0] = -y[0] + t.cos() + t.sin(),
                |_, _, j| j[0] = -1.0,
            );
            let tight = SolveOptions {
                rtol: 0.0,
                // So loose that neither the step nor the order is ever changed for accuracy; the
                // starting orders are paid for with a tiny first step.
                atol: vec![1e-2 * h.powi(q as i32 + 1)],
                h0: Some(h * 1e-3),
                hmax: h,
                max_order: q,
                ..SolveOptions::default()
            };
            let (y, _) = run(&mut p, tight, &[0.0], &[8.0]);
            (y[0][0] - 8.0_f64.sin()).abs()
        };
        let (coarse, fine) = (error(0.05), error(0.025));
        let observed = (coarse / fine).log2();
        assert!(
            observed > q as f64 - 0.7,
            "order {q}: observed {observed} ({coarse:e}, {fine:e})"
        );
    }
}

/// A state that is exactly zero and has no source stays exactly zero, although it would grow by
/// many powers of ten if it were touched by a single rounding.
#[test]
fn autocatalytic_zero_stays_zero() {
    let mut p = Problem::new(
        3,
        |_, y, d| {
            d[0] = -0.1 * y[0] + 0.3 * y[1];
            d[1] = 0.1 * y[0] - 0.3 * y[1];
            d[2] = 7.3 * y[0] * y[1] * y[2];
        },
        |_, y, j| {
            j.copy_from_slice(&[
                -0.1,
                0.1,
                7.3 * y[1] * y[2],
                0.3,
                -0.3,
                7.3 * y[0] * y[2],
                0.0,
                0.0,
                7.3 * y[0] * y[1],
            ]);
        },
    );
    let (rows, _) = run(
        &mut p,
        options(1e-5, 1e-9),
        &[3.0, 1.0, 0.0],
        &[1.0, 10.0, 100.0],
    );
    for y in rows {
        assert_eq!(y[2].to_bits(), 0.0_f64.to_bits());
    }
}

#[test]
fn two_runs_give_the_same_bits() {
    let times: Vec<f64> = (1..50).map(|k| f64::from(k) * 6.5).collect();
    let mut start = [0.0; 8];
    start[0] = 1.0;
    start[7] = 0.0057;
    let (a, sa) = run(&mut hires(), options(1e-6, 1e-10), &start, &times);
    let (b, sb) = run(&mut hires(), options(1e-6, 1e-10), &start, &times);
    assert_eq!(sa, sb);
    assert!(
        a.iter()
            .flatten()
            .zip(b.iter().flatten())
            .all(|(x, y)| x.to_bits() == y.to_bits())
    );
}

#[test]
fn a_restart_equals_a_new_solver() {
    let mut p = hires();
    let mut start = [0.0; 8];
    start[0] = 1.0;
    start[7] = 0.0057;
    let mut solver = BdfSolver::new(&p, options(1e-6, 1e-10)).unwrap();
    let mut rows = Vec::new();
    for _ in 0..2 {
        solver.start(&mut p, 0.0, &start).unwrap();
        let mut y = [0.0; 8];
        solver.advance_to(&mut p, 50.0, &mut y).unwrap();
        rows.push(y.map(f64::to_bits));
    }
    assert_eq!(rows[0], rows[1]);
    assert_eq!(solver.statistics().starts, 2);
}

/// A right-hand side that jumps is met exactly when the jump is a stop time.
#[test]
fn the_stop_time_is_never_stepped_over() {
    let latest = std::rc::Rc::new(std::cell::Cell::new(0.0_f64));
    let seen = std::rc::Rc::clone(&latest);
    let mut p = Problem::new(
        1,
        move |t, y, d| {
            seen.set(seen.get().max(t));
            d[0] = -0.01 * y[0];
        },
        |_, _, j| j[0] = -0.01,
    );
    let mut solver = BdfSolver::new(&p, options(1e-6, 1e-10)).unwrap();
    solver.start(&mut p, 0.0, &[1.0]).unwrap();
    let mut y = [0.0];
    for stop in [0.1, 7.0, 7.3, 1000.0 / 3.0] {
        solver.set_stop(Some(stop));
        solver.advance_to(&mut p, stop, &mut y).unwrap();
        assert_eq!(latest.get(), stop);
        assert_eq!(solver.time(), stop);
        assert!((y[0] - (-0.01 * stop).exp()).abs() < 1e-4);
        assert!(matches!(
            solver.advance_to(&mut p, stop + 1.0, &mut y),
            Err(SolveError::PastStop { .. })
        ));
    }
}

#[test]
fn output_times_do_not_change_the_steps() {
    let steps = |times: &[f64]| {
        let mut start = [0.0; 8];
        start[0] = 1.0;
        start[7] = 0.0057;
        run(&mut hires(), options(1e-6, 1e-10), &start, times)
            .1
            .steps
    };
    let many: Vec<f64> = (1..=1000).map(|k| 300.0 * f64::from(k) / 1000.0).collect();
    assert_eq!(steps(&[0.3, 300.0]), steps(&many));
}

#[test]
fn times_before_the_last_step_are_refused() {
    let mut p = hires();
    let mut solver = BdfSolver::new(&p, options(1e-6, 1e-10)).unwrap();
    let mut y = [0.0; 8];
    assert_eq!(
        solver.advance_to(&mut p, 1.0, &mut y),
        Err(SolveError::NotStarted)
    );
    solver.start(&mut p, 0.0, &[0.5; 8]).unwrap();
    solver.advance_to(&mut p, 100.0, &mut y).unwrap();
    solver.advance_to(&mut p, 100.0, &mut y).unwrap();
    assert!(matches!(
        solver.advance_to(&mut p, 1.0, &mut y),
        Err(SolveError::Behind { .. })
    ));
    assert!(matches!(
        solver.advance_to(&mut p, f64::NAN, &mut y),
        Err(SolveError::PastStop { .. })
    ));
}

#[test]
fn too_many_steps_names_time_and_limit() {
    let mut p = robertson();
    let mut solver = BdfSolver::new(
        &p,
        SolveOptions {
            max_steps: 5,
            ..options(1e-8, 1e-14)
        },
    )
    .unwrap();
    solver.start(&mut p, 0.0, &[1.0, 0.0, 0.0]).unwrap();
    let mut y = [0.0; 3];
    let error = solver.advance_to(&mut p, 100.0, &mut y).unwrap_err();
    let SolveError::TooManySteps { time, limit } = error else {
        panic!("{error}")
    };
    assert_eq!(limit, 5);
    assert!(time > 0.0 && time < 100.0);
    assert!(
        error.to_string().contains("too much work")
            && error.to_string().contains(&time.to_string())
    );
}

#[test]
fn an_interrupt_stops_the_loop() {
    let mut p = robertson();
    p.interrupt_after = Some(40);
    let mut solver = BdfSolver::new(&p, options(1e-8, 1e-14)).unwrap();
    solver.start(&mut p, 0.0, &[1.0, 0.0, 0.0]).unwrap();
    let error = solver.advance_to(&mut p, 1e9, &mut [0.0; 3]).unwrap_err();
    assert!(
        matches!(
            error,
            SolveError::Interrupted {
                cause: Interrupt::Deadline,
                ..
            }
        ),
        "{error}"
    );
    assert!(p.evaluations < 50);
}

/// y' = −√y with a NaN below zero: steps that overshoot are taken back and reported.
#[test]
fn non_finite_right_hand_sides_shorten_the_step() {
    let wall = |t: f64| if t < 1.0 { 1.0 } else { f64::NAN };
    let mut p = Problem::new(1, move |t, _, d| d[0] = wall(t), |_, _, j| j[0] = 0.0);
    let mut solver = BdfSolver::new(&p, options(1e-3, 1e-3)).unwrap();
    solver.start(&mut p, 0.0, &[0.0]).unwrap();
    let mut y = [0.0];
    solver.advance_to(&mut p, 0.99, &mut y).unwrap();
    assert!((y[0] - 0.99).abs() < 1e-6);
    let error = solver.advance_to(&mut p, 1.5, &mut y).unwrap_err();
    assert!(
        matches!(error, SolveError::Convergence { time, .. } if (0.99..1.0).contains(&time)),
        "{error}"
    );
    assert!(!p.non_finite.is_empty());
    assert_eq!(
        p.non_finite.last().unwrap().2,
        solver.statistics().non_finite
    );

    let mut q = Problem::new(1, |_, _, d| d[0] = f64::INFINITY, |_, _, j| j[0] = 0.0);
    let mut solver = BdfSolver::new(&q, options(1e-3, 1e-3)).unwrap();
    solver.start(&mut q, 0.0, &[0.0]).unwrap();
    assert_eq!(
        solver.advance_to(&mut q, 1.0, &mut y),
        Err(SolveError::NonFiniteStart {
            time: 0.0,
            state: 0
        })
    );
}

#[test]
fn the_limit_of_non_finite_evaluations_ends_the_run() {
    let mut p = Problem::new(
        1,
        |t, _, d| d[0] = if t < 1.0 { 1.0 } else { f64::NAN },
        |_, _, j| j[0] = 0.0,
    );
    let mut solver = BdfSolver::new(
        &p,
        SolveOptions {
            max_non_finite: 3,
            ..options(1e-3, 1e-3)
        },
    )
    .unwrap();
    solver.start(&mut p, 0.0, &[0.0]).unwrap();
    let error = solver.advance_to(&mut p, 1.5, &mut [0.0]).unwrap_err();
    assert!(
        matches!(
            error,
            SolveError::NonFinite {
                state: 0,
                count: 4,
                ..
            }
        ),
        "{error}"
    );
}

/// An infinite derivative in the Jacobian (√y at zero) does not spoil the other states.
#[test]
fn an_infinite_jacobian_entry_is_survived() {
    let mut p = Problem::new(
        2,
        |_, y, d| {
            d[0] = -y[0];
            d[1] = y[0] - 0.1 * y[1].max(0.0).sqrt();
        },
        |_, y, j| j.copy_from_slice(&[-1.0, 1.0, 0.0, -0.05 / y[1].max(0.0).sqrt()]),
    );
    let (rows, _) = run(&mut p, options(1e-6, 1e-9), &[1.0, 0.0], &[1.0]);
    assert!((rows[0][0] - (-1.0_f64).exp()).abs() < 1e-4);
}

#[test]
fn a_problem_with_a_growing_mode_is_followed() {
    let mut p = Problem::new(1, |_, y, d| d[0] = 3.0 * y[0], |_, _, j| j[0] = 3.0);
    let (rows, _) = run(&mut p, options(1e-8, 1e-12), &[1.0], &[5.0]);
    assert!((rows[0][0] / 15.0_f64.exp() - 1.0).abs() < 1e-5);
}

#[test]
fn an_empty_system_only_lets_time_pass() {
    let mut p = Problem::new(0, |_, _, _| {}, |_, _, _| {});
    let (rows, _) = run(&mut p, options(1e-5, 1e-9), &[], &[1.0, 1e6]);
    assert_eq!(rows, vec![Vec::<f64>::new(); 2]);
}

#[test]
fn bad_options_are_named() {
    let p = hires();
    let base = || options(1e-5, 1e-9);
    let cases: Vec<(&str, SolveOptions)> = vec![
        (
            "relative tolerance",
            SolveOptions {
                rtol: -1.0,
                ..base()
            },
        ),
        (
            "relative tolerance",
            SolveOptions {
                rtol: f64::NAN,
                ..base()
            },
        ),
        (
            "absolute tolerance",
            SolveOptions {
                atol: vec![f64::INFINITY],
                ..base()
            },
        ),
        (
            "number of absolute tolerances",
            SolveOptions {
                atol: vec![1e-9; 3],
                ..base()
            },
        ),
        (
            "first step",
            SolveOptions {
                h0: Some(f64::NAN),
                ..base()
            },
        ),
        (
            "smallest step",
            SolveOptions {
                hmin: -1.0,
                ..base()
            },
        ),
        (
            "largest step",
            SolveOptions {
                hmax: f64::NAN,
                ..base()
            },
        ),
        (
            "largest step",
            SolveOptions {
                hmax: 1.0,
                hmin: 2.0,
                ..base()
            },
        ),
        (
            "largest order",
            SolveOptions {
                max_order: 6,
                ..base()
            },
        ),
        (
            "largest order",
            SolveOptions {
                max_order: 0,
                ..base()
            },
        ),
    ];
    for (name, options) in cases {
        let error = BdfSolver::new(&p, options).unwrap_err();
        assert!(
            matches!(&error, SolveError::Option { name: found, .. } if *found == name),
            "{name}: {error}"
        );
    }
}

#[test]
fn malformed_patterns_are_refused() {
    for (col_ptr, row_idx) in [
        (vec![0, 1], vec![0, 1]),
        (vec![0, 1, 3], vec![0, 1, 1]),
        (vec![0, 1, 2], vec![0, 2]),
        (vec![0, 3, 2], vec![0, 1]),
        (vec![1, 1, 2], vec![0, 1]),
        (vec![], vec![]),
    ] {
        let pattern = SparsityPattern { col_ptr, row_idx };
        assert!(
            matches!(pattern.check(2), Err(SolveError::Pattern { .. })),
            "{pattern:?}"
        );
    }
}

#[test]
fn a_zero_state_without_absolute_tolerance_is_named() {
    let mut p = robertson();
    let mut solver = BdfSolver::new(&p, options(1e-6, 0.0)).unwrap();
    solver.start(&mut p, 0.0, &[1.0, 0.0, 0.0]).unwrap();
    assert_eq!(
        solver.advance_to(&mut p, 1.0, &mut [0.0; 3]),
        Err(SolveError::Weight {
            time: 0.0,
            state: 1
        })
    );
}
