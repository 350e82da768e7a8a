//! `sim plot`: draw outputs.

use std::io::Write;

use super::args::PlotArgs;
use super::failure::CommandFailure;
use super::observed::OutputObservations;
use super::{model, observed};
use crate::compile::Instance;
use crate::observed::ObservedPoint;
use crate::path::DisplayUnit;
use crate::plot::{self, MeasuredPoints, PlotOptions, PlotOverlay, TerminalOptions, TimeUnit};

pub(super) fn run(
    args: &PlotArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    model::check_units(&args.unit)?;
    let deadline = model::Deadline::new(&args.solver)?;
    let model = model::open(&args.model, &deadline, err)?;
    let observed = match &args.observed {
        Some(file) => {
            let named = (&args.of, args.output.outputs.as_slice());
            observed::read(file, &model, named, &deadline, err)?
        }
        None => Vec::new(),
    };
    let outputs = if observed.is_empty() || args.output.all || !args.output.outputs.is_empty() {
        model::outputs(&model, &args.output, err)?
    } else {
        let mut outputs: Vec<usize> = observed.iter().map(|o| o.position).collect();
        outputs.sort_unstable();
        outputs.dedup();
        outputs
    };
    if outputs.len() > plot::SERIES_MAX {
        let message = format!(
            "{} outputs are too many for one plot, at most {}",
            outputs.len(),
            plot::SERIES_MAX
        );
        return Err(CommandFailure::misuse(message)
            .with_hint("choose some with --output PATH; * and ** are allowed"));
    }
    let title = args.title.clone().unwrap_or_else(|| model.name.clone());
    let instance = model::individual(model, outputs, &args.model, &deadline)?;
    let displays = model::displays(&instance, &args.unit)?;
    let results = model::run(&instance, &args.solver, &deadline, err)?;
    let curves = model::curves(&model::in_units(results, &displays));
    let overlay = PlotOverlay {
        points: points(observed, &instance, &displays, err)?,
        bands: Vec::new(),
    };
    let options = PlotOptions {
        title,
        log: args.log,
        time_unit: match args.unit.time_unit.as_str() {
            "h" => Some(TimeUnit::Hours),
            "day(s)" | "d" => Some(TimeUnit::Days),
            _ => None,
        },
    };
    let failed = |e: plot::PlotError| CommandFailure::failure(e.to_string());
    match &args.svg {
        Some(file) => {
            let text = plot::svg_with(&curves, &overlay, &options).map_err(failed)?;
            model::to_file(file, &args.model.model, out, |w| {
                w.write_all(text.as_bytes())
            })
        }
        None => {
            let terminal = TerminalOptions {
                columns: args.width,
                ascii: args.ascii,
                ..TerminalOptions::default()
            };
            let text = plot::terminal(&curves, &options, &terminal).map_err(failed)?;
            Ok(out.write_all(text.as_bytes())?)
        }
    }
}

/// Returns the data as points of the curves that are drawn, in their units.
fn points(
    observed: Vec<OutputObservations>,
    instance: &Instance,
    displays: &[Option<DisplayUnit>],
    err: &mut (dyn Write + Send),
) -> Result<Vec<MeasuredPoints>, CommandFailure> {
    let outputs = instance.structure().outputs();
    let quantities = &instance.structure().model().quantities;
    let mut all = Vec::new();
    for data in observed {
        let name = quantities
            .get(data.position)
            .map_or("", |q| q.path.as_str());
        let Some(curve) = outputs.iter().position(|q| *q == data.position) else {
            writeln!(
                err,
                "warning: '{name}' is observed and not drawn; add --output"
            )?;
            continue;
        };
        let display = displays.get(curve).copied().flatten();
        let shown = |v: f64| display.map_or(v, |d| d.of_base(v));
        let data = data.in_base(instance)?;
        let points = || data.points.iter();
        let deviation = |p: &ObservedPoint| p.deviation.map_or(0.0, |sd| shown(sd) - shown(0.0));
        all.push(MeasuredPoints {
            name: format!("observed: {name}"),
            curve,
            times: points().map(|p| p.time).collect(),
            values: points().map(|p| shown(p.value)).collect(),
            deviations: points().map(deviation).collect(),
            censored: points().map(|p| p.is_censored).collect(),
        });
    }
    Ok(all)
}
