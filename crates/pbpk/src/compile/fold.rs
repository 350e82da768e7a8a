//! Folding: the number of every quantity at the start, from the numbers it depends on.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: positions are quantities of one model"
)]

use std::sync::Arc;

use crate::formula::Known;
use crate::model::{FormulaKind, Model, Reference, START, Source, Table};

/// What a table is read with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The time minus an offset: the table is that of the parameter now.
    Offset,
    /// Another quantity: the table stays that of the file, whatever an event does to its parameter.
    Argument,
}

/// Evaluates formulas over a vector with one number per quantity.
pub(crate) struct Folder<'a> {
    model: &'a Model,
    scratch: Vec<(f64, Known)>,
}

impl<'a> Folder<'a> {
    pub(crate) fn new(model: &'a Model) -> Self {
        Self {
            model,
            scratch: Vec::new(),
        }
    }

    /// The value of formula f at time t; `constants` says which quantities are constants of the file, `table_of(q, …)` is
    /// the formula of quantity q whose table is read.
    pub(crate) fn evaluate(
        &mut self,
        f: usize,
        t: f64,
        values: &[f64],
        constants: &[bool],
        table_of: impl Fn(usize, Reading) -> Option<usize>,
    ) -> f64 {
        let model = self.model;
        let get = |reference: Reference| match reference {
            Reference::Time => t,
            Reference::Quantity(q) => values[q],
        };
        let at = |q: usize, x: f64, reading| match table(model, table_of(q, reading)) {
            Some(table) => table.value(x),
            None => values[q],
        };
        match &model.formulas[f].kind {
            FormulaKind::Explicit { body, arguments } => {
                body.evaluate_known(&mut self.scratch, |i| match arguments[i] {
                    Reference::Time => (t, false),
                    Reference::Quantity(q) => (values[q], constants[q]),
                })
            }
            FormulaKind::Table(table) => table.value(t),
            FormulaKind::TableWithOffset { table, offset } => {
                at(*table, t - get(*offset), Reading::Offset)
            }
            FormulaKind::TableWithArgument { table, argument } => {
                at(*table, get(*argument), Reading::Argument)
            }
        }
    }

    /// Calls `each` with every quantity that formula f uses and the derivative by it; a quantity may come several times.
    pub(crate) fn gradient(
        &mut self,
        f: usize,
        t: f64,
        values: &[f64],
        constants: &[bool],
        table_of: impl Fn(usize, Reading) -> Option<usize>,
        mut each: impl FnMut(usize, f64),
    ) {
        let model = self.model;
        let at = |q: usize, reading| table(model, table_of(q, reading));
        match &model.formulas[f].kind {
            FormulaKind::Explicit { body, arguments } => {
                let argument = |i: usize| match arguments[i] {
                    Reference::Time => (t, false),
                    Reference::Quantity(q) => (values[q], constants[q]),
                };
                body.gradient(&mut self.scratch, argument, |i, derivative| {
                    if let Reference::Quantity(q) = arguments[i] {
                        each(q, derivative);
                    }
                });
            }
            FormulaKind::Table(_) => {}
            FormulaKind::TableWithOffset { table, offset } => {
                match (at(*table, Reading::Offset), *offset) {
                    (Some(table), Reference::Quantity(q)) => {
                        each(q, -table.derivative(t - values[q]));
                    }
                    (Some(_), Reference::Time) => {}
                    (None, _) => each(*table, 1.0),
                }
            }
            FormulaKind::TableWithArgument { table, argument } => {
                match (at(*table, Reading::Argument), *argument) {
                    (Some(table), Reference::Quantity(q)) => each(q, table.derivative(values[q])),
                    (Some(_), Reference::Time) => {}
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
        Source::Constant(number) => number,
        _ => f64::NAN,
    };
    let quantities = model.quantities.iter();
    let mut values: Vec<f64> = quantities.map(|q| number(q.source)).collect();
    let mut folder = Folder::new(model);
    for &q in order {
        let q = q as usize;
        if constants[q]
            && let Source::Formula(f) = model.quantities[q].source
        {
            let table_of = |q: usize, _| super::own_formula(model, q);
            values[q] = folder.evaluate(f, START, &values, constants, table_of);
        }
    }
    values
}

/// The table of a formula, if it is one.
pub(crate) fn table(model: &Model, formula: Option<usize>) -> Option<&Arc<Table>> {
    match &model.formulas.get(formula?)?.kind {
        FormulaKind::Table(table) => Some(table),
        _ => None,
    }
}
