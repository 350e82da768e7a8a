//! What becomes of each quantity.

use crate::model::{Kind, Model, Reference, Source};
use crate::watch::{Interrupt, Watch};

/// How SBML holds a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Never changes after the start.
    Constant,
    /// Has a rate, or is a variable that events assign.
    State,
    /// Changes by events only.
    Free,
    /// Follows from others at all times.
    Rule,
}

pub(super) struct Classes(Vec<Class>);

impl Classes {
    pub(super) fn new(model: &Model, watch: &Watch<'_>) -> Result<Self, Interrupt> {
        let mut class = vec![Class::Constant; model.quantities.len()];
        let mut set = |i: usize, to: Class| {
            if let Some(c) = class.get_mut(i) {
                *c = to;
            }
        };
        for assignment in model.events.iter().flat_map(|e| &e.assignments) {
            let constant = model
                .quantities
                .get(assignment.target)
                .is_some_and(|q| matches!(q.source, Source::Constant(_)));
            let free = assignment.as_value && constant;
            set(
                assignment.target,
                if free { Class::Free } else { Class::Rule },
            );
        }
        // A replaced formula outweighs an assigned value, whatever their order.
        for assignment in model
            .events
            .iter()
            .flat_map(|e| &e.assignments)
            .filter(|a| !a.as_value)
        {
            set(assignment.target, Class::Rule);
        }
        for i in model.states() {
            set(i, Class::State);
        }
        spread(model, &mut class, watch)?;
        Ok(Self(class))
    }

    pub(super) fn of(&self, quantity: usize) -> Class {
        self.0.get(quantity).copied().unwrap_or(Class::Constant)
    }
}

/// Formulas over anything that varies vary. Variables are frozen at their start value instead.
fn spread(model: &Model, class: &mut [Class], watch: &Watch<'_>) -> Result<(), Interrupt> {
    let mut grew = true;
    while grew {
        grew = false;
        for (i, q) in model.quantities.iter().enumerate() {
            watch.check()?;
            let Source::Formula(f) = q.source else {
                continue;
            };
            if q.kind == Kind::Variable || class.get(i) != Some(&Class::Constant) {
                continue;
            }
            let varies = model.formulas.get(f).is_some_and(|f| {
                f.references().any(|r| match r {
                    Reference::Time => true,
                    Reference::Quantity(q) => class.get(q).is_some_and(|c| *c != Class::Constant),
                })
            });
            if varies && let Some(c) = class.get_mut(i) {
                *c = Class::Rule;
                grew = true;
            }
        }
    }
    Ok(())
}
