//! Code for one set of formulas: the model's own, with those that events or a user replaced.
#![expect(
    clippy::indexing_slicing,
    reason = "graph kernel: positions are quantities of one model"
)]

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::dependencies::{self, DependencyGraph};
use super::derivative;
use super::graph::{ExpressionGraph, Id};
use super::groups::array_length;
use super::lower::{RegroupMode, VariantLowering};
use super::program::{CodeEmitter, CompiledProgram};
use crate::model::{AliasReference, Model, PointTable, QuantityKind};
use crate::solve::SparsityPattern;
use crate::solve::lu::SymbolicFactors;
use crate::watch::{Interrupt, Watch};
use crate::words::{DamagedBytes, WordBuffer};

/// Most arrays that are kept for the next engines.
const SPARE_ARRAYS_MAX: usize = 16;

/// What replaces a quantity's own formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum FormulaReplacement {
    /// A number that the user set.
    #[default]
    Set,
    /// A number that an event set.
    Constant,
    /// The formula at this position.
    Formula(usize),
}

impl FormulaReplacement {
    /// Writes or reads it; formulas lie below a bound.
    pub(crate) fn pass(
        &mut self,
        words: &mut WordBuffer,
        formulas: usize,
    ) -> Result<(), DamagedBytes> {
        let mut word = match *self {
            Self::Set => 0,
            Self::Constant => 1,
            Self::Formula(f) => f + 2,
        };
        words.count(&mut word, formulas + 2)?;
        *self = match word {
            0 => Self::Set,
            1 => Self::Constant,
            f => Self::Formula(f - 2),
        };
        Ok(())
    }
}

/// All replacements, ascending by quantity: the key of a variant.
pub(crate) type Key = Vec<(usize, FormulaReplacement)>;

/// Why no code was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// The quantities of a circle.
    Circle(Vec<usize>),
    /// The caller asked to stop.
    Interrupted(Interrupt),
}

impl From<Interrupt> for StopCause {
    fn from(cause: Interrupt) -> Self {
        Self::Interrupted(cause)
    }
}

/// How a quantity behaves between events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuantityClass {
    /// Does not change.
    Constant,
    /// Integrated; its number in the solver's vector.
    State(u32),
    /// Follows the time or a state.
    Varying,
}

/// Code of an assignment.
#[derive(Debug, Clone)]
pub(crate) struct AssignmentCode {
    pub(crate) program: CompiledProgram,
    pub(crate) slot: u32,
    /// Depends on nothing that can change during a run: formula and value are the same thing.
    pub(crate) is_static: bool,
}

/// Compiled code and what belongs to it.
#[derive(Debug, Default)]
pub(crate) struct CompiledVariant {
    pub(crate) classes: Vec<QuantityClass>,
    /// The formula that defines a quantity; nothing for states, variables and numbers.
    pub(crate) formulas: Vec<Option<usize>>,
    pub(crate) dependencies: DependencyGraph,
    pub(crate) slots: usize,
    pub(crate) literals: Vec<(u32, f64)>,
    pub(crate) inputs: Vec<(u32, u32)>,
    pub(crate) tables: Vec<Arc<PointTable>>,
    pub(crate) prologue: CompiledProgram,
    pub(crate) rhs: CompiledProgram,
    /// Slots of the rates, state by state.
    pub(crate) rates: Range<u32>,
    pub(crate) jacobian: CompiledProgram,
    pub(crate) jacobian_slots: Vec<u32>,
    pub(crate) pattern: SparsityPattern,
    pub(crate) conditions: CompiledProgram,
    pub(crate) condition_slots: Vec<u32>,
    pub(crate) assignments: Vec<Vec<AssignmentCode>>,
    pub(crate) outputs: CompiledProgram,
    /// Slots of the outputs' values.
    pub(crate) values: Range<u32>,
    /// Arrays of engines that are done.
    spare: Mutex<Vec<Vec<f64>>>,
    symbolic: OnceLock<Arc<SymbolicFactors>>,
    /// Constants of the file that decide on the rules of what varies.
    pub(crate) in_logic: Vec<usize>,
}

impl CompiledVariant {
    /// Returns an array for this code: all zero as far as there are slots.
    pub(crate) fn array(&self) -> Vec<f64> {
        let spare = self
            .spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        match spare {
            Some(mut array) => {
                array.iter_mut().take(self.slots).for_each(|x| *x = 0.0);
                array
            }
            None => vec![0.0; array_length(self.slots)],
        }
    }

    /// Keeps an array for the next engine.
    pub(crate) fn keep(&self, array: Vec<f64>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_ARRAYS_MAX {
            spare.push(array);
        }
    }

    /// Returns the analysis of the Jacobian's pattern, made at the first call.
    ///
    /// # Errors
    /// That of `watch`.
    pub(crate) fn symbolic(&self, watch: &Watch<'_>) -> Result<Arc<SymbolicFactors>, Interrupt> {
        if let Some(known) = self.symbolic.get() {
            return Ok(Arc::clone(known));
        }
        let made = SymbolicFactors::analyse_asking(&self.pattern, &mut || watch.check())?;
        Ok(Arc::clone(self.symbolic.get_or_init(|| Arc::new(made))))
    }

    /// Compiles the model with the replacements of `key`.
    ///
    /// # Errors
    /// [`StopCause`].
    pub(crate) fn compile(
        model: &Model,
        states: &[usize],
        outputs: &[usize],
        key: &Key,
        watch: &Watch<'_>,
    ) -> Result<Self, StopCause> {
        let formulas = formulas(model, states, key);
        let dependencies = DependencyGraph::new(model, |q| formulas[q], watch)?;
        let classes = classes(model, states, &formulas, &dependencies);
        let (set, constants) = constants(model, &dependencies, key);
        let mut lowering = VariantLowering::new(
            model,
            &classes,
            &formulas,
            &constants,
            &set,
            &dependencies.order,
            watch,
        );
        let roots = VariantRoots::new(&mut lowering, model, states, outputs)?;
        let VariantLowering {
            graph,
            tables,
            in_logic,
            ..
        } = lowering;
        let is_static = static_assignments(model, &classes, &dependencies);
        let mut variant = Self {
            tables,
            in_logic,
            formulas,
            classes,
            dependencies,
            ..Self::default()
        };
        watch.ask()?;
        variant.emit(&graph, roots, is_static, watch)?;
        watch.ask()?;
        Ok(variant)
    }

    /// Writes the code of all roots; what does not vary comes last, into the prologue.
    fn emit(
        &mut self,
        graph: &ExpressionGraph,
        roots: VariantRoots,
        is_static: Vec<Vec<bool>>,
        watch: &Watch<'_>,
    ) -> Result<(), Interrupt> {
        let mut emitter = CodeEmitter::new(graph, roots.rates.len() as u32, watch);
        let rates;
        (self.rhs, rates) = emitter.block(&roots.rates)?;
        self.rates = rates..rates + roots.rates.len() as u32;
        let mut code = |roots: &[Id]| {
            let program = emitter.program(roots)?;
            let slots = roots.iter().map(|r| emitter.slot(*r));
            Ok::<_, Interrupt>((program, slots.collect::<Vec<u32>>()))
        };
        (self.jacobian, self.jacobian_slots) = code(&roots.jacobian)?;
        (self.conditions, self.condition_slots) = code(&roots.conditions)?;
        let one = |(root, is_static): (&Id, bool)| {
            let (program, slots) = code(std::slice::from_ref(root))?;
            Ok(AssignmentCode {
                program,
                slot: slots[0],
                is_static,
            })
        };
        self.assignments = group_roots(&roots.assignments, is_static, one)?;
        let outputs;
        (self.outputs, outputs) = emitter.block(&roots.outputs)?;
        self.values = outputs..outputs + roots.outputs.len() as u32;
        self.prologue = emitter.prologue()?;
        self.slots = emitter.slots();
        self.list();
        self.literals = emitter.literals;
        self.inputs = emitter.inputs;
        self.pattern = roots.pattern;
        Ok(())
    }

    /// Lists the operands of all programs that run often.
    fn list(&mut self) {
        let slots = self.slots;
        let often = [
            &mut self.rhs,
            &mut self.jacobian,
            &mut self.conditions,
            &mut self.outputs,
        ];
        often.into_iter().for_each(|program| program.list(slots));
    }
}

/// The expressions of which a variant's code is made.
struct VariantRoots {
    rates: Vec<Id>,
    /// In the order of the pattern.
    jacobian: Vec<Id>,
    pattern: SparsityPattern,
    conditions: Vec<Id>,
    assignments: Vec<Vec<Id>>,
    outputs: Vec<Id>,
}

impl VariantRoots {
    fn new(
        lowering: &mut VariantLowering<'_>,
        model: &Model,
        states: &[usize],
        outputs: &[usize],
    ) -> Result<Self, Interrupt> {
        let rates = rates(lowering, model, states)?;
        let gradients = derivative::gradients(&mut lowering.graph, &rates, lowering.watch)?;
        let (pattern, jacobian) = by_column(&gradients);
        let (conditions, assignments) = event_roots(lowering, model)?;
        let outputs = outputs
            .iter()
            .map(|q| lowering.quantity(*q, RegroupMode::Faithful))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            rates,
            jacobian,
            pattern,
            conditions,
            assignments,
            outputs,
        })
    }
}

/// Returns the values set by the user, and the remaining constants of the file.
fn constants(model: &Model, dependencies: &DependencyGraph, key: &Key) -> (Vec<bool>, Vec<bool>) {
    let mut set = vec![false; model.quantities.len()];
    for (q, _) in key.iter().filter(|(_, r)| *r == FormulaReplacement::Set) {
        set[*q] = true;
    }
    let mut changed = dependencies::targets(model);
    changed.iter_mut().zip(&set).for_each(|(c, s)| *c |= s);
    let constants = dependencies::constants(model, &dependencies.order, &changed);
    (set, constants)
}

/// Conditions and assignments, event by event, exactly as written.
fn event_roots(
    lowering: &mut VariantLowering<'_>,
    model: &Model,
) -> Result<(Vec<Id>, Vec<Vec<Id>>), Interrupt> {
    let mut root = |f: usize| lowering.formula(f, RegroupMode::Faithful);
    let conditions = model.events.iter().map(|e| root(e.condition));
    let conditions = conditions.collect::<Result<_, _>>()?;
    let assignments = model
        .events
        .iter()
        .map(|e| e.assignments.iter().map(|a| root(a.formula)).collect())
        .collect::<Result<_, _>>()?;
    Ok((conditions, assignments))
}

/// Applies `each` to every root with its flag, event by event.
fn group_roots<T>(
    roots: &[Vec<Id>],
    flags: Vec<Vec<bool>>,
    mut each: impl FnMut((&Id, bool)) -> Result<T, Interrupt>,
) -> Result<Vec<Vec<T>>, Interrupt> {
    roots
        .iter()
        .zip(flags)
        .map(|(roots, flags)| roots.iter().zip(flags).map(&mut each).collect())
        .collect()
}

/// Returns the formula that defines each quantity between events.
fn formulas(model: &Model, states: &[usize], key: &Key) -> Vec<Option<usize>> {
    let own = |q: &crate::model::Quantity| {
        if q.kind == QuantityKind::Variable {
            None
        } else {
            dependencies::formula(q.source)
        }
    };
    let mut formulas: Vec<Option<usize>> = model.quantities.iter().map(own).collect();
    for &q in states {
        formulas[q] = None;
    }
    for &(q, replacement) in key {
        formulas[q] = match replacement {
            FormulaReplacement::Constant | FormulaReplacement::Set => None,
            FormulaReplacement::Formula(f) => Some(f),
        };
    }
    formulas
}

fn classes(
    model: &Model,
    states: &[usize],
    formulas: &[Option<usize>],
    dependencies: &DependencyGraph,
) -> Vec<QuantityClass> {
    let n = model.quantities.len();
    let mut is_state = vec![false; n];
    for &q in states {
        is_state[q] = true;
    }
    let varies = dependencies.reach(n, |q| is_state[q] || dependencies.reads_time[q]);
    let mut classes: Vec<QuantityClass> = (0..n)
        .map(|q| {
            if varies[q] && formulas[q].is_some() {
                QuantityClass::Varying
            } else {
                QuantityClass::Constant
            }
        })
        .collect();
    for (i, &q) in states.iter().enumerate() {
        classes[q] = QuantityClass::State(i as u32);
    }
    classes
}

/// Returns the rate of each state, as the solver sees it: scaled.
fn rates(
    lowering: &mut VariantLowering<'_>,
    model: &Model,
    states: &[usize],
) -> Result<Vec<Id>, Interrupt> {
    let mut roots = Vec::with_capacity(states.len());
    for &q in states {
        let quantity = &model.quantities[q];
        let mut terms = Vec::new();
        let mut constant = lowering.graph.zero;
        for term in &quantity.rhs {
            let value = lowering.formula(term.formula, RegroupMode::Regrouped)?;
            let factor = lowering.graph.literal(term.factor / quantity.scale);
            let value = lowering.graph.scaled(factor, value);
            lowering.graph.gather(value, &mut terms, &mut constant);
        }
        roots.push(lowering.graph.linear(terms, constant));
    }
    Ok(roots)
}

/// Row-wise gradients to a column-wise pattern and the roots in its order.
fn by_column(gradients: &[Vec<(u32, Id)>]) -> (SparsityPattern, Vec<Id>) {
    let n = gradients.len();
    let mut columns: Vec<Vec<(usize, Id)>> = vec![Vec::new(); n];
    for (row, gradient) in gradients.iter().enumerate() {
        for &(column, id) in gradient {
            columns[column as usize].push((row, id));
        }
    }
    let mut pattern = SparsityPattern {
        col_ptr: vec![0],
        row_idx: Vec::new(),
    };
    let mut roots = Vec::new();
    for column in columns {
        for (row, id) in column {
            pattern.row_idx.push(row);
            roots.push(id);
        }
        pattern.col_ptr.push(pattern.row_idx.len());
    }
    (pattern, roots)
}

/// For each assignment, whether its formula depends on nothing that a run can change.
fn static_assignments(
    model: &Model,
    classes: &[QuantityClass],
    dependencies: &DependencyGraph,
) -> Vec<Vec<bool>> {
    let target = dependencies::targets(model);
    let moved = dependencies.reach(classes.len(), |q| target[q]);
    let fixed = |f: usize| {
        model.formulas[f].references().all(|r| match r {
            AliasReference::Time => false,
            AliasReference::Quantity(q) => classes[q] == QuantityClass::Constant && !moved[q],
        })
    };
    model
        .events
        .iter()
        .map(|e| e.assignments.iter().map(|a| fixed(a.formula)).collect())
        .collect()
}
