//! How soon work stops: how much of it lies between two looks at the caller's answer, from the file to the fit. Counted
//! in parts of the work, so that nothing depends on how busy the machine is; `examples/pauses` measures the same in
//! milliseconds.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use pbpk::compile::{Instance, Structure};
use pbpk::fit::{FitError, FitParameter, FitProblem, Observation, ResidualModel, fit};
use pbpk::population::{
    Cohort, Distribution, ParameterColumn, PopulationPlan, VariedParameter, run_chunk,
};
use pbpk::read;
use pbpk::run::{RunError, RunOptions, run};
use pbpk::solve::SparsityPattern;
use pbpk::solve::lu::{FactorError, LuFactors, SymbolicFactors};
use pbpk::watch::{Interrupt, Watch};

use crate::common::asked::{Asked, UNITS};

/// States of which each changes with every other, and parameters that nothing uses but one, the rate k.
fn dense(states: usize, parameters: usize) -> String {
    let mut text = "<Simulation version=\"4\" objectPathDelimiter=\"|\"><VariableList>".to_owned();
    for i in 1..=states {
        let rate = states + i;
        write!(text, "<V id=\"{i}\" name=\"M{i}\" path=\"S|M{i}\" value=\"0.1\"><RHSFormulaList><RHSFormula id=\"{rate}\"/></RHSFormulaList></V>").unwrap();
    }
    text.push_str("</VariableList><FormulaList>");
    let k = 3 * states;
    for i in 1..=states {
        let (mut sum, mut used) = (String::new(), String::new());
        for j in 1..=states {
            write!(
                sum,
                "+{}*M{j}",
                (i * j % 17 + 1) as f64 / states as f64 / 9.0
            )
            .unwrap();
            write!(used, "<R alias=\"M{j}\" id=\"{j}\"/>").unwrap();
        }
        write!(text, "<ExplicitFormula id=\"{}\"><Equation>k*M{i}*(1-(0{sum}))</Equation><ReferenceList><R alias=\"k\" id=\"{k}\"/>{used}</ReferenceList></ExplicitFormula>", states + i).unwrap();
    }
    text.push_str("</FormulaList><ParameterList>");
    for p in 0..=parameters {
        write!(
            text,
            "<P id=\"{}\" name=\"P{p}\" path=\"S|P{p}\" value=\"1\"/>",
            k + p
        )
        .unwrap();
    }
    text.push_str("</ParameterList><OutputSchema><OutputTimeList><OutputTime>50</OutputTime></OutputTimeList></OutputSchema></Simulation>");
    text
}

fn compiled(text: &str) -> Arc<Structure> {
    let model = read::bytes(text.as_bytes(), &read::ReadOptions::default()).unwrap();
    let outputs = model.outputs();
    Structure::new(Arc::new(model), outputs).unwrap()
}

#[test]
fn options_are_send_and_sync() {
    fn shared<T: Send + Sync>(_: &T) {}
    let individual = Instance::new(&compiled(&dense(4, 0)));
    let (is_over, rows) = (AtomicBool::new(false), AtomicUsize::new(0));
    let ask = || is_over.load(Relaxed).then_some(Interrupt::Cancelled);
    let sink = |_: f64, _: &[f64]| {
        rows.fetch_add(1, Relaxed);
    };
    let times: Vec<f64> = (1..1000).map(f64::from).collect();
    // The first that is told ends the run, from another thread than that of the options.
    let tell = |_: f64| is_over.store(true, Relaxed);
    let options = RunOptions {
        interrupt: Some(&ask),
        sink: Some(&sink),
        progress: Some(&tell),
        times: Some(&times),
        ..RunOptions::default()
    };
    shared(&options);
    let failed = std::thread::scope(|scope| {
        let run = scope.spawn(|| run(&individual, &options).map(|_| ()));
        run.join().unwrap().unwrap_err()
    });
    let cause = Interrupt::Cancelled;
    assert!(matches!(failed.error, RunError::Interrupted { cause: c, .. } if c == cause));
    assert!(rows.load(Relaxed) < 1000);
}

#[test]
fn reading_looks_at_every_few_elements() {
    let text = dense(30, 20_000);
    let asked = Asked::always();
    let ask = || asked.ask();
    let watch = Watch::new(Some(&ask));
    let model = read::read_watched(text.as_bytes(), &read::ReadOptions::default(), &watch).unwrap();
    // Once while they are bound, and once more in the search for circles.
    let least = 2 * model.quantities.len() / UNITS;
    assert!(asked.count() >= least, "{} < {least}", asked.count());
    // It ends at the very look that says so, wherever that is.
    for allowed in [0, 1, asked.count() / 2, asked.count() - 1] {
        let asked = Asked::until(allowed);
        let ask = || asked.ask();
        let watch = Watch::new(Some(&ask));
        let failed = read::read_watched(text.as_bytes(), &read::ReadOptions::default(), &watch);
        assert!(failed.unwrap_err().to_string().starts_with("cancelled"));
        assert_eq!(asked.count(), allowed + 1);
    }
}

#[test]
fn compiling_looks_at_every_few_instructions() {
    let model = read::bytes(dense(90, 0).as_bytes(), &read::ReadOptions::default()).unwrap();
    let model = Arc::new(model);
    let compile = |asked: &Asked| {
        let ask = || asked.ask();
        let outputs = model.outputs();
        Structure::with_watch(Arc::clone(&model), outputs, &Watch::new(Some(&ask)))
    };
    let asked = Asked::always();
    let structure = compile(&asked).unwrap();
    // Each instruction is derived or lowered, emitted and put into its group.
    let instructions: usize = structure.instructions().iter().sum();
    let least = 2 * instructions / UNITS;
    assert!(
        instructions > 1000 && asked.count() >= least,
        "{} < {least}",
        asked.count()
    );
    for part in 0..8 {
        let allowed = asked.count() * part / 8;
        let asked = Asked::until(allowed);
        assert!(compile(&asked).is_err(), "{part}");
        assert_eq!(asked.count(), allowed + 1);
    }
}

/// A band: its elimination is long, and sparse.
fn band(n: usize, width: usize) -> SparsityPattern {
    let mut pattern = SparsityPattern {
        col_ptr: vec![0],
        row_idx: Vec::new(),
    };
    for j in 0..n {
        pattern
            .row_idx
            .extend(j.saturating_sub(width)..(j + width + 1).min(n));
        pattern.col_ptr.push(pattern.row_idx.len());
    }
    pattern
}

#[test]
fn long_factorisations_and_solutions_look_inside() {
    let pattern = band(1500, 40);
    let mut factors = LuFactors::new(Arc::new(SymbolicFactors::analyse(&pattern)));
    let jacobian: Vec<f64> = (0..pattern.nnz())
        .map(|i| -((i % 7) as f64) / 50.0)
        .collect();
    let mut looks = 0;
    let done = factors.refactor_asking(0.5, &jacobian, &mut || {
        looks += 1;
        None
    });
    assert!(done.is_ok() && !factors.is_dense());
    let least = factors.symbolic().operations() / (1 << 20) / 2;
    assert!(least >= 1 && looks >= least, "{looks} < {least}");
    let stopped = factors.refactor_asking(0.5, &jacobian, &mut || Some(Interrupt::Deadline));
    assert_eq!(stopped, Err(FactorError::Interrupted(Interrupt::Deadline)));
    factors.refactor(0.5, &jacobian).unwrap();
    let mut rows = vec![1.0; 1500 * 30];
    let stopped = factors.solve_rows_asking(&mut rows, 30, &mut || Some(Interrupt::Cancelled));
    assert_eq!(stopped, Err(Interrupt::Cancelled));
    // A dense one looks before every 32 columns.
    let pattern = SparsityPattern::dense(200);
    let mut factors = LuFactors::new(Arc::new(SymbolicFactors::analyse(&pattern)));
    let mut looks = 0;
    let done = factors.refactor_asking(1e-3, &vec![-0.5; 200 * 200], &mut || {
        looks += 1;
        None
    });
    assert!(done.is_ok() && factors.is_dense());
    assert!(looks >= 200 / 32, "{looks}");
}

#[test]
fn runs_look_before_every_step_and_tell_of_the_time_between_outputs() {
    let individual = Instance::new(&compiled(&dense(20, 0)));
    let asked = Asked::always();
    let (ask, told) = (|| asked.ask(), std::sync::Mutex::new(Vec::new()));
    let tell = |part: f64| told.lock().unwrap().push(part);
    let q = individual.structure().model().quantities.iter();
    let k: Vec<usize> = q
        .enumerate()
        .filter(|(_, q)| q.name == "P0")
        .map(|(i, _)| i)
        .collect();
    for sensitivity_to in [&[][..], &k] {
        asked.forget();
        let options = RunOptions {
            interrupt: Some(&ask),
            progress: Some(&tell),
            sensitivity_to,
            ..RunOptions::default()
        };
        let results = run(&individual, &options).unwrap();
        let s = results.statistics;
        let least = s.steps + s.error_test_failures + s.convergence_failures;
        assert!(asked.count() >= least, "{} < {least}", asked.count());
    }
    // One output time: what is told lies between, ascending, and ends with all.
    let told = told.into_inner().unwrap();
    let first: Vec<f64> = told
        .split_inclusive(|part| *part == 1.0)
        .next()
        .unwrap()
        .to_vec();
    assert!(first.len() > 5 && first.len() <= 1001, "{first:?}");
    assert!(first.is_sorted() && first[0] > 0.0 && first.last() == Some(&1.0));
    assert!(
        first.iter().any(|part| (0.2..0.8).contains(part)),
        "{first:?}"
    );
}

#[test]
fn populations_and_fits_end_at_the_look_that_says_so() {
    let base = Instance::new(&compiled(&dense(6, 0)));
    let cohort = Cohort {
        size: 20,
        seed: 3,
        varied: vec![VariedParameter {
            column: ParameterColumn {
                path: "S|P0".to_owned(),
                unit: String::new(),
            },
            distribution: Distribution::Uniform(0.5, 1.5),
        }],
        ..Cohort::default()
    };
    let people = cohort.draw().unwrap();
    let (plan, _) = PopulationPlan::new(base.clone(), &people).unwrap();
    let chunk = |asked: &Asked| {
        let (ask, mut done) = (|| asked.ask(), 0);
        let options = RunOptions {
            interrupt: Some(&ask),
            ..RunOptions::default()
        };
        let ended = run_chunk(&plan, &people, 0..people.len(), &options, |_| done += 1);
        (ended, done)
    };
    let whole = Asked::always();
    assert_eq!(chunk(&whole), (Ok(()), 20));
    let half = Asked::until(whole.count() / 2);
    let (ended, done) = chunk(&half);
    assert_eq!(ended, Err(Interrupt::Cancelled));
    assert_eq!(half.count(), whole.count() / 2 + 1);
    assert!((1..20).contains(&done), "{done}");

    let quantities = &base.structure().model().quantities;
    let k = quantities.iter().position(|q| q.name == "P0").unwrap();
    let parameter = FitParameter {
        position: k,
        low: 0.1,
        high: 10.0,
    };
    let observed = (1..8).map(|i| Observation {
        output: 0,
        time: f64::from(i),
        value: 0.2 + 0.05 * f64::from(i),
        weight: 1.0,
        is_censored: false,
    });
    let observed: Vec<Observation> = observed.collect();
    let fitted = |asked: &Asked| {
        let ask = || asked.ask();
        let parameters = vec![parameter];
        let mut problem =
            FitProblem::new(&base, parameters, observed.clone(), ResidualModel::Absolute).unwrap();
        problem.set_watch(&ask);
        fit(&problem).map(|_| ())
    };
    let whole = Asked::always();
    fitted(&whole).unwrap();
    let half = Asked::until(whole.count() / 2);
    let ended = fitted(&half).unwrap_err();
    assert!(matches!(ended, FitError::Interrupted(Interrupt::Cancelled)));
    assert_eq!(half.count(), whole.count() / 2 + 1);
}
