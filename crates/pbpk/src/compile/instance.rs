//! One individual: the structure's numbers, folded.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: positions are quantities of one model"
)]

use std::sync::Arc;

use super::fold::FormulaFolder;
use super::refold::RefoldCode;
use super::structure::Structure;
use super::variant::{FormulaReplacement, Key};
use crate::error::SetError;
use crate::model::{QuantityKind, START, ValueSource};
use crate::watch::{Interrupt, Watch};

/// A vector with one number per quantity: values of what is constant, start values of the rest.
#[derive(Debug, Clone)]
pub struct Instance {
    structure: Arc<Structure>,
    values: Vec<f64>,
    overridden: Vec<bool>,
    /// Constants of the file, without what was set and what depends on it.
    constants: Vec<bool>,
}

/// Quantities that are set together in many individuals, and what depends on them.
#[derive(Debug, Clone)]
pub struct QuantityChanges {
    positions: Vec<usize>,
    touched: Vec<u32>,
    /// Code that computes what is touched, where many individuals are made.
    code: Option<Arc<RefoldCode>>,
}

impl QuantityChanges {
    /// Changes of these quantities.
    ///
    /// # Errors
    /// [`SetError::NotSettable`] for an observer.
    pub fn new(base: &Instance, positions: Vec<usize>) -> Result<Self, SetError> {
        let model = &base.structure.model;
        for quantity in positions.iter().filter_map(|q| model.quantities.get(*q)) {
            if quantity.kind == QuantityKind::Observer {
                return Err(SetError::NotSettable {
                    path: quantity.path.clone(),
                    reason: "observers are computed, not set",
                });
            }
        }
        let mut set = base.overridden.clone();
        positions.iter().for_each(|q| set[*q] = true);
        let touched = base
            .structure
            .start
            .dependents_of(&positions, |user| !set[user]);
        Ok(Self {
            positions,
            touched,
            code: None,
        })
    }

    /// Returns the quantities that are set.
    pub(crate) fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// Returns the same changes of an individual, computing only what a run reads: an individual of these is for runs
    /// alone, its other numbers are not computed again.
    #[must_use]
    pub(crate) fn for_runs(&self, base: &Instance) -> Self {
        let read = base.structure.read_by_runs();
        let touched = self.touched.iter().copied();
        let touched: Vec<u32> = touched.filter(|q| read[*q as usize]).collect();
        let mut taken = base.clone();
        taken.mark(self);
        Self {
            positions: self.positions.clone(),
            code: Some(Arc::new(RefoldCode::new(&taken, &touched))),
            touched,
        }
    }
}

impl Instance {
    /// Returns the individual that the file describes.
    #[must_use]
    pub fn new(structure: &Arc<Structure>) -> Self {
        let mut instance = Self::unfolded(structure);
        instance.fold_all();
        instance
    }

    /// As [`Instance::new`], asking `watch` now and then whether to go on.
    ///
    /// # Errors
    /// That of `watch`.
    pub fn with_watch(structure: &Arc<Structure>, watch: &Watch<'_>) -> Result<Self, Interrupt> {
        watch.ask()?;
        let mut instance = Self::unfolded(structure);
        instance.fold_order(&structure.start.order, watch)?;
        Ok(instance)
    }

    /// Returns the individual with the numbers of the file alone.
    fn unfolded(structure: &Arc<Structure>) -> Self {
        let n = structure.model.quantities.len();
        let mut instance = Self {
            structure: Arc::clone(structure),
            values: vec![f64::NAN; n],
            overridden: vec![false; n],
            constants: structure.constants.clone(),
        };
        for (value, quantity) in instance.values.iter_mut().zip(&structure.model.quantities) {
            if let ValueSource::Constant(number) = quantity.source {
                *value = number;
            }
        }
        instance
    }

    /// Returns the shared structure.
    #[must_use]
    pub fn structure(&self) -> &Arc<Structure> {
        &self.structure
    }

    /// Returns the number of a quantity: its value, or what it is at the start. A constant formula that compares with
    /// not-a-number is not-a-number here, as the genuine solver shows it, although a run takes the comparison as false.
    #[must_use]
    pub fn value(&self, q: usize) -> Option<f64> {
        let value = self.values.get(q).copied()?;
        let Some(f) = self.formula_of(q).filter(|_| self.constants[q]) else {
            return Some(value);
        };
        let live = vec![false; self.values.len()];
        let mut folder = FormulaFolder::new(&self.structure.model);
        let shown = folder.evaluate(f, START, &self.values, &live, |q, _| self.formula_of(q));
        Some(if shown.is_nan() { shown } else { value })
    }

    /// Returns the value of a formula at the start; NaN if the model has none at this position.
    #[must_use]
    pub fn formula_value(&self, f: usize) -> f64 {
        if f >= self.structure.model.formulas.len() {
            return f64::NAN;
        }
        let mut folder = FormulaFolder::new(&self.structure.model);
        folder.evaluate(f, START, &self.values, &self.constants, |q, _| {
            self.formula_of(q)
        })
    }

    /// Returns all numbers, by position.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns whether the quantity was set.
    #[must_use]
    pub fn is_set(&self, q: usize) -> bool {
        self.overridden.get(q).copied().unwrap_or(false)
    }

    pub(super) fn formula_of(&self, q: usize) -> Option<usize> {
        if self.overridden[q] {
            None
        } else {
            super::dependencies::formula(self.structure.model.quantities[q].source)
        }
    }

    /// Computes everything again; the same numbers as folding only what a change touches.
    pub fn fold_all(&mut self) {
        let structure = Arc::clone(&self.structure);
        self.fold_unasked(&structure.start.order);
    }

    fn fold_unasked(&mut self, order: &[u32]) {
        // It cannot be interrupted.
        let _ = self.fold_order(order, &Watch::default());
    }

    /// Computes these again; where `watch` ends it, some are not.
    fn fold_order(&mut self, order: &[u32], watch: &Watch<'_>) -> Result<(), Interrupt> {
        let structure = Arc::clone(&self.structure);
        let mut folder = FormulaFolder::new(&structure.model);
        for &q in order {
            let q = q as usize;
            watch.check()?;
            if let Some(f) = self.formula_of(q) {
                self.values[q] =
                    folder.evaluate(f, START, &self.values, &self.constants, |q, _| {
                        self.formula_of(q)
                    });
            }
        }
        Ok(())
    }

    /// Sets a quantity to a number in base units and folds what depends on it. For a state or variable it is the start
    /// value.
    ///
    /// # Errors
    /// [`SetError`]: observers, numbers that are none, numbers outside the bounds of the file.
    pub fn set(&mut self, q: usize, value: f64) -> Result<(), SetError> {
        let structure = Arc::clone(&self.structure);
        let Some(quantity) = structure.model.quantities.get(q) else {
            return Err(SetError::UnknownPath {
                path: format!("position {q}"),
                nearest: Vec::new(),
            });
        };
        let path = || quantity.path.clone();
        if quantity.kind == QuantityKind::Observer {
            return Err(SetError::NotSettable {
                path: path(),
                reason: "observers are computed, not set",
            });
        }
        if value.is_nan() {
            return Err(SetError::NotANumber { path: path() });
        }
        if quantity.min.is_some_and(|min| value < min)
            || quantity.max.is_some_and(|max| value > max)
        {
            return Err(SetError::OutOfRange {
                path: path(),
                value,
                min: quantity.min,
                max: quantity.max,
            });
        }
        self.overridden[q] = true;
        self.values[q] = value;
        self.constants[q] = false;
        self.refold(q);
        Ok(())
    }

    /// Sets all quantities of `changes` in one pass: the same numbers as setting one after another. Bounds of the file
    /// are not looked at, as the suite does not in populations.
    ///
    /// # Errors
    /// [`SetError::NotANumber`]; the individual is then unusable.
    pub fn set_all(&mut self, changes: &QuantityChanges, values: &[f64]) -> Result<(), SetError> {
        self.take(changes, values)?;
        self.fold_unasked(&changes.touched);
        Ok(())
    }

    /// What [`Instance::set_all`] sets, before anything that depends on it is computed by [`Instance::follow`].
    pub(crate) fn take(
        &mut self,
        changes: &QuantityChanges,
        values: &[f64],
    ) -> Result<(), SetError> {
        for (&q, &value) in changes.positions.iter().zip(values) {
            if value.is_nan() {
                return Err(SetError::NotANumber {
                    path: self.structure.model.quantities[q].path.clone(),
                });
            }
            self.values[q] = value;
        }
        self.mark(changes);
        Ok(())
    }

    /// Notes what changes set.
    fn mark(&mut self, changes: &QuantityChanges) {
        for &q in &changes.positions {
            self.overridden[q] = true;
            self.constants[q] = false;
        }
        // All of these use something that was set, so none is a constant of the file any more.
        for &user in &changes.touched {
            self.constants[user as usize] = false;
        }
    }

    /// Computes what depends on `changes` that were taken; where `watch` ends it, the individual is unusable.
    pub(crate) fn follow(
        &mut self,
        changes: &QuantityChanges,
        watch: &Watch<'_>,
    ) -> Result<(), Interrupt> {
        match &changes.code {
            Some(code) => code.run(self, watch),
            None => self.fold_order(&changes.touched, watch),
        }
    }

    /// Returns a copy with room for these changes.
    pub(crate) fn copied_for(&self, changes: &QuantityChanges) -> Self {
        let room = changes.code.as_ref().map_or(0, |code| code.room());
        let mut values = Vec::with_capacity(self.values.len() + room);
        values.extend_from_slice(&self.values);
        Self {
            structure: Arc::clone(&self.structure),
            values,
            overridden: self.overridden.clone(),
            constants: self.constants.clone(),
        }
    }

    /// Returns the numbers, to be given back.
    pub(super) fn take_values(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.values)
    }

    pub(super) fn give_values(&mut self, values: Vec<f64>) {
        self.values = values;
    }

    /// Gives a quantity back the value or formula of the file and folds what depends on it.
    pub fn reset(&mut self, q: usize) {
        if !self.is_set(q) {
            return;
        }
        self.overridden[q] = false;
        self.constants[q] = self.is_constant(q);
        let structure = Arc::clone(&self.structure);
        match structure.model.quantities[q].source {
            ValueSource::Constant(value) => self.values[q] = value,
            ValueSource::Formula(_) => self.fold_unasked(&[q as u32]),
        }
        self.refold(q);
    }

    fn refold(&mut self, q: usize) {
        let touched = self
            .structure
            .start
            .dependents_of(&[q], |user| !self.overridden[user]);
        for &user in &touched {
            self.constants[user as usize] = self.is_constant(user as usize);
        }
        self.fold_unasked(&touched);
    }

    /// Returns whether a quantity is a constant of the file, as far as those before it are known.
    fn is_constant(&self, q: usize) -> bool {
        self.structure.constants[q]
            && !self.overridden[q]
            && super::own_formula(&self.structure.model, q).is_none_or(|f| {
                super::dependencies::uses_only(&self.structure.model, f, &self.constants)
            })
    }

    /// Quantities that were set and for which that means other code.
    pub(crate) fn key(&self) -> Key {
        let set =
            (0..self.values.len()).filter(|q| self.overridden[*q] && self.structure.needs_code[*q]);
        set.map(|q| (q, FormulaReplacement::Set)).collect()
    }

    /// Constants of the file, without what was set and what depends on it.
    pub(crate) fn constants(&self) -> &[bool] {
        &self.constants
    }

    pub(crate) fn overridden(&self) -> &[bool] {
        &self.overridden
    }
}
