//! Observed data of the command line: read from a table, bound to outputs of the model.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::path::Path;

use super::args::ObservedArgs;
use super::failure::CommandFailure;
use super::model::Deadline;
use crate::compile::Instance;
use crate::model::Model;
use crate::observed::{self, ObservedOutput, ObservedPoint};
use crate::path;
use crate::watch::Watch;

/// Observations of one output in one individual.
pub(super) struct OutputObservations {
    /// Position of the output's quantity.
    pub(super) position: usize,
    unit: String,
    /// Values in the unit of the table, until [`OutputObservations::in_base`].
    pub(super) points: Vec<ObservedPoint>,
}

impl OutputObservations {
    /// Returns the same in base units; a mass is taken for an amount by molecular weight.
    pub(super) fn in_base(mut self, individual: &Instance) -> Result<Self, CommandFailure> {
        let unit = (!self.unit.is_empty()).then_some(self.unit.as_str());
        let base = |value| path::in_base(individual, self.position, value, unit);
        let zero = base(0.0)?;
        for point in &mut self.points {
            point.value = base(point.value)?;
            if let Some(deviation) = &mut point.deviation {
                *deviation = base(*deviation)? - zero;
            }
        }
        Ok(self)
    }
}

/// Reads the data, a text or a workbook; empty cells are left out, warnings go to `err`. `of` says which output the column
/// DV of a NONMEM-like table is of: `OUTPUT` or `CMT=OUTPUT`; without it, the only output of `chosen`.
pub(super) fn read(
    file: &Path,
    model: &Model,
    (of, chosen): (&ObservedArgs, &[String]),
    deadline: &Deadline,
    err: &mut (dyn Write + Send),
) -> Result<Vec<OutputObservations>, CommandFailure> {
    let ask = || deadline.ask();
    let watch = Watch::new(Some(&ask));
    let name = file.display();
    let failed = |e: std::io::Error| CommandFailure::failure(format!("cannot read {name}: {e}"));
    let mut opened = BufReader::new(File::open(file).map_err(failed)?);
    let read = match tables::is_workbook(opened.fill_buf().map_err(failed)?) {
        true => {
            let mut bytes = Vec::new();
            let mut bounded = opened.take(tables::WORKBOOK_BYTES_MAX + 1);
            bounded.read_to_end(&mut bytes).map_err(failed)?;
            let sheet = tables::read_sheet(&bytes, of.sheet.as_deref())
                .map_err(|e| CommandFailure::failure(format!("{name}: {e}")))?;
            observed::read_table(observed::sheet_table(sheet.rows), &watch)
        }
        false => observed::read(&mut opened, &watch),
    };
    let read = read.map_err(|e| CommandFailure::failure(format!("{name}: {e}")))?;
    for warning in &read.warnings {
        writeln!(err, "warning: {name}: {warning}")?;
    }
    let mut all = Vec::new();
    for series in read.series {
        let position = match &series.output {
            ObservedOutput::Path(path) => path::find_one(model, path)?,
            ObservedOutput::Compartment(number) => {
                output_of(model, number.as_deref(), &of.dv, chosen)?
            }
        };
        all.push(OutputObservations {
            position,
            unit: series.unit,
            points: series.points,
        });
    }
    Ok(all)
}

/// Returns the output that the values of a compartment were measured of.
fn output_of(
    model: &Model,
    number: Option<&str>,
    named: &[String],
    chosen: &[String],
) -> Result<usize, CommandFailure> {
    let of_number = number.and_then(|number| {
        named.iter().find_map(|text| {
            let (before, path) = text.split_once('=')?;
            (before.trim() == number).then_some(path)
        })
    });
    let of_all = || named.iter().find(|text| !text.contains('='));
    let selected = || match (chosen, model.selections.as_slice()) {
        ([one], _) | ([], [one]) => Some(one),
        _ => None,
    };
    let found = of_number
        .or_else(|| of_all().map(String::as_str))
        .or_else(|| selected().map(String::as_str));
    match found {
        Some(path) => Ok(path::find_one(model, path.trim())?),
        None => {
            let cmt = number.map_or(String::new(), |number| format!(" of CMT {number}"));
            let message = format!("the data do not say which output DV{cmt} is");
            let example = number.map_or("OUTPUT".to_owned(), |number| format!("{number}=OUTPUT"));
            let hint = format!("name it with --dv '{example}'");
            Err(CommandFailure::misuse(message).with_hint(&hint))
        }
    }
}
