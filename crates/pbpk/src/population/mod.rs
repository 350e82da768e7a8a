//! Many individuals of one model: a table of parameter values, one row each, in the format of the suite or drawn from
//! distributions.
//!
//! The model is compiled once. [`run_chunk`] is pure: its result depends on the model, the rows of its range and the
//! options, not on what ran before or beside it.

mod cohort;
mod correlation;
mod table;

use std::ops::Range;

pub use cohort::{Cohort, Distribution, Varied};
pub use correlation::Correlation;
pub use table::{Column, Population, PopulationError};

use crate::compile::{Changes, Instance};
use crate::error::SetError;
use crate::model::Quantity;
use crate::path;
use crate::run::{Results, RunOptions, run};

/// Most individuals of a population.
pub const INDIVIDUALS_MAX: usize = 10_000_000;

/// A population bound to a model: which column sets which quantity.
#[derive(Debug)]
pub struct Plan {
    base: Instance,
    changes: Changes,
    /// The same, as far as runs read it.
    for_runs: Changes,
    /// Column of the population for each change, with the factor and offset of its unit.
    columns: Vec<(usize, f64, f64)>,
}

impl Plan {
    /// Binds the columns to the quantities of the model; also the names of the columns that the model does not have.
    ///
    /// # Errors
    /// [`SetError`] where a unit does not belong to its quantity, or a quantity cannot be set.
    pub fn new(base: Instance, population: &Population) -> Result<(Self, Vec<String>), SetError> {
        let structure = std::sync::Arc::clone(base.structure());
        let model = structure.model();
        let by_path: std::collections::HashMap<&str, (usize, &Quantity)> = model
            .quantities
            .iter()
            .enumerate()
            .map(|(i, q)| (q.path.as_str(), (i, q)))
            .collect();
        let prefix = format!("{}{}", model.name, model.delimiter);
        let (mut positions, mut columns, mut unmatched) = (Vec::new(), Vec::new(), Vec::new());
        for (c, column) in population.columns.iter().enumerate() {
            let full = format!("{prefix}{}", column.path);
            let short = column.path.strip_prefix(&prefix).unwrap_or(&column.path);
            let names = [column.path.as_str(), &full, short];
            let found = names.iter().find_map(|name| by_path.get(name));
            let Some(&(position, quantity)) = found else {
                unmatched.push(column.path.clone());
                continue;
            };
            let unit = (!column.unit.is_empty()).then_some(column.unit.as_str());
            // Units are linear: two values tell factor and offset.
            let offset = path::to_base(quantity, 0.0, unit)?;
            let factor = path::to_base(quantity, 1.0, unit)? - offset;
            positions.push(position);
            columns.push((c, factor, offset));
        }
        let changes = Changes::new(&base, positions)?;
        let plan = Self {
            for_runs: changes.for_runs(&structure),
            base,
            changes,
            columns,
        };
        Ok((plan, unmatched))
    }

    /// How many columns set a quantity.
    #[must_use]
    pub fn matched(&self) -> usize {
        self.columns.len()
    }

    /// Path and unit of each output.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &str)> {
        let structure = self.base.structure();
        let quantities = &structure.model().quantities;
        let found = structure
            .outputs()
            .iter()
            .filter_map(|q| quantities.get(*q));
        found.map(|q| (q.path.as_str(), q.unit.as_str()))
    }

    /// The individual of a row.
    ///
    /// # Errors
    /// [`SetError`] where a value is not a number.
    pub fn individual(&self, population: &Population, row: usize) -> Result<Instance, SetError> {
        self.changed(&self.changes, population, row)
    }

    /// The base with the values of a row.
    fn changed(
        &self,
        changes: &Changes,
        population: &Population,
        row: usize,
    ) -> Result<Instance, SetError> {
        let numbers = population.row(row);
        let value = |&(c, factor, offset): &(usize, f64, f64)| {
            let value = numbers.get(c).copied().unwrap_or(f64::NAN);
            if factor == 1.0 && offset == 0.0 {
                value
            } else {
                value * factor + offset
            }
        };
        let values: Vec<f64> = self.columns.iter().map(value).collect();
        let mut individual = self.base.clone();
        individual.set_all(changes, &values)?;
        Ok(individual)
    }
}

/// What became of one individual.
#[derive(Debug)]
pub struct Outcome {
    /// Its number in the population.
    pub id: i64,
    /// Its curves, or why there are none.
    pub result: Result<Results, String>,
}

/// Runs the individuals of a range of rows, one after another. An individual that fails does not end the others; an
/// interruption does, and is the error of the first one that it met.
pub fn run_chunk(
    plan: &Plan,
    population: &Population,
    range: Range<usize>,
    options: &RunOptions<'_>,
    mut each: impl FnMut(Outcome),
) -> Result<(), crate::watch::Interrupt> {
    for row in range {
        let id = population.id(row);
        let result = match plan.changed(&plan.for_runs, population, row) {
            Err(e) => Err(e.to_string()),
            Ok(individual) => match run(&individual, options) {
                Ok(results) => Ok(results),
                Err(failure) => match failure.error {
                    crate::run::RunError::Interrupted { cause, .. } => return Err(cause),
                    error => Err(error.to_string()),
                },
            },
        };
        each(Outcome { id, result });
    }
    Ok(())
}
