//! Display units: values that a hand calculation gives.

#![cfg(feature = "cli")]

use crate::cli::{data, sim};
use pbpk::csv::{CurveTable, results};

const WHOLE_BODY: &str = "pkml/pksim_simple_simulation.pkml";
const PLASMA: &str = "**|Plasma (Peripheral Venous Blood)";

/// The output in these units, times in minutes.
fn curves(output: &str, extra: &[&str]) -> CurveTable {
    let model = data(WHOLE_BODY).display().to_string();
    let done = sim(&[&["run", &model, "--output", output, "--csv", "-"], extra].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    let found = results(&mut done.out.as_bytes()).unwrap();
    found.into_iter().next().unwrap().curves
}

/// The molecular weight of the file is 400 g/mol: 1 µmol/l is 0.4 mg/l.
#[test]
fn concentrations_are_shown_as_masses_by_molecular_weight() {
    if crate::common::is_reference_absent() {
        return;
    }
    let base = curves(PLASMA, &[]);
    assert_eq!(base.series[0].unit, "µmol/l");
    for (unit, factor) in [
        ("mg/l", 0.4),
        ("ng/ml", 400.0),
        ("nmol/l", 1000.0),
        ("display", 1.0),
    ] {
        let shown = curves(PLASMA, &["--unit", unit]);
        let name = if unit == "display" { "µmol/l" } else { unit };
        assert_eq!(shown.series[0].unit, name);
        let pairs = base.series[0].values.iter().zip(&shown.series[0].values);
        let mut positive = 0;
        for (b, s) in pairs {
            assert!((b * factor - s).abs() <= 1e-12 * s.abs(), "{unit}: {b} {s}");
            positive += usize::from(*s > 0.0);
        }
        assert!(positive > 100);
    }
    // With two units the first that fits counts, output by output.
    let venous = "Organism|VenousBlood|Plasma|C1";
    let both = curves(
        venous,
        &["--output", PLASMA, "--unit", "mg/l", "--unit", "mg"],
    );
    let units: Vec<&str> = both.series.iter().map(|s| s.unit.as_str()).collect();
    assert_eq!(units, ["mg", "mg/l"]);
    let (shown, base) = (
        both.series[0].values[5],
        curves(venous, &[]).series[0].values[5],
    );
    assert!(base > 0.0 && (shown - base * 0.4).abs() < 1e-12 * shown);
}

#[test]
fn times_are_shown_in_hours() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = data(WHOLE_BODY).display().to_string();
    let text = |unit: &str| {
        let words = [
            "run",
            &model,
            "--output",
            PLASMA,
            "--csv",
            "-",
            "--time-unit",
            unit,
        ];
        sim(&words).out
    };
    let (minutes, hours) = (text("min"), text("h"));
    assert!(hours.starts_with("Time [h],"), "{hours}");
    let number = |line: &str| -> f64 { line.split(',').next().unwrap().parse().unwrap() };
    for (m, h) in minutes.lines().zip(hours.lines()).skip(1) {
        assert_eq!(number(m) / 60.0, number(h));
        assert_eq!(m.split(',').nth(1), h.split(',').nth(1));
    }
    let summary = sim(&["run", &model, "--output", PLASMA, "--time-unit", "h"]);
    assert!(summary.out.contains("at [h]"), "{}", summary.out);
}

#[test]
fn units_that_fit_nothing_are_refused() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = data(WHOLE_BODY).display().to_string();
    for (words, part) in [
        (["--unit", "kg/m²"], "fits none of the outputs"),
        (["--unit", "furlong"], "fits none of the outputs"),
        (["--time-unit", "mg"], "not a unit of time"),
    ] {
        let done = sim(&[&["run", &model, "--output", PLASMA], words.as_slice()].concat());
        assert_eq!(done.code, 2, "{words:?}");
        assert!(done.err.contains(part), "{words:?}: {}", done.err);
    }
}

/// A file with 349 outputs is not printed as 349 lines.
#[test]
fn summaries_show_the_largest_outputs() {
    if crate::common::is_reference_absent() {
        return;
    }
    let model = data(WHOLE_BODY).display().to_string();
    let short = sim(&["run", &model]);
    assert_eq!(short.out.lines().count(), 31);
    assert!(short.err.contains("319 more outputs"), "{}", short.err);
    let all = sim(&["run", &model, "--all"]);
    assert_eq!(all.out.lines().count(), 350);
    let peak = |line: &str| -> f64 {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[words.len() - 3].parse().unwrap_or(f64::NAN)
    };
    let least = short
        .out
        .lines()
        .skip(1)
        .map(peak)
        .fold(f64::INFINITY, f64::min);
    let larger = all.out.lines().skip(1).filter(|l| peak(l) > least).count();
    assert!(larger <= 30, "{larger} above {least}");
}
