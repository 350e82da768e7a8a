//! `sim explain`: origin of a value.

use std::io::Write;

use super::args::ExplainArgs;
use super::failure::CommandFailure;
use super::json::JsonWriter;
use super::{model, table};
use crate::compile::Instance;
use crate::model::{AliasReference, FormulaKind, Model, Quantity, QuantityKind, ValueSource};
use crate::path;

/// Deepest level that is printed.
const DEPTH_MAX: usize = 64;

pub(super) fn run(
    args: &ExplainArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let deadline = model::Deadline::none();
    let model = model::open(&args.model, &deadline, err)?;
    let position = path::find_one(&model, &args.path)?;
    let instance = model::individual(model, Vec::new(), &args.model, &deadline)?;
    let mut told = ExplanationState {
        instance: &instance,
        depth_max: args.depth.min(DEPTH_MAX),
        seen: Vec::new(),
    };
    let Some(entry) = told.quantity(position, 0) else {
        return Ok(());
    };
    if args.json {
        let text = JsonWriter::object(|j| entry.json(j));
        return Ok(out.write_all(text.as_bytes())?);
    }
    Ok(entry.lines(0, out)?)
}

/// Explanation of one quantity.
struct ExplainedQuantity {
    path: String,
    unit: String,
    value: f64,
    nature: &'static str,
    formula: Option<String>,
    /// Rate at the start, factor and formula of each term.
    rates: Vec<(f64, f64, String)>,
    /// Events that change it, and how.
    events: Vec<(String, String)>,
    /// Quantities that its formulas use.
    uses: Vec<ExplainedQuantity>,
}

impl ExplainedQuantity {
    fn lines(&self, depth: usize, out: &mut dyn Write) -> std::io::Result<()> {
        let indent = "  ".repeat(depth);
        let (path, value, nature) = (&self.path, table::short(self.value), self.nature);
        let space = if self.unit.is_empty() { "" } else { " " };
        writeln!(
            out,
            "{indent}{path} = {value}{space}{} ({nature})",
            self.unit
        )?;
        if let Some(formula) = &self.formula {
            writeln!(out, "{indent}  = {formula}")?;
        }
        for (rate, factor, formula) in &self.rates {
            let rate = table::short(*rate);
            writeln!(
                out,
                "{indent}  rate {rate} at the start: {factor} * ({formula})"
            )?;
        }
        for (name, how) in &self.events {
            writeln!(out, "{indent}  changed by event {name}: {how}")?;
        }
        self.uses
            .iter()
            .try_for_each(|used| used.lines(depth + 1, out))
    }

    fn json(&self, j: &mut JsonWriter) {
        j.string("path", &self.path);
        j.number("value", self.value);
        j.string("unit", &self.unit);
        j.string("from", self.nature);
        if let Some(formula) = &self.formula {
            j.string("formula", formula);
        }
        if !self.rates.is_empty() {
            j.list("rates", self.rates.iter(), |j, (rate, factor, formula)| {
                j.number("at_start", *rate);
                j.number("factor", *factor);
                j.string("formula", formula);
            });
        }
        if !self.events.is_empty() {
            j.list("events", self.events.iter(), |j, (name, how)| {
                j.string("event", name);
                j.string("gives", how);
            });
        }
        if !self.uses.is_empty() {
            j.list("uses", self.uses.iter(), |j, used| used.json(j));
        }
    }
}

/// The model, and the quantities explained so far.
struct ExplanationState<'a> {
    instance: &'a Instance,
    depth_max: usize,
    seen: Vec<usize>,
}

impl ExplanationState<'_> {
    fn model(&self) -> &Model {
        self.instance.structure().model()
    }

    /// Returns a quantity, its formula, and below that the quantities of the formula; those explained before are only
    /// named.
    fn quantity(&mut self, q: usize, depth: usize) -> Option<ExplainedQuantity> {
        let quantity = self.model().quantities.get(q).cloned()?;
        let mut entry = ExplainedQuantity {
            value: self.instance.value(q).unwrap_or(f64::NAN),
            nature: self.nature(q, &quantity),
            path: quantity.path,
            unit: quantity.unit,
            formula: None,
            rates: Vec::new(),
            events: Vec::new(),
            uses: Vec::new(),
        };
        if self.seen.contains(&q) {
            return Some(entry);
        }
        self.seen.push(q);
        let mut used = Vec::new();
        if let (ValueSource::Formula(f), false) = (quantity.source, self.instance.is_set(q)) {
            entry.formula = Some(text(self.model(), f));
            used.extend(references(self.model(), f));
        }
        for term in &quantity.rhs {
            let rate = term.factor * self.instance.formula_value(term.formula);
            let formula = text(self.model(), term.formula);
            entry.rates.push((rate, term.factor, formula));
            used.extend(references(self.model(), term.formula));
        }
        entry.events = self.events(q);
        used.sort_unstable();
        used.dedup();
        if depth < self.depth_max {
            let below = used.into_iter().filter_map(|u| self.quantity(u, depth + 1));
            entry.uses = below.collect();
        }
        Some(entry)
    }

    fn nature(&self, q: usize, quantity: &Quantity) -> &'static str {
        match (
            self.instance.is_set(q),
            quantity.rhs.is_empty(),
            quantity.source,
        ) {
            (true, ..) => "set with --param",
            (_, false, _) => "start value of a state",
            (_, _, ValueSource::Formula(_)) if quantity.kind == QuantityKind::Variable => {
                "start value"
            }
            (_, _, ValueSource::Formula(_)) => "formula, at the start",
            (_, _, ValueSource::Constant(_)) => "value of the file",
        }
    }

    /// Events that assign the quantity, and what they give it.
    fn events(&self, q: usize) -> Vec<(String, String)> {
        let model = self.model();
        let all = model.events.iter();
        let hits = all.flat_map(|e| e.assignments.iter().map(move |a| (e, a)));
        hits.filter(|(_, a)| a.target == q)
            .map(|(e, a)| {
                let how = if a.as_value {
                    "the value of"
                } else {
                    "the formula"
                };
                let when = text(model, e.condition);
                (
                    e.name.clone(),
                    format!("{how} {}, when {when}", text(model, a.formula)),
                )
            })
            .collect()
    }
}

/// Returns a formula with paths for its aliases.
pub(super) fn text(model: &Model, f: usize) -> String {
    let path = |reference: &AliasReference| match reference {
        AliasReference::Time => "Time".to_owned(),
        AliasReference::Quantity(q) => {
            let quantity = model.quantities.get(*q);
            quantity.map_or_else(String::new, |q| format!("[{}]", q.path))
        }
    };
    match model.formulas.get(f).map(|f| &f.kind) {
        Some(FormulaKind::Explicit { body, arguments }) => {
            let names: Vec<String> = arguments.iter().map(path).collect();
            body.text_with(&names)
        }
        Some(FormulaKind::Table(table)) => {
            let what = if table.slope_mode() {
                "slope of a table"
            } else {
                "table"
            };
            format!("{what} of {} points over the time", table.points().count())
        }
        Some(FormulaKind::TableWithOffset { table, offset }) => format!(
            "table of {} at Time - {}",
            path(&AliasReference::Quantity(*table)),
            path(offset)
        ),
        Some(FormulaKind::TableWithArgument { table, argument }) => format!(
            "table of {} at {}",
            path(&AliasReference::Quantity(*table)),
            path(argument)
        ),
        None => String::new(),
    }
}

fn references(model: &Model, f: usize) -> Vec<usize> {
    let Some(formula) = model.formulas.get(f) else {
        return Vec::new();
    };
    let used = formula.references().filter_map(|r| match r {
        AliasReference::Time => None,
        AliasReference::Quantity(q) => Some(q),
    });
    used.collect()
}
