//! Values of operations: truth is exactly 1, and not-a-number in a condition stays not-a-number.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: operands precede their users by construction"
)]

use super::{Binary, Body, Expr, Unary};

fn truth(value: bool) -> f64 {
    if value { 1.0 } else { 0.0 }
}

/// The value of a function of one operand.
#[must_use]
pub fn apply_unary(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Acos => x.acos(),
        Unary::Asin => x.asin(),
        Unary::Atan => x.atan(),
        Unary::Cos => x.cos(),
        Unary::Cosh => x.cosh(),
        Unary::Exp => x.exp(),
        Unary::Ln => x.ln(),
        Unary::Log10 => x.log10(),
        Unary::Not if x.is_nan() => f64::NAN,
        Unary::Not => truth(x != 1.0),
        Unary::Sin => x.sin(),
        Unary::Sinh => x.sinh(),
        Unary::Sqrt => x.sqrt(),
        Unary::Tan => x.tan(),
        Unary::Tanh => x.tanh(),
    }
}

/// The value of an operator or function of two operands.
#[must_use]
pub fn apply_binary(op: Binary, a: f64, b: f64) -> f64 {
    match op {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Power => power(a, b),
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        Binary::Less => truth(a < b),
        Binary::LessOrEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterOrEqual => truth(a >= b),
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        Binary::And => truth(a == 1.0 && b == 1.0),
        Binary::Or => truth(a == 1.0 || b == 1.0),
        Binary::Min => {
            if b < a {
                b
            } else {
                a
            }
        }
        Binary::Max => {
            if b > a {
                b
            } else {
                a
            }
        }
    }
}

/// `c ? a : b`; a condition that is not a number gives not-a-number.
#[must_use]
pub fn apply_select(c: f64, a: f64, b: f64) -> f64 {
    if c.is_nan() {
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
    /// The value, with `argument(i)` the value behind alias `i`; `scratch` is cleared and reused.
    pub fn evaluate(&self, scratch: &mut Vec<f64>, mut argument: impl FnMut(usize) -> f64) -> f64 {
        if let Some(value) = self.as_number() {
            return value;
        }
        scratch.clear();
        for node in &self.nodes {
            let value = match *node {
                Expr::Number(value) => value,
                Expr::Argument(i) => argument(i as usize),
                Expr::Unary(op, a) => apply_unary(op, scratch[a as usize]),
                Expr::Binary(op, a, b) => {
                    apply_binary(op, scratch[a as usize], scratch[b as usize])
                }
                Expr::Select(c, a, b) => apply_select(
                    scratch[c as usize],
                    scratch[a as usize],
                    scratch[b as usize],
                ),
            };
            scratch.push(value);
        }
        scratch.last().copied().unwrap_or(f64::NAN)
    }
}
