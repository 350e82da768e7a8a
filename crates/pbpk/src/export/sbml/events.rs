//! Events, and formulas that events replace.
//!
//! An event that may fire once only, but with a condition that may become true again, carries a parameter `fired`. A
//! formula that is replaced becomes a choice by a parameter `mode`, which the event sets. Events of one moment follow
//! each other by priority, in file order.

use super::classes::{SbmlClass, SbmlClasses};
use super::{FORMAT, math, restarts};
use crate::export::{ExportError, count_text};
use crate::formula::{BinaryOperation, Expr};
use crate::model::{AliasReference, EventAssignment, FormulaKind, Model, ModelEvent, ValueSource};
use crate::watch::{Interrupt, Watch};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Events as text, with what they need elsewhere.
pub(super) struct SbmlEvents {
    parameters: String,
    text: String,
    /// For each switched quantity, its modes: its formula by the mode's number.
    modes: BTreeMap<usize, Vec<(usize, String)>>,
}

impl SbmlEvents {
    pub(super) fn new(
        model: &Model,
        classes: &SbmlClasses,
        watch: &Watch<'_>,
    ) -> Result<Self, ExportError> {
        let mut events = Self {
            parameters: String::new(),
            text: String::new(),
            modes: BTreeMap::new(),
        };
        let mut number_of_mode = 0;
        for (e, event) in model.events.iter().enumerate() {
            once(model, classes, event)?;
            independent(model, event, watch)?;
            let guard = !passes_once(model, classes, event);
            let fired = format!("fired{}", e + 1);
            let mut assignments = if guard {
                assign(&fired, &math::constant(1.0))
            } else {
                String::new()
            };
            for a in &event.assignments {
                number_of_mode += 1;
                assignments.push_str(&events.assignment(
                    model,
                    classes,
                    event,
                    a,
                    number_of_mode,
                    watch,
                )?);
            }
            let mut trigger = condition(model, event)?;
            if guard {
                let _ = writeln!(
                    events.parameters,
                    "<parameter id=\"{fired}\" value=\"0\" constant=\"false\"/>"
                );
                trigger = format!(
                    "<apply><and/><apply><eq/><ci>{fired}</ci><cn>0</cn></apply>{trigger}</apply>"
                );
            }
            let priority = math::constant(to_f64(model.events.len() - e));
            let _ = writeln!(
                events.text,
                "<event id=\"event{}\" useValuesFromTriggerTime=\"false\"><trigger initialValue=\"false\" persistent=\"true\">{}</trigger><priority>{}</priority><listOfEventAssignments>{assignments}</listOfEventAssignments></event>",
                e + 1,
                super::math(&trigger),
                super::math(&priority)
            );
        }
        for q in events.modes.keys() {
            let _ = writeln!(
                events.parameters,
                "<parameter id=\"mode{}\" value=\"0\" constant=\"false\"/>",
                q + 1
            );
        }
        events.restarts(model, watch)?;
        Ok(events)
    }

    pub(super) fn parameters(&self) -> &str {
        &self.parameters
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns a rule with the choices that events make for this quantity.
    pub(super) fn switched(&self, quantity: usize, own: String) -> String {
        let Some(modes) = self.modes.get(&quantity) else {
            return own;
        };
        let mut out = String::from("<piecewise>");
        for (mode, text) in modes {
            let is = format!(
                "<apply><eq/><ci>mode{}</ci>{}</apply>",
                quantity + 1,
                math::constant(to_f64(*mode))
            );
            out.push_str(&format!("<piece>{text}{is}</piece>"));
        }
        out.push_str(&format!("<otherwise>{own}</otherwise></piecewise>"));
        out
    }

    /// Returns the text of one assignment; notes the mode it needs.
    fn assignment(
        &mut self,
        model: &Model,
        classes: &SbmlClasses,
        event: &ModelEvent,
        a: &EventAssignment,
        mode: usize,
        watch: &Watch<'_>,
    ) -> Result<String, ExportError> {
        let new = math::formula(model, a.formula, &event.name)?;
        count_text(new.len(), watch)?;
        let variable = format!("q{}", a.target + 1);
        if classes.of(a.target) != SbmlClass::Rule {
            return Ok(assign(&variable, &new));
        }
        let switch = assign(
            &format!("mode{}", a.target + 1),
            &math::constant(to_f64(mode)),
        );
        let modes = self.modes.entry(a.target).or_default();
        if a.as_value {
            let held = format!("held{mode}");
            let _ = writeln!(
                self.parameters,
                "<parameter id=\"{held}\" value=\"0\" constant=\"false\"/>"
            );
            modes.push((mode, format!("<ci>{held}</ci>")));
            return Ok(assign(&held, &new) + &switch);
        }
        if reaches(model, a.formula, &BTreeSet::from([a.target]), watch)? {
            let path = model
                .quantities
                .get(a.target)
                .map_or("", |q| q.path.as_str());
            return Err(ExportError::unsupported(
                FORMAT,
                path,
                "an event replaces its formula by one of itself",
            ));
        }
        modes.push((mode, new));
        Ok(switch)
    }

    /// At the kinks of tables an event without effect makes the solver stop, or it would step over pulses.
    fn restarts(&mut self, model: &Model, watch: &Watch<'_>) -> Result<(), Interrupt> {
        for (i, (time, offset)) in restarts(model)
            .into_iter()
            .enumerate()
            .filter(|(_, (t, _))| *t > 0.0)
        {
            watch.check()?;
            let at = match offset {
                None => math::constant(time),
                Some(q) => format!(
                    "<apply><plus/>{}{}</apply>",
                    math::constant(time),
                    math::reference(AliasReference::Quantity(q))
                ),
            };
            let passed = format!(
                "<apply><geq/>{}{at}</apply>",
                math::reference(AliasReference::Time)
            );
            let _ = writeln!(
                self.parameters,
                "<parameter id=\"kink{}\" value=\"0\" constant=\"false\"/>",
                i + 1
            );
            let _ = writeln!(
                self.text,
                "<event id=\"restart{}\" useValuesFromTriggerTime=\"true\"><trigger initialValue=\"true\" persistent=\"true\">{}</trigger><listOfEventAssignments>{}</listOfEventAssignments></event>",
                i + 1,
                super::math(&passed),
                assign(&format!("kink{}", i + 1), &math::constant(1.0))
            );
        }
        Ok(())
    }
}

fn to_f64(n: usize) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a number of events or assignments"
    )]
    let value = n as f64;
    value
}

fn assign(variable: &str, content: &str) -> String {
    format!(
        "<eventAssignment variable=\"{variable}\">{}</eventAssignment>",
        super::math(content)
    )
}

fn condition(model: &Model, event: &ModelEvent) -> Result<String, ExportError> {
    match model.formulas.get(event.condition).map(|f| &f.kind) {
        Some(FormulaKind::Explicit { body, arguments }) => {
            math::condition(body, arguments, &event.name)
        }
        _ => Err(ExportError::unsupported(
            FORMAT,
            &event.name,
            "its condition is a table",
        )),
    }
}

/// Returns whether the condition is a comparison of the time with a constant that becomes true once and stays so.
fn passes_once(model: &Model, classes: &SbmlClasses, event: &ModelEvent) -> bool {
    let Some(FormulaKind::Explicit { body, arguments }) =
        model.formulas.get(event.condition).map(|f| &f.kind)
    else {
        return false;
    };
    let is = |i: u32| match body.nodes.get(i as usize) {
        Some(Expr::Number(_)) => Some(false),
        Some(Expr::Argument(a)) => match arguments.get(*a as usize) {
            Some(AliasReference::Time) => Some(true),
            Some(AliasReference::Quantity(q)) if classes.of(*q) == SbmlClass::Constant => {
                Some(false)
            }
            _ => None,
        },
        _ => None,
    };
    match body.nodes.last() {
        Some(Expr::Binary(BinaryOperation::Equal, a, b)) => matches!(
            (is(*a), is(*b)),
            (Some(true), Some(false)) | (Some(false), Some(true))
        ),
        Some(Expr::Binary(BinaryOperation::Greater | BinaryOperation::GreaterOrEqual, a, b)) => {
            (is(*a), is(*b)) == (Some(true), Some(false))
        }
        Some(Expr::Binary(BinaryOperation::Less | BinaryOperation::LessOrEqual, a, b)) => {
            (is(*a), is(*b)) == (Some(false), Some(true))
        }
        _ => false,
    }
}

/// An event must fire at most once: by its own word, or because its condition is one instant, perhaps
/// together with conditions that do not vary.
fn once(model: &Model, classes: &SbmlClasses, event: &ModelEvent) -> Result<(), ExportError> {
    let refuse = |what: &str| Err(ExportError::unsupported(FORMAT, &event.name, what));
    let Some(FormulaKind::Explicit { body, arguments }) =
        model.formulas.get(event.condition).map(|f| &f.kind)
    else {
        return refuse("its condition is a table");
    };
    if event.one_time {
        return Ok(());
    }
    let fixed = |i: u32| match body.nodes.get(i as usize) {
        Some(Expr::Number(_)) => true,
        Some(Expr::Argument(a)) => match arguments.get(*a as usize) {
            Some(AliasReference::Quantity(q)) => classes.of(*q) == SbmlClass::Constant,
            _ => false,
        },
        _ => false,
    };
    let is_time = |i: u32| matches!(body.nodes.get(i as usize), Some(Expr::Argument(a)) if arguments.get(*a as usize) == Some(&AliasReference::Time));
    // `Time = fixed`, alone or in a conjunction of otherwise fixed comparisons.
    let mut open = vec![u32::try_from(body.nodes.len().saturating_sub(1)).unwrap_or(u32::MAX)];
    let mut instant = false;
    while let Some(i) = open.pop() {
        match body.nodes.get(i as usize) {
            Some(Expr::Binary(BinaryOperation::And, a, b)) => open.extend([*a, *b]),
            Some(Expr::Binary(BinaryOperation::Equal, a, b))
                if is_time(*a) && fixed(*b) || is_time(*b) && fixed(*a) =>
            {
                instant = true
            }
            Some(Expr::Binary(_, a, b)) if fixed(*a) && fixed(*b) => {}
            _ if fixed(i) => {}
            _ => return refuse("it fires again at every output time while its condition holds"),
        }
    }
    if instant {
        Ok(())
    } else {
        refuse("it fires at every output time or never")
    }
}

/// No assignment may need the new value of an earlier one: SBML computes all of them first.
fn independent(model: &Model, event: &ModelEvent, watch: &Watch<'_>) -> Result<(), ExportError> {
    let mut earlier = BTreeSet::new();
    for a in &event.assignments {
        if reaches(model, a.formula, &earlier, watch)? {
            let path = model
                .quantities
                .get(a.target)
                .map_or("", |q| q.path.as_str());
            let what = "its new value depends on an earlier assignment of the same event";
            return Err(ExportError::unsupported(FORMAT, path, what));
        }
        earlier.insert(a.target);
    }
    Ok(())
}

/// Returns whether a formula uses one of the targets, directly or through other formulas.
fn reaches(
    model: &Model,
    formula: usize,
    targets: &BTreeSet<usize>,
    watch: &Watch<'_>,
) -> Result<bool, Interrupt> {
    if targets.is_empty() {
        return Ok(false);
    }
    let mut seen = BTreeSet::new();
    let mut open = vec![formula];
    while let Some(f) = open.pop() {
        watch.check()?;
        for reference in model
            .formulas
            .get(f)
            .into_iter()
            .flat_map(crate::model::BoundFormula::references)
        {
            let AliasReference::Quantity(q) = reference else {
                continue;
            };
            if targets.contains(&q) {
                return Ok(true);
            }
            if seen.insert(q)
                && let Some(ValueSource::Formula(next)) = model.quantities.get(q).map(|q| q.source)
            {
                open.push(next);
            }
        }
    }
    Ok(false)
}
