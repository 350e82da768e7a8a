//! Formulas as MathML. Numbers and truths are kept apart there: a truth used as a number becomes 1 or 0, a
//! number used as a truth is compared with 1.

use super::FORMAT;
use crate::export::ExportError;
use crate::formula::{BinaryOperation, Expr, FormulaBody, UnaryOperation};
use crate::model::{AliasReference, FormulaKind, Model, PointTable, ValueSource};

/// Most points of a table that is written out as a piecewise formula.
const TABLE_POINTS_MAX: usize = 4096;
/// Longest formula written, in bytes.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// A subformula and whether it is a truth.
struct MathPart {
    text: String,
    truth: bool,
}

impl MathPart {
    fn number(text: String) -> Self {
        Self { text, truth: false }
    }

    fn truth(text: String) -> Self {
        Self { text, truth: true }
    }

    fn into_number(self) -> String {
        if self.truth {
            format!(
                "<piecewise><piece><cn>1</cn>{}</piece><otherwise><cn>0</cn></otherwise></piecewise>",
                self.text
            )
        } else {
            self.text
        }
    }

    fn into_truth(self) -> String {
        if self.truth {
            self.text
        } else {
            format!("<apply><eq/>{}<cn>1</cn></apply>", self.text)
        }
    }
}

/// Returns a number.
pub(super) fn constant(value: f64) -> String {
    if value.is_nan() {
        return "<notanumber/>".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 {
            "<infinity/>"
        } else {
            "<apply><minus/><infinity/></apply>"
        }
        .to_owned();
    }
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            format!("<cn type=\"e-notation\">{digits}<sep/>{exponent}</cn>")
        }
        None => format!("<cn>{text}</cn>"),
    }
}

/// Returns a number times a formula.
pub(super) fn scaled(factor: f64, text: &str) -> String {
    if factor == 1.0 {
        text.to_owned()
    } else if factor == -1.0 {
        format!("<apply><minus/>{text}</apply>")
    } else {
        format!("<apply><times/>{}{text}</apply>", constant(factor))
    }
}

/// Time or a quantity.
pub(super) fn reference(reference: AliasReference) -> String {
    match reference {
        AliasReference::Time => {
            "<csymbol encoding=\"text\" definitionURL=\"http://www.sbml.org/sbml/symbols/time\">t</csymbol>".to_owned()
        }
        AliasReference::Quantity(q) => format!("<ci>q{}</ci>", q + 1),
    }
}

/// Returns the table that a quantity's formula is.
pub(super) fn table_of(model: &Model, quantity: usize) -> Option<&PointTable> {
    match model.quantities.get(quantity)?.source {
        ValueSource::Formula(f) => match &model.formulas.get(f)?.kind {
            FormulaKind::Table(table) => Some(table),
            _ => None,
        },
        ValueSource::Constant(_) => None,
    }
}

/// Returns the formula at a position, as a number; `user` is named in errors.
pub(super) fn formula(model: &Model, position: usize, user: &str) -> Result<String, ExportError> {
    let missing = || ExportError::unsupported(FORMAT, user, "it refers to no formula");
    let text = match &model.formulas.get(position).ok_or_else(missing)?.kind {
        FormulaKind::Explicit { body, arguments } => {
            body_part(body, arguments, user)?.into_number()
        }
        FormulaKind::Table(own) => table(own, &reference(AliasReference::Time), user)?,
        FormulaKind::TableWithOffset { table: q, offset } => {
            let x = format!(
                "<apply><minus/>{}{}</apply>",
                reference(AliasReference::Time),
                reference(*offset)
            );
            table_at(model, *q, &x, user)?
        }
        FormulaKind::TableWithArgument { table: q, argument } => {
            table_at(model, *q, &reference(*argument), user)?
        }
    };
    Ok(text)
}

/// Returns the table of a quantity at `x`; a quantity without table is itself.
fn table_at(model: &Model, quantity: usize, x: &str, user: &str) -> Result<String, ExportError> {
    match table_of(model, quantity) {
        Some(own) => table(own, x, user),
        None => Ok(reference(AliasReference::Quantity(quantity))),
    }
}

/// Returns a body as a truth, with its parts `Time = x` taken as `Time >= x` if asked: an instant that a solver meets
/// only from one side.
pub(super) fn condition(
    body: &FormulaBody,
    arguments: &[AliasReference],
    user: &str,
) -> Result<String, ExportError> {
    let mut copy = body.clone();
    let is_time = |i: u32| matches!(body.nodes.get(i as usize), Some(Expr::Argument(a)) if arguments.get(*a as usize) == Some(&AliasReference::Time));
    for node in &mut copy.nodes {
        if let Expr::Binary(op @ BinaryOperation::Equal, a, b) = node {
            if is_time(*a) {
                *op = BinaryOperation::GreaterOrEqual;
            } else if is_time(*b) {
                *op = BinaryOperation::LessOrEqual;
            }
        }
    }
    Ok(body_part(&copy, arguments, user)?.into_truth())
}

fn body_part(
    body: &FormulaBody,
    arguments: &[AliasReference],
    user: &str,
) -> Result<MathPart, ExportError> {
    let mut parts: Vec<Option<MathPart>> = Vec::with_capacity(body.nodes.len());
    for node in &body.nodes {
        let mut take = |i: u32| {
            let part = parts.get_mut(i as usize).and_then(Option::take);
            part.ok_or_else(|| {
                ExportError::unsupported(FORMAT, user, "its formula uses a part twice")
            })
        };
        let part = match *node {
            Expr::Number(value) => MathPart::number(constant(value)),
            Expr::Argument(i) => {
                let argument = arguments.get(i as usize).copied();
                let argument = argument.ok_or_else(|| {
                    ExportError::unsupported(FORMAT, user, "an alias leads nowhere")
                })?;
                MathPart::number(reference(argument))
            }
            Expr::Unary(UnaryOperation::Not, a) => {
                MathPart::truth(format!("<apply><not/>{}</apply>", take(a)?.into_truth()))
            }
            Expr::Unary(op, a) => MathPart::number(unary(op, &take(a)?.into_number())),
            Expr::Binary(op, a, b) => binary(op, take(a)?, take(b)?),
            Expr::Select(c, a, b) => {
                let (c, a, b) = (
                    take(c)?.into_truth(),
                    take(a)?.into_number(),
                    take(b)?.into_number(),
                );
                MathPart::number(format!(
                    "<piecewise><piece>{a}{c}</piece><otherwise>{b}</otherwise></piecewise>"
                ))
            }
        };
        if part.text.len() > TEXT_BYTES_MAX {
            return Err(ExportError::unsupported(
                FORMAT,
                user,
                "its formula is too long",
            ));
        }
        parts.push(Some(part));
    }
    let whole = parts.pop().flatten();
    whole.ok_or_else(|| ExportError::unsupported(FORMAT, user, "its formula is empty"))
}

fn unary(op: UnaryOperation, a: &str) -> String {
    let name = match op {
        UnaryOperation::Acos => "arccos",
        UnaryOperation::Asin => "arcsin",
        UnaryOperation::Atan => "arctan",
        UnaryOperation::Cos => "cos",
        UnaryOperation::Cosh => "cosh",
        UnaryOperation::Exp => "exp",
        UnaryOperation::Ln => "ln",
        UnaryOperation::Log10 => {
            return format!("<apply><log/><logbase><cn>10</cn></logbase>{a}</apply>");
        }
        UnaryOperation::Not => "not",
        UnaryOperation::Sin => "sin",
        UnaryOperation::Sinh => "sinh",
        UnaryOperation::Sqrt => "root",
        UnaryOperation::Tan => "tan",
        UnaryOperation::Tanh => "tanh",
    };
    format!("<apply><{name}/>{a}</apply>")
}

fn binary(op: BinaryOperation, a: MathPart, b: MathPart) -> MathPart {
    let name = match op {
        BinaryOperation::And => {
            return MathPart::truth(format!(
                "<apply><and/>{}{}</apply>",
                a.into_truth(),
                b.into_truth()
            ));
        }
        BinaryOperation::Or => {
            return MathPart::truth(format!(
                "<apply><or/>{}{}</apply>",
                a.into_truth(),
                b.into_truth()
            ));
        }
        BinaryOperation::Add => "plus",
        BinaryOperation::Subtract => "minus",
        BinaryOperation::Multiply => "times",
        BinaryOperation::Divide => "divide",
        BinaryOperation::Power => "power",
        BinaryOperation::Min => "min",
        BinaryOperation::Max => "max",
        BinaryOperation::Less => "lt",
        BinaryOperation::LessOrEqual => "leq",
        BinaryOperation::Greater => "gt",
        BinaryOperation::GreaterOrEqual => "geq",
        BinaryOperation::Equal => "eq",
        BinaryOperation::NotEqual => "neq",
    };
    let text = format!(
        "<apply><{name}/>{}{}</apply>",
        a.into_number(),
        b.into_number()
    );
    match op {
        BinaryOperation::Add
        | BinaryOperation::Subtract
        | BinaryOperation::Multiply
        | BinaryOperation::Divide
        | BinaryOperation::Power
        | BinaryOperation::Min
        | BinaryOperation::Max => MathPart::number(text),
        _ => MathPart::truth(text),
    }
}

/// Returns a table at `x` as a piecewise formula: clamped outside, or slopes with zero outside.
fn table(table: &PointTable, x: &str, user: &str) -> Result<String, ExportError> {
    let points: Vec<(f64, f64)> = table.points().map(|(x, y, _)| (x, y)).collect();
    if points.len() > TABLE_POINTS_MAX {
        let what = format!(
            "a table of {} points; at most {TABLE_POINTS_MAX} can be written out",
            points.len()
        );
        return Err(ExportError::unsupported(FORMAT, user, what));
    }
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Ok(constant(f64::NAN));
    };
    let slope_mode = table.slope_mode();
    let below = |limit: f64| format!("<apply><lt/>{x}{}</apply>", constant(limit));
    let mut out = String::from("<piecewise>");
    let before = if slope_mode { 0.0 } else { first.1 };
    out.push_str(&format!(
        "<piece>{}{}</piece>",
        constant(before),
        below(first.0)
    ));
    for (a, b) in points.iter().zip(points.iter().skip(1)) {
        let slope = constant((b.1 - a.1) / (b.0 - a.0));
        let value = if slope_mode {
            slope
        } else {
            let run = format!("<apply><minus/>{x}{}</apply>", constant(a.0));
            format!(
                "<apply><plus/>{}<apply><times/>{run}{slope}</apply></apply>",
                constant(a.1)
            )
        };
        out.push_str(&format!("<piece>{value}{}</piece>", below(b.0)));
    }
    let after = if slope_mode { 0.0 } else { last.1 };
    out.push_str(&format!(
        "<otherwise>{}</otherwise></piecewise>",
        constant(after)
    ));
    Ok(out)
}
