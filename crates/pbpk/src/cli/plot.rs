//! `sim plot`: draw outputs.

use std::io::Write;

use super::args::PlotArgs;
use super::failure::Failure;
use super::model;
use crate::plot::{self, PlotOptions, TerminalOptions};

pub(super) fn run(
    args: &PlotArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let deadline = model::Deadline::new(&args.solver)?;
    let model = model::open(&args.model, &deadline, err)?;
    let outputs = model::outputs(&model, &args.output, err)?;
    if outputs.len() > plot::SERIES_MAX {
        let message = format!(
            "{} outputs are too many for one plot, at most {}",
            outputs.len(),
            plot::SERIES_MAX
        );
        return Err(Failure::misuse(message)
            .with_hint("choose some with --output PATH; * and ** are allowed"));
    }
    let title = args.title.clone().unwrap_or_else(|| model.name.clone());
    let instance = model::individual(model, outputs, &args.model, &deadline)?;
    let results = model::run(&instance, &args.solver, &deadline, err)?;
    let curves = model::curves(&results);
    let options = PlotOptions {
        title,
        log: args.log,
        time_unit: None,
    };
    let failed = |e: plot::PlotError| Failure::failed(e.to_string());
    match &args.svg {
        Some(file) => {
            let text = plot::svg(&curves, &options).map_err(failed)?;
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
