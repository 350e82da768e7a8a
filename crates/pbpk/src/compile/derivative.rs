//! Derivatives of rates by states, symbolically and sparsely.
#![expect(
    clippy::indexing_slicing,
    reason = "graph kernel: node numbers of one graph"
)]

use super::graph::{ExpressionGraph, GraphNode, Id};
use crate::formula::{BinaryOperation, OperationRule, UnaryOperation};
use crate::watch::{Interrupt, Watch};

/// Derivatives by state, ascending; states that are not listed do not matter.
type Gradient = Vec<(u32, Id)>;

/// Entries of a gradient that make a unit of work.
const ENTRIES_OF_A_UNIT: usize = 16;

/// Returns the gradient of each root.
pub(super) fn gradients(
    graph: &mut ExpressionGraph,
    roots: &[Id],
    watch: &Watch<'_>,
) -> Result<Vec<Gradient>, Interrupt> {
    let needed = graph.needed(roots, ExpressionGraph::on_state);
    let mut known: Vec<Option<Gradient>> = vec![None; graph.nodes.len()];
    for id in needed {
        watch.check()?;
        let node = graph.node(id).clone();
        let of = |i: Id| -> &[(u32, Id)] {
            known
                .get(i as usize)
                .and_then(Option::as_deref)
                .unwrap_or(&[])
        };
        let gradient = gradient(graph, id, &node, of);
        watch.work(gradient.len() / ENTRIES_OF_A_UNIT)?;
        known[id as usize] = Some(gradient);
    }
    let of = |r: &Id| known.get(*r as usize).cloned().flatten();
    Ok(roots.iter().map(|r| of(r).unwrap_or_default()).collect())
}

fn gradient<'a>(
    graph: &mut ExpressionGraph,
    id: Id,
    node: &GraphNode,
    of: impl Fn(Id) -> &'a [(u32, Id)],
) -> Gradient {
    match *node {
        GraphNode::Literal(_) | GraphNode::Quantity(_) | GraphNode::Time => Vec::new(),
        GraphNode::State(i) => vec![(i, graph.one)],
        GraphNode::Opaque(a) => of(a).to_vec(),
        GraphNode::Slope(..) => Vec::new(),
        GraphNode::Table(table, x) => {
            let slope = graph.add_node(GraphNode::Slope(table, x));
            scaled(graph, slope, of(x))
        }
        GraphNode::Linear(ref terms, _) => {
            let parts: Vec<(Id, &[(u32, Id)])> = terms.iter().map(|(c, t)| (*c, of(*t))).collect();
            combined(graph, &parts)
        }
        GraphNode::Unary(op, _, a) if !of(a).is_empty() => {
            let outer = unary(graph, op, id, a);
            outer.map_or_else(Vec::new, |outer| scaled(graph, outer, of(a)))
        }
        GraphNode::Unary(..) => Vec::new(),
        GraphNode::Select(rule, c, a, b) => choose_gradient(graph, rule, c, of(a), of(b)),
        GraphNode::Binary(op, _, a, b) => match op {
            BinaryOperation::Add => combined(graph, &[(graph.one, of(a)), (graph.one, of(b))]),
            BinaryOperation::Subtract => {
                let minus = graph.literal(-1.0);
                combined(graph, &[(graph.one, of(a)), (minus, of(b))])
            }
            BinaryOperation::Multiply => combined(graph, &[(b, of(a)), (a, of(b))]),
            BinaryOperation::Divide => {
                let first = graph.over(graph.one, b);
                let second = quotient_by_denominator(graph, id, b, of(b));
                combined(graph, &[(first, of(a)), (second, of(b))])
            }
            BinaryOperation::Power => power(graph, id, a, b, of(a), of(b)),
            BinaryOperation::Min => {
                let less = graph.binary(BinaryOperation::Less, b, a);
                choose_gradient(graph, OperationRule::Live, less, of(b), of(a))
            }
            BinaryOperation::Max => {
                let greater = graph.binary(BinaryOperation::Greater, b, a);
                choose_gradient(graph, OperationRule::Live, greater, of(b), of(a))
            }
            _ => Vec::new(),
        },
    }
}

/// Returns −(a/b)/b, only if it is used.
fn quotient_by_denominator(
    graph: &mut ExpressionGraph,
    quotient: Id,
    b: Id,
    gradient: &[(u32, Id)],
) -> Id {
    if gradient.is_empty() {
        return graph.zero;
    }
    let minus = graph.literal(-1.0);
    let ratio = graph.over(quotient, b);
    graph.scaled(minus, ratio)
}

/// a^b: b·a^(b−1)·a′ + a^b·ln(a)·b′.
fn power(
    graph: &mut ExpressionGraph,
    id: Id,
    a: Id,
    b: Id,
    of_a: &[(u32, Id)],
    of_b: &[(u32, Id)],
) -> Gradient {
    let mut parts = Vec::new();
    if !of_a.is_empty() {
        let lower = graph.minus(b, graph.one);
        let reduced = graph.power(a, lower);
        parts.push((graph.times(b, reduced), of_a));
    }
    if !of_b.is_empty() {
        let log = graph.unary(UnaryOperation::Ln, OperationRule::Live, a);
        parts.push((graph.times(id, log), of_b));
    }
    combined(graph, &parts)
}

/// Returns the derivative of a function of one operand, by that operand; nothing if it is zero.
fn unary(graph: &mut ExpressionGraph, op: UnaryOperation, id: Id, a: Id) -> Option<Id> {
    let one = graph.one;
    let square = |graph: &mut ExpressionGraph, x: Id| graph.times(x, x);
    Some(match op {
        UnaryOperation::Exp => id,
        UnaryOperation::Ln => graph.over(one, a),
        UnaryOperation::Log10 => {
            let scale = graph.literal(std::f64::consts::LOG10_E);
            graph.over(scale, a)
        }
        UnaryOperation::Sqrt => {
            let half = graph.literal(0.5);
            graph.over(half, id)
        }
        UnaryOperation::Sin => graph.unary(UnaryOperation::Cos, OperationRule::Live, a),
        UnaryOperation::Cos => {
            let minus = graph.literal(-1.0);
            let sine = graph.unary(UnaryOperation::Sin, OperationRule::Live, a);
            graph.scaled(minus, sine)
        }
        UnaryOperation::Tan => {
            let s = square(graph, id);
            graph.plus(one, s)
        }
        UnaryOperation::Sinh => graph.unary(UnaryOperation::Cosh, OperationRule::Live, a),
        UnaryOperation::Cosh => graph.unary(UnaryOperation::Sinh, OperationRule::Live, a),
        UnaryOperation::Tanh => {
            let s = square(graph, id);
            graph.minus(one, s)
        }
        UnaryOperation::Asin | UnaryOperation::Acos => {
            let s = square(graph, a);
            let rest = graph.minus(one, s);
            let root = graph.unary(UnaryOperation::Sqrt, OperationRule::Live, rest);
            let sign = graph.literal(if op == UnaryOperation::Asin {
                1.0
            } else {
                -1.0
            });
            graph.over(sign, root)
        }
        UnaryOperation::Atan => {
            let s = square(graph, a);
            let sum = graph.plus(one, s);
            graph.over(one, sum)
        }
        UnaryOperation::Not => return None,
    })
}

fn scaled(graph: &mut ExpressionGraph, factor: Id, gradient: &[(u32, Id)]) -> Gradient {
    gradient
        .iter()
        .map(|(state, d)| (*state, graph.times(factor, *d)))
        .collect()
}

/// Sum of factor times gradient.
fn combined(graph: &mut ExpressionGraph, parts: &[(Id, &[(u32, Id)])]) -> Gradient {
    let mut all: Vec<(u32, usize, Id)> = Vec::new();
    for (i, (_, gradient)) in parts.iter().enumerate() {
        all.extend(gradient.iter().map(|(state, d)| (*state, i, *d)));
    }
    all.sort_unstable();
    let mut sum: Gradient = Vec::with_capacity(all.len());
    for (state, i, d) in all {
        let term = graph.times(parts[i].0, d);
        match sum.last_mut() {
            Some(last) if last.0 == state => last.1 = graph.plus(last.1, term),
            _ => sum.push((state, term)),
        }
    }
    sum
}

fn choose_gradient(
    graph: &mut ExpressionGraph,
    rule: OperationRule,
    c: Id,
    a: &[(u32, Id)],
    b: &[(u32, Id)],
) -> Gradient {
    let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
    let mut sum = Vec::with_capacity(a.len() + b.len());
    while let Some(state) = [left.peek(), right.peek()]
        .into_iter()
        .flatten()
        .map(|d| d.0)
        .min()
    {
        let next = |side: &mut std::iter::Peekable<std::slice::Iter<'_, (u32, Id)>>| {
            side.next_if(|d| d.0 == state).map_or(graph.zero, |d| d.1)
        };
        let (left, right) = (next(&mut left), next(&mut right));
        sum.push((state, graph.choose(rule, c, left, right)));
    }
    sum
}
