//! Values of operations.
//!
//! What an operation makes of truths, zeros and not-a-number depends on what is known of its operands before the run: see
//! [`Rule`]. The rules are those of the genuine solver.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: operands precede their users by construction"
)]

use super::{Binary, Body, Expr, Regime, Unary};

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
    /// Returns the rule for an operator with operands of which so much is known. In a formula that is one product as a
    /// whole a constant factor 0 makes it 0 wherever it stands; elsewhere constants are multiplied and divided plainly.
    #[must_use]
    pub fn of(op: Binary, a: Known, b: Known, whole_product: bool) -> Self {
        let folded = a != Known::Live && b != Known::Live;
        match op {
            Binary::Add | Binary::Subtract | Binary::Power => Self::Live,
            Binary::Multiply if whole_product && folded => {
                if a == Known::Constant || b == Known::Constant {
                    Self::Either
                } else {
                    Self::Live
                }
            }
            Binary::Multiply if whole_product && b == Known::Constant => Self::Either,
            Binary::Multiply if folded => Self::Live,
            Binary::Multiply => Self::First,
            Binary::Divide if whole_product && a == Known::Constant => Self::First,
            Binary::Divide if folded => Self::Live,
            // The product with the reciprocal.
            Binary::Divide if b == Known::Constant => Self::First,
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
        Binary::Less => truth(a < b),
        Binary::LessOrEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterOrEqual => truth(a >= b),
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        _ => folded(op, a, b),
    }
}

/// Comparisons, logic and extrema of what is known before the run. Numbers are compared by their difference, so that an
/// infinity equals nothing.
fn folded(op: Binary, a: f64, b: f64) -> f64 {
    let difference = a - b;
    match op {
        Binary::Less => truth(difference < 0.0),
        Binary::LessOrEqual => truth(difference <= 0.0),
        Binary::Greater => truth(difference > 0.0),
        Binary::GreaterOrEqual => truth(difference >= 0.0),
        Binary::Equal => truth(difference == 0.0),
        Binary::NotEqual => truth(difference != 0.0 && !difference.is_nan()),
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
    /// Returns the value, with `argument(i)` the value behind alias `i` and whether it is a constant of the file;
    /// `scratch` is cleared and reused.
    pub fn evaluate_known(
        &self,
        scratch: &mut Vec<(f64, Known)>,
        argument: impl Fn(usize) -> (f64, bool),
    ) -> f64 {
        if let Some(value) = self.as_number() {
            return value;
        }
        match self.regime_of(&argument) {
            Regime::Zero => 0.0,
            regime => self.evaluate_plan(scratch, regime, argument),
        }
    }

    fn regime_of(&self, argument: impl Fn(usize) -> (f64, bool)) -> Regime {
        self.regime(|i| {
            let (value, constant) = argument(i);
            constant.then_some(value)
        })
    }

    /// Fills `scratch` with the value of every node of the plan and returns the last one.
    pub(super) fn evaluate_nodes(
        &self,
        scratch: &mut Vec<(f64, Known)>,
        argument: impl Fn(usize) -> (f64, bool),
    ) -> f64 {
        self.evaluate_plan(scratch, self.regime_of(&argument), argument)
    }

    fn evaluate_plan(
        &self,
        scratch: &mut Vec<(f64, Known)>,
        regime: Regime,
        argument: impl Fn(usize) -> (f64, bool),
    ) -> f64 {
        scratch.clear();
        for node in self.plan() {
            let entry = match *node {
                Expr::Number(value) => (value, Known::Constant),
                Expr::Argument(i) => {
                    let (value, constant) = argument(i as usize);
                    let known = if constant && regime != Regime::Constant {
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
                    let known = a.1.max(b.1).max(Known::Folded);
                    (
                        apply_binary(op, Rule::of(op, a.1, b.1, false), a.0, b.0),
                        known,
                    )
                }
                Expr::Select(c, a, b) => {
                    let [c, a, b] = [c, a, b].map(|i| scratch[i as usize]);
                    let known = c.1.max(a.1).max(b.1).max(Known::Folded);
                    let rule = Rule::known(c.1.max(b.1));
                    (apply_select(rule, c.0, a.0, b.0), known)
                }
            };
            scratch.push(entry);
        }
        scratch.last().map_or(f64::NAN, |value| value.0)
    }

    /// The value where every argument is live.
    pub fn evaluate(
        &self,
        scratch: &mut Vec<(f64, Known)>,
        argument: impl Fn(usize) -> f64,
    ) -> f64 {
        self.evaluate_known(scratch, |i| (argument(i), false))
    }
}
