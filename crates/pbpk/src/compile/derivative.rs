//! Derivatives of rates by states, symbolically and sparsely.
#![expect(
    clippy::indexing_slicing,
    reason = "graph kernel: node numbers of one graph"
)]

use super::graph::{Graph, Id, Node};
use crate::formula::{Binary, Rule, Unary};
use crate::watch::{Interrupt, Watch};

/// Derivatives by state, ascending; states that are not listed do not matter.
type Gradient = Vec<(u32, Id)>;

/// Entries of a gradient that make a unit of work.
const ENTRIES_OF_A_UNIT: usize = 16;

/// The gradient of each root.
pub(super) fn gradients(
    graph: &mut Graph,
    roots: &[Id],
    watch: &Watch<'_>,
) -> Result<Vec<Gradient>, Interrupt> {
    let needed = graph.needed(roots, Graph::on_state);
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
    graph: &mut Graph,
    id: Id,
    node: &Node,
    of: impl Fn(Id) -> &'a [(u32, Id)],
) -> Gradient {
    match *node {
        Node::Literal(_) | Node::Quantity(_) | Node::Time => Vec::new(),
        Node::State(i) => vec![(i, graph.one)],
        Node::Opaque(a) => of(a).to_vec(),
        Node::Slope(..) => Vec::new(),
        Node::Table(table, x) => {
            let slope = graph.add_node(Node::Slope(table, x));
            scaled(graph, slope, of(x))
        }
        Node::Linear(ref terms, _) => {
            let parts: Vec<(Id, &[(u32, Id)])> = terms.iter().map(|(c, t)| (*c, of(*t))).collect();
            combined(graph, &parts)
        }
        Node::Unary(op, _, a) if !of(a).is_empty() => {
            let outer = unary(graph, op, id, a);
            outer.map_or_else(Vec::new, |outer| scaled(graph, outer, of(a)))
        }
        Node::Unary(..) => Vec::new(),
        Node::Select(rule, c, a, b) => chosen(graph, rule, c, of(a), of(b)),
        Node::Binary(op, _, a, b) => match op {
            Binary::Add => combined(graph, &[(graph.one, of(a)), (graph.one, of(b))]),
            Binary::Subtract => {
                let minus = graph.literal(-1.0);
                combined(graph, &[(graph.one, of(a)), (minus, of(b))])
            }
            Binary::Multiply => combined(graph, &[(b, of(a)), (a, of(b))]),
            Binary::Divide => {
                let first = graph.over(graph.one, b);
                let second = quotient_by_denominator(graph, id, b, of(b));
                combined(graph, &[(first, of(a)), (second, of(b))])
            }
            Binary::Power => power(graph, id, a, b, of(a), of(b)),
            Binary::Min => {
                let less = graph.binary(Binary::Less, b, a);
                chosen(graph, Rule::Live, less, of(b), of(a))
            }
            Binary::Max => {
                let greater = graph.binary(Binary::Greater, b, a);
                chosen(graph, Rule::Live, greater, of(b), of(a))
            }
            _ => Vec::new(),
        },
    }
}

/// −(a/b)/b, only where it is used.
fn quotient_by_denominator(graph: &mut Graph, quotient: Id, b: Id, gradient: &[(u32, Id)]) -> Id {
    if gradient.is_empty() {
        return graph.zero;
    }
    let minus = graph.literal(-1.0);
    let ratio = graph.over(quotient, b);
    graph.scaled(minus, ratio)
}

/// a^b: b·a^(b−1)·a′ + a^b·ln(a)·b′.
fn power(
    graph: &mut Graph,
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
        let log = graph.unary(Unary::Ln, Rule::Live, a);
        parts.push((graph.times(id, log), of_b));
    }
    combined(graph, &parts)
}

/// The derivative of a function of one operand, by that operand; nothing where it is zero.
fn unary(graph: &mut Graph, op: Unary, id: Id, a: Id) -> Option<Id> {
    let one = graph.one;
    let square = |graph: &mut Graph, x: Id| graph.times(x, x);
    Some(match op {
        Unary::Exp => id,
        Unary::Ln => graph.over(one, a),
        Unary::Log10 => {
            let scale = graph.literal(std::f64::consts::LOG10_E);
            graph.over(scale, a)
        }
        Unary::Sqrt => {
            let half = graph.literal(0.5);
            graph.over(half, id)
        }
        Unary::Sin => graph.unary(Unary::Cos, Rule::Live, a),
        Unary::Cos => {
            let minus = graph.literal(-1.0);
            let sine = graph.unary(Unary::Sin, Rule::Live, a);
            graph.scaled(minus, sine)
        }
        Unary::Tan => {
            let s = square(graph, id);
            graph.plus(one, s)
        }
        Unary::Sinh => graph.unary(Unary::Cosh, Rule::Live, a),
        Unary::Cosh => graph.unary(Unary::Sinh, Rule::Live, a),
        Unary::Tanh => {
            let s = square(graph, id);
            graph.minus(one, s)
        }
        Unary::Asin | Unary::Acos => {
            let s = square(graph, a);
            let rest = graph.minus(one, s);
            let root = graph.unary(Unary::Sqrt, Rule::Live, rest);
            let sign = graph.literal(if op == Unary::Asin { 1.0 } else { -1.0 });
            graph.over(sign, root)
        }
        Unary::Atan => {
            let s = square(graph, a);
            let sum = graph.plus(one, s);
            graph.over(one, sum)
        }
        Unary::Not => return None,
    })
}

fn scaled(graph: &mut Graph, factor: Id, gradient: &[(u32, Id)]) -> Gradient {
    gradient
        .iter()
        .map(|(state, d)| (*state, graph.times(factor, *d)))
        .collect()
}

/// Sum of factor times gradient.
fn combined(graph: &mut Graph, parts: &[(Id, &[(u32, Id)])]) -> Gradient {
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

fn chosen(graph: &mut Graph, rule: Rule, c: Id, a: &[(u32, Id)], b: &[(u32, Id)]) -> Gradient {
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
