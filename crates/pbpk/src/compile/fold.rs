//! Folding: the number of every quantity at the start, from the numbers it depends on.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: positions are quantities of one model"
)]

use std::sync::Arc;

use crate::model::{FormulaKind, Model, Reference, Table};

/// Evaluates formulas over a vector with one number per quantity.
pub(crate) struct Folder<'a> {
    model: &'a Model,
    scratch: Vec<f64>,
}

impl<'a> Folder<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        Self {
            model,
            scratch: Vec::new(),
        }
    }

    /// The value of formula f at time t; `formula_of(q)` is the formula that now defines quantity q.
    pub(crate) fn evaluate(
        &mut self,
        f: usize,
        t: f64,
        values: &[f64],
        formula_of: impl Fn(usize) -> Option<usize>,
    ) -> f64 {
        let model = self.model;
        let get = |reference: Reference| match reference {
            Reference::Time => t,
            Reference::Quantity(q) => values[q],
        };
        let at = |q: usize, x: f64| match table(model, formula_of(q)) {
            Some(table) => table.value(x),
            None => values[q],
        };
        match &model.formulas[f].kind {
            FormulaKind::Explicit { body, arguments } => {
                body.evaluate(&mut self.scratch, |i| get(arguments[i]))
            }
            FormulaKind::Table(table) => table.value(t),
            FormulaKind::TableWithOffset { table, offset } => at(*table, t - get(*offset)),
            FormulaKind::TableWithArgument { table, argument } => at(*table, get(*argument)),
        }
    }
}

/// The table of a formula, if it is one.
pub(crate) fn table(model: &Model, formula: Option<usize>) -> Option<&Arc<Table>> {
    match &model.formulas.get(formula?)?.kind {
        FormulaKind::Table(table) => Some(table),
        _ => None,
    }
}
