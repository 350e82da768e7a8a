//! Values that must not be negative.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: states are quantities of one model"
)]

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

fn offenders(structure: &Structure, y: &[f64], bound: f64) -> Vec<String> {
    let model = structure.model();
    // Quantities lie far apart: only those of values below the bound are looked at.
    let low = structure
        .states()
        .iter()
        .zip(y)
        .filter(|(_, y)| **y < bound);
    let low = low.map(|(q, _)| &model.quantities[*q]);
    let bad = low.filter(|q| !q.negative_allowed && !is_exempt(&q.path, model.delimiter));
    bad.map(|q| q.path.clone()).collect()
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
