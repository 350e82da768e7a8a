//! Sensitivities of pharmacokinetic parameters against the suite's tables, and against a tight solution.

use std::collections::BTreeMap;

use pbpk::compile::Instance;
use pbpk::run::RunOptions;
use pbpk::sensitivity::{VariationScheme, figures, of_parameter};
use pbpk::watch::Watch;

use crate::common::{data, instance, load, run};

/// Sensitivities by output and figure.
fn found(
    i: &Instance,
    parameter: &str,
    options: &RunOptions<'_>,
) -> BTreeMap<(String, String), f64> {
    let q = i.structure().model().position(parameter).unwrap();
    let results = run(i, options);
    let base = figures(i, &results, &Watch::default()).unwrap();
    let entries = of_parameter(i, q, &base, &VariationScheme::default(), options).unwrap();
    let named = entries.into_iter().map(|e| {
        let key = (results.paths[e.output].clone(), e.figure.to_owned());
        (key, e.value)
    });
    named.collect()
}

fn table(file: &str) -> Vec<Vec<String>> {
    let bytes = std::fs::read(data(file)).unwrap();
    pbpk::csv::read(&mut bytes.as_slice()).unwrap().rows
}

const TIGHT: RunOptions<'_> = RunOptions {
    rel_tol: Some(1e-10),
    abs_tol: Some(1e-14),
    max_steps: None,
    max_step: None,
    check_negative: None,
    precision: pbpk::model::TimePrecision::Single,
    times: None,
    locate_events: false,
    osp_version: pbpk::run::OspVersion::V12_4_3,
    once_at_start: false,
    sensitivity_to: &[],
    interrupt: None,
    progress: None,
    sink: None,
};

#[test]
fn a_tight_solution() {
    if crate::common::is_reference_absent() {
        return;
    }
    let i = instance(load("pkml/ospr_simple.pkml"));
    let k1 = found(&i, "R1|k1", &TIGHT);
    for (output, figure, value) in [
        ("Organism|B", "C_max", 0.124980),
        ("Organism|A", "C_tEnd", -3.01287),
        ("Organism|A", "AUC_tEnd", -0.839460),
        ("Organism|B", "AUC_tEnd", 0.285618),
    ] {
        let ours = k1[&(output.to_owned(), figure.to_owned())];
        assert!(
            (ours / value - 1.0).abs() < 1e-4,
            "{output} {figure}: {ours}"
        );
    }
    for parameter in ["Organism|Liver|Volume", "Organism|Q"] {
        for ((output, figure), value) in found(&i, parameter, &TIGHT) {
            assert!(
                output != "Organism|A" || value == 0.0,
                "{parameter} {figure}: {value}"
            );
        }
    }
}

/// The published tables, each with the tolerance that their own disagreement allows.
#[test]
fn the_suites_tables() {
    if crate::common::is_reference_absent() {
        return;
    }
    let i = instance(load("pkml/ospr_simple.pkml"));
    let mut compared = 0;
    // The first was made at tighter tolerances than the file's.
    for (file, allowed, options) in [
        ("csv/ospr_sa.csv", 5e-3, TIGHT),
        ("csv/ospr_SAResult.csv", 1.5e-2, RunOptions::default()),
    ] {
        let k1 = found(&i, "R1|k1", &options);
        for row in table(file) {
            let [output, parameter, figure, value] = row.as_slice() else {
                panic!("{row:?}");
            };
            let value: f64 = value.parse().unwrap();
            if parameter != "R1-k1" || figure == "t_max" || !value.is_finite() {
                continue;
            }
            let figure = if figure == "AUC" { "AUC_tEnd" } else { figure };
            let Some(ours) = k1.get(&(output.clone(), figure.to_owned())) else {
                continue;
            };
            let gap = (ours - value).abs();
            assert!(
                gap <= allowed * value.abs().max(1e-2),
                "{file} {output} {figure}: {ours} instead of {value}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 30, "{compared}");
}

#[test]
fn a_parameter_that_is_zero_has_no_scale() {
    if crate::common::is_reference_absent() {
        return;
    }
    let mut i = instance(load("pkml/ospr_simple.pkml"));
    let q = i.structure().model().position("R1|k1").unwrap();
    i.set(q, 0.0).unwrap();
    let results = run(&i, &RunOptions::default());
    let base = figures(&i, &results, &Watch::default()).unwrap();
    let e = of_parameter(
        &i,
        q,
        &base,
        &VariationScheme::default(),
        &RunOptions::default(),
    )
    .unwrap_err();
    assert!(e.to_string().contains("R1|k1"), "{e}");
}
