//! Values of operations.
//!
//! What an operation makes of truths, zeros and not-a-number depends on what is known of its operands before the run:
//! see [`OperationRule`]. The rules are those of the genuine solver.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: operands precede their users by construction"
)]

use super::{BinaryOperation, Expr, FormulaBody, FormulaRegime, UnaryOperation};

/// How much of a value is known before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnownExtent {
    /// A number in the text, or a constant of the file: neither time nor state nor anything that an event or the user
    /// changes.
    Constant,
    /// An operation on such alone.
    Folded,
    /// Everything else.
    Live,
}

/// How an operation treats truths, zeros and not-a-number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationRule {
    /// Truth is what is not 0; a comparison or logic with not-a-number is not-a-number. Arithmetic is plain.
    Live,
    /// Known before the run: truth is exactly 1, a comparison with not-a-number is false, MIN and MAX then give the
    /// second operand.
    Folded,
    /// A product or quotient that is 0 if the first operand is 0, for any second operand.
    First,
    /// A product that is 0 where either operand is 0; a quotient likewise by the inverse of its second operand.
    Either,
}

impl OperationRule {
    /// Returns the rule for an operator with operands of which so much is known. In a formula that is one product as a
    /// whole a constant factor 0 makes it 0 at any position; elsewhere constants are multiplied and divided plainly.
    #[must_use]
    pub fn of(op: BinaryOperation, a: KnownExtent, b: KnownExtent, whole_product: bool) -> Self {
        let folded = a != KnownExtent::Live && b != KnownExtent::Live;
        match op {
            BinaryOperation::Add | BinaryOperation::Subtract | BinaryOperation::Power => Self::Live,
            BinaryOperation::Multiply if whole_product && folded => {
                if a == KnownExtent::Constant || b == KnownExtent::Constant {
                    Self::Either
                } else {
                    Self::Live
                }
            }
            BinaryOperation::Multiply if whole_product && b == KnownExtent::Constant => {
                Self::Either
            }
            BinaryOperation::Multiply if folded => Self::Live,
            BinaryOperation::Multiply => Self::First,
            BinaryOperation::Divide if whole_product && a == KnownExtent::Constant => Self::First,
            BinaryOperation::Divide if folded => Self::Live,
            // The product with the reciprocal.
            BinaryOperation::Divide if b == KnownExtent::Constant => Self::First,
            BinaryOperation::Divide => Self::Live,
            _ => Self::rule_for(a.max(b)),
        }
    }

    /// Returns the rule for logic where this is known of all operands.
    #[must_use]
    pub fn rule_for(operands: KnownExtent) -> Self {
        if operands == KnownExtent::Live {
            Self::Live
        } else {
            Self::Folded
        }
    }
}

fn truth(value: bool) -> f64 {
    if value { 1.0 } else { 0.0 }
}

/// Returns the value of a function of one operand.
#[must_use]
pub fn apply_unary(op: UnaryOperation, rule: OperationRule, x: f64) -> f64 {
    match op {
        UnaryOperation::Acos => x.acos(),
        UnaryOperation::Asin => x.asin(),
        UnaryOperation::Atan => x.atan(),
        UnaryOperation::Cos => x.cos(),
        UnaryOperation::Cosh => x.cosh(),
        UnaryOperation::Exp => x.exp(),
        UnaryOperation::Ln => x.ln(),
        UnaryOperation::Log10 => x.log10(),
        UnaryOperation::Not if rule == OperationRule::Folded => truth(x != 1.0),
        UnaryOperation::Not if x.is_nan() => f64::NAN,
        UnaryOperation::Not => truth(x == 0.0),
        UnaryOperation::Sin => x.sin(),
        UnaryOperation::Sinh => x.sinh(),
        UnaryOperation::Sqrt => x.sqrt(),
        UnaryOperation::Tan => x.tan(),
        UnaryOperation::Tanh => x.tanh(),
    }
}

/// Returns the value of an operator or function of two operands.
#[must_use]
pub fn apply_binary(op: BinaryOperation, rule: OperationRule, a: f64, b: f64) -> f64 {
    match op {
        BinaryOperation::Add => a + b,
        BinaryOperation::Subtract => a - b,
        BinaryOperation::Multiply => multiply(rule, a, b),
        BinaryOperation::Divide => divide(rule, a, b),
        BinaryOperation::Power => power(a, b),
        _ if rule == OperationRule::Folded => fold_binary(op, a, b),
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        BinaryOperation::And => truth(a != 0.0 && b != 0.0),
        BinaryOperation::Or => truth(a != 0.0 || b != 0.0),
        BinaryOperation::Less => truth(a < b),
        BinaryOperation::LessOrEqual => truth(a <= b),
        BinaryOperation::Greater => truth(a > b),
        BinaryOperation::GreaterOrEqual => truth(a >= b),
        BinaryOperation::Equal => truth(a == b),
        BinaryOperation::NotEqual => truth(a != b),
        _ => fold_binary(op, a, b),
    }
}

/// Comparisons, logic and extrema of what is known before the run. Numbers are compared by their difference, so that an
/// infinity equals nothing.
fn fold_binary(op: BinaryOperation, a: f64, b: f64) -> f64 {
    let difference = a - b;
    match op {
        BinaryOperation::Less => truth(difference < 0.0),
        BinaryOperation::LessOrEqual => truth(difference <= 0.0),
        BinaryOperation::Greater => truth(difference > 0.0),
        BinaryOperation::GreaterOrEqual => truth(difference >= 0.0),
        BinaryOperation::Equal => truth(difference == 0.0),
        BinaryOperation::NotEqual => truth(difference != 0.0 && !difference.is_nan()),
        BinaryOperation::And => truth(a == 1.0 && b == 1.0),
        BinaryOperation::Or => truth(a == 1.0 || b == 1.0),
        BinaryOperation::Min if a < b => a,
        BinaryOperation::Max if a > b => a,
        _ => b,
    }
}

/// Returns a product by its rule.
#[must_use]
#[inline]
pub fn multiply(rule: OperationRule, a: f64, b: f64) -> f64 {
    let product = a * b;
    let zero = match rule {
        OperationRule::First => a == 0.0,
        OperationRule::Either => a == 0.0 || b == 0.0,
        OperationRule::Live | OperationRule::Folded => false,
    };
    if product.is_nan() && zero {
        0.0
    } else {
        product
    }
}

/// Returns a quotient by its rule.
#[must_use]
#[inline]
pub fn divide(rule: OperationRule, a: f64, b: f64) -> f64 {
    let quotient = a / b;
    let zero = match rule {
        OperationRule::First => a == 0.0,
        OperationRule::Either => a == 0.0 || b.is_infinite(),
        OperationRule::Live | OperationRule::Folded => false,
    };
    if quotient.is_nan() && zero {
        0.0
    } else {
        quotient
    }
}

/// `c ? a : b`; true is exactly 1. A condition that is not a number gives not-a-number, and known before the run `b`.
#[must_use]
#[inline]
pub fn apply_select(rule: OperationRule, c: f64, a: f64, b: f64) -> f64 {
    if c.is_nan() && rule != OperationRule::Folded {
        f64::NAN
    } else if c == 1.0 {
        a
    } else {
        b
    }
}

/// Small whole powers are by far the commonest and need no logarithm.
fn power(a: f64, b: f64) -> f64 {
    if b == 2.0 {
        a * a
    } else if b == 1.0 {
        a
    } else {
        a.powf(b)
    }
}

impl FormulaBody {
    /// Returns the value, with `argument(i)` the value behind alias `i` and whether it is a constant of the file;
    /// `scratch` is cleared and reused.
    pub fn evaluate_known(
        &self,
        scratch: &mut Vec<(f64, KnownExtent)>,
        argument: impl Fn(usize) -> (f64, bool),
    ) -> f64 {
        if let Some(value) = self.as_number() {
            return value;
        }
        match self.regime_of(&argument) {
            FormulaRegime::Zero => 0.0,
            regime => self.evaluate_plan(scratch, regime, argument),
        }
    }

    fn regime_of(&self, argument: impl Fn(usize) -> (f64, bool)) -> FormulaRegime {
        self.regime(|i| {
            let (value, constant) = argument(i);
            constant.then_some(value)
        })
    }

    /// Fills `scratch` with the value of every node of the plan and returns the last one.
    pub(super) fn evaluate_nodes(
        &self,
        scratch: &mut Vec<(f64, KnownExtent)>,
        argument: impl Fn(usize) -> (f64, bool),
    ) -> f64 {
        self.evaluate_plan(scratch, self.regime_of(&argument), argument)
    }

    fn evaluate_plan(
        &self,
        scratch: &mut Vec<(f64, KnownExtent)>,
        regime: FormulaRegime,
        argument: impl Fn(usize) -> (f64, bool),
    ) -> f64 {
        scratch.clear();
        for node in self.plan() {
            let entry = match *node {
                Expr::Number(value) => (value, KnownExtent::Constant),
                Expr::Argument(i) => {
                    let (value, constant) = argument(i as usize);
                    let known = if constant && regime != FormulaRegime::Constant {
                        KnownExtent::Constant
                    } else {
                        KnownExtent::Live
                    };
                    (value, known)
                }
                Expr::Unary(op, a) => {
                    let (x, known) = scratch[a as usize];
                    let known = known.max(KnownExtent::Folded);
                    (apply_unary(op, OperationRule::rule_for(known), x), known)
                }
                Expr::Binary(op, a, b) => {
                    let (a, b) = (scratch[a as usize], scratch[b as usize]);
                    let known = a.1.max(b.1).max(KnownExtent::Folded);
                    (
                        apply_binary(op, OperationRule::of(op, a.1, b.1, false), a.0, b.0),
                        known,
                    )
                }
                Expr::Select(c, a, b) => {
                    let [c, a, b] = [c, a, b].map(|i| scratch[i as usize]);
                    let known = c.1.max(a.1).max(b.1).max(KnownExtent::Folded);
                    let rule = OperationRule::rule_for(c.1.max(b.1));
                    (apply_select(rule, c.0, a.0, b.0), known)
                }
            };
            scratch.push(entry);
        }
        scratch.last().map_or(f64::NAN, |value| value.0)
    }

    /// Returns the value where every argument is live.
    pub fn evaluate(
        &self,
        scratch: &mut Vec<(f64, KnownExtent)>,
        argument: impl Fn(usize) -> f64,
    ) -> f64 {
        self.evaluate_known(scratch, |i| (argument(i), false))
    }
}
