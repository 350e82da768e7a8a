//! SBML, level 3 version 2 core: every quantity is a parameter, states have rate rules.
//!
//! Numbers that never change become initial assignments, everything that varies assignment rules. What an
//! SBML tool does differently by the standard: events fire at the exact moment their condition becomes true,
//! not at the next output time, and the value stored at the start is the one after events.

mod classes;
mod events;
mod math;

use super::xml::{escape, number};
use super::{ExportError, count_text};
use crate::model::{FormulaKind, Model, ValueSource};
use crate::watch::Watch;
use classes::{SbmlClass, SbmlClasses};
use events::SbmlEvents;
use std::fmt::Write as _;
use std::io::Write;

pub(super) const FORMAT: &str = "sbml";

/// The MathML name space, and the document's.
const MATH: &str = "http://www.w3.org/1998/Math/MathML";
const CORE: &str = "http://www.sbml.org/sbml/level3/version2/core";

/// Writes a model.
///
/// With `values`, the numbers of all quantities of one individual (in model order, at the start), what never
/// changes is written as a number, and the file loads much faster in tools that expand initial assignments.
/// Without, parameters keep following each other by formula.
///
/// # Errors
/// [`ExportError::Unsupported`] names what SBML cannot say: an event that fires again and again while its
/// condition holds, a formula that an event replaces by one of itself, an assignment that needs the result of
/// an earlier one of the same event, a table beyond its bound; [`ExportError::Io`].
pub fn sbml(model: &Model, values: Option<&[f64]>, out: &mut dyn Write) -> Result<(), ExportError> {
    sbml_watched(model, values, out, &Watch::default())
}

/// As [`sbml`], asking `watch` now and then whether to go on.
///
/// # Errors
/// As [`sbml`], and [`ExportError::Interrupted`]: nothing was written then.
pub fn sbml_watched(
    model: &Model,
    values: Option<&[f64]>,
    out: &mut dyn Write,
    watch: &Watch<'_>,
) -> Result<(), ExportError> {
    watch.ask()?;
    let classes = SbmlClasses::new(model, watch)?;
    let events = SbmlEvents::new(model, &classes, watch)?;
    let mut text = String::new();
    let name = escape(FORMAT, &model.name)?;
    let _ = write!(
        text,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sbml xmlns=\"{CORE}\" level=\"3\" version=\"2\">\n<model id=\"model\" name=\"{name}\">\n<listOfParameters>\n"
    );
    for (i, q) in model.quantities.iter().enumerate() {
        let path = escape(FORMAT, &q.path)?;
        count_text(path.len(), watch)?;
        let class = classes.of(i);
        let value = match (values.and_then(|v| v.get(i)), q.source) {
            _ if class == SbmlClass::Rule => None,
            (Some(value), _) => Some(*value),
            (None, ValueSource::Constant(value)) => Some(value),
            (None, ValueSource::Formula(_)) => None,
        };
        let value = value.map_or_else(String::new, |v| format!(" value=\"{}\"", number(v)));
        let constant = class == SbmlClass::Constant;
        let _ = writeln!(
            text,
            "<parameter id=\"q{}\" name=\"{path}\"{value} constant=\"{constant}\"/>",
            i + 1
        );
    }
    text.push_str(events.parameters());
    text.push_str("</listOfParameters>\n");
    list(
        &mut text,
        "listOfInitialAssignments",
        &initial(model, &classes, watch)?,
    );
    list(
        &mut text,
        "listOfRules",
        &rules(model, &classes, &events, watch)?,
    );
    list(&mut text, "listOfEvents", events.text());
    text.push_str("</model>\n</sbml>\n");
    watch.ask()?;
    out.write_all(text.as_bytes())?;
    Ok(())
}

fn list(out: &mut String, name: &str, content: &str) {
    if !content.is_empty() {
        let _ = write!(out, "<{name}>\n{content}</{name}>\n");
    }
}

pub(super) fn math(content: &str) -> String {
    format!("<math xmlns=\"{MATH}\">{content}</math>")
}

/// Start values by formula: of constants, and of states.
fn initial(model: &Model, classes: &SbmlClasses, watch: &Watch<'_>) -> Result<String, ExportError> {
    let mut out = String::new();
    for (i, q) in model.quantities.iter().enumerate() {
        let ValueSource::Formula(f) = q.source else {
            continue;
        };
        if classes.of(i) != SbmlClass::Rule {
            let content = math(&math::formula(model, f, &q.path)?);
            count_text(content.len(), watch)?;
            let _ = writeln!(
                out,
                "<initialAssignment symbol=\"q{}\">{content}</initialAssignment>",
                i + 1
            );
        }
    }
    Ok(out)
}

/// Assignment rules of what varies, rate rules of states.
fn rules(
    model: &Model,
    classes: &SbmlClasses,
    events: &SbmlEvents,
    watch: &Watch<'_>,
) -> Result<String, ExportError> {
    let mut out = String::new();
    for (i, q) in model.quantities.iter().enumerate() {
        watch.check()?;
        match classes.of(i) {
            SbmlClass::Rule => {
                let own = match q.source {
                    ValueSource::Formula(f) => math::formula(model, f, &q.path)?,
                    ValueSource::Constant(value) => math::constant(value),
                };
                let content = math(&events.switched(i, own));
                count_text(content.len(), watch)?;
                let _ = writeln!(
                    out,
                    "<assignmentRule variable=\"q{}\">{content}</assignmentRule>",
                    i + 1
                );
            }
            SbmlClass::State if !q.rhs.is_empty() => {
                let mut terms = String::new();
                for term in &q.rhs {
                    let rate = math::formula(model, term.formula, &q.path)?;
                    count_text(rate.len(), watch)?;
                    terms.push_str(&math::scaled(term.factor, &rate));
                }
                let sum = if q.rhs.len() == 1 {
                    terms
                } else {
                    format!("<apply><plus/>{terms}</apply>")
                };
                let _ = writeln!(
                    out,
                    "<rateRule variable=\"q{}\">{}</rateRule>",
                    i + 1,
                    math(&sum)
                );
            }
            SbmlClass::State | SbmlClass::Free | SbmlClass::Constant => {}
        }
    }
    Ok(out)
}

/// Restart points of every table, as (time, offset quantity).
pub(super) fn restarts(model: &Model) -> Vec<(f64, Option<usize>)> {
    use crate::model::AliasReference;
    let mut all = Vec::new();
    for formula in &model.formulas {
        match &formula.kind {
            FormulaKind::Table(table) => {
                all.extend(table.restarts().into_iter().map(|t| (t, None)))
            }
            FormulaKind::TableWithOffset {
                table,
                offset: AliasReference::Quantity(q),
            } => {
                if let Some(table) = math::table_of(model, *table) {
                    all.extend(table.restarts().into_iter().map(|t| (t, Some(*q))));
                }
            }
            _ => {}
        }
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.dedup();
    all
}
