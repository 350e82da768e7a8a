//! Formulas into the graph.

use std::collections::HashMap;
use std::sync::Arc;

use super::graph::{ExpressionGraph, GraphNode, Id};
use super::variant::QuantityClass;
use crate::formula::{
    BinaryOperation, Expr, FormulaBody, FormulaRegime, KnownExtent, OperationRule, UnaryOperation,
};
use crate::model::{AliasReference, BoundFormula, FormulaKind, Model, PointTable};
use crate::watch::{Interrupt, Watch};

/// Whether sums and products may be regrouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegroupMode {
    /// Regrouped, for rates: equal up to the last digits.
    Regrouped,
    /// Exactly as written, for conditions and outputs.
    Faithful,
}

/// Everything of a variant that is being lowered.
pub(super) struct VariantLowering<'a> {
    pub(super) model: &'a Model,
    pub(super) classes: &'a [QuantityClass],
    /// The formula that defines a quantity in this variant.
    pub(super) formulas: &'a [Option<usize>],
    /// Constants of the file, and quantities that the user set.
    constants: &'a [bool],
    set: &'a [bool],
    /// Quantities with a formula, each after what it uses.
    order: &'a [u32],
    /// Numbers of the constants of the file.
    numbers: Option<Vec<f64>>,
    /// Constants in formulas with logic, or that are 0 by more than a factor: setting them changes the rules.
    pub(super) in_logic: Vec<usize>,
    pub(super) watch: &'a Watch<'a>,
    pub(super) graph: ExpressionGraph,
    pub(super) tables: Vec<Arc<PointTable>>,
    table_ids: HashMap<*const PointTable, u32>,
    regrouped: Vec<Option<Id>>,
    faithful: Vec<Option<Id>>,
}

impl<'a> VariantLowering<'a> {
    pub(super) fn new(
        model: &'a Model,
        classes: &'a [QuantityClass],
        formulas: &'a [Option<usize>],
        constants: &'a [bool],
        set: &'a [bool],
        order: &'a [u32],
        watch: &'a Watch<'a>,
    ) -> Self {
        let n = model.quantities.len();
        Self {
            model,
            classes,
            formulas,
            constants,
            set,
            order,
            numbers: None,
            watch,
            in_logic: Vec::new(),
            graph: ExpressionGraph::with_room(text_nodes(model)),
            tables: Vec::new(),
            table_ids: HashMap::new(),
            regrouped: vec![None; n],
            faithful: vec![None; n],
        }
    }

    fn memo(&mut self, mode: RegroupMode) -> &mut Vec<Option<Id>> {
        match mode {
            RegroupMode::Regrouped => &mut self.regrouped,
            RegroupMode::Faithful => &mut self.faithful,
        }
    }

    /// Returns the value of a quantity. Quantities it depends on are lowered first, with a stack of our own.
    ///
    /// # Errors
    /// That of the watch.
    pub(super) fn quantity(&mut self, q: usize, mode: RegroupMode) -> Result<Id, Interrupt> {
        let mut stack = vec![q];
        while let Some(&top) = stack.last() {
            if self.memo(mode).get(top).copied().flatten().is_some() {
                stack.pop();
                continue;
            }
            let missing = self.missing(top, mode);
            if missing.is_empty() {
                let id = self.quantity_now(top, mode)?;
                if let Some(slot) = self.memo(mode).get_mut(top) {
                    *slot = Some(id);
                }
                stack.pop();
            } else {
                stack.extend(missing);
            }
        }
        Ok(self.memo(mode).get(q).copied().flatten().unwrap_or(0))
    }

    /// What must be lowered before quantity q.
    fn missing(&mut self, q: usize, mode: RegroupMode) -> Vec<usize> {
        if self.classes.get(q) != Some(&QuantityClass::Varying) {
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
            AliasReference::Time => None,
            AliasReference::Quantity(u) => Some(u),
        });
        let used: Vec<usize> = used.collect();
        used.into_iter()
            .filter(|u| self.memo(mode).get(*u).copied().flatten().is_none())
            .collect()
    }

    fn quantity_now(&mut self, q: usize, mode: RegroupMode) -> Result<Id, Interrupt> {
        Ok(match self.classes.get(q).copied() {
            Some(QuantityClass::State(i)) => {
                let state = self.graph.add_node(GraphNode::State(i));
                let scale = self
                    .model
                    .quantities
                    .get(q)
                    .map_or(1.0, |quantity| quantity.scale);
                if scale == 1.0 {
                    return Ok(state);
                }
                let scale = self.graph.literal(scale);
                self.graph.scaled(scale, state)
            }
            Some(QuantityClass::Varying) => match self.formulas.get(q).copied().flatten() {
                Some(f) => {
                    let id = self.formula(f, mode)?;
                    if mode == RegroupMode::Regrouped {
                        self.graph.seal_sum(id)
                    } else {
                        id
                    }
                }
                None => self.graph.add_node(GraphNode::Quantity(q as u32)),
            },
            Some(QuantityClass::Constant) | None => {
                self.graph.add_node(GraphNode::Quantity(q as u32))
            }
        })
    }

    fn reference(&mut self, reference: AliasReference, mode: RegroupMode) -> Result<Id, Interrupt> {
        match reference {
            AliasReference::Time => Ok(self.graph.add_node(GraphNode::Time)),
            AliasReference::Quantity(q) => self.quantity(q, mode),
        }
    }

    /// Returns the value of a formula.
    ///
    /// # Errors
    /// That of the watch.
    pub(super) fn formula(&mut self, f: usize, mode: RegroupMode) -> Result<Id, Interrupt> {
        self.watch.check()?;
        let model = self.model;
        let Some(BoundFormula { kind, .. }) = model.formulas.get(f) else {
            return Ok(self.graph.literal(f64::NAN));
        };
        match kind {
            FormulaKind::Explicit { body, arguments } => {
                let mut known = Vec::with_capacity(arguments.len());
                for (i, &reference) in arguments.iter().enumerate() {
                    // An alias that the text does not use may lead anywhere, even back here.
                    let node = if body.uses(i) {
                        self.reference(reference, mode)?
                    } else {
                        0
                    };
                    known.push((node, self.known_extent(reference)));
                }
                if body.nodes.iter().any(is_logic) {
                    self.note_constants(arguments);
                }
                if self.is_zero(body, arguments) {
                    self.note_constants(arguments);
                    return Ok(self.graph.zero);
                }
                // A formula of constants alone follows the rules of a run.
                if known
                    .iter()
                    .all(|(_, known)| *known == KnownExtent::Constant)
                {
                    known
                        .iter_mut()
                        .for_each(|(_, known)| *known = KnownExtent::Live);
                }
                Ok(self.body(body, &known, mode))
            }
            FormulaKind::Table(table) => {
                let time = self.graph.add_node(GraphNode::Time);
                Ok(self.table(table, time))
            }
            FormulaKind::TableWithOffset { table, offset } => {
                let time = self.graph.add_node(GraphNode::Time);
                let offset = self.reference(*offset, mode)?;
                let x = self.graph.minus(time, offset);
                self.table_of(
                    *table,
                    self.formulas.get(*table).copied().flatten(),
                    x,
                    mode,
                )
            }
            FormulaKind::TableWithArgument { table, argument } => {
                let x = self.reference(*argument, mode)?;
                // What an event makes of the table's parameter does not matter, what the user does, does.
                let own = match self.set.get(*table) {
                    Some(false) => super::dependencies::own_formula(model, *table),
                    _ => None,
                };
                self.table_of(*table, own, x, mode)
            }
        }
    }

    /// Returns the table of a quantity with this formula at x; without a table, the quantity's value.
    fn table_of(
        &mut self,
        q: usize,
        formula: Option<usize>,
        x: Id,
        mode: RegroupMode,
    ) -> Result<Id, Interrupt> {
        let model = self.model;
        let formula = formula.and_then(|f| model.formulas.get(f));
        match formula.map(|f| &f.kind) {
            Some(FormulaKind::Table(table)) => Ok(self.table(table, x)),
            _ => self.quantity(q, mode),
        }
    }

    fn table(&mut self, table: &Arc<PointTable>, x: Id) -> Id {
        let tables = &mut self.tables;
        let id = *self.table_ids.entry(Arc::as_ptr(table)).or_insert_with(|| {
            tables.push(Arc::clone(table));
            (tables.len() - 1) as u32
        });
        self.graph.add_node(GraphNode::Table(id, x))
    }

    /// Returns how much of a reference is known before the run.
    fn known_extent(&self, reference: AliasReference) -> KnownExtent {
        match reference {
            AliasReference::Quantity(q) if self.constants.get(q) == Some(&true) => {
                KnownExtent::Constant
            }
            _ => KnownExtent::Live,
        }
    }

    /// Returns whether constants of the file make the formula 0 in a way that its code does not.
    fn is_zero(&mut self, body: &FormulaBody, arguments: &[AliasReference]) -> bool {
        let constants = self.constants;
        let position = |i: usize| match arguments.get(i) {
            Some(AliasReference::Quantity(q)) if constants.get(*q) == Some(&true) => Some(*q),
            _ => None,
        };
        if !body.may_be_zero(|i| position(i).is_some()) {
            return false;
        }
        let numbers = self.numbers();
        let number = |i: usize| position(i).and_then(|q| numbers.get(q).copied());
        body.regime(number) == FormulaRegime::Zero
    }

    /// Numbers of the constants of the file, computed at the first call.
    fn numbers(&mut self) -> &[f64] {
        let (model, constants, order) = (self.model, self.constants, self.order);
        self.numbers
            .get_or_insert_with(|| super::fold::constants(model, order, constants))
    }

    fn note_constants(&mut self, arguments: &[AliasReference]) {
        for reference in arguments {
            if let AliasReference::Quantity(q) = *reference
                && self.known_extent(*reference) == KnownExtent::Constant
            {
                self.in_logic.push(q);
            }
        }
    }

    fn body(
        &mut self,
        body: &FormulaBody,
        arguments: &[(Id, KnownExtent)],
        mode: RegroupMode,
    ) -> Id {
        let plan = body.plan();
        let mut values: Vec<(LoweredValue, KnownExtent)> = Vec::with_capacity(plan.len());
        for (i, node) in plan.iter().enumerate() {
            let (value, known) = match *node {
                Expr::Number(value) => (
                    LoweredValue::Node(self.graph.literal(value)),
                    KnownExtent::Constant,
                ),
                Expr::Argument(i) => {
                    let argument = arguments.get(i as usize).copied();
                    let (id, known) = argument.unwrap_or((0, KnownExtent::Live));
                    (LoweredValue::Node(id), known)
                }
                Expr::Unary(op, a) => {
                    let (id, known) = self.take_node(&mut values, a);
                    let rule = match op {
                        UnaryOperation::Not => OperationRule::rule_for(known),
                        _ => OperationRule::Live,
                    };
                    let id = self.graph.unary(op, rule, id);
                    (LoweredValue::Node(id), known.max(KnownExtent::Folded))
                }
                Expr::Binary(op @ (BinaryOperation::Add | BinaryOperation::Subtract), a, b)
                    if mode == RegroupMode::Regrouped =>
                {
                    let (b, known_b) = take(&mut values, b);
                    let (a, known_a) = take(&mut values, a);
                    let known = known_a.max(known_b).max(KnownExtent::Folded);
                    (self.sum(op, a, b), known)
                }
                Expr::Binary(op, a, b) => {
                    let whole = body.is_whole_product(i);
                    // A constant 0 over anything counts like the constant itself.
                    let by_number = match plan.get(b as usize) {
                        Some(Expr::Binary(BinaryOperation::Divide, above, _)) => {
                            whole
                                && op == BinaryOperation::Multiply
                                && known_of(&values, *above) == KnownExtent::Constant
                        }
                        _ => false,
                    };
                    let a = self.take_node(&mut values, a);
                    let b = self.take_node(&mut values, b);
                    let known = a.1.max(b.1).max(KnownExtent::Folded);
                    (self.operation(op, [a, b], (whole, by_number), mode), known)
                }
                Expr::Select(c, a, b) => {
                    let (c, known) = self.take_node(&mut values, c);
                    let (a, known_a) = self.take_node(&mut values, a);
                    let (b, known_b) = self.take_node(&mut values, b);
                    let rule = OperationRule::rule_for(known.max(known_b));
                    let known = known.max(known_a).max(known_b).max(KnownExtent::Folded);
                    let id = match mode {
                        RegroupMode::Faithful => self.graph.select(rule, c, a, b),
                        RegroupMode::Regrouped => self.graph.choose(rule, c, a, b),
                    };
                    (LoweredValue::Node(id), known)
                }
            };
            values.push((value, known));
        }
        let root = plan.len().saturating_sub(1);
        self.take_node(&mut values, root as u32).0
    }

    /// An operation that is no regrouped sum; `whole` says that the formula is one product, `by_number` that the second
    /// operand counts as a constant.
    fn operation(
        &mut self,
        op: BinaryOperation,
        [(a, known_a), (b, known_b)]: [(Id, KnownExtent); 2],
        (whole, by_number): (bool, bool),
        mode: RegroupMode,
    ) -> LoweredValue {
        if mode == RegroupMode::Regrouped
            && op == BinaryOperation::Multiply
            && let Some(term) = self.term(a, b)
        {
            return term;
        }
        let counted = if by_number {
            KnownExtent::Constant
        } else {
            known_b
        };
        let rule = OperationRule::of(op, known_a, counted, whole);
        // Constants of a sum are multiplied plainly.
        let plain = !whole && known_a.max(known_b) != KnownExtent::Live;
        let mode = if plain { RegroupMode::Faithful } else { mode };
        LoweredValue::Node(self.binary(op, rule, a, b, mode))
    }

    /// A sum grows by another term; it becomes a node only when something else uses it, so that a long one is built
    /// once.
    fn sum(&mut self, op: BinaryOperation, a: LoweredValue, b: LoweredValue) -> LoweredValue {
        let b = match b {
            LoweredValue::Sum(mut terms, constant)
                if terms.len() == 1 && constant == self.graph.zero =>
            {
                if op == BinaryOperation::Subtract {
                    let minus = self.graph.literal(-1.0);
                    for (coefficient, _) in &mut terms {
                        *coefficient = self.graph.folded_product(minus, *coefficient);
                    }
                }
                let (mut all, constant) = self.parts(a);
                all.extend(terms);
                return LoweredValue::Sum(all, constant);
            }
            b => self.node(b),
        };
        let graph = &mut self.graph;
        if let LoweredValue::Node(a) = a
            && !graph.varies(a)
            && !graph.varies(b)
        {
            return LoweredValue::Node(graph.binary(op, a, b));
        }
        let b = if op == BinaryOperation::Subtract {
            let minus = graph.literal(-1.0);
            graph.scaled(minus, b)
        } else {
            b
        };
        let (mut terms, mut constant) = self.parts(a);
        self.graph.gather(b, &mut terms, &mut constant);
        LoweredValue::Sum(terms, constant)
    }

    /// Terms and constant of a value.
    fn parts(&self, value: LoweredValue) -> (Vec<(Id, Id)>, Id) {
        match value {
            LoweredValue::Sum(terms, constant) => (terms, constant),
            LoweredValue::Node(node) => self.graph.parts(node),
        }
    }

    fn node(&mut self, value: LoweredValue) -> Id {
        match value {
            LoweredValue::Node(id) => id,
            LoweredValue::Sum(terms, constant) => self.graph.linear(terms, constant),
        }
    }

    /// Returns a product of what does not vary and a state, not yet a node: mostly it is about to be added to others.
    fn term(&self, a: Id, b: Id) -> Option<LoweredValue> {
        let graph = &self.graph;
        let is_state = |id: Id| matches!(graph.node(id), GraphNode::State(_));
        let (factor, state) = match (graph.varies(a), graph.varies(b)) {
            (false, true) if is_state(b) => (a, b),
            (true, false) if is_state(a) => (b, a),
            _ => return None,
        };
        (factor != graph.one).then(|| LoweredValue::Sum(vec![(factor, state)], graph.zero))
    }

    /// Returns the node of a value; each value of a body is used once.
    fn take_node(
        &mut self,
        values: &mut [(LoweredValue, KnownExtent)],
        i: u32,
    ) -> (Id, KnownExtent) {
        let (value, known) = take(values, i);
        (self.node(value), known)
    }

    fn binary(
        &mut self,
        op: BinaryOperation,
        rule: OperationRule,
        a: Id,
        b: Id,
        mode: RegroupMode,
    ) -> Id {
        let graph = &mut self.graph;
        match (mode, op) {
            (RegroupMode::Regrouped, BinaryOperation::Multiply) => graph.times(a, b),
            (RegroupMode::Regrouped, BinaryOperation::Divide) => graph.over(a, b),
            (RegroupMode::Regrouped, BinaryOperation::Power) => graph.power(a, b),
            _ => graph.ruled(op, rule, a, b),
        }
    }
}

/// Nodes of all texts together: a guess at the size of the graph.
fn text_nodes(model: &Model) -> usize {
    let nodes = model.formulas.iter().map(|f| match &f.kind {
        FormulaKind::Explicit { body, .. } => body.plan().len(),
        _ => 1,
    });
    nodes.sum()
}

/// Value of a node of a body: a node of the graph, or a sum under way.
enum LoweredValue {
    Node(Id),
    /// Terms with their coefficients, and the constant.
    Sum(Vec<(Id, Id)>, Id),
}

fn known_of(values: &[(LoweredValue, KnownExtent)], i: u32) -> KnownExtent {
    values.get(i as usize).map_or(KnownExtent::Live, |v| v.1)
}

/// Takes a value out; its knowledge stays.
fn take(values: &mut [(LoweredValue, KnownExtent)], i: u32) -> (LoweredValue, KnownExtent) {
    match values.get_mut(i as usize) {
        Some((value, known)) => (std::mem::replace(value, LoweredValue::Node(0)), *known),
        None => (LoweredValue::Node(0), KnownExtent::Live),
    }
}

fn is_logic(node: &Expr) -> bool {
    matches!(
        node,
        Expr::Unary(UnaryOperation::Not, _)
            | Expr::Binary(BinaryOperation::And | BinaryOperation::Or, ..)
    )
}
