//! Derivatives by parameters along a run: the possible parameters, and their start values.
//!
//! Events and jumps of rates happen at fixed times here: a parameter that moves such a time is refused by name, because
//! the derivative would lack the jump's part.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: positions are quantities of one model"
)]

use super::events::{EventState, interrupted};
use super::{RunError, RunOptions, START};
use crate::compile::{Instance, QuantityClass, TangentState};
use crate::model::{AliasReference, FormulaKind, Model, QuantityKind};
use crate::watch::Watch;

/// Makes the state carry derivatives by the parameters of the options.
pub(super) fn prepare(
    state: &mut EventState,
    instance: &Instance,
    options: &RunOptions<'_>,
) -> Result<(), RunError> {
    let parameters = options.sensitivity_to;
    let structure = instance.structure();
    let model = structure.model();
    let refused = |q: usize, reason: &str| RunError::NoDerivative {
        path: model
            .quantities
            .get(q)
            .map_or_else(String::new, |q| q.path.clone()),
        reason: reason.to_owned(),
    };
    if options.locate_events {
        let first = parameters.first().copied().unwrap_or_default();
        return Err(refused(
            first,
            "the times of located events depend on everything",
        ));
    }
    let classes = &state.engine.variant().classes;
    for &q in parameters {
        match (model.quantities.get(q).map(|q| q.kind), classes.get(q)) {
            (None | Some(QuantityKind::Observer), _) | (_, None) => {
                return Err(refused(q, "it is computed, not set"));
            }
            (_, Some(QuantityClass::Varying)) => {
                return Err(refused(
                    q,
                    "it follows the time or a state; set it to a number first",
                ));
            }
            _ => {}
        }
    }
    let watch = Watch::new(options.interrupt);
    let stopped = |cause| interrupted(START, cause);
    let made = TangentState::new(instance, parameters, &watch);
    let mut tangents = made.map_err(stopped)?;
    for q in times(model) {
        if tangents.moves(q) {
            let row = tangents.quantity(q);
            let k = row.iter().position(|d| *d != 0.0).unwrap_or_default();
            return Err(refused(
                parameters[k],
                &format!(
                    "'{}' says when something happens and depends on it",
                    model.quantities[q].path
                ),
            ));
        }
    }
    let width = parameters.len();
    state.s = vec![0.0; structure.states().len() * width];
    for (&q, row) in structure
        .states()
        .iter()
        .zip(state.s.chunks_exact_mut(width))
    {
        let scale = model.quantities[q].scale;
        for (d, of_quantity) in row.iter_mut().zip(tangents.quantity(q)) {
            *d = of_quantity / scale;
        }
    }
    tangents.load(&state.engine, &watch).map_err(stopped)?;
    state.tangents = Some(tangents);
    Ok(())
}

/// Quantities that are compared with the time, or that shift a table.
fn times(model: &Model) -> Vec<usize> {
    let mut found = Vec::new();
    for formula in &model.formulas {
        match &formula.kind {
            FormulaKind::Explicit { body, arguments } => {
                let is_time = |i: usize| arguments.get(i) == Some(&AliasReference::Time);
                for i in body.compared_with(is_time) {
                    if let Some(AliasReference::Quantity(q)) = arguments.get(i) {
                        found.push(*q);
                    }
                }
            }
            FormulaKind::TableWithOffset {
                offset: AliasReference::Quantity(q),
                ..
            } => found.push(*q),
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
