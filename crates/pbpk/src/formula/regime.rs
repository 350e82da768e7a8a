//! The three ways in which the genuine solver takes a formula.
//!
//! A formula that lists nothing but constants of the file is computed once, by the rules of a run. A formula that is 0
//! for all values of its live arguments is 0. In every other formula the parts made of constants are folded first, by
//! the rules of [`super::OperationRule::Folded`].
#![expect(
    clippy::indexing_slicing,
    reason = "operands precede their users by construction"
)]

use super::{
    BinaryOperation, Expr, FormulaBody, OperationRule, UnaryOperation, apply_binary, apply_unary,
};

/// How the genuine solver takes a formula as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormulaRegime {
    /// Every alias is a constant of the file: computed once, by the rules of a run.
    Constant,
    /// A constant makes the formula 0, for any rest.
    Zero,
    /// Parts made of constants are folded, the rest is live.
    Mixed,
}

/// Knowledge of a node before the run.
#[derive(Debug, Clone, Copy, Default)]
struct KnownNode {
    /// The number of a constant or of a part made of numbers of the text alone.
    number: Option<f64>,
    /// The node is made of numbers of the text alone.
    literal: bool,
    zero: bool,
}

impl KnownNode {
    fn literal(value: f64) -> Self {
        Self {
            number: Some(value),
            literal: true,
            zero: value == 0.0,
        }
    }

    fn zero(zero: bool) -> Self {
        Self {
            zero,
            ..Self::default()
        }
    }
}

impl FormulaBody {
    /// Returns the regime of the formula; `constant(i)` is the number behind alias `i` if that is a constant of the
    /// file.
    #[must_use]
    pub fn regime(&self, constant: impl Fn(usize) -> Option<f64>) -> FormulaRegime {
        if (0..self.aliases.len()).all(|i| constant(i).is_some()) {
            FormulaRegime::Constant
        } else if self.is_zero(constant) {
            FormulaRegime::Zero
        } else {
            FormulaRegime::Mixed
        }
    }

    /// Returns whether constants of the file may make the formula 0 by more than being a factor of it.
    #[must_use]
    pub fn may_be_zero(&self, constant: impl Fn(usize) -> bool) -> bool {
        let plan = self.plan();
        let is_known = |i: u32| match plan[i as usize] {
            Expr::Number(_) => true,
            Expr::Argument(a) => constant(a as usize),
            _ => false,
        };
        // Of each node whether it may be 0, and whether that takes more than a factor.
        let mut known: Vec<(bool, bool)> = Vec::with_capacity(plan.len());
        for node in plan {
            let at = |i: u32| known[i as usize];
            known.push(match *node {
                Expr::Number(value) => (value == 0.0, false),
                Expr::Argument(a) => (constant(a as usize), false),
                Expr::Unary(UnaryOperation::Not, a) => (is_known(a), is_known(a)),
                Expr::Unary(..) | Expr::Binary(BinaryOperation::Power, ..) => (false, false),
                Expr::Binary(BinaryOperation::Multiply, a, b) => {
                    let more = at(a) == (true, true) || at(b) == (true, true);
                    (at(a).0 || at(b).0, more)
                }
                Expr::Binary(BinaryOperation::Divide, a, _) => at(a),
                Expr::Binary(BinaryOperation::Add, a, b) => {
                    (at(a).0 && at(b).0, at(a).0 && at(b).0)
                }
                Expr::Binary(BinaryOperation::And, a, b) => {
                    let any = is_known(a) || is_known(b);
                    (any, any)
                }
                Expr::Binary(_, a, b) => {
                    let both = is_known(a) && is_known(b);
                    (both, both)
                }
                Expr::Select(..) => (true, true),
            });
        }
        known.last() == Some(&(true, true))
    }

    /// Returns whether the formula is 0 for all values of the arguments that are not constants.
    fn is_zero(&self, constant: impl Fn(usize) -> Option<f64>) -> bool {
        let plan = self.plan();
        let may_be = matches!(
            plan.last(),
            Some(Expr::Unary(UnaryOperation::Not, _) | Expr::Binary(..) | Expr::Select(..))
        );
        if !may_be {
            return false;
        }
        let mut known: Vec<KnownNode> = Vec::with_capacity(plan.len());
        for node in plan {
            let at = |i: u32| known[i as usize];
            known.push(match *node {
                Expr::Number(value) => KnownNode::literal(value),
                Expr::Argument(i) => {
                    let number = constant(i as usize);
                    KnownNode {
                        number,
                        literal: false,
                        zero: number == Some(0.0),
                    }
                }
                Expr::Unary(op, a) => unary(op, at(a)),
                Expr::Binary(op, a, b) => binary(op, at(a), at(b)),
                Expr::Select(c, a, b) => KnownNode::zero(match at(c).number {
                    Some(1.0) => at(a).zero,
                    Some(_) => at(b).zero,
                    None => at(a).zero && at(b).zero,
                }),
            });
        }
        known.last().is_some_and(|node| node.zero)
    }
}

fn unary(op: UnaryOperation, a: KnownNode) -> KnownNode {
    match a.number {
        Some(x) if a.literal => KnownNode::literal(apply_unary(op, OperationRule::Folded, x)),
        Some(x) if op == UnaryOperation::Not => {
            KnownNode::zero(apply_unary(op, OperationRule::Live, x) == 0.0)
        }
        _ => KnownNode::default(),
    }
}

fn binary(op: BinaryOperation, a: KnownNode, b: KnownNode) -> KnownNode {
    let both = a.number.zip(b.number);
    if let Some((x, y)) = both
        && a.literal
        && b.literal
    {
        return KnownNode::literal(apply_binary(op, OperationRule::Folded, x, y));
    }
    KnownNode::zero(match op {
        BinaryOperation::Add => a.zero && b.zero,
        // The text's own number is added with the other sign.
        BinaryOperation::Subtract if b.literal => a.zero && b.zero,
        BinaryOperation::Multiply => a.zero || b.zero,
        BinaryOperation::Divide => a.zero || b.literal && b.number.is_some_and(f64::is_infinite),
        BinaryOperation::Power => false,
        BinaryOperation::And => a.number == Some(0.0) || b.number == Some(0.0),
        _ => both.is_some_and(|(x, y)| apply_binary(op, OperationRule::Live, x, y) == 0.0),
    })
}
