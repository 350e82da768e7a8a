//! Formulas into the graph.

use std::collections::HashMap;
use std::sync::Arc;

use super::graph::{Graph, Id, Node};
use super::variant::Class;
use crate::formula::{Binary, Body, Expr};
use crate::model::{Formula, FormulaKind, Model, Reference, Table};

/// Whether sums and products may be regrouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Regrouped, for rates: equal up to the last digits.
    Regrouped,
    /// Exactly as written, for conditions and outputs.
    Faithful,
}

/// Everything of a variant that is being lowered.
pub(super) struct Lowering<'a> {
    pub(super) model: &'a Model,
    pub(super) classes: &'a [Class],
    /// The formula that defines a quantity in this variant.
    pub(super) formulas: &'a [Option<usize>],
    pub(super) graph: Graph,
    pub(super) tables: Vec<Arc<Table>>,
    table_ids: HashMap<*const Table, u32>,
    regrouped: Vec<Option<Id>>,
    faithful: Vec<Option<Id>>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(
        model: &'a Model,
        classes: &'a [Class],
        formulas: &'a [Option<usize>],
    ) -> Self {
        let n = model.quantities.len();
        Self {
            model,
            classes,
            formulas,
            graph: Graph::new(),
            tables: Vec::new(),
            table_ids: HashMap::new(),
            regrouped: vec![None; n],
            faithful: vec![None; n],
        }
    }

    fn memo(&mut self, mode: Mode) -> &mut Vec<Option<Id>> {
        match mode {
            Mode::Regrouped => &mut self.regrouped,
            Mode::Faithful => &mut self.faithful,
        }
    }

    /// The value of a quantity. Quantities it depends on are lowered first, with a stack of our own.
    pub(super) fn quantity(&mut self, q: usize, mode: Mode) -> Id {
        let mut stack = vec![q];
        while let Some(&top) = stack.last() {
            if self.memo(mode).get(top).copied().flatten().is_some() {
                stack.pop();
                continue;
            }
            let missing = self.missing(top, mode);
            if missing.is_empty() {
                let id = self.quantity_now(top, mode);
                if let Some(slot) = self.memo(mode).get_mut(top) {
                    *slot = Some(id);
                }
                stack.pop();
            } else {
                stack.extend(missing);
            }
        }
        self.memo(mode).get(q).copied().flatten().unwrap_or(0)
    }

    /// What must be lowered before quantity q.
    fn missing(&mut self, q: usize, mode: Mode) -> Vec<usize> {
        if self.classes.get(q) != Some(&Class::Varying) {
            return Vec::new();
        }
        let formula = self
            .formulas
            .get(q)
            .copied()
            .flatten()
            .and_then(|f| self.model.formulas.get(f));
        let Some(formula) = formula else {
            return Vec::new();
        };
        let used = formula.references().filter_map(|r| match r {
            Reference::Time => None,
            Reference::Quantity(u) => Some(u),
        });
        let used: Vec<usize> = used.collect();
        used.into_iter()
            .filter(|u| self.memo(mode).get(*u).copied().flatten().is_none())
            .collect()
    }

    fn quantity_now(&mut self, q: usize, mode: Mode) -> Id {
        match self.classes.get(q).copied() {
            Some(Class::State(i)) => {
                let state = self.graph.add_node(Node::State(i));
                let scale = self
                    .model
                    .quantities
                    .get(q)
                    .map_or(1.0, |quantity| quantity.scale);
                if scale == 1.0 {
                    return state;
                }
                let scale = self.graph.literal(scale);
                self.graph.scaled(scale, state)
            }
            Some(Class::Varying) => match self.formulas.get(q).copied().flatten() {
                Some(f) => {
                    let id = self.formula(f, mode);
                    if mode == Mode::Regrouped {
                        self.graph.sealed(id)
                    } else {
                        id
                    }
                }
                None => self.graph.add_node(Node::Quantity(q as u32)),
            },
            Some(Class::Constant) | None => self.graph.add_node(Node::Quantity(q as u32)),
        }
    }

    fn reference(&mut self, reference: Reference, mode: Mode) -> Id {
        match reference {
            Reference::Time => self.graph.add_node(Node::Time),
            Reference::Quantity(q) => self.quantity(q, mode),
        }
    }

    /// The value of a formula.
    pub(super) fn formula(&mut self, f: usize, mode: Mode) -> Id {
        let model = self.model;
        let Some(Formula { kind, .. }) = model.formulas.get(f) else {
            return self.graph.literal(f64::NAN);
        };
        match kind {
            FormulaKind::Explicit { body, arguments } => {
                let arguments: Vec<Id> =
                    arguments.iter().map(|r| self.reference(*r, mode)).collect();
                self.body(body, &arguments, mode)
            }
            FormulaKind::Table(table) => {
                let time = self.graph.add_node(Node::Time);
                self.table(table, time)
            }
            FormulaKind::TableWithOffset { table, offset } => {
                let time = self.graph.add_node(Node::Time);
                let offset = self.reference(*offset, mode);
                let x = self.graph.minus(time, offset);
                self.table_of(*table, x, mode)
            }
            FormulaKind::TableWithArgument { table, argument } => {
                let x = self.reference(*argument, mode);
                self.table_of(*table, x, mode)
            }
        }
    }

    /// The table of a quantity at x; without a table, the quantity's value.
    fn table_of(&mut self, q: usize, x: Id, mode: Mode) -> Id {
        let model = self.model;
        let formula = self
            .formulas
            .get(q)
            .copied()
            .flatten()
            .and_then(|f| model.formulas.get(f));
        match formula.map(|f| &f.kind) {
            Some(FormulaKind::Table(table)) => self.table(table, x),
            _ => self.quantity(q, mode),
        }
    }

    fn table(&mut self, table: &Arc<Table>, x: Id) -> Id {
        let tables = &mut self.tables;
        let id = *self.table_ids.entry(Arc::as_ptr(table)).or_insert_with(|| {
            tables.push(Arc::clone(table));
            (tables.len() - 1) as u32
        });
        self.graph.add_node(Node::Table(id, x))
    }

    fn body(&mut self, body: &Body, arguments: &[Id], mode: Mode) -> Id {
        let graph = &mut self.graph;
        let mut values: Vec<Id> = Vec::with_capacity(body.nodes.len());
        for node in &body.nodes {
            let at = |i: u32| values.get(i as usize).copied().unwrap_or(0);
            let id = match *node {
                Expr::Number(value) => graph.literal(value),
                Expr::Argument(i) => arguments.get(i as usize).copied().unwrap_or(0),
                Expr::Unary(op, a) => graph.unary(op, at(a)),
                Expr::Binary(op, a, b) if mode == Mode::Faithful => graph.binary(op, at(a), at(b)),
                Expr::Binary(Binary::Add, a, b) => graph.plus(at(a), at(b)),
                Expr::Binary(Binary::Subtract, a, b) => graph.minus(at(a), at(b)),
                Expr::Binary(Binary::Multiply, a, b) => graph.times(at(a), at(b)),
                Expr::Binary(Binary::Divide, a, b) => graph.over(at(a), at(b)),
                Expr::Binary(Binary::Power, a, b) => graph.power(at(a), at(b)),
                Expr::Binary(op, a, b) => graph.binary(op, at(a), at(b)),
                Expr::Select(c, a, b) if mode == Mode::Faithful => {
                    graph.select(at(c), at(a), at(b))
                }
                Expr::Select(c, a, b) => graph.choose(at(c), at(a), at(b)),
            };
            values.push(id);
        }
        values.last().copied().unwrap_or(0)
    }
}
