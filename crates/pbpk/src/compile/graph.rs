//! Expressions of a whole model as one graph: equal expressions are one node.
#![expect(
    clippy::indexing_slicing,
    reason = "graph kernel: a node's operands are earlier nodes of the same graph"
)]

use std::hash::{Hash, Hasher};

use crate::formula::{
    BinaryOperation, OperationRule, UnaryOperation, apply_binary, apply_select, apply_unary,
};

/// Position of a node; operands have smaller positions.
pub(super) type Id = u32;

/// An expression over the states, the time and the folded quantities.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum GraphNode {
    /// A number, by its bits.
    Literal(u64),
    /// A quantity that does not vary between events.
    Quantity(u32),
    Time,
    /// A state as the solver sees it: scaled.
    State(u32),
    Unary(UnaryOperation, OperationRule, Id),
    Binary(BinaryOperation, OperationRule, Id, Id),
    Select(OperationRule, Id, Id, Id),
    /// A table at x.
    Table(u32, Id),
    /// The derivative of a table at x.
    Slope(u32, Id),
    /// Sum of coefficient times term, plus a constant; coefficients do not vary, terms do and are no sums themselves.
    Linear(Box<[(Id, Id)]>, Id),
    /// The same value, not to be taken apart.
    Opaque(Id),
}

/// Multiplicative hashing; the graph is built from trusted node numbers, not from an adversary's keys.
#[derive(Default, Clone, Copy)]
pub(super) struct NodeHasher(u64);

impl Hasher for NodeHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u64(u64::from(b));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}

/// Positions of nodes by the hash of their content: open addressing, at most half full.
struct NodeTable {
    /// Hash and position; the hash spares most looks at other nodes.
    places: Vec<(u32, Id)>,
    used: usize,
}

/// A place that holds no node.
const FREE: Id = Id::MAX;

impl NodeTable {
    fn with_room(nodes: usize) -> Self {
        let size = (2 * nodes).next_power_of_two().max(1024);
        Self {
            places: vec![(0, FREE); size],
            used: 0,
        }
    }

    fn hash(node: &GraphNode) -> u32 {
        let mut hasher = NodeHasher::default();
        node.hash(&mut hasher);
        (hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }

    /// Returns the place of a node that equals this one, or its future place.
    fn place(&self, nodes: &[GraphNode], node: &GraphNode, hash: u32) -> usize {
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let (other, id) = self.places[place];
            if id == FREE || other == hash && nodes[id as usize] == *node {
                return place;
            }
            place = (place + 1) & mask;
        }
    }

    /// Makes room for one more.
    fn grow(&mut self) {
        if self.used * 2 < self.places.len() {
            return;
        }
        let size = self.places.len() * 2;
        let old = std::mem::replace(&mut self.places, vec![(0, FREE); size]);
        for entry in old.into_iter().filter(|e| e.1 != FREE) {
            let mut place = entry.0 as usize & (size - 1);
            while self.places[place].1 != FREE {
                place = (place + 1) & (size - 1);
            }
            self.places[place] = entry;
        }
    }
}

/// All nodes of one variant.
pub(super) struct ExpressionGraph {
    pub(super) nodes: Vec<GraphNode>,
    /// Whether the value can change between events.
    varies: Vec<bool>,
    /// Whether it depends on a state.
    on_state: Vec<bool>,
    /// Whether it may be infinite or no number.
    risky: Vec<bool>,
    known: NodeTable,
    pub(super) zero: Id,
    pub(super) one: Id,
}

impl ExpressionGraph {
    /// Returns an empty graph with room for about so many nodes.
    pub(super) fn with_room(nodes: usize) -> Self {
        let mut graph = Self {
            nodes: Vec::with_capacity(nodes),
            varies: Vec::new(),
            on_state: Vec::new(),
            risky: Vec::new(),
            known: NodeTable::with_room(nodes),
            zero: 0,
            one: 0,
        };
        graph.zero = graph.literal(0.0);
        graph.one = graph.literal(1.0);
        graph
    }

    pub(super) fn node(&self, id: Id) -> &GraphNode {
        &self.nodes[id as usize]
    }

    pub(super) fn varies(&self, id: Id) -> bool {
        self.varies[id as usize]
    }

    pub(super) fn on_state(&self, id: Id) -> bool {
        self.on_state[id as usize]
    }

    pub(super) fn value_of(&self, id: Id) -> Option<f64> {
        match self.node(id) {
            GraphNode::Literal(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        }
    }

    pub(super) fn literal(&mut self, value: f64) -> Id {
        self.add_node(GraphNode::Literal(value.to_bits()))
    }

    /// Returns the node, new or known.
    pub(super) fn add_node(&mut self, node: GraphNode) -> Id {
        self.known.grow();
        let hash = NodeTable::hash(&node);
        let place = self.known.place(&self.nodes, &node, hash);
        let found = self.known.places[place].1;
        if found != FREE {
            return found;
        }
        let next = self.nodes.len() as Id;
        self.known.places[place] = (hash, next);
        self.known.used += 1;
        let (varies, on_state) = match &node {
            GraphNode::Time => (true, false),
            GraphNode::State(_) => (true, true),
            other => {
                let mut flags = (false, false);
                operands(other, |id| {
                    flags.0 |= self.varies[id as usize];
                    flags.1 |= self.on_state[id as usize];
                });
                flags
            }
        };
        let risky = self.risk(&node);
        self.nodes.push(node);
        self.risky.push(risky);
        self.varies.push(varies);
        self.on_state.push(on_state);
        next
    }

    /// See [`ExpressionGraph::is_risky`].
    fn risk(&self, node: &GraphNode) -> bool {
        match node {
            GraphNode::Literal(bits) => !f64::from_bits(*bits).is_finite(),
            GraphNode::Binary(BinaryOperation::Divide | BinaryOperation::Power, ..) => true,
            GraphNode::Unary(op, ..) => !matches!(
                op,
                UnaryOperation::Sin
                    | UnaryOperation::Cos
                    | UnaryOperation::Atan
                    | UnaryOperation::Tanh
                    | UnaryOperation::Not
            ),
            node => {
                let mut risky = false;
                operands(node, |id| risky |= self.risky[id as usize]);
                risky
            }
        }
    }

    /// Returns an operation, folded if all its operands are numbers.
    pub(super) fn unary(&mut self, op: UnaryOperation, rule: OperationRule, a: Id) -> Id {
        match self.value_of(a) {
            Some(x) => self.literal(apply_unary(op, rule, x)),
            None => self.add_node(GraphNode::Unary(op, rule, a)),
        }
    }

    /// Plain arithmetic, or logic of what is live.
    pub(super) fn binary(&mut self, op: BinaryOperation, a: Id, b: Id) -> Id {
        self.ruled(op, OperationRule::Live, a, b)
    }

    /// Returns a product of values that do not vary: 0 where either is.
    pub(super) fn folded_product(&mut self, a: Id, b: Id) -> Id {
        self.ruled(BinaryOperation::Multiply, OperationRule::Either, a, b)
    }

    /// Returns an operation, folded if both operands are numbers, and without factors of one.
    pub(super) fn ruled(&mut self, op: BinaryOperation, rule: OperationRule, a: Id, b: Id) -> Id {
        if let (Some(x), Some(y)) = (self.value_of(a), self.value_of(b)) {
            return self.literal(apply_binary(op, rule, x, y));
        }
        match op {
            BinaryOperation::Multiply if a == self.one => return b,
            BinaryOperation::Multiply | BinaryOperation::Divide | BinaryOperation::Power
                if b == self.one =>
            {
                return a;
            }
            BinaryOperation::Add if a == self.zero => return b,
            BinaryOperation::Add | BinaryOperation::Subtract if b == self.zero => return a,
            _ => {}
        }
        // If nothing can be infinite or NaN, a product is 0 with its factors by itself.
        let rule = match rule {
            OperationRule::First if op == BinaryOperation::Multiply && !self.is_risky(b) => {
                OperationRule::Live
            }
            rule => rule,
        };
        let symmetric = op == BinaryOperation::Add
            || op == BinaryOperation::Multiply && rule != OperationRule::First;
        let (a, b) = if symmetric && a > b { (b, a) } else { (a, b) };
        self.add_node(GraphNode::Binary(op, rule, a, b))
    }

    /// Returns whether the value may be infinite or no number although the states are finite. Quantities that do not
    /// vary count as finite: they are factors of their own.
    fn is_risky(&self, id: Id) -> bool {
        self.risky[id as usize]
    }

    pub(super) fn select(&mut self, rule: OperationRule, c: Id, a: Id, b: Id) -> Id {
        match (self.value_of(c), self.value_of(a), self.value_of(b)) {
            (Some(c), Some(a), Some(b)) => self.literal(apply_select(rule, c, a, b)),
            (Some(c), ..) if c.is_nan() && rule != OperationRule::Folded => self.literal(f64::NAN),
            (Some(c), ..) => {
                if c == 1.0 {
                    a
                } else {
                    b
                }
            }
            _ => self.add_node(GraphNode::Select(rule, c, a, b)),
        }
    }

    /// Returns all nodes that `roots` need and for which `wanted` holds, in order of evaluation.
    pub(super) fn needed(&self, roots: &[Id], wanted: impl Fn(&Self, Id) -> bool) -> Vec<Id> {
        let mut seen = vec![false; self.nodes.len()];
        let mut stack: Vec<Id> = roots.to_vec();
        let mut found = Vec::new();
        while let Some(id) = stack.pop() {
            if seen[id as usize] || !wanted(self, id) {
                continue;
            }
            seen[id as usize] = true;
            found.push(id);
            operands(self.node(id), |operand| stack.push(operand));
        }
        found.sort_unstable();
        found
    }
}

/// Calls `each` with every operand of a node.
pub(super) fn operands(node: &GraphNode, mut each: impl FnMut(Id)) {
    match node {
        GraphNode::Literal(_) | GraphNode::Quantity(_) | GraphNode::Time | GraphNode::State(_) => {}
        GraphNode::Unary(_, _, a)
        | GraphNode::Table(_, a)
        | GraphNode::Slope(_, a)
        | GraphNode::Opaque(a) => each(*a),
        GraphNode::Binary(_, _, a, b) => {
            each(*a);
            each(*b);
        }
        GraphNode::Select(_, c, a, b) => {
            each(*c);
            each(*a);
            each(*b);
        }
        GraphNode::Linear(terms, constant) => {
            each(*constant);
            for (coefficient, term) in terms {
                each(*coefficient);
                each(*term);
            }
        }
    }
}
