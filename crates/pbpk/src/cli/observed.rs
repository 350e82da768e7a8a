//! Observed data of the command line: a column `Time [unit]` and one column `path [unit]` for each output.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::failure::Failure;
use super::model::Deadline;
use crate::csv;
use crate::model::Model;
use crate::path;
use crate::watch::Watch;

/// Observations of one output in one individual.
pub(super) struct Observed {
    /// Position of the output's quantity.
    pub(super) position: usize,
    /// Times in minutes.
    pub(super) times: Vec<f64>,
    /// Values in base units.
    pub(super) values: Vec<f64>,
}

/// Reads the data; empty cells are left out.
pub(super) fn read(
    file: &Path,
    model: &Model,
    deadline: &Deadline,
) -> Result<Vec<Observed>, Failure> {
    let ask = || deadline.ask();
    let watch = Watch::new(Some(&ask));
    let name = file.display();
    let opened =
        File::open(file).map_err(|e| Failure::failed(format!("cannot read {name}: {e}")))?;
    let read = csv::results_watched(&mut BufReader::new(opened), &watch);
    let read = read.map_err(|e| Failure::failed(format!("{name}: {e}")))?;
    let mut all = Vec::new();
    for individual in read {
        for series in &individual.curves.series {
            let position = path::find_one(model, &series.name)?;
            let Some(quantity) = model.quantities.get(position) else {
                continue;
            };
            let unit = (!series.unit.is_empty()).then_some(series.unit.as_str());
            let mut observed = Observed {
                position,
                times: Vec::new(),
                values: Vec::new(),
            };
            for (i, &time) in individual.curves.times.iter().enumerate() {
                if let Some(value) = series.at(i).filter(|v| !v.is_nan()) {
                    observed.times.push(time);
                    observed.values.push(path::to_base(quantity, value, unit)?);
                }
            }
            all.push(observed);
        }
    }
    Ok(all)
}
