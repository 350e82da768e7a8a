//! Values of operations.
//!
//! What an operation makes of truths, zeros and not-a-number depends on what is known of its operands before the run: see
//! [`Rule`]. The rules are those of the genuine solver.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: operands precede their users by construction"
)]

use super::{Binary, Body, Expr, Unary};

/// How much of a value is known before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
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
pub enum Rule {
    /// Truth is what is not 0; a comparison or logic with not-a-number is not-a-number. Arithmetic is plain.
    Live,
    /// Known before the run: truth is exactly 1, a comparison with not-a-number is false, MIN and MAX then give the
    /// second operand.
    Folded,
    /// A product or quotient that is 0 where the first operand is 0, whatever the second is.
    First,
    /// A product that is 0 where either operand is 0; a quotient likewise by the inverse of its second operand.
    Either,
}

impl Rule {
    /// The rule for an operator with operands of which so much is known. In a formula that is one product as a whole a
    /// constant factor 0 makes it 0 wherever it stands.
    #[must_use]
    pub fn of(op: Binary, a: Known, b: Known, whole_product: bool) -> Self {
        match op {
            Binary::Add | Binary::Subtract | Binary::Power => Self::Live,
            Binary::Multiply if whole_product && b == Known::Constant => Self::Either,
            Binary::Multiply => Self::First,
            // The product with the reciprocal.
            Binary::Divide if b == Known::Constant => Self::First,
            Binary::Divide if whole_product && a == Known::Constant => Self::First,
            Binary::Divide => Self::Live,
            _ => Self::known(a.max(b)),
        }
    }

    /// The rule for logic where this is known of all operands.
    #[must_use]
    pub fn known(operands: Known) -> Self {
        if operands == Known::Live {
            Self::Live
        } else {
            Self::Folded
        }
    }
}

fn truth(value: bool) -> f64 {
    if value { 1.0 } else { 0.0 }
}

/// The value of a function of one operand.
#[must_use]
pub fn apply_unary(op: Unary, rule: Rule, x: f64) -> f64 {
    match op {
        Unary::Acos => x.acos(),
        Unary::Asin => x.asin(),
        Unary::Atan => x.atan(),
        Unary::Cos => x.cos(),
        Unary::Cosh => x.cosh(),
        Unary::Exp => x.exp(),
        Unary::Ln => x.ln(),
        Unary::Log10 => x.log10(),
        Unary::Not if rule == Rule::Folded => truth(x != 1.0),
        Unary::Not if x.is_nan() => f64::NAN,
        Unary::Not => truth(x == 0.0),
        Unary::Sin => x.sin(),
        Unary::Sinh => x.sinh(),
        Unary::Sqrt => x.sqrt(),
        Unary::Tan => x.tan(),
        Unary::Tanh => x.tanh(),
    }
}

/// The value of an operator or function of two operands.
#[must_use]
pub fn apply_binary(op: Binary, rule: Rule, a: f64, b: f64) -> f64 {
    match op {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => multiply(rule, a, b),
        Binary::Divide => divide(rule, a, b),
        Binary::Power => power(a, b),
        _ if rule == Rule::Folded => folded(op, a, b),
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        Binary::And => truth(a != 0.0 && b != 0.0),
        Binary::Or => truth(a != 0.0 || b != 0.0),
        _ => folded(op, a, b),
    }
}

/// Comparisons, logic and extrema of what is known before the run.
fn folded(op: Binary, a: f64, b: f64) -> f64 {
    match op {
        Binary::Less => truth(a < b),
        Binary::LessOrEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterOrEqual => truth(a >= b),
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b && !a.is_nan() && !b.is_nan()),
        Binary::And => truth(a == 1.0 && b == 1.0),
        Binary::Or => truth(a == 1.0 || b == 1.0),
        Binary::Min if a < b => a,
        Binary::Max if a > b => a,
        _ => b,
    }
}

/// A product by its rule.
#[must_use]
#[inline]
pub fn multiply(rule: Rule, a: f64, b: f64) -> f64 {
    let product = a * b;
    let zero = match rule {
        Rule::First => a == 0.0,
        Rule::Either => a == 0.0 || b == 0.0,
        Rule::Live | Rule::Folded => false,
    };
    if product.is_nan() && zero {
        0.0
    } else {
        product
    }
}

/// A quotient by its rule.
#[must_use]
#[inline]
pub fn divide(rule: Rule, a: f64, b: f64) -> f64 {
    let quotient = a / b;
    let zero = match rule {
        Rule::First => a == 0.0,
        Rule::Either => a == 0.0 || b.is_infinite(),
        Rule::Live | Rule::Folded => false,
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
pub fn apply_select(rule: Rule, c: f64, a: f64, b: f64) -> f64 {
    if c.is_nan() && rule != Rule::Folded {
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

impl Body {
    /// The value, with `argument(i)` the value behind alias `i` and whether it is a constant of the file; `scratch` is
    /// cleared and reused.
    pub fn evaluate_known(
        &self,
        scratch: &mut Vec<(f64, Known)>,
        mut argument: impl FnMut(usize) -> (f64, bool),
    ) -> f64 {
        if let Some(value) = self.as_number() {
            return value;
        }
        scratch.clear();
        for (i, node) in self.plan().iter().enumerate() {
            let entry = match *node {
                Expr::Number(value) => (value, Known::Constant),
                Expr::Argument(i) => {
                    let (value, constant) = argument(i as usize);
                    let known = if constant {
                        Known::Constant
                    } else {
                        Known::Live
                    };
                    (value, known)
                }
                Expr::Unary(op, a) => {
                    let (x, known) = scratch[a as usize];
                    let known = known.max(Known::Folded);
                    (apply_unary(op, Rule::known(known), x), known)
                }
                Expr::Binary(op, a, b) => {
                    let (a, b) = (scratch[a as usize], scratch[b as usize]);
                    binary(op, a, b, self.is_whole_product(i))
                }
                Expr::Select(c, a, b) => {
                    let [c, a, b] = [c, a, b].map(|i| scratch[i as usize]);
                    let known = c.1.max(a.1).max(b.1).max(Known::Folded);
                    (apply_select(Rule::known(known), c.0, a.0, b.0), known)
                }
            };
            scratch.push(entry);
        }
        if let Some(a) = self.negated_argument() {
            return apply_unary(Unary::Not, Rule::Live, scratch[a as usize].0);
        }
        scratch.last().map_or(f64::NAN, |value| value.0)
    }

    /// The value where every argument is live.
    pub fn evaluate(
        &self,
        scratch: &mut Vec<(f64, Known)>,
        mut argument: impl FnMut(usize) -> f64,
    ) -> f64 {
        self.evaluate_known(scratch, |i| (argument(i), false))
    }

    /// The operand in the plan, if the whole formula is `NOT` of one argument: that is never taken as known.
    #[must_use]
    pub fn negated_argument(&self) -> Option<u32> {
        match self.plan() {
            [.., Expr::Unary(Unary::Not, a)] => match self.plan().get(*a as usize) {
                Some(Expr::Argument(_)) => Some(*a),
                _ => None,
            },
            _ => None,
        }
    }
}

fn binary(op: Binary, a: (f64, Known), b: (f64, Known), whole_product: bool) -> (f64, Known) {
    let value = apply_binary(op, Rule::of(op, a.1, b.1, whole_product), a.0, b.0);
    // A constant 0 over anything ends the product that it stands in like the constant itself.
    let known = if op == Binary::Divide && a == (0.0, Known::Constant) {
        Known::Constant
    } else {
        a.1.max(b.1).max(Known::Folded)
    };
    (value, known)
}
