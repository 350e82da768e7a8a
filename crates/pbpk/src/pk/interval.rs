//! Parameters of dosing intervals, and of the extrapolation with the observed last value.
//!
//! The suite's catalogue has none of these. τ is the time between the last two doses; the first interval is
//! `[first dose, first dose + τ]`, that at steady state `[d, d + τ]` of the last dose `d` for which the curve is long
//! enough. Areas are linear trapezoids with values at both ends that are linear between points.

use super::analysis::{PkValue, analyse};
use super::catalogue::{AREA, CONCENTRATION, DosingMode, FRACTION, PkParameter, TIME, entry};
use super::curve::Curve;
use super::dosing::Dosing;

use DosingMode::{Multi, Single};

/// Parameters beside those of the suite, in the order of reports.
#[rustfmt::skip]
pub const INTERVAL_CATALOGUE: [PkParameter; 11] = [
    entry("AUC_inf_obs", Single, AREA, "area under the curve up to infinity, AUC_tEnd + C_tEnd/λ"),
    entry("FractionAucLastToInf_obs", Single, FRACTION, "extrapolated share, (C_tEnd/λ)/AUC_inf_obs"),
    entry("tau", Multi, TIME, "dosing interval: time between the last two doses"),
    entry("AUC_tau_tD1", Multi, AREA, "area over the first dosing interval"),
    entry("AUC_tau_ss", Multi, AREA, "area over the last whole dosing interval"),
    entry("C_max_ss", Multi, CONCENTRATION, "highest concentration of the last whole dosing interval"),
    entry("C_min_ss", Multi, CONCENTRATION, "lowest concentration of the last whole dosing interval"),
    entry("C_avg_ss", Multi, CONCENTRATION, "mean concentration of that interval, AUC_tau_ss/τ"),
    entry("R_ac", Multi, FRACTION, "accumulation, AUC_tau_ss/AUC_tau_tD1"),
    entry("PTF", Multi, FRACTION, "fluctuation, (C_max_ss − C_min_ss)/C_avg_ss"),
    entry("Swing", Multi, FRACTION, "swing, (C_max_ss − C_min_ss)/C_min_ss"),
];

/// Computes the parameters of [`INTERVAL_CATALOGUE`] that are defined for the dosing; what cannot be computed is not a
/// number.
#[must_use]
pub fn analyse_intervals(curve: Curve<'_>, dosing: &Dosing) -> Vec<PkValue> {
    let starts: Vec<f64> = dosing.applications().iter().map(|a| a.start).collect();
    let values = match starts.as_slice() {
        [first, .., before, last] => multiple(curve, &starts, *first, last - before),
        [first, last] => multiple(curve, &starts, *first, last - first),
        _ => single(curve),
    };
    let defined = INTERVAL_CATALOGUE
        .iter()
        .filter(|parameter| parameter.mode.fits(dosing.is_multiple()));
    defined
        .zip(values)
        .map(|(parameter, value)| PkValue { parameter, value })
        .collect()
}

/// Computes the parameters of the suite's catalogue and of [`INTERVAL_CATALOGUE`] that are defined for the dosing, in this
/// order: everything that a report shows of a curve.
#[must_use]
pub fn analyse_all(curve: Curve<'_>, dosing: &Dosing) -> Vec<PkValue> {
    let mut values = analyse(curve, dosing).values;
    values.extend(analyse_intervals(curve, dosing));
    values
}

fn single(curve: Curve<'_>) -> Vec<f64> {
    let beyond = curve
        .terminal()
        .map_or(f64::NAN, |terminal| curve.last() / terminal.lambda);
    let infinite = curve.area() + beyond;
    vec![infinite, beyond / infinite]
}

fn multiple(curve: Curve<'_>, starts: &[f64], first: f64, tau: f64) -> Vec<f64> {
    let window = |dose: f64| curve.window(dose, dose + tau);
    let steady = starts.iter().rev().find_map(|dose| window(*dose));
    let of = |part: &Option<(Vec<f64>, Vec<f64>)>, figure: fn(&Curve<'_>) -> f64| {
        let part = part.as_ref();
        let part = part.and_then(|(times, values)| Curve::new(times, values).ok());
        part.map_or(f64::NAN, |part| figure(&part))
    };
    let area_first = of(&window(first), |part| part.area());
    let area = of(&steady, |part| part.area());
    let high = of(&steady, |part| part.maximum().1);
    let low = of(&steady, |part| part.minimum().1);
    let mean = area / tau;
    vec![
        tau,
        area_first,
        area,
        high,
        low,
        mean,
        area / area_first,
        (high - low) / mean,
        (high - low) / low,
    ]
}
