//! Cells that hold measured values.

use super::ObservedPoint;
use crate::csv;

/// A cell that holds a measured value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum MeasuredCell {
    Missing,
    Number(f64),
    /// Below this limit.
    Below(f64),
    /// Below a limit that is given elsewhere.
    BelowLimit,
}

/// Words by which laboratories write that a value is below the limit of quantification.
const BELOW: [&str; 5] = ["blq", "bql", "bloq", "<lloq", "lloq"];

/// Reads a cell: a number, nothing, `<limit` or a word of [`BELOW`].
pub(super) fn cell(text: &str) -> Option<MeasuredCell> {
    let text = text.trim();
    if text.is_empty() || text == "." {
        return Some(MeasuredCell::Missing);
    }
    if BELOW.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Some(MeasuredCell::BelowLimit);
    }
    if let Some(limit) = text.strip_prefix('<') {
        let limit = csv::number(limit).filter(|limit| limit.is_finite())?;
        return Some(MeasuredCell::Below(limit));
    }
    csv::number(text).map(|number| match number.is_nan() {
        true => MeasuredCell::Missing,
        false => MeasuredCell::Number(number),
    })
}

/// Returns the point of a cell; nothing if the value is missing.
///
/// # Errors
/// A text that says what is wrong.
pub(super) fn point(
    time: f64,
    cell: MeasuredCell,
    limit: Option<f64>,
    deviation: Option<f64>,
) -> Result<Option<ObservedPoint>, String> {
    let limit = limit.filter(|limit| limit.is_finite());
    let (value, is_censored) = match (cell, limit) {
        (MeasuredCell::Missing, _) => return Ok(None),
        (MeasuredCell::Number(value), Some(limit)) if value < limit => (limit, true),
        (MeasuredCell::Number(value), _) => (value, false),
        (MeasuredCell::Below(limit), _) => (limit, true),
        (MeasuredCell::BelowLimit, Some(limit)) => (limit, true),
        (MeasuredCell::BelowLimit, None) => {
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
