//! Values that must not be negative.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: states are quantities of one model"
)]

use multiversion::multiversion;

use super::RunError;
use crate::compile::Structure;

/// Parts of a path that exempt a state: depots and glands that run dry by design.
const EXEMPT: [&str; 3] = ["SalivaGland", "IgG_Source", "ParticleBin_"];
/// Containers that exempt what is inside.
const EXEMPT_CONTAINERS: [&str; 2] = ["Events", "Applications"];

/// How far below zero a stored value may lie, in absolute tolerances.
const SLACK: f64 = 100.0;

fn is_exempt(path: &str, delimiter: char) -> bool {
    EXEMPT.iter().any(|part| path.contains(part))
        || EXEMPT_CONTAINERS
            .iter()
            .any(|name| path.split(delimiter).any(|element| element == *name))
}

/// For each state 0 if it must not be negative, and infinity if it may.
fn lifts(structure: &Structure) -> Vec<f64> {
    let model = structure.model();
    let quantities = structure.states().iter().map(|q| &model.quantities[*q]);
    let lift = quantities.map(|q| {
        let may = q.negative_allowed || is_exempt(&q.path, model.delimiter);
        if may { f64::INFINITY } else { 0.0 }
    });
    lift.collect()
}

fn offenders(structure: &Structure, y: &[f64], bound: f64) -> Vec<String> {
    let lifts = structure.lifts.get_or_init(|| lifts(structure));
    // Without a branch for each: mostly there is none.
    if !any_below(y, lifts, bound) {
        return Vec::new();
    }
    let quantities = &structure.model().quantities;
    let all = structure.states().iter().zip(y).zip(lifts);
    let bad = all.filter(|((_, y), lift)| *y + *lift < bound);
    bad.map(|((q, _), _)| quantities[*q].path.clone()).collect()
}

/// Returns whether a number lies below the bound when it is lifted.
#[multiversion(targets("x86_64+avx2"))]
fn any_below(y: &[f64], lifts: &[f64], bound: f64) -> bool {
    let all = y.iter().zip(lifts);
    let low = all.map(|(y, lift)| u64::from(y + lift < bound));
    low.fold(0, |any, low| any | low) != 0
}

/// Start values, before any event.
pub(super) fn check_start(structure: &Structure, y: &[f64], time: f64) -> Result<(), RunError> {
    match offenders(structure, y, 0.0) {
        paths if paths.is_empty() => Ok(()),
        paths => Err(RunError::NegativeStart { paths, time }),
    }
}

/// Stored values, scaled.
pub(super) fn check(
    structure: &Structure,
    y: &[f64],
    abs_tol: f64,
    time: f64,
) -> Result<(), RunError> {
    match offenders(structure, y, -SLACK * abs_tol) {
        paths if paths.is_empty() => Ok(()),
        paths => Err(RunError::Negative { paths, time }),
    }
}
