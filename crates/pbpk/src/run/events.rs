//! The state of a run and what events do to it.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: positions are quantities, states and events of one model"
)]

use std::sync::Arc;

use super::RunError;
use crate::compile::{
    CompiledVariant, FormulaFolder, FormulaReplacement, Instance, Key, ModelEngine, QuantityClass,
    StopCause, Structure, TableReading, TangentState, own_formula,
};
use crate::model::{EventAssignment, Model};
use crate::solve::SolveError;
use crate::watch::{Interrupt, Question, Watch};
use crate::words::{DamagedBytes, WordBuffer};

/// Numbers, code and states at the present time.
pub(super) struct EventState {
    structure: Arc<Structure>,
    pub(super) engine: ModelEngine,
    /// Scaled states.
    pub(super) y: Vec<f64>,
    /// Derivatives by parameters, if they are asked for, and those of the scaled states: a row for each.
    pub(super) tangents: Option<TangentState>,
    pub(super) s: Vec<f64>,
    values: Vec<f64>,
    /// Numbers that the user or an event set.
    overridden: Vec<bool>,
    set_by_user: Vec<bool>,
    constants: Vec<bool>,
    key: Key,
    /// The key of the code in use.
    compiled: Key,
    fired: Vec<bool>,
    /// Events that acted when they were last tested.
    acted: Vec<usize>,
    conditions: Vec<f64>,
}

/// Returns the error of a run that could not get its code.
fn stop_error(structure: &Structure, stopped: StopCause, time: f64) -> RunError {
    match stopped {
        StopCause::Circle(circle) => RunError::Cycle {
            paths: structure.paths(&circle),
            time,
        },
        StopCause::Interrupted(cause) => interrupted(time, cause),
    }
}

/// Returns the error of a run that was ended.
pub(super) fn interrupted(time: f64, cause: Interrupt) -> RunError {
    RunError::Interrupted { time, cause }
}

impl EventState {
    pub(super) fn new(
        instance: &Instance,
        interrupt: Option<Question<'_>>,
    ) -> Result<Self, RunError> {
        let structure = Arc::clone(instance.structure());
        let key = instance.key();
        let variant = structure.variant(&key, &Watch::new(interrupt));
        let variant = variant.map_err(|s| stop_error(&structure, s, super::START))?;
        let values = instance.values().to_vec();
        let model = structure.model();
        let y = structure
            .states()
            .iter()
            .map(|q| values[*q] / model.quantities[*q].scale)
            .collect();
        let engine = ModelEngine::new(variant, &values);
        let fired = vec![false; model.events.len()];
        Ok(Self {
            overridden: instance.overridden().to_vec(),
            set_by_user: instance.overridden().to_vec(),
            constants: instance.constants().to_vec(),
            engine,
            y,
            tangents: None,
            s: Vec::new(),
            values,
            compiled: key.clone(),
            key,
            fired,
            acted: Vec::new(),
            conditions: Vec::new(),
            structure,
        })
    }

    pub(super) fn structure(&self) -> &Arc<Structure> {
        &self.structure
    }

    pub(super) fn model(&self) -> &Model {
        self.structure.model()
    }

    /// Writes numbers and truths, or reads them into the state of the same individual at its start.
    pub(super) fn pass(&mut self, words: &mut WordBuffer) -> Result<(), DamagedBytes> {
        let structure = Arc::clone(&self.structure);
        let (quantities, formulas) = (
            structure.model().quantities.len(),
            structure.model().formulas.len(),
        );
        words.numbers(&mut self.y)?;
        words.numbers(&mut self.values)?;
        words.flags(&mut self.overridden)?;
        words.flags(&mut self.constants)?;
        words.flags(&mut self.fired)?;
        for key in [&mut self.key, &mut self.compiled] {
            words.list(key, quantities, |words, (q, replacement)| {
                words.count(q, quantities)?;
                replacement.pass(words, formulas)
            })?;
            if !key.is_sorted_by(|a, b| a.0 < b.0) {
                return Err(DamagedBytes);
            }
        }
        Ok(())
    }

    /// Takes the code that belongs to what was read.
    pub(super) fn take_code(&mut self, watch: &Watch<'_>, time: f64) -> Result<(), RunError> {
        let variant = self.structure.variant(&self.compiled, watch);
        let variant = variant.map_err(|s| stop_error(&self.structure, s, time))?;
        self.engine = ModelEngine::new(variant, &self.values);
        Ok(())
    }

    /// Positions of the events that acted when events were last tested.
    pub(super) fn acted(&self) -> &[usize] {
        &self.acted
    }

    /// Returns whether an event may still fire.
    pub(super) fn has_open_events(&self) -> bool {
        self.structure
            .model()
            .events
            .iter()
            .zip(&self.fired)
            .any(|(e, fired)| !(e.one_time && *fired))
    }

    /// Conditions at (t, y) as truths, those of spent events as false.
    pub(super) fn truths(&mut self, t: f64, y: &[f64]) -> Vec<bool> {
        let mut values = std::mem::take(&mut self.conditions);
        self.engine.conditions(t, y, &mut values);
        let events = self.structure.model().events.iter().zip(&self.fired);
        let truths = events
            .zip(&values)
            .map(|((e, fired), v)| *v == 1.0 && !(e.one_time && *fired))
            .collect();
        self.conditions = values;
        truths
    }

    /// Tests all events in file order at t, but those that were true `before`; each sees the changes of those before
    /// it. Returns whether anything changed.
    pub(super) fn test_events(
        &mut self,
        t: f64,
        before: Option<&[bool]>,
        interrupt: Option<Question<'_>>,
    ) -> Result<bool, RunError> {
        let watch = Watch::new(interrupt);
        let structure = Arc::clone(&self.structure);
        let events = &structure.model().events;
        if events.is_empty() {
            return Ok(false);
        }
        self.acted.clear();
        let mut any = false;
        let mut values = std::mem::take(&mut self.conditions);
        self.engine.conditions(t, &self.y, &mut values);
        for (e, event) in events.iter().enumerate() {
            watch.check().map_err(|cause| interrupted(t, cause))?;
            let was_true = before.is_some_and(|before| before[e]);
            if values[e] != 1.0 || was_true || (event.one_time && self.fired[e]) {
                continue;
            }
            self.fired[e] = true;
            self.acted.push(e);
            let mut changed = false;
            for (a, assignment) in event.assignments.iter().enumerate() {
                changed |= self.assign(e, a, assignment, t, &watch)?;
            }
            if changed {
                any = true;
                self.engine.conditions(t, &self.y, &mut values);
            }
        }
        self.conditions = values;
        Ok(any)
    }

    fn assign(
        &mut self,
        e: usize,
        a: usize,
        assignment: &EventAssignment,
        t: f64,
        watch: &Watch<'_>,
    ) -> Result<bool, RunError> {
        let target = assignment.target;
        let variant = Arc::clone(self.engine.variant());
        if let QuantityClass::State(i) = variant.classes[target] {
            let scale = self.structure.model().quantities[target].scale;
            let value = self.engine.assignment(e, a, t, &self.y) / scale;
            let row = self.assignment_row(e, a, t, watch)?;
            let moved = self.set_state_row(i as usize, row, scale);
            let place = &mut self.y[i as usize];
            let changed = *place != value || moved;
            *place = value;
            return Ok(changed);
        }
        if assignment.as_value {
            let value = self.engine.assignment(e, a, t, &self.y);
            let row = self.assignment_row(e, a, t, watch)?;
            return self.set_value(target, value, row, t, watch);
        }
        if variant.formulas[target] == Some(assignment.formula) && !self.overridden[target] {
            return Ok(false);
        }
        if variant.assignments[e][a].is_static {
            let value = self.engine.assignment(e, a, t, &self.y);
            let row = self.assignment_row(e, a, t, watch)?;
            return self.set_value(target, value, row, t, watch);
        }
        self.replace(
            target,
            FormulaReplacement::Formula(assignment.formula),
            t,
            watch,
        )?;
        Ok(true)
    }

    /// A quantity becomes a number.
    fn set_value(
        &mut self,
        q: usize,
        value: f64,
        row: Option<Vec<f64>>,
        t: f64,
        watch: &Watch<'_>,
    ) -> Result<bool, RunError> {
        let mut moved = false;
        if let (Some(tangents), Some(row)) = (&mut self.tangents, row) {
            moved = tangents.quantity(q) != row.as_slice();
            tangents.set(q, &row);
        }
        if self.engine.variant().classes[q] == QuantityClass::Varying {
            self.values[q] = value;
            self.replace(q, FormulaReplacement::Constant, t, watch)?;
            return Ok(true);
        }
        let same = self.overridden[q] && self.values[q].to_bits() == value.to_bits() && !moved;
        let changed = self.values[q].to_bits() != value.to_bits() || moved;
        if same {
            return Ok(false);
        }
        self.values[q] = value;
        self.overridden[q] = true;
        // The number stays when another event makes its formula vary.
        if self.engine.variant().formulas[q].is_some() {
            self.note(q, FormulaReplacement::Constant);
        }
        self.refold(q, t, watch)?;
        self.load(t, watch)?;
        Ok(changed)
    }

    fn note(&mut self, q: usize, replacement: FormulaReplacement) {
        match self.key.binary_search_by_key(&q, |entry| entry.0) {
            Ok(i) => self.key[i].1 = replacement,
            Err(i) => self.key.insert(i, (q, replacement)),
        }
    }

    /// A quantity gets another formula, or a number instead of a varying formula: other code from here on.
    fn replace(
        &mut self,
        q: usize,
        replacement: FormulaReplacement,
        t: f64,
        watch: &Watch<'_>,
    ) -> Result<(), RunError> {
        self.note(q, replacement);
        let variant = self.structure.variant(&self.key, watch);
        let variant = variant.map_err(|s| stop_error(&self.structure, s, t))?;
        self.overridden[q] = replacement == FormulaReplacement::Constant;
        self.compiled.clone_from(&self.key);
        self.engine = ModelEngine::new(variant, &self.values);
        if let FormulaReplacement::Formula(f) = replacement
            && self.engine.variant().classes[q] == QuantityClass::Constant
        {
            let variant = Arc::clone(self.engine.variant());
            let structure = Arc::clone(&self.structure);
            let mut folder = FormulaFolder::new(structure.model());
            self.fold_quantity(&mut folder, &variant, q, f, t);
        }
        self.refold(q, t, watch)?;
        self.load(t, watch)?;
        Ok(())
    }

    /// Folds the constants that depend on q. Variables keep the value they started with.
    fn refold(&mut self, q: usize, t: f64, watch: &Watch<'_>) -> Result<(), RunError> {
        let structure = Arc::clone(&self.structure);
        let variant = Arc::clone(self.engine.variant());
        let passes = |u: usize| {
            variant.classes[u] == QuantityClass::Constant
                && variant.formulas[u].is_some()
                && !self.overridden[u]
        };
        let touched = variant.dependencies.dependents_of(&[q], passes);
        let mut folder = FormulaFolder::new(structure.model());
        for u in touched {
            let u = u as usize;
            watch.check().map_err(|cause| interrupted(t, cause))?;
            if let Some(f) = variant.formulas[u] {
                self.fold_quantity(&mut folder, &variant, u, f, t);
            }
        }
        Ok(())
    }

    /// A constant gets the number that formula f gives now.
    fn fold_quantity(
        &mut self,
        folder: &mut FormulaFolder<'_>,
        variant: &CompiledVariant,
        q: usize,
        f: usize,
        t: f64,
    ) {
        let (values, constants) = (&self.values, &self.constants);
        let table_of = |q, reading| self.table_of(variant, q, reading);
        let value = folder.evaluate(f, t, values, constants, table_of);
        let mut tangents = self.tangents.take();
        if let Some(tangents) = &mut tangents {
            let table_of = |q, reading| self.table_of(variant, q, reading);
            tangents.fold_quantity(folder, q, f, t, &self.values, &self.constants, table_of);
        }
        self.tangents = tangents;
        self.values[q] = value;
    }

    /// Hands the numbers to the code.
    fn load(&mut self, t: f64, watch: &Watch<'_>) -> Result<(), RunError> {
        self.engine.load(&self.values);
        if let Some(tangents) = &mut self.tangents {
            let loaded = tangents.load(&self.engine, watch);
            loaded.map_err(|cause| interrupted(t, cause))?;
        }
        Ok(())
    }

    /// Derivatives of the value that an assignment gave just now.
    fn assignment_row(
        &mut self,
        e: usize,
        a: usize,
        t: f64,
        watch: &Watch<'_>,
    ) -> Result<Option<Vec<f64>>, RunError> {
        let Some(tangents) = self.tangents.as_mut() else {
            return Ok(None);
        };
        let row = tangents.assignment(&self.engine, e, a, &self.s, watch);
        row.map(Some).map_err(|cause| interrupted(t, cause))
    }

    /// Sets the derivatives of a state; returns whether they changed.
    fn set_state_row(&mut self, state: usize, row: Option<Vec<f64>>, scale: f64) -> bool {
        let Some(mut row) = row else {
            return false;
        };
        row.iter_mut().for_each(|d| *d /= scale);
        let place = &mut self.s[state * row.len()..(state + 1) * row.len()];
        let moved = *place != *row;
        place.copy_from_slice(&row);
        moved
    }

    /// Returns the formula of a quantity with a table that is read.
    fn table_of(
        &self,
        variant: &CompiledVariant,
        q: usize,
        reading: TableReading,
    ) -> Option<usize> {
        match reading {
            TableReading::Offset => variant.formulas[q],
            TableReading::Argument if self.set_by_user[q] => None,
            TableReading::Argument => own_formula(self.structure.model(), q),
        }
    }

    /// Returns a solver's error with the path of the state it speaks of.
    pub(super) fn failure(&self, time: f64, source: SolveError) -> RunError {
        let path = |state: usize| {
            let position = self.structure.states().get(state);
            position.map_or_else(String::new, |q| {
                self.structure.model().quantities[*q].path.clone()
            })
        };
        match source {
            SolveError::Interrupted { time, cause } => RunError::Interrupted { time, cause },
            SolveError::TooManySteps {
                time: reached,
                limit,
            } => RunError::TooMuchWork {
                time,
                reached,
                limit,
            },
            SolveError::NonFiniteStart { time, state } => RunError::CannotStart {
                path: path(state),
                time,
            },
            SolveError::NonFinite { state, .. } | SolveError::Weight { state, .. } => {
                RunError::Solver {
                    time,
                    path: Some(path(state)),
                    source,
                }
            }
            source => RunError::Solver {
                time,
                path: None,
                source,
            },
        }
    }
}
