//! `sim explain`: where a value comes from.

use std::io::Write;

use super::args::ExplainArgs;
use super::failure::Failure;
use super::{model, table};
use crate::compile::Instance;
use crate::model::{FormulaKind, Kind, Model, Quantity, Reference, Source};
use crate::path;

/// Deepest level that is told.
const DEPTH_MAX: usize = 64;

pub(super) fn run(
    args: &ExplainArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let deadline = model::Deadline::none();
    let model = model::open(&args.model, &deadline, err)?;
    let position = path::find_one(&model, &args.path)?;
    let instance = model::individual(model, Vec::new(), &args.model, &deadline)?;
    let mut told = Told {
        instance: &instance,
        depth_max: args.depth.min(DEPTH_MAX),
        seen: Vec::new(),
        out,
    };
    told.quantity(position, 0)?;
    Ok(())
}

/// What was written so far.
struct Told<'a> {
    instance: &'a Instance,
    depth_max: usize,
    seen: Vec<usize>,
    out: &'a mut dyn Write,
}

impl Told<'_> {
    fn model(&self) -> &Model {
        self.instance.structure().model()
    }

    /// A quantity, its formula, and below that what the formula uses.
    fn quantity(&mut self, q: usize, depth: usize) -> std::io::Result<()> {
        let indent = "  ".repeat(depth);
        let Some(quantity) = self.model().quantities.get(q).cloned() else {
            return Ok(());
        };
        let value = table::short(self.instance.value(q).unwrap_or(f64::NAN));
        let nature = self.nature(q, &quantity);
        let unit = if quantity.unit.is_empty() {
            String::new()
        } else {
            format!(" {}", quantity.unit)
        };
        writeln!(
            self.out,
            "{indent}{} = {value}{unit} ({nature})",
            quantity.path
        )?;
        if self.seen.contains(&q) {
            return Ok(());
        }
        self.seen.push(q);
        let mut used = Vec::new();
        if let (Source::Formula(f), false) = (quantity.source, self.instance.is_set(q)) {
            writeln!(self.out, "{indent}  = {}", text(self.model(), f))?;
            used.extend(references(self.model(), f));
        }
        for term in &quantity.rhs {
            let formula = text(self.model(), term.formula);
            let rate = table::short(term.factor * self.instance.formula_value(term.formula));
            writeln!(
                self.out,
                "{indent}  rate {rate} at the start: {} * ({formula})",
                term.factor
            )?;
            used.extend(references(self.model(), term.formula));
        }
        for (name, how) in self.events(q) {
            writeln!(self.out, "{indent}  changed by event {name}: {how}")?;
        }
        used.sort_unstable();
        used.dedup();
        if depth < self.depth_max {
            for user in used {
                self.quantity(user, depth + 1)?;
            }
        }
        Ok(())
    }

    fn nature(&self, q: usize, quantity: &Quantity) -> &'static str {
        match (
            self.instance.is_set(q),
            quantity.rhs.is_empty(),
            quantity.source,
        ) {
            (true, ..) => "set with --param",
            (_, false, _) => "start value of a state",
            (_, _, Source::Formula(_)) if quantity.kind == Kind::Variable => "start value",
            (_, _, Source::Formula(_)) => "formula, at the start",
            (_, _, Source::Constant(_)) => "value of the file",
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

/// A formula with paths for its aliases.
pub(super) fn text(model: &Model, f: usize) -> String {
    let path = |reference: &Reference| match reference {
        Reference::Time => "Time".to_owned(),
        Reference::Quantity(q) => {
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
            path(&Reference::Quantity(*table)),
            path(offset)
        ),
        Some(FormulaKind::TableWithArgument { table, argument }) => format!(
            "table of {} at {}",
            path(&Reference::Quantity(*table)),
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
        Reference::Time => None,
        Reference::Quantity(q) => Some(q),
    });
    used.collect()
}
