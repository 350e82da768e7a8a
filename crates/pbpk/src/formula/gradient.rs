//! Derivatives of operations and of whole formulas.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: operands precede their users by construction"
)]

use super::{BinaryOperation, Expr, FormulaBody, KnownExtent, UnaryOperation};

/// Returns the derivative of a function at x, if it has the value f.
#[must_use]
pub fn slope(op: UnaryOperation, x: f64, f: f64) -> f64 {
    match op {
        UnaryOperation::Acos => -1.0 / (1.0 - x * x).sqrt(),
        UnaryOperation::Asin => 1.0 / (1.0 - x * x).sqrt(),
        UnaryOperation::Atan => 1.0 / (1.0 + x * x),
        UnaryOperation::Cos => -x.sin(),
        UnaryOperation::Cosh => x.sinh(),
        UnaryOperation::Exp => f,
        UnaryOperation::Ln => 1.0 / x,
        UnaryOperation::Log10 => std::f64::consts::LOG10_E / x,
        UnaryOperation::Not => 0.0,
        UnaryOperation::Sin => x.cos(),
        UnaryOperation::Sinh => x.cosh(),
        UnaryOperation::Sqrt => 0.5 / f,
        UnaryOperation::Tan => 1.0 + f * f,
        UnaryOperation::Tanh => 1.0 - f * f,
    }
}

/// Returns the derivatives of an operator by its operands, if it has the value f. Truths do not change smoothly: 0.
#[must_use]
pub fn slopes(op: BinaryOperation, a: f64, b: f64, f: f64) -> (f64, f64) {
    match op {
        BinaryOperation::Add => (1.0, 1.0),
        BinaryOperation::Subtract => (1.0, -1.0),
        BinaryOperation::Multiply => (b, a),
        BinaryOperation::Divide => (1.0 / b, -f / b),
        BinaryOperation::Power if b == 2.0 => (2.0 * a, f * a.ln()),
        BinaryOperation::Power => (b * a.powf(b - 1.0), f * a.ln()),
        BinaryOperation::Min if a < b => (1.0, 0.0),
        BinaryOperation::Max if a > b => (1.0, 0.0),
        BinaryOperation::Min | BinaryOperation::Max => (0.0, 1.0),
        _ => (0.0, 0.0),
    }
}

impl FormulaBody {
    /// Calls `each` with the argument and the derivative by it, for every occurrence in the text; an argument may come
    /// several times. Values that are not finite are left out.
    pub fn gradient(
        &self,
        scratch: &mut Vec<(f64, KnownExtent)>,
        argument: impl Fn(usize) -> (f64, bool),
        mut each: impl FnMut(usize, f64),
    ) {
        if self.as_number().is_some() {
            return;
        }
        self.evaluate_nodes(scratch, argument);
        let plan = self.plan();
        let value = |i: u32| scratch[i as usize].0;
        let mut weights = vec![0.0; plan.len()];
        if let Some(root) = weights.last_mut() {
            *root = 1.0;
        }
        for (i, node) in plan.iter().enumerate().rev() {
            let weight = weights[i];
            if weight == 0.0 {
                continue;
            }
            let mut pass = |operand: u32, slope: f64| {
                if slope.is_finite() {
                    weights[operand as usize] += weight * slope;
                }
            };
            match *node {
                Expr::Number(_) => {}
                Expr::Argument(a) => each(a as usize, weight),
                Expr::Unary(op, a) => pass(a, slope(op, value(a), value(i as u32))),
                Expr::Binary(op, a, b) => {
                    let (by_a, by_b) = slopes(op, value(a), value(b), value(i as u32));
                    pass(a, by_a);
                    pass(b, by_b);
                }
                Expr::Select(c, a, b) => pass(if value(c) == 1.0 { a } else { b }, 1.0),
            }
        }
    }

    /// Arguments of comparisons in which one of them is `wanted`: where those are the time, all others say when the
    /// value jumps.
    #[must_use]
    pub fn compared_with(&self, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut found = Vec::new();
        for node in &self.nodes {
            let Expr::Binary(op, a, b) = *node else {
                continue;
            };
            if !op.is_comparison() {
                continue;
            }
            let mut arguments = Vec::new();
            let mut open = vec![a, b];
            while let Some(at) = open.pop() {
                match self.nodes[at as usize] {
                    Expr::Number(_) => {}
                    Expr::Argument(i) => arguments.push(i as usize),
                    Expr::Unary(_, a) => open.push(a),
                    Expr::Binary(_, a, b) => open.extend([a, b]),
                    Expr::Select(c, a, b) => open.extend([c, a, b]),
                }
            }
            if arguments.iter().any(|i| wanted(*i)) {
                found.extend(arguments.into_iter().filter(|i| !wanted(*i)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Derivatives by both arguments equal central differences.
    #[test]
    fn gradients_equal_differences() {
        let names = ["a", "b"].map(str::to_owned);
        for text in [
            "a*b/(a+b)-2*a",
            "EXP(-a)*LN(b)+SQRT(a*b)",
            "a^b+b^2+a^3",
            "SIN(a)*COS(b)+TAN(a)/ATAN(b)",
            "SINH(a)-COSH(b)*TANH(a)",
            "ASIN(a/9)+ACOS(b/9)+LOG10(a)",
            "MIN(a;b)*MAX(a;2*b)",
            "a>b ? a*a : b*b*a",
            "a/b/a*3",
            "NOT(a>b)*a",
        ] {
            let body = FormulaBody::parse(text, &names).unwrap();
            let at = |x: [f64; 2]| body.evaluate(&mut Vec::new(), |i| x[i]);
            let x = [1.3, 2.1];
            let mut found = [0.0; 2];
            body.gradient(&mut Vec::new(), |i| (x[i], false), |i, d| found[i] += d);
            for i in 0..2 {
                let (mut up, mut down) = (x, x);
                up[i] += 1e-5;
                down[i] -= 1e-5;
                let difference = (at(up) - at(down)) / 2e-5;
                assert!(
                    (found[i] - difference).abs() < 1e-8 * (1.0 + difference.abs()),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn comparisons_with_the_time_are_found() {
        let names = ["t", "start", "dose", "other"].map(str::to_owned);
        let body = FormulaBody::parse("(t-start>=0 AND other<2) ? dose : 0", &names).unwrap();
        assert_eq!(body.compared_with(|i| i == 0), [1]);
    }
}
