//! Carrying out a single run. What it gives depends on the work alone.

use pbpk::compile::Instance;
use pbpk::run::{Results, RunError, RunOptions, run};
use pbpk::watch::{Interrupt, Watch};

use super::work::{Ask, Work};
use crate::fault::{Fault, Kind};
use crate::models::Library;
use crate::results::{Column, Columns};
use crate::session::apply;

/// The individual of a work: the file's, with what the caller has set.
///
/// # Errors
/// [`Fault`].
pub fn individual(work: &Work, library: &Library, ask: Ask<'_>) -> Result<Instance, Fault> {
    let structure = library.open(&work.model, &work.selection, &Watch::new(Some(ask)))?;
    let mut instance = Instance::new(&structure);
    apply(
        &mut instance,
        work.changed
            .iter()
            .map(|(path, value)| (path.as_str(), *value)),
    )?;
    Ok(instance)
}

/// Runs the individual of a work.
///
/// # Errors
/// [`Fault`]; [`Kind::Cancelled`] and [`Kind::Timeout`] where `ask` ended it.
pub fn execute(
    work: &Work,
    library: &Library,
    ask: Ask<'_>,
    progress: &dyn Fn(f64),
) -> Result<Columns, Fault> {
    let instance = individual(work, library, ask)?;
    let options = RunOptions {
        interrupt: Some(ask),
        progress: Some(progress),
        ..RunOptions::default()
    };
    match run(&instance, &options) {
        Ok(results) => Ok(columns(&results)),
        Err(failure) => Err(ended(&failure.error)),
    }
}

/// Why a run ended early.
pub fn ended(error: &RunError) -> Fault {
    match error {
        RunError::Interrupted {
            cause: Interrupt::Deadline,
            ..
        } => Fault::new(Kind::Timeout, error.to_string()),
        other => Fault::from(other),
    }
}

/// Results, column by column.
fn columns(results: &Results) -> Columns {
    let named = results.paths.iter().zip(&results.units);
    let columns: Vec<Column> = named
        .map(|(path, unit)| Column {
            parameter: path.clone(),
            unit: unit.clone(),
            subject: None,
        })
        .collect();
    let values = (0..columns.len())
        .flat_map(|at| results.column(at))
        .collect();
    Columns {
        times: results.times.clone(),
        columns,
        values,
    }
}
