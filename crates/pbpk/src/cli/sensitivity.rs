//! `sim sensitivity`: what outputs and their pharmacokinetic parameters depend on.

use std::io::Write;
use std::path::Path;

use super::args::SensitivityArgs;
use super::failure::CommandFailure;
use super::json::JsonWriter;
use super::{model, table};
use crate::compile::Instance;
use crate::csv;
use crate::model::{Model, QuantityKind};
use crate::run::RunOptions;
use crate::sensitivity::{SensitivityError, VariationScheme, figures, of_parameter};
use crate::watch::Watch;
use crate::{path, usage};

/// Rows of a table that make a unit of work.
const ROWS_OF_A_UNIT: usize = 8;

/// One line of the result: output, parameter, what was looked at, value.
type Row = (String, String, LineSubject, f64);

/// Subject of a line.
enum LineSubject {
    /// A kinetic parameter of the output.
    Figure(&'static str),
    /// A time in minutes.
    Time(f64),
}

impl LineSubject {
    fn text(&self) -> String {
        match self {
            Self::Figure(name) => (*name).to_owned(),
            Self::Time(time) => table::short(*time),
        }
    }
}

pub(super) fn run(
    args: &SensitivityArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let scheme = scheme(args)?;
    let deadline = model::Deadline::new(&args.solver)?;
    let model = model::open(&args.model, &deadline, err)?;
    let outputs = model::outputs(&model, &args.output, err)?;
    let parameters = parameters(&model, &args.parameters)?;
    let instance = model::individual(model, outputs, &args.model, &deadline)?;
    let rows = if args.exact {
        exact(args, &instance, &parameters, &deadline, out, err)?
    } else {
        by_scheme(args, &instance, &parameters, &scheme, &deadline, err)?
    };
    let head = if args.exact { "at [min]" } else { "figure" };
    if let Some(file) = args.csv.as_ref().filter(|_| !args.exact) {
        write_table(file, args, &rows, out)?;
    }
    if args.json {
        let text = JsonWriter::object(|j| {
            j.string("osp_version", args.solver.osp_version.name());
            j.list(
                "sensitivities",
                rows.iter(),
                |j, (output, parameter, at, value)| {
                    j.string("output", output);
                    j.string("parameter", parameter);
                    match at {
                        LineSubject::Figure(name) => j.string("figure", name),
                        LineSubject::Time(time) => j.number("time_min", *time),
                    }
                    j.number("value", *value);
                },
            );
        });
        return Ok(out.write_all(text.as_bytes())?);
    }
    if args.csv.is_some() {
        return Ok(());
    }
    let cells = |(output, parameter, at, value): &Row| {
        vec![
            output.clone(),
            parameter.clone(),
            at.text(),
            table::short(*value),
        ]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    Ok(table::write(
        out,
        &["output", "parameter", head, "sensitivity"],
        &rows,
        2,
    )?)
}

fn scheme(args: &SensitivityArgs) -> Result<VariationScheme, CommandFailure> {
    let positive = |v: f64| v.is_finite() && v > 0.0;
    if !positive(args.range) || args.steps == 0 {
        let message = "--range must be a positive number, --steps at least 1";
        return Err(CommandFailure::misuse(message.to_owned()));
    }
    Ok(VariationScheme {
        range: args.range,
        steps: args.steps,
        ..VariationScheme::default()
    })
}

/// Positions of the parameters asked for; by default all that the file lets vary and something uses.
fn parameters(model: &Model, patterns: &[String]) -> Result<Vec<usize>, CommandFailure> {
    let mut chosen = Vec::new();
    for pattern in patterns {
        for q in path::find_among(model, pattern, |q| q.kind != QuantityKind::Observer)? {
            if !chosen.contains(&q) {
                chosen.push(q);
            }
        }
    }
    if patterns.is_empty() {
        let used = usage::of_model(model);
        chosen.extend(used.into_iter().filter(|q| {
            model
                .quantities
                .get(*q)
                .is_some_and(|q| q.kind == QuantityKind::Parameter && q.can_be_varied)
        }));
    }
    Ok(chosen)
}

fn path_of(instance: &Instance, q: usize) -> String {
    let quantity = instance.structure().model().quantities.get(q);
    quantity.map_or_else(String::new, |q| q.path.clone())
}

/// Returns the suite's scheme: runs with changed values.
fn by_scheme(
    args: &SensitivityArgs,
    instance: &Instance,
    parameters: &[usize],
    scheme: &VariationScheme,
    deadline: &model::Deadline,
    err: &mut (dyn Write + Send),
) -> Result<Vec<Row>, CommandFailure> {
    let results = model::run(instance, &args.solver, deadline, err)?;
    let interrupt = || deadline.ask();
    let base = figures(instance, &results, &Watch::new(Some(&interrupt)));
    let base = base.map_err(|cause| CommandFailure::failure(cause.to_string()))?;
    let options = RunOptions {
        interrupt: Some(&interrupt),
        ..model::options(&args.solver)
    };
    let mut rows = Vec::new();
    for &q in parameters {
        let path = path_of(instance, q);
        let entries = match of_parameter(instance, q, &base, scheme, &options) {
            Ok(entries) => entries,
            // Of many parameters those without a scale, or at a bound of the file, are only reported.
            Err(e @ (SensitivityError::NoScale { .. } | SensitivityError::Set(_)))
                if parameters.len() > 1 =>
            {
                writeln!(err, "warning: {e}")?;
                continue;
            }
            Err(SensitivityError::Run(failure)) => return Err(failure.into()),
            Err(e @ SensitivityError::Interrupted(_)) => {
                return Err(CommandFailure::failure(e.to_string()));
            }
            Err(SensitivityError::Set(e)) => return Err(e.into()),
            Err(e) => return Err(CommandFailure::misuse(e.to_string())),
        };
        rows.extend(entries.into_iter().map(|e| {
            let output = results.paths.get(e.output).cloned().unwrap_or_default();
            (output, path.clone(), LineSubject::Figure(e.figure), e.value)
        }));
    }
    Ok(rows)
}

/// Exact derivatives by time, times the parameter and over the peak of the output; rows hold the largest. With `--csv`
/// the derivatives themselves are written.
fn exact(
    args: &SensitivityArgs,
    instance: &Instance,
    parameters: &[usize],
    deadline: &model::Deadline,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<Vec<Row>, CommandFailure> {
    let options = RunOptions {
        sensitivity_to: parameters,
        ..model::options(&args.solver)
    };
    let results = model::run_with(instance, &options, deadline, err)?;
    let ask = || deadline.ask();
    let watch = Watch::new(Some(&ask));
    if let Some(file) = &args.csv {
        model::to_file(file, &args.model.model, out, |w| {
            let mut line = String::from("Output,Parameter,Time [min],Derivative\n");
            for (o, output) in results.paths.iter().enumerate() {
                for (k, q) in parameters.iter().enumerate() {
                    watch.work(1 + results.times.len() / ROWS_OF_A_UNIT)?;
                    for (t, d) in results.times.iter().zip(results.derivative(o, k)) {
                        csv::push_field(&mut line, output);
                        line.push(',');
                        csv::push_field(&mut line, &path_of(instance, *q));
                        line.push(',');
                        csv::push_number(&mut line, *t);
                        line.push(',');
                        csv::push_number(&mut line, d);
                        line.push('\n');
                    }
                    w.write_all(line.as_bytes())?;
                    line.clear();
                }
            }
            Ok(())
        })?;
    }
    let mut rows = Vec::new();
    for (o, output) in results.paths.iter().enumerate() {
        let peak = results.column(o).filter(|v| v.is_finite());
        let peak = peak.fold(0.0, |peak: f64, v| peak.max(v.abs()));
        for (k, q) in parameters.iter().enumerate() {
            let counted = watch.work(1 + results.times.len() / ROWS_OF_A_UNIT);
            counted.map_err(|cause| CommandFailure::failure(cause.to_string()))?;
            let scale = instance.value(*q).unwrap_or(f64::NAN) / peak;
            let largest = results
                .times
                .iter()
                .zip(results.derivative(o, k))
                .filter(|(_, d)| d.is_finite())
                .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
            let (time, value) = largest.unwrap_or((&f64::NAN, f64::NAN));
            rows.push((
                output.clone(),
                path_of(instance, *q),
                LineSubject::Time(*time),
                value * scale,
            ));
        }
    }
    Ok(rows)
}

/// The rows as the suite's table.
fn write_table(
    file: &Path,
    args: &SensitivityArgs,
    rows: &[Row],
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    model::to_file(file, &args.model.model, out, |w| {
        let mut text = String::from("QuantityPath,Parameter,PKParameter,Value\n");
        for (output, parameter, at, value) in rows {
            for field in [output, parameter, &at.text()] {
                csv::push_field(&mut text, field);
                text.push(',');
            }
            csv::push_number(&mut text, *value);
            text.push('\n');
        }
        w.write_all(text.as_bytes())
    })
}
