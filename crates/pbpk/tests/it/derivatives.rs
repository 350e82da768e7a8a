//! Forward sensitivities against solutions in closed form, published tables, and central differences of tight runs.

use pbpk::compile::Instance;
use pbpk::run::{Results, RunOptions};

use crate::common::{self, data, instance, load, run};

fn with(instance: &Instance, parameters: &[usize], options: &RunOptions<'_>) -> Results {
    let options = RunOptions {
        sensitivity_to: parameters,
        ..*options
    };
    run(instance, &options)
}

fn position(instance: &Instance, path: &str) -> usize {
    pbpk::path::find_one(instance.structure().model(), path).unwrap()
}

#[test]
fn exponential_decay() {
    if crate::common::is_reference_absent() {
        return;
    }
    let i = instance(load("simmodel/S3_reduced.xml"));
    let model = i.structure().model();
    let parameters: Vec<usize> = (0..model.quantities.len())
        .filter(|q| ["k", "A0"].contains(&model.quantities[*q].name.as_str()))
        .collect();
    let state = i.structure().states()[0];
    let names = |q: &usize| model.quantities[*q].name.clone();
    let names: Vec<String> = parameters.iter().map(names).collect();
    let r = with(&i, &parameters, &RunOptions::default());
    let output = r
        .paths
        .iter()
        .position(|p| *p == model.quantities[state].path)
        .unwrap();
    let k = names.iter().position(|n| n == "k").expect("parameter k");
    for (t, d) in r.times.iter().zip(r.derivative(output, k)) {
        let exact = -10.0 * t * (-0.5 * t).exp();
        assert!(
            (d - exact).abs() <= 1e-3 * 7.36,
            "{t}: {d} instead of {exact}"
        );
    }
    // The start value itself.
    let r = with(&i, &[state], &RunOptions::default());
    for (t, d) in r.times.iter().zip(r.derivative(output, 0)) {
        let exact = (-0.5 * t).exp();
        assert!((d - exact).abs() <= 1e-3, "{t}: {d} instead of {exact}");
    }
}

/// The table of the solver's documentation; relative tolerance of our run 1e-8.
#[test]
fn robertson() {
    if crate::common::is_reference_absent() {
        return;
    }
    let i = instance(load("simmodel/cvsRoberts_FSA_dns.xml"));
    let parameters = ["P1", "P2", "P3"].map(|p| position(&i, &format!("**/{p}")));
    let states = i.structure().states().to_vec();
    let structure =
        pbpk::compile::Structure::new(std::sync::Arc::new(i.structure().model().clone()), states);
    let i = Instance::new(&structure.unwrap());
    let options = RunOptions {
        rel_tol: Some(1e-8),
        abs_tol: Some(1e-14),
        ..RunOptions::default()
    };
    let r = with(&i, &parameters, &options);
    assert_eq!(r.times, [0.0, 0.4, 4.0]);
    let expected = [
        [
            [-3.5611e-1, -1.8761],
            [9.4831e-8, 2.9612e-6],
            [-1.5733e-11, -4.9330e-10],
        ],
        [
            [3.9023e-4, 1.7922e-4],
            [-2.1325e-10, -5.8308e-10],
            [-5.2897e-13, -2.7624e-13],
        ],
    ];
    for (y, of_state) in expected.iter().enumerate() {
        let output = r
            .paths
            .iter()
            .position(|p| p.ends_with(&format!("y{}", y + 1)))
            .unwrap();
        for (p, values) in of_state.iter().enumerate() {
            let found: Vec<f64> = r.derivative(output, p).collect();
            for (row, value) in values.iter().enumerate() {
                let off = found[row + 1] / value - 1.0;
                assert!(off.abs() < 1e-2, "y{} P{} {}: {off:e}", y + 1, p + 1, row);
            }
        }
    }
}

/// What two tight runs may differ by, over twice the relative step, as part of the value's peak.
const NOISE: f64 = 2e-6;

/// Worst distance of the derivatives from central differences of tight runs, each column relative to its peak.
fn worst(base: &Instance, parameters: &[usize], options: &RunOptions<'_>) -> (f64, String) {
    let r = with(base, parameters, options);
    let settings = base.structure().model().solver;
    let tight = RunOptions {
        rel_tol: Some(1e-11),
        abs_tol: Some(settings.abs_tol * 1e-6),
        ..RunOptions::default()
    };
    let mut worst = (0.0, String::new());
    for (k, &q) in parameters.iter().enumerate() {
        let p = base.value(q).unwrap();
        let step = if p == 0.0 { 1e-5 } else { p.abs() * 1e-4 };
        let at = |value: f64| {
            let mut other = base.clone();
            other.set(q, value).unwrap();
            run(&other, &tight)
        };
        let (up, down) = (at(p + step), at(p - step));
        let scale = if p == 0.0 { 1.0 } else { p.abs() };
        for (o, path) in r.paths.iter().enumerate() {
            let differences: Vec<f64> = up
                .column(o)
                .zip(down.column(o))
                .map(|(a, b)| (a - b) / (2.0 * step) * scale)
                .collect();
            let ours: Vec<f64> = r.derivative(o, k).map(|d| d * scale).collect();
            let peak = |v: &mut dyn Iterator<Item = f64>| {
                v.filter(|v| v.is_finite())
                    .fold(0.0, |peak: f64, v| peak.max(v.abs()))
            };
            let noise = NOISE * peak(&mut up.column(o));
            let all = peak(&mut differences.iter().copied()).max(100.0 * settings.abs_tol);
            // Where a value is no number its derivative says nothing.
            let gaps = ours.iter().zip(&differences).filter(|(_, d)| d.is_finite());
            let gap = gaps.fold(0.0, |gap: f64, (a, b)| gap.max((a - b).abs()));
            assert!(
                ours.iter()
                    .zip(&differences)
                    .all(|(a, b)| a.is_finite() || !b.is_finite())
            );
            let d = (gap - noise).max(0.0) / all;
            if d > worst.0 {
                worst = (
                    d,
                    format!("{path} by {}", base.structure().model().quantities[q].path),
                );
            }
        }
    }
    worst
}

/// Constants of the population file that the whole body has.
fn of_population(instance: &Instance) -> Vec<usize> {
    let file = std::fs::read(data("csv/ospr_pop.csv")).unwrap();
    let population = pbpk::population::Population::read(&mut file.as_slice()).unwrap();
    let model = instance.structure().model();
    let found = population
        .columns
        .iter()
        .filter_map(|c| model.position(&c.path));
    found.collect()
}

#[test]
fn all_outputs_of_the_whole_body_to_the_parameters_of_a_population() {
    if crate::common::is_reference_absent() {
        return;
    }
    let i = instance(load("pkml/pksim_simple_simulation.pkml"));
    let parameters = of_population(&i);
    assert_eq!(parameters.len(), 89);
    let (d, what) = worst(&i, &parameters, &RunOptions::default());
    assert!(d <= 1e-4, "{d:e}: {what}");
}

/// Models with events that set values and replace formulas, tables, and scaled states.
#[test]
fn models_with_events_and_tables() {
    if crate::common::is_reference_absent() {
        return;
    }
    for (file, patterns) in [
        ("pkml/coreR_simple.pkml", &["**|k1"][..]),
        ("pkml/ospr_simple.pkml", &["**|k1"]),
        ("pkml/pi_IR_model_doseResponse.pkml", &["**|k*"]),
        ("pkml/coreR_not_ok_sim.pkml", &["**|Volume"]),
    ] {
        let i = instance(load(file));
        let model = i.structure().model();
        let mut parameters = Vec::new();
        for pattern in patterns {
            let found = pbpk::path::find(model, pattern).unwrap_or_default();
            parameters.extend(
                found
                    .into_iter()
                    .filter(|q| model.quantities[*q].kind == pbpk::model::QuantityKind::Parameter),
            );
        }
        assert!(!parameters.is_empty(), "{file}");
        parameters.truncate(8);
        let options = RunOptions {
            rel_tol: Some(1e-7),
            abs_tol: Some(model.solver.abs_tol * 1e-2),
            ..RunOptions::default()
        };
        let (d, what) = worst(&i, &parameters, &options);
        assert!(d <= 1e-4, "{file}: {d:e}: {what}");
    }
}

#[test]
fn what_moves_the_time_of_an_event_is_refused() {
    if crate::common::is_reference_absent() {
        return;
    }
    let i = instance(load("simmodel/POP_EHC_StartTime.xml"));
    let q = position(&i, "**|EHC_1|Start time");
    let options = RunOptions {
        sensitivity_to: &[q],
        ..RunOptions::default()
    };
    let message = pbpk::run::run(&i, &options).unwrap_err().to_string();
    assert!(
        message.contains("Start time") && message.contains("when something happens"),
        "{message}"
    );
    let observer = common::load("pkml/ospr_simple.pkml");
    let i = instance(observer);
    let model = i.structure().model();
    let q = (0..model.quantities.len())
        .find(|q| model.quantities[*q].kind == pbpk::model::QuantityKind::Observer);
    let options = RunOptions {
        sensitivity_to: &[q.unwrap()],
        ..RunOptions::default()
    };
    let message = pbpk::run::run(&i, &options).unwrap_err().to_string();
    assert!(message.contains("computed, not set"), "{message}");
}
