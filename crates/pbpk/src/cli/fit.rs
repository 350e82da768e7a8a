//! `sim fit`: parameters from observed data.

use std::io::Write;
use std::path::PathBuf;

use super::args::{FitArgs, IntervalChoice};
use super::failure::CommandFailure;
use super::json::JsonWriter;
use super::{model, observed, table};
use crate::compile::Instance;
use crate::csv;
use crate::fit::{
    FitError, FitParameter, FitProblem, FitResult, IntervalMethod, LikelihoodOptions,
    LikelihoodSummary, Observation, ResidualModel, fit,
};
use crate::model::{Model, QuantityKind};
use crate::path;
use crate::plot::{self, FittedOutput, PlotOptions};
use crate::run::OspVersion;

pub(super) fn run(
    args: &FitArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let deadline = model::Deadline::new(&args.solver)?;
    let unused = !args.solver.times.is_empty() || args.solver.locate_events;
    if unused || args.solver.max_steps.is_some() || args.solver.once_at_start {
        let message =
            "of the options of a run, fit takes --rtol, --atol, --osp-version and --timeout alone";
        return Err(CommandFailure::misuse(message.to_owned()));
    }
    let model = model::open(&args.model, &deadline, err)?;
    let named = (&args.of, [].as_slice());
    let observed = observed::read(&args.data, &model, named, &deadline, err)?;
    let weights = weights(args, &model)?;
    let parameters = parameters(args, &model)?;
    let mut outputs: Vec<usize> = Vec::new();
    for data in &observed {
        if !outputs.contains(&data.position) {
            outputs.push(data.position);
        }
    }
    let individual = model::individual(model, outputs, &args.model, &deadline)?;
    let observations = observations(args, observed, &weights, &individual, err)?;
    let interrupt = || deadline.ask();
    let problem = FitProblem::new(
        &individual,
        parameters.clone(),
        observations.clone(),
        args.error,
    );
    let mut problem = problem.map_err(|e| CommandFailure::misuse(e.to_string()))?;
    problem.set_watch(&interrupt);
    problem.with_tolerances(args.solver.rtol, args.solver.atol);
    problem.with_release(args.solver.osp_version);
    problem.with_likelihood(LikelihoodOptions {
        starts: usize::from(args.starts),
        seed: args.seed,
        intervals: match args.interval {
            IntervalChoice::Profile => IntervalMethod::Profile,
            IntervalChoice::Hessian => IntervalMethod::Hessian,
        },
    });
    let found = fit(&problem).map_err(|e| match e {
        FitError::Problem(e) => CommandFailure::misuse(e.to_string()),
        e => CommandFailure::failure(e.to_string()),
    })?;
    if !found.converged {
        writeln!(err, "warning: the attempts ran out before the fit settled")?;
    }
    let doubts = found.likelihood.iter().flat_map(|found| &found.warnings);
    for warning in doubts {
        writeln!(err, "warning: {warning}")?;
    }
    let mut write = |file: &PathBuf, text: String| {
        let write = |w: &mut dyn Write| w.write_all(text.as_bytes());
        model::to_file(file, &args.model.model, out, write)
    };
    if let Some(file) = &args.csv {
        write(file, as_csv(&individual, &observations, &found))?;
    }
    if let Some(file) = &args.svg {
        let log = args.error.is_logarithmic();
        write(file, draw_plots(&individual, &observations, &found, log)?)?;
    }
    if args.json {
        return Ok(out.write_all(
            json(&individual, &parameters, &found, args.solver.osp_version).as_bytes(),
        )?);
    }
    let mut files = args.csv.iter().chain(&args.svg);
    if files.any(|f| f.as_os_str() == "-") {
        return Ok(());
    }
    print_fit(&individual, &parameters, &found, observations.len(), out)
}

/// Path and unit of a quantity.
fn path_and_unit(individual: &Instance, q: usize) -> (String, String) {
    let quantity = individual.structure().model().quantities.get(q);
    quantity.map_or_else(Default::default, |q| (q.path.clone(), q.unit.clone()))
}

/// Observed and fitted values, a line each.
fn as_csv(individual: &Instance, observations: &[Observation], found: &FitResult) -> String {
    let outputs = individual.structure().outputs();
    let mut text = String::from("Output,Time [min],Observed,Fitted\n");
    for (o, fitted) in observations.iter().zip(&found.fitted) {
        let q = outputs.get(o.output).copied().unwrap_or_default();
        csv::push_field(&mut text, &path_and_unit(individual, q).0);
        for number in [o.time, o.value, *fitted] {
            text.push(',');
            csv::push_number(&mut text, number);
        }
        text.push('\n');
    }
    text
}

/// Returns the plots of how well the curves fit.
fn draw_plots(
    individual: &Instance,
    observations: &[Observation],
    found: &FitResult,
    log: bool,
) -> Result<String, CommandFailure> {
    let outputs = individual.structure().outputs().iter();
    let mut all: Vec<FittedOutput> = outputs
        .map(|q| {
            let (name, unit) = path_and_unit(individual, *q);
            FittedOutput {
                name,
                unit,
                ..FittedOutput::default()
            }
        })
        .collect();
    for (o, fitted) in observations.iter().zip(&found.fitted) {
        if let Some(output) = all.get_mut(o.output) {
            output.times.push(o.time);
            output.observed.push(o.value);
            output.fitted.push(*fitted);
        }
    }
    let options = PlotOptions {
        title: format!("Fit of {}", individual.structure().model().name),
        log,
        time_unit: None,
    };
    plot::goodness_of_fit(&all, &options).map_err(|e| CommandFailure::failure(e.to_string()))
}

fn print_fit(
    individual: &Instance,
    parameters: &[FitParameter],
    found: &FitResult,
    observations: usize,
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let row = |(p, e): (&FitParameter, &crate::fit::ParameterEstimate)| {
        let (path, unit) = path_and_unit(individual, p.position);
        let start = individual.value(p.position).unwrap_or(f64::NAN);
        let numbers = [start, e.value, e.low, e.high].map(table::short);
        let note = if e.at_bound { "at its bound" } else { "" };
        let cells = [path, unit].into_iter().chain(numbers);
        cells.chain([note.to_owned()]).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = parameters.iter().zip(&found.estimates).map(row).collect();
    table::write(
        out,
        &[
            "parameter",
            "unit",
            "start",
            "estimate",
            "95 % from",
            "to",
            "",
        ],
        &rows,
        2,
    )?;
    if let Some(likelihood) = &found.likelihood {
        return print_likelihood(individual, found, likelihood, observations, out);
    }
    Ok(writeln!(
        out,
        "{}, degrees of freedom: {}, residual standard deviation {}, {}",
        table::count(observations, "observation"),
        found.degrees,
        table::short(found.sigma),
        table::count(found.runs, "run")
    )?)
}

fn print_likelihood(
    individual: &Instance,
    found: &FitResult,
    likelihood: &LikelihoodSummary,
    observations: usize,
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let outputs = individual.structure().outputs();
    for sigma in &likelihood.sigmas {
        let q = outputs.get(sigma.output).copied().unwrap_or_default();
        let (path, unit) = path_and_unit(individual, q);
        let unit = if sigma.kind == "additive" {
            unit
        } else {
            String::new()
        };
        let value = table::short(sigma.value);
        writeln!(
            out,
            "standard deviation of '{path}', {}: {value} {unit}",
            sigma.kind
        )?;
    }
    let numbers = [likelihood.objective, likelihood.aic, likelihood.bic];
    let [objective, aic, bic] = numbers.map(|number| format!("{number:.4}"));
    writeln!(out, "-2 log likelihood {objective}, AIC {aic}, BIC {bic}")?;
    if likelihood.starts.len() > 1 {
        let (best, all) = (likelihood.starts_at_best, likelihood.starts.len());
        writeln!(out, "{best} of {all} starts reached the best")?;
    }
    let observations = table::count(observations, "observation");
    Ok(writeln!(
        out,
        "{observations}, {}",
        table::count(found.runs, "run")
    )?)
}

fn json(
    individual: &Instance,
    parameters: &[FitParameter],
    found: &FitResult,
    release: OspVersion,
) -> String {
    JsonWriter::object(|j| {
        j.string("osp_version", release.name());
        j.list(
            "parameters",
            parameters.iter().zip(&found.estimates),
            |j, (p, e)| {
                let (path, unit) = path_and_unit(individual, p.position);
                j.string("path", &path);
                j.string("unit", &unit);
                j.number("start", individual.value(p.position).unwrap_or(f64::NAN));
                j.number("value", e.value);
                j.number("low", e.low);
                j.number("high", e.high);
                j.flag("at_bound", e.at_bound);
            },
        );
        j.number("sum_of_squares", found.sum_of_squares);
        j.number("sigma", found.sigma);
        j.count("degrees_of_freedom", found.degrees);
        j.count("runs", found.runs);
        j.flag("converged", found.converged);
        let Some(likelihood) = &found.likelihood else {
            return;
        };
        j.number("objective", likelihood.objective);
        j.number("aic", likelihood.aic);
        j.number("bic", likelihood.bic);
        j.list("sigmas", likelihood.sigmas.iter(), |j, sigma| {
            let outputs = individual.structure().outputs();
            let q = outputs.get(sigma.output).copied().unwrap_or_default();
            j.string("output", &path_and_unit(individual, q).0);
            j.string("kind", sigma.kind);
            j.number("value", sigma.value);
        });
        j.list(
            "hessian_intervals",
            likelihood.hessian.iter(),
            |j, (low, high)| {
                j.number("low", *low);
                j.number("high", *high);
            },
        );
        j.list("starts", likelihood.starts.iter(), |j, objective| {
            j.number("objective", *objective);
        });
        j.strings("warnings", &likelihood.warnings);
    })
}

/// Returns the observations in base units, each with its output and weight.
fn observations(
    args: &FitArgs,
    observed: Vec<observed::OutputObservations>,
    weights: &[(usize, f64)],
    individual: &Instance,
    err: &mut (dyn Write + Send),
) -> Result<Vec<Observation>, CommandFailure> {
    let outputs = individual.structure().outputs();
    let mut all = Vec::new();
    let (mut dropped, mut without) = (0_usize, 0_usize);
    for data in observed {
        let data = data.in_base(individual)?;
        let Some(output) = outputs.iter().position(|q| *q == data.position) else {
            continue;
        };
        let weight = weights.iter().find(|w| w.0 == data.position);
        let weight = weight.map_or(1.0, |w| w.1);
        let deviates = data.points.iter().any(|p| p.deviation.is_some());
        for point in &data.points {
            if args.error.is_logarithmic() && point.value <= 0.0 {
                dropped += 1;
                continue;
            }
            let scale = match (point.deviation, args.error) {
                (Some(sd), ResidualModel::Absolute | ResidualModel::Additive) => 1.0 / sd,
                (Some(sd), ResidualModel::Log | ResidualModel::LogNormal) => point.value / sd,
                (_, ResidualModel::Proportional | ResidualModel::Combined) => 1.0,
                (None, _) if deviates && !point.is_censored => {
                    without += 1;
                    continue;
                }
                (None, _) => 1.0,
            };
            all.push(Observation {
                output,
                time: point.time,
                value: point.value,
                weight: weight * scale,
                is_censored: point.is_censored,
            });
        }
    }
    for (count, why) in [
        (dropped, "not positive"),
        (without, "no standard deviation"),
    ] {
        if count > 0 {
            let left_out = table::count(count, "observation");
            writeln!(err, "warning: left out {left_out}: {why}")?;
        }
    }
    Ok(all)
}

/// `PATH=NUMBER`, by position.
fn weights(args: &FitArgs, model: &Model) -> Result<Vec<(usize, f64)>, CommandFailure> {
    let one = |text: &String| {
        let (path, value, unit) = path::parse(text).map_err(CommandFailure::misuse)?;
        if unit.is_some() || !(value > 0.0 && value.is_finite()) {
            return Err(CommandFailure::misuse(format!(
                "--weight '{text}': write PATH=NUMBER, above 0"
            )));
        }
        Ok((path::find_one(model, path)?, value))
    };
    args.weight.iter().map(one).collect()
}

/// `PATH` or `PATH=MIN..MAX`.
fn parameters(args: &FitArgs, model: &Model) -> Result<Vec<FitParameter>, CommandFailure> {
    let one = |text: &String| {
        let wrong =
            || CommandFailure::misuse(format!("--vary '{text}': write PATH or PATH=MIN..MAX"));
        let bounds = text.rsplit_once('=').filter(|(_, b)| b.contains(".."));
        let (name, low, high) = match bounds {
            Some((name, bounds)) => {
                let (low, high) = bounds.split_once("..").ok_or_else(wrong)?;
                let number = |text: &str, none: f64| match text.trim() {
                    "" => Ok(none),
                    text => text.parse::<f64>().map_err(|_| wrong()),
                };
                (
                    name,
                    number(low, f64::NEG_INFINITY)?,
                    number(high, f64::INFINITY)?,
                )
            }
            None => (text.as_str(), f64::NEG_INFINITY, f64::INFINITY),
        };
        let found = path::find_among(model, name, |q| q.kind != QuantityKind::Observer)?;
        match found.as_slice() {
            [position] => Ok(FitParameter {
                position: *position,
                low,
                high,
            }),
            several => Err(CommandFailure::misuse(format!(
                "--vary '{name}' names {} quantities; name one",
                several.len()
            ))),
        }
    };
    args.vary.iter().map(one).collect()
}
