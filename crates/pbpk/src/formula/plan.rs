//! Products in the order in which the genuine solver multiplies them.
//!
//! A chain of factors is multiplied from left to right; the numbers of the text are first multiplied among themselves,
//! at the position of the first. `a*b/c` is a·(b/c), `a/b/c` is a/(b·c).
#![expect(
    clippy::indexing_slicing,
    reason = "operands precede their users by construction"
)]

use super::body::to_u32;
use super::{BinaryOperation, Expr};

/// One factor: a node of the plan (or 1) over the product of others.
#[derive(Debug, Clone, Default)]
struct PlanFactor {
    above: Option<u32>,
    below: Vec<u32>,
}

/// A product under way.
#[derive(Debug, Clone, Default)]
struct ProductChain {
    /// Product of the numbers in the text, and the number of factors before it.
    number: Option<(f64, usize)>,
    factors: Vec<PlanFactor>,
}

enum PlanForm {
    Node(u32),
    Chain(ProductChain),
}

struct EvaluationPlan {
    nodes: Vec<Expr>,
}

/// Returns the nodes of a body with its products in order.
pub(super) fn plan(nodes: &[Expr]) -> Vec<Expr> {
    let in_order = |node: &Expr| {
        !matches!(
            node,
            Expr::Binary(BinaryOperation::Multiply | BinaryOperation::Divide, ..)
        )
    };
    if nodes.iter().all(in_order) {
        return nodes.to_vec();
    }
    let mut plan = EvaluationPlan {
        nodes: Vec::with_capacity(nodes.len()),
    };
    let mut forms: Vec<Option<PlanForm>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let mut take = |i: u32| forms[i as usize].take().unwrap_or(PlanForm::Node(i));
        let form = match *node {
            Expr::Number(value) => PlanForm::Chain(ProductChain {
                number: Some((value, 0)),
                factors: Vec::new(),
            }),
            Expr::Argument(_) => PlanForm::Node(plan.push(*node)),
            Expr::Binary(BinaryOperation::Multiply, a, b) => times(take(a), take(b)),
            Expr::Binary(BinaryOperation::Divide, a, b) => {
                let (a, b) = (take(a), take(b));
                plan.over(a, b)
            }
            Expr::Unary(op, a) => {
                let a = take(a);
                let a = plan.settle(a);
                PlanForm::Node(plan.push(Expr::Unary(op, a)))
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (take(a), take(b));
                let (a, b) = (plan.settle(a), plan.settle(b));
                PlanForm::Node(plan.push(Expr::Binary(op, a, b)))
            }
            Expr::Select(c, a, b) => {
                let (c, a, b) = (take(c), take(a), take(b));
                let (c, a, b) = (plan.settle(c), plan.settle(a), plan.settle(b));
                PlanForm::Node(plan.push(Expr::Select(c, a, b)))
            }
        };
        forms.push(Some(form));
    }
    if let Some(root) = forms.pop().flatten() {
        plan.settle(root);
    }
    plan.nodes
}

fn chain(form: PlanForm) -> ProductChain {
    match form {
        PlanForm::Chain(chain) => chain,
        PlanForm::Node(node) => ProductChain {
            number: None,
            factors: vec![PlanFactor {
                above: Some(node),
                below: Vec::new(),
            }],
        },
    }
}

fn times(a: PlanForm, b: PlanForm) -> PlanForm {
    let (mut a, b) = (chain(a), chain(b));
    a.number = match (a.number, b.number) {
        (Some((x, at)), Some((y, _))) => Some((x * y, at)),
        (Some(number), None) => Some(number),
        (None, number) => number.map(|(y, at)| (y, a.factors.len() + at)),
    };
    a.factors.extend(b.factors);
    PlanForm::Chain(a)
}

/// Which nodes of a plan are products and quotients of a formula that is one product as a whole.
pub(super) fn whole_product(plan: &[Expr]) -> Vec<bool> {
    let mut of_root = vec![false; plan.len()];
    let mut open: Vec<usize> = plan.len().checked_sub(1).into_iter().collect();
    while let Some(node) = open.pop() {
        match plan[node] {
            Expr::Binary(BinaryOperation::Multiply, a, b) => open.extend([a as usize, b as usize]),
            Expr::Binary(BinaryOperation::Divide, a, _) => open.push(a as usize),
            _ => continue,
        }
        of_root[node] = true;
    }
    of_root
}

impl EvaluationPlan {
    fn push(&mut self, node: Expr) -> u32 {
        self.nodes.push(node);
        to_u32(self.nodes.len() - 1)
    }

    fn over(&mut self, a: PlanForm, b: PlanForm) -> PlanForm {
        let mut a = chain(a);
        if let PlanForm::Chain(ProductChain {
            number: Some((divisor, _)),
            factors,
        }) = &b
            && factors.is_empty()
        {
            // The exact quotient if it exists; a number over zero is its product with infinity.
            let (number, at) = a.number.unwrap_or((1.0, a.factors.len()));
            if a.factors.is_empty() {
                a.number = Some((number / divisor, at));
                return PlanForm::Chain(a);
            }
            if *divisor == 0.0 || !divisor.is_finite() {
                a.number = Some((number * (1.0 / divisor), at));
                return PlanForm::Chain(a);
            }
        }
        let below = self.settle(b);
        match a.factors.last_mut() {
            Some(last) => last.below.push(below),
            None => a.factors.push(PlanFactor {
                above: None,
                below: vec![below],
            }),
        }
        PlanForm::Chain(a)
    }

    /// Returns the node that holds the value; it is the newest unless the form was a node already.
    fn settle(&mut self, form: PlanForm) -> u32 {
        let chain = match form {
            PlanForm::Node(node) => return node,
            PlanForm::Chain(chain) => chain,
        };
        let number = chain
            .number
            .filter(|n| n.0 != 1.0 || chain.factors.is_empty());
        let (number, place) = number.unzip();
        let mut product = None;
        let mut number = number.map(|n| self.push(Expr::Number(n)));
        for (i, PlanFactor { above, below }) in chain.factors.into_iter().enumerate() {
            let above = match above {
                Some(node) => {
                    if place == Some(i) {
                        product = self.times(product, number.take());
                    }
                    node
                }
                None => match number.take() {
                    Some(number) => number,
                    None => self.push(Expr::Number(1.0)),
                },
            };
            let divisor = below
                .into_iter()
                .reduce(|a, b| self.push(Expr::Binary(BinaryOperation::Multiply, a, b)));
            let factor = match divisor {
                Some(divisor) => self.push(Expr::Binary(BinaryOperation::Divide, above, divisor)),
                None => above,
            };
            product = self.times(product, Some(factor));
        }
        product = self.times(product, number);
        product.unwrap_or_else(|| self.push(Expr::Number(1.0)))
    }

    fn times(&mut self, a: Option<u32>, b: Option<u32>) -> Option<u32> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.push(Expr::Binary(BinaryOperation::Multiply, a, b))),
            (a, b) => a.or(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::formula::FormulaBody;

    /// Returns the value with `a` = 0, `b` = 0, `c` = 2 and `n` no number, all of them changing in time.
    fn value(text: &str) -> f64 {
        let names = ["a", "b", "c", "n"].map(str::to_owned);
        let body = FormulaBody::parse(text, &names)
            .unwrap_or_else(|e| FormulaBody::number(e.to_string().len() as f64));
        body.evaluate(&mut Vec::new(), |i| [0.0, 0.0, 2.0, f64::NAN][i])
    }

    #[test]
    fn a_running_product_of_zero_stops() {
        assert_eq!(value("a*n"), 0.0);
        assert!(value("n*a").is_nan());
        assert_eq!(value("n*a*0"), 0.0);
        assert!(value("c*0*Inf").is_nan());
        assert!(value("0*Inf").is_nan());
        assert!(value("Inf*a").is_nan());
        assert_eq!(value("a*Inf"), 0.0);
    }

    #[test]
    fn a_constant_zero_wins_in_a_formula_that_is_one_product() {
        assert_eq!(value("n*0"), 0.0);
        assert!(value("n*0+c").is_nan());
        assert_eq!(value("c+0*n"), 2.0);
        assert!(value("c+0/a").is_nan());
    }

    #[test]
    fn the_last_factor_is_divided() {
        assert_eq!(value("a*c/b"), 0.0);
        assert!(value("c*a/b").is_nan());
        assert!(value("a/b").is_nan());
        assert_eq!(value("a/0"), 0.0);
        assert_eq!(value("c/0"), f64::INFINITY);
        assert_eq!(value("0/a"), 0.0);
        assert_eq!(value("c/4/c"), 0.25);
        assert_eq!(value("12/c/3*c"), 4.0);
        assert_eq!(value("1/c"), 0.5);
    }
}
