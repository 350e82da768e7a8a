//! `sim export`: write the model in another format.

use std::io::Write;

use super::args::{ExportArgs, ExportFormat};
use super::failure::CommandFailure;
use super::model;
use crate::export;
use crate::model::ValueSource;
use crate::watch::Watch;

pub(super) fn run(
    args: &ExportArgs,
    out: &mut dyn Write,
    err: &mut (dyn Write + Send),
) -> Result<(), CommandFailure> {
    let deadline = model::Deadline::of(&args.timeout)?;
    let ask = || deadline.ask();
    let watch = Watch::new(Some(&ask));
    let mut opened = model::open(&args.model, &deadline, err)?;
    let outputs = opened.outputs();
    let instance = model::individual(opened.clone(), outputs, &args.model, &deadline)?;
    // Values set on the command line are part of the written model.
    let numbers = instance.values();
    for (position, (quantity, value)) in opened.quantities.iter_mut().zip(numbers).enumerate() {
        if instance.is_set(position) {
            quantity.source = ValueSource::Constant(*value);
        }
    }
    // Written whole before the file is touched: a refusal leaves no half of a file behind.
    let mut text = Vec::new();
    let written = match args.format {
        ExportFormat::Simmodel => export::simmodel_watched(&opened, &mut text, &watch),
        ExportFormat::Sbml => {
            let numbers = args.numbers.then_some(numbers);
            export::sbml_watched(&opened, numbers, &mut text, &watch)
        }
    };
    written.map_err(|e| CommandFailure::failure(e.to_string()))?;
    model::to_file(&args.file, &args.model.model, out, |w| w.write_all(&text))
}
