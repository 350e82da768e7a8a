//! `sim diff`: in what two models differ.

use std::collections::BTreeMap;
use std::io::Write;

use super::args::{DiffArgs, ModelArgs};
use super::failure::CommandFailure;
use super::json::JsonWriter;
use super::{explain, model, table};
use crate::compile::Instance;
use crate::model::{Model, QuantityKind, ValueSource};

/// Values of constants that differ by no more than this part count as equal: files hold 15 digits.
const EQUAL: f64 = 1e-14;

/// One difference: path, what, in the first, in the second.
type Row = [String; 4];

pub(super) fn run(
    args: &DiffArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let deadline = model::Deadline::none();
    let mut open = |file: &std::path::PathBuf| -> Result<Instance, CommandFailure> {
        let args = ModelArgs {
            doses: Vec::new(),
            model: file.clone(),
            params: Vec::new(),
            strict: false,
        };
        let model = model::open(&args, &deadline, err)?;
        model::individual(model, Vec::new(), &args, &deadline)
    };
    let (first, second) = (open(&args.first)?, open(&args.second)?);
    let rows = differences(&first, &second);
    if args.json {
        let text = JsonWriter::object(|j| {
            j.list(
                "differences",
                rows.iter(),
                |j, [path, what, first, second]| {
                    j.string("path", path);
                    j.string("what", what);
                    j.string("first", first);
                    j.string("second", second);
                },
            );
        });
        return Ok(out.write_all(text.as_bytes())?);
    }
    if rows.is_empty() {
        return Ok(writeln!(out, "no difference")?);
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    Ok(table::write(
        out,
        &["path", "what", "first", "second"],
        &rows,
        usize::MAX,
    )?)
}

/// Quantities by path, without the name of the simulation.
fn quantities(model: &Model) -> BTreeMap<&str, usize> {
    let prefix = format!("{}{}", model.name, model.delimiter);
    let all = model.quantities.iter().enumerate();
    all.map(|(i, q)| (q.path.strip_prefix(&prefix).unwrap_or(&q.path), i))
        .collect()
}

fn differences(first: &Instance, second: &Instance) -> Vec<Row> {
    let (a, b) = (first.structure().model(), second.structure().model());
    let (of_a, of_b) = (quantities(a), quantities(b));
    let mut rows = Vec::new();
    let mut note = |path: &str, what: &str, a: String, b: String| {
        if a != b {
            rows.push([path.to_owned(), what.to_owned(), a, b]);
        }
    };
    let absent = || "-".to_owned();
    for (path, i) in &of_a {
        match of_b.get(path) {
            None => note(path, "quantity", kind(a, *i), absent()),
            Some(j) => {
                note(path, "kind", kind(a, *i), kind(b, *j));
                note(path, "formula", formulas(a, *i), formulas(b, *j));
                let (x, y) = (first.values().get(*i), second.values().get(*j));
                let (x, y) = (
                    x.copied().unwrap_or(f64::NAN),
                    y.copied().unwrap_or(f64::NAN),
                );
                let same = x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= EQUAL * x.abs();
                if !same {
                    note(path, "value", format!("{x}"), format!("{y}"));
                }
            }
        }
    }
    for (path, j) in of_b.iter().filter(|(path, _)| !of_a.contains_key(*path)) {
        note(path, "quantity", absent(), kind(b, *j));
    }
    let (x, y) = (events(a), events(b));
    for i in 0..x.len().max(y.len()) {
        let at = |list: &[String]| list.get(i).cloned().unwrap_or_else(absent);
        note(&format!("event {}", i + 1), "event", at(&x), at(&y));
    }
    let s = |model: &Model| format!("{:?}", model.solver);
    note("solver", "settings", s(a), s(b));
    let times = |model: &Model| {
        let times = model.grid.sorted(Default::default());
        let ends = (times.first(), times.last());
        match ends {
            (Some(from), Some(to)) => format!("{} from {from} to {to} min", times.len()),
            _ => absent(),
        }
    };
    note("output times", "times", times(a), times(b));
    rows
}

fn kind(model: &Model, q: usize) -> String {
    let Some(quantity) = model.quantities.get(q) else {
        return String::new();
    };
    let kind = match quantity.kind {
        QuantityKind::Variable => "variable",
        QuantityKind::Parameter => "parameter",
        QuantityKind::Observer => "observer",
    };
    let state = if quantity.rhs.is_empty() {
        ""
    } else {
        ", state"
    };
    format!("{kind}{state}")
}

/// Returns the texts that define a quantity, without the name of the simulation.
fn formulas(model: &Model, q: usize) -> String {
    let Some(quantity) = model.quantities.get(q) else {
        return String::new();
    };
    let mut texts = Vec::new();
    if let ValueSource::Formula(f) = quantity.source {
        texts.push(plain(model, f));
    }
    let rates = quantity.rhs.iter();
    texts.extend(
        rates.map(|term| format!("rate {} * ({})", term.factor, plain(model, term.formula))),
    );
    texts.join("; ")
}

fn plain(model: &Model, f: usize) -> String {
    let prefix = format!("[{}{}", model.name, model.delimiter);
    explain::text(model, f).replace(&prefix, "[")
}

fn events(model: &Model) -> Vec<String> {
    let prefix = format!("{}{}", model.name, model.delimiter);
    let all = model.events.iter().map(|e| {
        let assignments = e.assignments.iter().map(|a| {
            let target = model.quantities.get(a.target).map_or("", |q| &q.path);
            let how = if a.as_value { "value" } else { "formula" };
            let target = target.strip_prefix(&prefix).unwrap_or(target);
            format!("{target} = {how} {}", plain(model, a.formula))
        });
        let once = if e.one_time { "once " } else { "" };
        let assignments: Vec<String> = assignments.collect();
        format!(
            "{once}when {}: {}",
            plain(model, e.condition),
            assignments.join(", ")
        )
    });
    all.collect()
}
