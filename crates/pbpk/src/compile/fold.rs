//! Folding: the number of every quantity at the start, from the numbers it depends on.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: positions are quantities of one model"
)]

use std::sync::Arc;

use crate::formula::KnownExtent;
use crate::model::{AliasReference, FormulaKind, Model, PointTable, START, ValueSource};

/// Argument of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableReading {
    /// The time minus an offset: the table is that of the parameter now.
    Offset,
    /// Another quantity: the table stays that of the file, even if an event changes its parameter.
    Argument,
}

/// Evaluates formulas over a vector with one number per quantity.
pub(crate) struct FormulaFolder<'a> {
    model: &'a Model,
    scratch: Vec<(f64, KnownExtent)>,
}

impl<'a> FormulaFolder<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        Self {
            model,
            scratch: Vec::new(),
        }
    }

    /// Returns the value of formula f at time t; `constants` says which quantities are constants of the file,
    /// `table_of(q, …)` is the formula of quantity q with a table that is read.
    pub(crate) fn evaluate(
        &mut self,
        f: usize,
        t: f64,
        values: &[f64],
        constants: &[bool],
        table_of: impl Fn(usize, TableReading) -> Option<usize>,
    ) -> f64 {
        let model = self.model;
        let get = |reference: AliasReference| match reference {
            AliasReference::Time => t,
            AliasReference::Quantity(q) => values[q],
        };
        let at = |q: usize, x: f64, reading| match table(model, table_of(q, reading)) {
            Some(table) => table.value(x),
            None => values[q],
        };
        match &model.formulas[f].kind {
            FormulaKind::Explicit { body, arguments } => {
                body.evaluate_known(&mut self.scratch, |i| match arguments[i] {
                    AliasReference::Time => (t, false),
                    AliasReference::Quantity(q) => (values[q], constants[q]),
                })
            }
            FormulaKind::Table(table) => table.value(t),
            FormulaKind::TableWithOffset { table, offset } => {
                at(*table, t - get(*offset), TableReading::Offset)
            }
            FormulaKind::TableWithArgument { table, argument } => {
                at(*table, get(*argument), TableReading::Argument)
            }
        }
    }

    /// Calls `each` with every quantity that formula f uses and the derivative by it; a quantity may come several
    /// times.
    pub(crate) fn gradient(
        &mut self,
        f: usize,
        t: f64,
        values: &[f64],
        constants: &[bool],
        table_of: impl Fn(usize, TableReading) -> Option<usize>,
        mut each: impl FnMut(usize, f64),
    ) {
        let model = self.model;
        let at = |q: usize, reading| table(model, table_of(q, reading));
        match &model.formulas[f].kind {
            FormulaKind::Explicit { body, arguments } => {
                let argument = |i: usize| match arguments[i] {
                    AliasReference::Time => (t, false),
                    AliasReference::Quantity(q) => (values[q], constants[q]),
                };
                body.gradient(&mut self.scratch, argument, |i, derivative| {
                    if let AliasReference::Quantity(q) = arguments[i] {
                        each(q, derivative);
                    }
                });
            }
            FormulaKind::Table(_) => {}
            FormulaKind::TableWithOffset { table, offset } => {
                match (at(*table, TableReading::Offset), *offset) {
                    (Some(table), AliasReference::Quantity(q)) => {
                        each(q, -table.derivative(t - values[q]));
                    }
                    (Some(_), AliasReference::Time) => {}
                    (None, _) => each(*table, 1.0),
                }
            }
            FormulaKind::TableWithArgument { table, argument } => {
                match (at(*table, TableReading::Argument), *argument) {
                    (Some(table), AliasReference::Quantity(q)) => {
                        each(q, table.derivative(values[q]))
                    }
                    (Some(_), AliasReference::Time) => {}
                    (None, _) => each(*table, 1.0),
                }
            }
        }
    }
}

/// Returns the numbers of all constants of the file, not-a-number for the rest; `order` holds the quantities with a
/// formula, each after what it uses.
pub(crate) fn constants(model: &Model, order: &[u32], constants: &[bool]) -> Vec<f64> {
    let number = |source| match source {
        ValueSource::Constant(number) => number,
        _ => f64::NAN,
    };
    let quantities = model.quantities.iter();
    let mut values: Vec<f64> = quantities.map(|q| number(q.source)).collect();
    let mut folder = FormulaFolder::new(model);
    for &q in order {
        let q = q as usize;
        if constants[q]
            && let ValueSource::Formula(f) = model.quantities[q].source
        {
            let table_of = |q: usize, _| super::own_formula(model, q);
            values[q] = folder.evaluate(f, START, &values, constants, table_of);
        }
    }
    values
}

/// Returns the table of a formula, if it is one.
pub(crate) fn table(model: &Model, formula: Option<usize>) -> Option<&Arc<PointTable>> {
    match &model.formulas.get(formula?)?.kind {
        FormulaKind::Table(table) => Some(table),
        _ => None,
    }
}
