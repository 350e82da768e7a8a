//! Sums and products in normal form: constant parts are gathered into coefficients, computed once per individual.
//!
//! A coefficient of 0 makes any term 0: so does a constant factor 0 of the genuine solver. No quotient is cancelled.
#![expect(
    clippy::indexing_slicing,
    reason = "graph kernel: node numbers of one graph"
)]

use super::graph::{ExpressionGraph, GraphNode, Id};
use crate::formula::{BinaryOperation, OperationRule};

/// Longer sums are computed once and used whole instead of being copied into every user.
const INLINE_TERMS_MAX: usize = 8;

/// A varying value as coefficient times node.
struct Monomial {
    coefficient: Id,
    term: Id,
}

impl ExpressionGraph {
    /// Terms and constant of a node seen as a sum.
    pub(super) fn parts(&self, id: Id) -> (Vec<(Id, Id)>, Id) {
        if !self.varies(id) {
            return (Vec::new(), id);
        }
        match self.node(id) {
            GraphNode::Linear(terms, constant) => (terms.to_vec(), *constant),
            _ => (vec![(self.one, id)], self.zero),
        }
    }

    /// Adds the terms and the constant of a node to a growing sum.
    pub(super) fn gather(&mut self, id: Id, terms: &mut Vec<(Id, Id)>, constant: &mut Id) {
        let (more, other) = self.parts(id);
        terms.extend(more);
        *constant = self.binary(BinaryOperation::Add, *constant, other);
    }

    fn monomial(&self, id: Id) -> Monomial {
        match self.node(id) {
            GraphNode::Linear(terms, constant) if terms.len() == 1 && *constant == self.zero => {
                Monomial {
                    coefficient: terms[0].0,
                    term: terms[0].1,
                }
            }
            _ => Monomial {
                coefficient: self.one,
                term: id,
            },
        }
    }

    /// Returns the sum of these terms and a constant, in normal form.
    pub(super) fn linear(&mut self, mut terms: Vec<(Id, Id)>, constant: Id) -> Id {
        if let [(coefficient, term)] = *terms.as_slice() {
            if coefficient == self.zero {
                return constant;
            }
            if coefficient == self.one && constant == self.zero {
                return term;
            }
            return self.add_node(GraphNode::Linear(terms.into_boxed_slice(), constant));
        }
        terms.sort_by_key(|t| t.1);
        let mut merged: Vec<(Id, Id)> = Vec::with_capacity(terms.len());
        for (coefficient, term) in terms {
            match merged.last_mut() {
                Some(last) if last.1 == term => {
                    last.0 = self.binary(BinaryOperation::Add, last.0, coefficient)
                }
                _ => merged.push((coefficient, term)),
            }
        }
        let zero = self.zero;
        merged.retain(|t| t.0 != zero);
        match merged.as_slice() {
            [] => constant,
            [(coefficient, term)] if *coefficient == self.one && constant == self.zero => *term,
            _ => self.add_node(GraphNode::Linear(merged.into_boxed_slice(), constant)),
        }
    }

    pub(super) fn plus(&mut self, a: Id, b: Id) -> Id {
        if !self.varies(a) && !self.varies(b) {
            return self.binary(BinaryOperation::Add, a, b);
        }
        let (mut terms, constant) = self.parts(a);
        let (more, other) = self.parts(b);
        terms.extend(more);
        let constant = self.binary(BinaryOperation::Add, constant, other);
        self.linear(terms, constant)
    }

    pub(super) fn minus(&mut self, a: Id, b: Id) -> Id {
        if !self.varies(a) && !self.varies(b) {
            return self.binary(BinaryOperation::Subtract, a, b);
        }
        let minus_one = self.literal(-1.0);
        let negated = self.scaled(minus_one, b);
        self.plus(a, negated)
    }

    /// Returns a value that does not vary, times any value.
    pub(super) fn scaled(&mut self, factor: Id, id: Id) -> Id {
        if !self.varies(id) {
            return self.folded_product(factor, id);
        }
        if factor == self.one {
            return id;
        }
        if !matches!(self.node(id), GraphNode::Linear(..)) {
            let factor = self.folded_product(factor, self.one);
            return self.linear(vec![(factor, id)], self.zero);
        }
        let (terms, constant) = self.parts(id);
        if terms.len() > INLINE_TERMS_MAX {
            let whole = self.add_node(GraphNode::Opaque(id));
            return self.linear(vec![(factor, whole)], self.zero);
        }
        let scaled = terms
            .into_iter()
            .map(|(c, t)| (self.folded_product(factor, c), t))
            .collect();
        let constant = if constant == self.zero {
            constant
        } else {
            self.folded_product(factor, constant)
        };
        self.linear(scaled, constant)
    }

    pub(super) fn times(&mut self, a: Id, b: Id) -> Id {
        if !self.varies(a) {
            return self.scaled(a, b);
        }
        if !self.varies(b) {
            return self.scaled(b, a);
        }
        let (x, y) = (self.monomial(a), self.monomial(b));
        let coefficient = self.folded_product(x.coefficient, y.coefficient);
        let product = self.ruled(
            BinaryOperation::Multiply,
            OperationRule::First,
            x.term,
            y.term,
        );
        self.scaled(coefficient, product)
    }

    pub(super) fn over(&mut self, a: Id, b: Id) -> Id {
        if !self.varies(b) {
            if !self.varies(a) {
                return self.ruled(BinaryOperation::Divide, OperationRule::Either, a, b);
            }
            let inverse = self.binary(BinaryOperation::Divide, self.one, b);
            return self.scaled(inverse, a);
        }
        let y = self.monomial(b);
        if !self.varies(a) {
            let coefficient = self.ruled(
                BinaryOperation::Divide,
                OperationRule::Either,
                a,
                y.coefficient,
            );
            let inverse = self.binary(BinaryOperation::Divide, self.one, y.term);
            return self.scaled(coefficient, inverse);
        }
        let x = self.monomial(a);
        let coefficient = self.ruled(
            BinaryOperation::Divide,
            OperationRule::Either,
            x.coefficient,
            y.coefficient,
        );
        let quotient = self.binary(BinaryOperation::Divide, x.term, y.term);
        self.scaled(coefficient, quotient)
    }

    /// Small whole powers as products.
    pub(super) fn power(&mut self, a: Id, b: Id) -> Id {
        if !self.varies(a) && !self.varies(b) {
            return self.binary(BinaryOperation::Power, a, b);
        }
        match self.value_of(b) {
            Some(1.0) => a,
            Some(2.0) => self.times(a, a),
            Some(3.0) => {
                let square = self.times(a, a);
                self.times(square, a)
            }
            Some(4.0) => {
                let square = self.times(a, a);
                self.times(square, square)
            }
            Some(-1.0) => self.over(self.one, a),
            _ => self.binary(BinaryOperation::Power, a, b),
        }
    }

    /// `c ? a : b`; if the condition does not vary and both values are sums over states, the choice moves into the
    /// coefficients.
    pub(super) fn choose(&mut self, rule: OperationRule, c: Id, a: Id, b: Id) -> Id {
        let plain = |graph: &Self, id: Id| {
            let (terms, _) = graph.parts(id);
            terms.len() <= INLINE_TERMS_MAX
                && terms
                    .iter()
                    .all(|(_, t)| matches!(graph.node(*t), GraphNode::State(_)))
        };
        let movable =
            !self.varies(c) && self.value_of(c).is_none() && (self.varies(a) || self.varies(b));
        if !movable || !plain(self, a) || !plain(self, b) {
            return self.select(rule, c, a, b);
        }
        let ((left, left_constant), (right, right_constant)) = (self.parts(a), self.parts(b));
        let mut terms = Vec::new();
        for &(coefficient, term) in &left {
            let other = right
                .iter()
                .find(|t| t.1 == term)
                .map_or(self.zero, |t| t.0);
            terms.push((self.select(rule, c, coefficient, other), term));
        }
        for &(coefficient, term) in right.iter().filter(|r| !left.iter().any(|l| l.1 == r.1)) {
            terms.push((self.select(rule, c, self.zero, coefficient), term));
        }
        let constant = if left_constant == right_constant {
            left_constant
        } else {
            self.select(rule, c, left_constant, right_constant)
        };
        self.linear(terms, constant)
    }

    /// Returns the same value as one node if its sum is long, so that users share it.
    pub(super) fn seal_sum(&mut self, id: Id) -> Id {
        match self.node(id) {
            GraphNode::Linear(terms, _) if terms.len() > INLINE_TERMS_MAX => {
                self.add_node(GraphNode::Opaque(id))
            }
            _ => id,
        }
    }
}
