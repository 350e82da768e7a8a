//! A variant's code with its array, for the solver and the run.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: slots are assigned by the emitter below the length of the array"
)]

use std::ops::Range;
use std::sync::Arc;

use super::variant::CompiledVariant;

/// Code and numbers, ready to be evaluated at any time and state.
#[derive(Debug, Clone)]
pub struct ModelEngine {
    pub(super) variant: Arc<CompiledVariant>,
    pub(super) array: Vec<f64>,
    pub(super) states: usize,
}

impl ModelEngine {
    /// Code with the numbers of an individual.
    pub(crate) fn new(variant: Arc<CompiledVariant>, values: &[f64]) -> Self {
        let states = variant.pattern.n();
        let mut engine = Self {
            array: variant.array(),
            variant,
            states,
        };
        for &(slot, value) in &engine.variant.literals {
            engine.array[slot as usize] = value;
        }
        engine.load(values);
        engine
    }

    pub(crate) fn variant(&self) -> &Arc<CompiledVariant> {
        &self.variant
    }

    /// Structural pattern of the Jacobian, by column.
    #[must_use]
    pub fn pattern(&self) -> &crate::solve::SparsityPattern {
        &self.variant.pattern
    }

    /// Takes over the numbers of all quantities and computes what does not vary.
    pub(crate) fn load(&mut self, values: &[f64]) {
        for &(slot, q) in &self.variant.inputs {
            self.array[slot as usize] = values[q as usize];
        }
        self.variant
            .prologue
            .run(&mut self.array, &self.variant.tables);
    }

    fn block(&self, slots: &Range<u32>) -> &[f64] {
        &self.array[slots.start as usize..slots.end as usize]
    }

    fn place(&mut self, t: f64, y: &[f64]) {
        self.array[0] = t;
        self.array[1..=self.states].copy_from_slice(y);
    }

    /// Computes the rates at (t, y) and leaves them in the array.
    pub(crate) fn evaluate(&mut self, t: f64, y: &[f64]) {
        self.place(t, y);
        self.variant.rhs.run(&mut self.array, &self.variant.tables);
    }

    /// Rates at (t, y); y and rates are scaled.
    pub fn rhs(&mut self, t: f64, y: &[f64], dy: &mut [f64]) {
        self.evaluate(t, y);
        dy.copy_from_slice(self.block(&self.variant.rates));
    }

    /// Derivatives of the rates, in the order of the pattern. Values that are not finite count as zero: it only slows
    /// Newton's iteration, while the value itself would end it.
    pub fn jacobian(&mut self, t: f64, y: &[f64], values: &mut [f64]) {
        self.place(t, y);
        self.variant
            .jacobian
            .run(&mut self.array, &self.variant.tables);
        for (value, slot) in values.iter_mut().zip(&self.variant.jacobian_slots) {
            let entry = self.array[*slot as usize];
            *value = if entry.is_finite() { entry } else { 0.0 };
        }
    }

    /// Values of the outputs at (t, y), in order.
    pub fn outputs(&mut self, t: f64, y: &[f64], out: &mut [f64]) {
        self.place(t, y);
        self.variant
            .outputs
            .run(&mut self.array, &self.variant.tables);
        out.copy_from_slice(self.block(&self.variant.values));
    }

    /// Values of all conditions at (t, y).
    pub(crate) fn conditions(&mut self, t: f64, y: &[f64], out: &mut Vec<f64>) {
        self.place(t, y);
        self.variant
            .conditions
            .run(&mut self.array, &self.variant.tables);
        out.clear();
        out.extend(
            self.variant
                .condition_slots
                .iter()
                .map(|slot| self.array[*slot as usize]),
        );
    }

    /// Value of an assignment's formula at (t, y).
    pub(crate) fn assignment(&mut self, event: usize, assignment: usize, t: f64, y: &[f64]) -> f64 {
        self.place(t, y);
        let code = &self.variant.assignments[event][assignment];
        code.program.run(&mut self.array, &self.variant.tables);
        self.array[code.slot as usize]
    }
}

impl Drop for ModelEngine {
    fn drop(&mut self) {
        self.variant.keep(std::mem::take(&mut self.array));
    }
}
