//! A body back to text that parses to the same body, with as few brackets as the language needs.

use std::fmt;

use super::{BinaryOperation, Expr, FormulaBody, UnaryOperation};

/// How tightly a node binds; higher binds tighter.
fn binding(node: &Expr) -> u8 {
    match node {
        Expr::Select(..) => 0,
        Expr::Binary(BinaryOperation::Or, ..) => 1,
        Expr::Binary(BinaryOperation::And, ..) => 2,
        Expr::Unary(UnaryOperation::Not, _) => 3,
        Expr::Binary(
            BinaryOperation::Less
            | BinaryOperation::LessOrEqual
            | BinaryOperation::Greater
            | BinaryOperation::GreaterOrEqual
            | BinaryOperation::Equal
            | BinaryOperation::NotEqual,
            ..,
        ) => 4,
        Expr::Binary(BinaryOperation::Add | BinaryOperation::Subtract, ..) => 5,
        Expr::Binary(BinaryOperation::Multiply | BinaryOperation::Divide, ..) => 6,
        Expr::Binary(BinaryOperation::Power, ..) => 7,
        Expr::Number(value) if *value < 0.0 => 5,
        Expr::Number(_)
        | Expr::Argument(_)
        | Expr::Unary(..)
        | Expr::Binary(BinaryOperation::Min | BinaryOperation::Max, ..) => 9,
    }
}

/// Takes the text of an operand (each is used once), in brackets if it binds looser than `least`.
fn part(nodes: &[Expr], texts: &mut [String], i: u32, least: u8) -> String {
    let text = texts
        .get_mut(i as usize)
        .map(std::mem::take)
        .unwrap_or_default();
    match nodes.get(i as usize) {
        Some(inner) if binding(inner) >= least => text,
        _ => format!("({text})"),
    }
}

impl FormulaBody {
    /// Returns the text with these names for the arguments, built bottom-up so that depth costs no stack.
    ///
    /// It is what the genuine parser reads too: a conditional within a conditional is in brackets, no sign follows an
    /// operator, and `NOT` within arithmetic is in brackets.
    #[must_use]
    pub fn text_with(&self, aliases: &[String]) -> String {
        let mut texts: Vec<String> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let mut operand = |i, least| part(&self.nodes, &mut texts, i, least);
            let text = match *node {
                Expr::Number(value) => number(value),
                Expr::Argument(i) => aliases.get(i as usize).cloned().unwrap_or_default(),
                Expr::Unary(op, a) => format!("{}({})", op.name(), operand(a, 0)),
                Expr::Binary(op, a, b) => match op.sign() {
                    None => format!(
                        "{}({};{})",
                        if op == BinaryOperation::Min {
                            "MIN"
                        } else {
                            "MAX"
                        },
                        operand(a, 0),
                        operand(b, 0)
                    ),
                    Some(sign) => {
                        let own = binding(node);
                        let above = own.saturating_add(1);
                        let mut text = operand(
                            a,
                            if op == BinaryOperation::Power || own == 4 {
                                above
                            } else {
                                own
                            },
                        );
                        text.push_str(sign);
                        text.push_str(&operand(
                            b,
                            if op == BinaryOperation::Power {
                                own
                            } else {
                                above
                            },
                        ));
                        text
                    }
                },
                Expr::Select(c, a, b) => {
                    format!("{} ? {} : {}", operand(c, 1), operand(a, 1), operand(b, 1))
                }
            };
            texts.push(text);
        }
        texts.pop().unwrap_or_default()
    }
}

/// Shortest text that reads back to the same number.
fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 {
            "Inf".to_owned()
        } else {
            "0-Inf".to_owned()
        }
    } else {
        format!("{value:?}")
    }
}

impl fmt::Display for FormulaBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_with(&self.aliases))
    }
}
