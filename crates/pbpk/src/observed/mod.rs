//! Observed data: tables of measured values, wide or one row per record.
//!
//! A wide table has a column `Time [unit]` and a column `path [unit]` for each output; a column `SD` or `LLOQ` belongs
//! to the output before it. A table with the columns `TIME` and `DV` is read like one of NONMEM. Units are not
//! converted here: that takes a model.

mod cell;
mod nonmem;
mod wide;

use std::fmt;
use std::io::BufRead;

use crate::csv::{self, CsvError, ResultTable};
use crate::watch::Watch;

/// One measured value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ObservedPoint {
    /// Time in minutes.
    pub time: f64,
    /// The value, in the unit of its series; if it is censored, the limit of quantification.
    pub value: f64,
    /// Standard deviation, in the same unit.
    pub deviation: Option<f64>,
    /// Whether the true value is only known to lie below `value`.
    pub is_censored: bool,
}

/// Measured output of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedOutput {
    /// The output of this path.
    Path(String),
    /// The column `DV` of a NONMEM-like table, with the compartment of `CMT` if there is one.
    Compartment(Option<String>),
}

/// Values of one output in one individual.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedSeries {
    /// The measured output.
    pub output: ObservedOutput,
    /// Unit of the values; empty for base units.
    pub unit: String,
    /// The values, in the order of the file.
    pub points: Vec<ObservedPoint>,
}

/// A table of observed data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObservedData {
    /// All series, by individual and column.
    pub series: Vec<ObservedSeries>,
    /// Warnings of reading the table.
    pub warnings: Vec<String>,
}

impl fmt::Display for ObservedOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.write_str(path),
            Self::Compartment(None) => f.write_str("DV"),
            Self::Compartment(Some(number)) => write!(f, "DV of CMT {number}"),
        }
    }
}

impl ObservedSeries {
    fn new(output: ObservedOutput, unit: &str) -> Self {
        Self {
            output,
            unit: unit.to_owned(),
            points: Vec::new(),
        }
    }
}

/// Reads a table of observed data.
///
/// # Errors
/// [`CsvError`] with the line of a cell that is no measured value, for a table without time, and where `watch` ends it.
pub fn read(source: &mut dyn BufRead, watch: &Watch<'_>) -> Result<ObservedData, CsvError> {
    read_table(csv::read_watched(source, watch)?, watch)
}

/// Returns the table of a sheet of a workbook: its first row has the names of the columns.
#[must_use]
pub fn sheet_table(rows: Vec<Vec<String>>) -> ResultTable {
    let mut rows = rows
        .into_iter()
        .skip_while(|row| row.iter().all(String::is_empty));
    ResultTable {
        comments: Vec::new(),
        header: rows.next().unwrap_or_default(),
        rows: rows
            .filter(|row| row.iter().any(|cell| !cell.is_empty()))
            .collect(),
        decimal_commas: false,
    }
}

/// As [`read`], of a table whose cells were read before.
///
/// # Errors
/// As [`read`].
pub fn read_table(mut table: ResultTable, watch: &Watch<'_>) -> Result<ObservedData, CsvError> {
    if table.header.is_empty() {
        let width = table.rows.first().map_or(0, Vec::len);
        let name = |i| match i {
            0 => "Time".to_owned(),
            i => format!("column {i}"),
        };
        table.header = (0..width).map(name).collect();
    }
    let mut data = if nonmem::is_one(&table) {
        nonmem::read(&table, watch)?
    } else {
        wide::read(&table, watch)?
    };
    if table.decimal_commas {
        data.warnings
            .push("numbers with a decimal comma were read".to_owned());
    }
    Ok(data)
}

/// Line of a row of the table, for messages.
fn line_of(table: &ResultTable, row: usize) -> usize {
    row + table.comments.len() + 2
}

fn wrong(line: usize, what: impl Into<String>) -> CsvError {
    CsvError::Line {
        line,
        what: what.into(),
    }
}

/// Returns the position of the column of this name, ignoring case and unit.
fn column(table: &ResultTable, name: &str) -> Option<usize> {
    let is = |head: &String| csv::split_unit(head.trim()).0.eq_ignore_ascii_case(name);
    table.header.iter().position(is)
}

/// Minutes in the unit of the time column.
fn minutes(table: &ResultTable, time: usize) -> Result<f64, CsvError> {
    let unit = table
        .header
        .get(time)
        .map_or("", |head| csv::split_unit(head.trim()).1);
    csv::minutes(unit).ok_or_else(|| wrong(1, format!("unknown time unit {unit}")))
}

#[cfg(test)]
mod tests;
