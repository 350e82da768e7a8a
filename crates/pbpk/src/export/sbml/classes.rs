//! Class of each quantity.

use crate::model::{AliasReference, Model, QuantityKind, ValueSource};
use crate::watch::{Interrupt, Watch};

/// How SBML holds a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SbmlClass {
    /// Never changes after the start.
    Constant,
    /// Has a rate, or is a variable that events assign.
    State,
    /// Changes by events only.
    Free,
    /// Follows from others at all times.
    Rule,
}

pub(super) struct SbmlClasses(Vec<SbmlClass>);

impl SbmlClasses {
    pub(super) fn new(model: &Model, watch: &Watch<'_>) -> Result<Self, Interrupt> {
        let mut class = vec![SbmlClass::Constant; model.quantities.len()];
        let mut set = |i: usize, to: SbmlClass| {
            if let Some(c) = class.get_mut(i) {
                *c = to;
            }
        };
        for assignment in model.events.iter().flat_map(|e| &e.assignments) {
            let constant = model
                .quantities
                .get(assignment.target)
                .is_some_and(|q| matches!(q.source, ValueSource::Constant(_)));
            let free = assignment.as_value && constant;
            set(
                assignment.target,
                if free {
                    SbmlClass::Free
                } else {
                    SbmlClass::Rule
                },
            );
        }
        // A replaced formula outweighs an assigned value, in any order.
        for assignment in model
            .events
            .iter()
            .flat_map(|e| &e.assignments)
            .filter(|a| !a.as_value)
        {
            set(assignment.target, SbmlClass::Rule);
        }
        for i in model.states() {
            set(i, SbmlClass::State);
        }
        spread(model, &mut class, watch)?;
        Ok(Self(class))
    }

    pub(super) fn of(&self, quantity: usize) -> SbmlClass {
        self.0.get(quantity).copied().unwrap_or(SbmlClass::Constant)
    }
}

/// Formulas over anything that varies vary. Variables are frozen at their start value instead.
fn spread(model: &Model, class: &mut [SbmlClass], watch: &Watch<'_>) -> Result<(), Interrupt> {
    let mut grew = true;
    while grew {
        grew = false;
        for (i, q) in model.quantities.iter().enumerate() {
            watch.check()?;
            let ValueSource::Formula(f) = q.source else {
                continue;
            };
            if q.kind == QuantityKind::Variable || class.get(i) != Some(&SbmlClass::Constant) {
                continue;
            }
            let varies = model.formulas.get(f).is_some_and(|f| {
                f.references().any(|r| match r {
                    AliasReference::Time => true,
                    AliasReference::Quantity(q) => {
                        class.get(q).is_some_and(|c| *c != SbmlClass::Constant)
                    }
                })
            });
            if varies && let Some(c) = class.get_mut(i) {
                *c = SbmlClass::Rule;
                grew = true;
            }
        }
    }
    Ok(())
}
