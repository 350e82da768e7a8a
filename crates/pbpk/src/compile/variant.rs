//! Code for one set of formulas: the model's own, with those that events or a user replaced.
#![expect(
    clippy::indexing_slicing,
    reason = "graph kernel: positions are quantities of one model"
)]

use std::sync::{Arc, OnceLock};

use super::dependencies::{self, Dependencies};
use super::derivative;
use super::graph::Id;
use super::lower::{Lowering, Mode};
use super::program::{Emitter, Program};
use crate::model::{Kind, Model, Reference, Table};
use crate::solve::Pattern;
use crate::solve::lu::Symbolic;

/// What replaces a quantity's own formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Replacement {
    /// A number that the user set.
    Set,
    /// A number that an event set.
    Constant,
    /// The formula at this position.
    Formula(usize),
}

/// All replacements, ascending by quantity: what a variant is known by.
pub(crate) type Key = Vec<(usize, Replacement)>;

/// How a quantity behaves between events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
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
    pub(crate) program: Program,
    pub(crate) slot: u32,
    /// Depends on nothing that can change during a run: formula and value are the same thing.
    pub(crate) is_static: bool,
}

/// Compiled code and what belongs to it.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) classes: Vec<Class>,
    /// The formula that defines a quantity; nothing for states, variables and numbers.
    pub(crate) formulas: Vec<Option<usize>>,
    pub(crate) dependencies: Dependencies,
    pub(crate) slots: usize,
    pub(crate) literals: Vec<(u32, f64)>,
    pub(crate) inputs: Vec<(u32, u32)>,
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) prologue: Program,
    pub(crate) rhs: Program,
    pub(crate) rhs_slots: Vec<u32>,
    pub(crate) jacobian: Program,
    pub(crate) jacobian_slots: Vec<u32>,
    pub(crate) pattern: Pattern,
    pub(crate) conditions: Program,
    pub(crate) condition_slots: Vec<u32>,
    pub(crate) assignments: Vec<Vec<AssignmentCode>>,
    pub(crate) outputs: Program,
    pub(crate) output_slots: Vec<u32>,
    pub(crate) symbolic: OnceLock<Arc<Symbolic>>,
    /// Constants of the file that logic uses in what varies.
    pub(crate) in_logic: Vec<usize>,
}

impl Variant {
    /// Compiles the model with the replacements of `key`.
    ///
    /// # Errors
    /// The quantities of a circle.
    pub(crate) fn compile(
        model: &Model,
        states: &[usize],
        outputs: &[usize],
        key: &Key,
    ) -> Result<Self, Vec<usize>> {
        let formulas = formulas(model, states, key);
        let dependencies = Dependencies::new(model, |q| formulas[q])?;
        let classes = classes(model, states, &formulas, &dependencies);
        let mut set = vec![false; classes.len()];
        for (q, _) in key.iter().filter(|(_, r)| *r == Replacement::Set) {
            set[*q] = true;
        }
        let mut changed = dependencies::targets(model);
        changed.iter_mut().zip(&set).for_each(|(c, s)| *c |= s);
        let constants = dependencies::constants(model, &dependencies.order, &changed);
        let mut lowering = Lowering::new(model, &classes, &formulas, &constants, &set);
        let rhs_roots = rates(&mut lowering, model, states);
        let gradients = derivative::gradients(&mut lowering.graph, &rhs_roots);
        let (pattern, jacobian_roots) = by_column(&gradients);
        let (condition_roots, assignment_roots) = event_roots(&mut lowering, model);
        let output_roots: Vec<Id> = outputs
            .iter()
            .map(|q| lowering.quantity(*q, Mode::Faithful))
            .collect();

        let Lowering {
            graph,
            tables,
            in_logic,
            ..
        } = lowering;
        let mut emitter = Emitter::new(&graph, states.len() as u32);
        let mut code = |roots: &[Id]| {
            let program = emitter.program(roots);
            (
                program,
                roots.iter().map(|r| emitter.slot(*r)).collect::<Vec<u32>>(),
            )
        };
        let (rhs, rhs_slots) = code(&rhs_roots);
        let (jacobian, jacobian_slots) = code(&jacobian_roots);
        let (conditions, condition_slots) = code(&condition_roots);
        let is_static = static_assignments(model, &classes, &dependencies);
        let one = |(root, is_static): (&Id, bool)| {
            let (program, slots) = code(std::slice::from_ref(root));
            AssignmentCode {
                program,
                slot: slots[0],
                is_static,
            }
        };
        let assignments = grouped(&assignment_roots, is_static, one);
        let (outputs, output_slots) = code(&output_roots);
        let prologue = emitter.prologue();
        Ok(Self {
            slots: emitter.slots(),
            literals: std::mem::take(&mut emitter.literals),
            inputs: std::mem::take(&mut emitter.inputs),
            tables,
            prologue,
            rhs,
            rhs_slots,
            jacobian,
            jacobian_slots,
            pattern,
            conditions,
            condition_slots,
            assignments,
            outputs,
            output_slots,
            symbolic: OnceLock::new(),
            in_logic,
            formulas,
            classes,
            dependencies,
        })
    }
}

/// Conditions and assignments, event by event, exactly as written.
fn event_roots(lowering: &mut Lowering<'_>, model: &Model) -> (Vec<Id>, Vec<Vec<Id>>) {
    let mut root = |f: usize| lowering.formula(f, Mode::Faithful);
    let conditions = model.events.iter().map(|e| root(e.condition)).collect();
    let assignments = model
        .events
        .iter()
        .map(|e| e.assignments.iter().map(|a| root(a.formula)).collect())
        .collect();
    (conditions, assignments)
}

/// Applies `each` to every root with its flag, event by event.
fn grouped<T>(
    roots: &[Vec<Id>],
    flags: Vec<Vec<bool>>,
    mut each: impl FnMut((&Id, bool)) -> T,
) -> Vec<Vec<T>> {
    roots
        .iter()
        .zip(flags)
        .map(|(roots, flags)| roots.iter().zip(flags).map(&mut each).collect())
        .collect()
}

/// The formula that defines each quantity between events.
fn formulas(model: &Model, states: &[usize], key: &Key) -> Vec<Option<usize>> {
    let own = |q: &crate::model::Quantity| {
        if q.kind == Kind::Variable {
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
            Replacement::Constant | Replacement::Set => None,
            Replacement::Formula(f) => Some(f),
        };
    }
    formulas
}

fn classes(
    model: &Model,
    states: &[usize],
    formulas: &[Option<usize>],
    dependencies: &Dependencies,
) -> Vec<Class> {
    let n = model.quantities.len();
    let mut is_state = vec![false; n];
    for &q in states {
        is_state[q] = true;
    }
    let varies = dependencies.reach(n, |q| is_state[q] || dependencies.reads_time[q]);
    let mut classes: Vec<Class> = (0..n)
        .map(|q| {
            if varies[q] && formulas[q].is_some() {
                Class::Varying
            } else {
                Class::Constant
            }
        })
        .collect();
    for (i, &q) in states.iter().enumerate() {
        classes[q] = Class::State(i as u32);
    }
    classes
}

/// The rate of each state, as the solver sees it: scaled.
fn rates(lowering: &mut Lowering<'_>, model: &Model, states: &[usize]) -> Vec<Id> {
    let mut roots = Vec::with_capacity(states.len());
    for &q in states {
        let quantity = &model.quantities[q];
        let mut terms = Vec::new();
        let mut constant = lowering.graph.zero;
        for term in &quantity.rhs {
            let value = lowering.formula(term.formula, Mode::Regrouped);
            let factor = lowering.graph.literal(term.factor / quantity.scale);
            let value = lowering.graph.scaled(factor, value);
            lowering.graph.gather(value, &mut terms, &mut constant);
        }
        roots.push(lowering.graph.linear(terms, constant));
    }
    roots
}

/// Row-wise gradients to a column-wise pattern and the roots in its order.
fn by_column(gradients: &[Vec<(u32, Id)>]) -> (Pattern, Vec<Id>) {
    let n = gradients.len();
    let mut columns: Vec<Vec<(usize, Id)>> = vec![Vec::new(); n];
    for (row, gradient) in gradients.iter().enumerate() {
        for &(column, id) in gradient {
            columns[column as usize].push((row, id));
        }
    }
    let mut pattern = Pattern {
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
    classes: &[Class],
    dependencies: &Dependencies,
) -> Vec<Vec<bool>> {
    let target = dependencies::targets(model);
    let moved = dependencies.reach(classes.len(), |q| target[q]);
    let fixed = |f: usize| {
        model.formulas[f].references().all(|r| match r {
            Reference::Time => false,
            Reference::Quantity(q) => classes[q] == Class::Constant && !moved[q],
        })
    };
    model
        .events
        .iter()
        .map(|e| e.assignments.iter().map(|a| fixed(a.formula)).collect())
        .collect()
}
