//! Which parameters matter: those that the value of an output, or of anything at all, can depend on.
//!
//! The answer is structural: a parameter counts if its symbol can reach the output through formulas, rates, start
//! values or events, for any numbers. Text that a formula lists but does not use does not count.

use std::collections::BTreeSet;

use crate::model::{AliasReference, BoundFormula, FormulaKind, Model, QuantityKind, ValueSource};

/// Positions of the parameters that outputs, rates, start values or events of the model use; states do not count.
#[must_use]
pub fn of_model(model: &Model) -> Vec<usize> {
    let roots = model
        .quantities
        .iter()
        .enumerate()
        .filter(|(_, q)| q.kind != QuantityKind::Parameter || !q.rhs.is_empty())
        .map(|(i, _)| i);
    let mut walk = UsageWalk::new(model);
    for q in roots {
        walk.quantity(q);
    }
    for e in 0..model.events.len() {
        walk.event(e);
    }
    walk.parameters()
}

/// Positions of the parameters that the quantity at this position depends on, itself not included.
#[must_use]
pub fn of_output(model: &Model, output: usize) -> Vec<usize> {
    let mut walk = UsageWalk::new(model);
    walk.quantity(output);
    let mut parameters = walk.parameters();
    parameters.retain(|q| *q != output);
    parameters
}

/// Returns the positions of the parameters with a table as value, or with a value read from one.
#[must_use]
pub fn tables(model: &Model) -> Vec<usize> {
    let is_table = |source: ValueSource| match source {
        ValueSource::Formula(f) => matches!(
            model.formulas.get(f).map(|f| &f.kind),
            Some(
                FormulaKind::Table(_)
                    | FormulaKind::TableWithOffset { .. }
                    | FormulaKind::TableWithArgument { .. }
            )
        ),
        ValueSource::Constant(_) => false,
    };
    (0..model.quantities.len())
        .filter(|&q| model.quantities.get(q).is_some_and(|q| is_table(q.source)))
        .collect()
}

struct UsageWalk<'a> {
    model: &'a Model,
    /// Events that change a quantity.
    changed_by: Vec<Vec<usize>>,
    seen: BTreeSet<usize>,
    open: Vec<usize>,
}

impl<'a> UsageWalk<'a> {
    fn new(model: &'a Model) -> Self {
        let mut changed_by = vec![Vec::new(); model.quantities.len()];
        for (e, event) in model.events.iter().enumerate() {
            for assignment in &event.assignments {
                if let Some(list) = changed_by.get_mut(assignment.target) {
                    list.push(e);
                }
            }
        }
        Self {
            model,
            changed_by,
            seen: BTreeSet::new(),
            open: Vec::new(),
        }
    }

    fn parameters(&self) -> Vec<usize> {
        let is_parameter = |q: &&usize| {
            self.model
                .quantities
                .get(**q)
                .is_some_and(|q| q.kind == QuantityKind::Parameter && q.rhs.is_empty())
        };
        self.seen.iter().filter(is_parameter).copied().collect()
    }

    fn quantity(&mut self, q: usize) {
        self.open.push(q);
        self.close();
    }

    /// An event's condition and all its formulas.
    fn event(&mut self, e: usize) {
        if let Some(event) = self.model.events.get(e) {
            self.formula(event.condition);
            for assignment in &event.assignments {
                self.formula(assignment.formula);
            }
        }
        self.close();
    }

    fn close(&mut self) {
        while let Some(q) = self.open.pop() {
            let Some(quantity) = self.model.quantities.get(q) else {
                continue;
            };
            if !self.seen.insert(q) {
                continue;
            }
            if let ValueSource::Formula(f) = quantity.source {
                self.formula(f);
            }
            for term in &quantity.rhs {
                self.formula(term.formula);
            }
            for e in self.changed_by.get(q).cloned().unwrap_or_default() {
                if let Some(event) = self.model.events.get(e) {
                    self.formula(event.condition);
                    for assignment in event.assignments.iter().filter(|a| a.target == q) {
                        self.formula(assignment.formula);
                    }
                }
            }
        }
    }

    fn formula(&mut self, f: usize) {
        let Some(formula) = self.model.formulas.get(f) else {
            return;
        };
        self.open.extend(used_quantities(formula));
    }
}

/// Quantities that a formula uses.
fn used_quantities(formula: &BoundFormula) -> impl Iterator<Item = usize> + '_ {
    formula.references().filter_map(|r| match r {
        AliasReference::Time => None,
        AliasReference::Quantity(q) => Some(q),
    })
}
