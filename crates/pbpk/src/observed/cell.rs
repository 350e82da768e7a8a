//! Cells that hold measured values.

use super::ObservedPoint;
use crate::csv;

/// A cell that holds a measured value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell {
    Missing,
    Number(f64),
    /// Below this limit.
    Below(f64),
    /// Below a limit that stands elsewhere.
    BelowLimit,
}

/// Words by which laboratories write that a value is below the limit of quantification.
const BELOW: [&str; 5] = ["blq", "bql", "bloq", "<lloq", "lloq"];

/// Reads a cell: a number, nothing, `<limit` or a word of [`BELOW`].
pub(super) fn cell(text: &str) -> Option<Cell> {
    let text = text.trim();
    if text.is_empty() || text == "." {
        return Some(Cell::Missing);
    }
    if BELOW.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Some(Cell::BelowLimit);
    }
    if let Some(limit) = text.strip_prefix('<') {
        let limit = csv::number(limit).filter(|limit| limit.is_finite())?;
        return Some(Cell::Below(limit));
    }
    csv::number(text).map(|number| match number.is_nan() {
        true => Cell::Missing,
        false => Cell::Number(number),
    })
}

/// Returns the point of a cell; nothing where the value is missing.
///
/// # Errors
/// A text that says what is wrong.
pub(super) fn point(
    time: f64,
    cell: Cell,
    limit: Option<f64>,
    deviation: Option<f64>,
) -> Result<Option<ObservedPoint>, String> {
    let limit = limit.filter(|limit| limit.is_finite());
    let (value, is_censored) = match (cell, limit) {
        (Cell::Missing, _) => return Ok(None),
        (Cell::Number(value), Some(limit)) if value < limit => (limit, true),
        (Cell::Number(value), _) => (value, false),
        (Cell::Below(limit), _) => (limit, true),
        (Cell::BelowLimit, Some(limit)) => (limit, true),
        (Cell::BelowLimit, None) => {
            return Err(
                "a value is below the limit of quantification, and no column LLOQ has the limit; write <LIMIT"
                    .to_owned(),
            );
        }
    };
    Ok(Some(ObservedPoint {
        time,
        value,
        deviation: deviation.filter(|sd| *sd > 0.0),
        is_censored,
    }))
}
