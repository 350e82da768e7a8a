//! Tables with a column of time and a column for each output.

use super::cell::{cell, point};
use super::{ObservedData, ObservedOutput, ObservedSeries, column, line_of, minutes, wrong};
use crate::csv::{self, CELLS_OF_A_UNIT, CsvError, ResultTable};
use crate::watch::Watch;

/// A column of values with those that belong to it.
struct ValueColumn {
    at: usize,
    deviation: Option<usize>,
    limit: Option<usize>,
}

/// Returns whether a column beside the values has deviations.
fn is_deviation(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["sd", "error", "stdev"]
        .iter()
        .any(|word| name == *word || name.ends_with(&format!(" {word}")))
}

fn is_limit(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "lloq" || name.ends_with(" lloq")
}

pub(super) fn read(table: &ResultTable, watch: &Watch<'_>) -> Result<ObservedData, CsvError> {
    let time = column(table, "Time").ok_or_else(|| wrong(1, "no column named Time"))?;
    let factor = minutes(table, time)?;
    let id = column(table, "IndividualId");
    let mut columns: Vec<ValueColumn> = Vec::new();
    for (at, head) in table.header.iter().enumerate() {
        let name = csv::split_unit(head.trim()).0;
        if at == time || Some(at) == id {
            continue;
        }
        match columns.last_mut() {
            Some(last) if is_deviation(name) => last.deviation = Some(at),
            Some(last) if is_limit(name) => last.limit = Some(at),
            _ => columns.push(ValueColumn {
                at,
                deviation: None,
                limit: None,
            }),
        }
    }
    let mut data = ObservedData::default();
    let mut who: Option<&str> = None;
    for (row, fields) in table.rows.iter().enumerate() {
        watch.work(1 + fields.len() / CELLS_OF_A_UNIT)?;
        let line = line_of(table, row);
        let text = |at: usize| fields.get(at).map_or("", String::as_str);
        let number = |at: Option<usize>| match at {
            None => Ok(None),
            Some(at) => csv::number(text(at))
                .map(Some)
                .ok_or_else(|| wrong(line, format!("{:?} is not a number", text(at)))),
        };
        let now = id.map_or("", text);
        if who != Some(now) {
            who = Some(now);
            for value in &columns {
                let head = table.header.get(value.at).map_or("", |head| head.trim());
                let (name, unit) = csv::split_unit(head);
                let output = ObservedOutput::Path(name.to_owned());
                data.series.push(ObservedSeries::new(output, unit));
            }
        }
        let Some(time) = number(Some(time))?.filter(|time| !time.is_nan()) else {
            return Err(wrong(line, "a row without a time"));
        };
        let first = data.series.len().saturating_sub(columns.len());
        let own = data.series.get_mut(first..).unwrap_or_default();
        for (value, series) in columns.iter().zip(own) {
            let cell = cell(text(value.at))
                .ok_or_else(|| wrong(line, format!("{:?} is not a number", text(value.at))))?;
            let point = point(
                time * factor,
                cell,
                number(value.limit)?,
                number(value.deviation)?,
            );
            series
                .points
                .extend(point.map_err(|what| wrong(line, what))?);
        }
    }
    Ok(data)
}
