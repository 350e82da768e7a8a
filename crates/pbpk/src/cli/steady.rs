//! `sim steady`: where all states end up.

use std::io::Write;

use super::args::SteadyArgs;
use super::failure::CommandFailure;
use super::json::JsonWriter;
use super::{model, table};
use crate::csv;
use crate::model::Model;
use crate::path;
use crate::run::OspVersion;
use crate::steady::{SteadyError, SteadyOptions, steady};

/// Most states named in a message.
const NAMED_MAX: usize = 5;

/// A state: its path and unit, if it starts, and its end value.
type Row = (String, String, f64, f64);

pub(super) fn run(
    args: &SteadyArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let defaults = SteadyOptions::default();
    let wanted = SteadyOptions {
        change_max: positive("--change", args.change)?,
        until: positive("--until", args.until)?,
        from: defaults.from.min(args.until / 2.0),
    };
    if !args.solver.times.is_empty() {
        let message = "--times has no meaning here; --until says how long to run";
        return Err(CommandFailure::misuse(message.to_owned()));
    }
    let deadline = model::Deadline::new(&args.solver)?;
    let model = model::open(&args.model, &deadline, err)?;
    let outputs = model.states();
    if outputs.is_empty() {
        return Err(CommandFailure::failure(
            "the model has no states".to_owned(),
        ));
    }
    let ignored = ignored(args, &model, &outputs)?;
    let individual = model::individual(model, outputs.clone(), &args.model, &deadline)?;
    let interrupt = || deadline.ask();
    let options = crate::run::RunOptions {
        interrupt: Some(&interrupt),
        ..model::options(&args.solver)
    };
    let quantities = &individual.structure().model().quantities;
    let path = |o: usize| {
        let quantity = outputs.get(o).and_then(|q| quantities.get(*q));
        quantity.map_or("", |q| q.path.as_str())
    };
    let found = steady(&individual, &ignored, &wanted, &options).map_err(|e| match &e {
        SteadyError::Run(_) => CommandFailure::failure(e.to_string()),
        SteadyError::Changing { outputs, .. } => {
            let named: Vec<&str> = outputs.iter().take(NAMED_MAX).map(|o| path(*o)).collect();
            CommandFailure::failure(format!("{e}: {}", named.join(", "))).with_hint(
                "raise --until; --ignore PATH leaves out what only grows, such as amounts excreted",
            )
        }
    })?;
    let rows = (outputs.iter().zip(&found.values)).filter_map(|(q, value)| {
        let quantity = quantities.get(*q)?;
        let start = individual.value(*q).unwrap_or(f64::NAN);
        Some((quantity.path.clone(), quantity.unit.clone(), start, *value))
    });
    let rows: Vec<Row> = rows.collect();
    if let Some(file) = &args.csv {
        model::to_file(file, &args.model.model, out, |w| {
            w.write_all(as_csv(&rows).as_bytes())
        })?;
        if !args.json {
            return Ok(());
        }
    }
    if args.json {
        return Ok(out.write_all(as_json(found.time, &rows, args.solver.osp_version).as_bytes())?);
    }
    print_state(found.time, &rows, out)
}

fn print_state(time: f64, rows: &[Row], out: &mut dyn Write) -> Result<(), CommandFailure> {
    writeln!(out, "steady after {} min", table::short(time))?;
    let cells = |(path, unit, start, value): &Row| {
        let numbers = [*start, *value].map(table::short);
        [path.clone(), unit.clone()]
            .into_iter()
            .chain(numbers)
            .collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    Ok(table::write(
        out,
        &["state", "unit", "start", "steady"],
        &rows,
        2,
    )?)
}

fn as_json(time: f64, rows: &[Row], release: OspVersion) -> String {
    JsonWriter::object(|j| {
        j.string("osp_version", release.name());
        j.number("time_min", time);
        j.list("states", rows.iter(), |j, (path, unit, start, value)| {
            j.string("path", path);
            j.string("unit", unit);
            j.number("start", *start);
            j.number("steady", *value);
        });
    })
}

fn as_csv(rows: &[Row]) -> String {
    let mut text = String::from("Path,Unit,Start,Steady\n");
    for (path, unit, start, value) in rows {
        csv::push_field(&mut text, path);
        text.push(',');
        csv::push_field(&mut text, unit);
        for number in [*start, *value] {
            text.push(',');
            csv::push_number(&mut text, number);
        }
        text.push('\n');
    }
    text
}

fn positive(name: &str, value: f64) -> Result<f64, CommandFailure> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(CommandFailure::misuse(format!(
            "{name} must be a positive number"
        )))
    }
}

/// Places among the outputs of what `--ignore` names.
fn ignored(
    args: &SteadyArgs,
    model: &Model,
    outputs: &[usize],
) -> Result<Vec<usize>, CommandFailure> {
    let mut places = Vec::new();
    for pattern in &args.ignore {
        for q in path::find(model, pattern)? {
            places.extend(outputs.iter().position(|o| *o == q));
        }
    }
    Ok(places)
}
