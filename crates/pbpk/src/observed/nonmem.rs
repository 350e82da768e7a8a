//! Tables with one row per record: `ID TIME DV AMT II ADDL SS EVID CMT MDV BLQ LLOQ`, as NONMEM and its kin take them.
//!
//! Records of doses are counted and left out: a model has its own applications.

use super::cell::{MeasuredCell, cell, point};
use super::{
    ObservedData, ObservedOutput, ObservedPoint, ObservedSeries, column, line_of, minutes, wrong,
};
use crate::csv::{self, CELLS_OF_A_UNIT, CsvError, ResultTable};
use crate::watch::Watch;

/// Returns whether the table has the columns of NONMEM and no column of an output.
pub(super) fn is_one(table: &ResultTable) -> bool {
    let has_path = table.header.iter().any(|head| head.contains('|'));
    !has_path && column(table, "TIME").is_some() && column(table, "DV").is_some()
}

/// Columns that a record may have.
struct RecordColumns {
    time: usize,
    value: usize,
    id: Option<usize>,
    amount: Option<usize>,
    event: Option<usize>,
    missing: Option<usize>,
    compartment: Option<usize>,
    below: Option<usize>,
    limit: Option<usize>,
    deviation: Option<usize>,
}

impl RecordColumns {
    fn new(table: &ResultTable) -> Result<Self, CsvError> {
        let named = |name: &str| column(table, name);
        let needed = |name: &str| named(name).ok_or_else(|| wrong(1, format!("no column {name}")));
        Ok(Self {
            time: needed("TIME")?,
            value: needed("DV")?,
            id: named("ID"),
            amount: named("AMT"),
            event: named("EVID"),
            missing: named("MDV"),
            compartment: named("CMT"),
            below: named("BLQ"),
            limit: named("LLOQ"),
            deviation: named("SD"),
        })
    }
}

/// One row.
struct NonmemRecord<'a> {
    id: &'a str,
    compartment: Option<&'a str>,
    is_dose: bool,
    /// The value, if the row has one.
    observed: Option<ObservedPoint>,
}

impl RecordColumns {
    /// Reads a row; times are multiplied by `factor`.
    fn record<'a>(
        &self,
        fields: &'a [String],
        (line, factor): (usize, f64),
    ) -> Result<NonmemRecord<'a>, CsvError> {
        let text = |at: Option<usize>| {
            let text = at.and_then(|at| fields.get(at)).map_or("", |f| f.trim());
            if text == "." { "" } else { text }
        };
        let not_a_number = |text: &str| wrong(line, format!("{text:?} is not a number"));
        let number = |at: Option<usize>| match text(at) {
            "" => Ok(None),
            text => csv::number(text)
                .map(Some)
                .ok_or_else(|| not_a_number(text)),
        };
        let is_set = |at| Ok::<_, CsvError>(number(at)?.is_some_and(|flag| flag != 0.0));
        let event = number(self.event)?.unwrap_or(0.0);
        let has_amount = number(self.amount)?.is_some_and(|amount| amount > 0.0);
        let compartment = Some(text(self.compartment)).filter(|text| !text.is_empty());
        let mut record = NonmemRecord {
            id: text(self.id),
            compartment,
            is_dose: has_amount || event == 1.0 || event == 4.0,
            observed: None,
        };
        let value = text(Some(self.value));
        let value = cell(value).ok_or_else(|| not_a_number(value))?;
        if event != 0.0 || is_set(self.missing)? || value == MeasuredCell::Missing {
            return Ok(record);
        }
        let time =
            number(Some(self.time))?.ok_or_else(|| wrong(line, "an observation without a time"))?;
        let limit = number(self.limit)?;
        let value = match (value, is_set(self.below)?, limit) {
            (MeasuredCell::Number(_), true, Some(limit)) => MeasuredCell::Below(limit),
            (MeasuredCell::Number(value), true, None) => MeasuredCell::Below(value),
            (value, _, _) => value,
        };
        let observed = point(time * factor, value, limit, number(self.deviation)?);
        record.observed = observed.map_err(|what| wrong(line, what))?;
        Ok(record)
    }
}

/// Unit of a column, empty if its head names none.
fn unit(table: &ResultTable, at: usize) -> &str {
    let head = table.header.get(at).map_or("", |head| head.trim());
    csv::split_unit(head).1
}

pub(super) fn read(table: &ResultTable, watch: &Watch<'_>) -> Result<ObservedData, CsvError> {
    let columns = RecordColumns::new(table)?;
    let factor = minutes(table, columns.time)?;
    let mut data = ObservedData::default();
    if unit(table, columns.time).is_empty() {
        data.warnings
            .push("TIME has no unit and is read in minutes; name it TIME [h] for hours".to_owned());
    }
    let (mut doses, mut keys) = (0_usize, Vec::<(&str, Option<&str>)>::new());
    for (row, fields) in table.rows.iter().enumerate() {
        watch.work(1 + fields.len() / CELLS_OF_A_UNIT)?;
        let record = columns.record(fields, (line_of(table, row), factor))?;
        doses += usize::from(record.is_dose);
        let Some(point) = record.observed else {
            continue;
        };
        let key = (record.id, record.compartment);
        let place = keys.iter().position(|known| *known == key);
        let place = place.unwrap_or_else(|| {
            let output = ObservedOutput::Compartment(key.1.map(str::to_owned));
            let series = ObservedSeries::new(output, unit(table, columns.value));
            data.series.push(series);
            keys.push(key);
            keys.len() - 1
        });
        if let Some(series) = data.series.get_mut(place) {
            series.points.push(point);
        }
    }
    if doses > 0 {
        data.warnings.push(format!(
            "{doses} records of doses are left out: the model has applications of its own; change those with --param"
        ));
    }
    Ok(data)
}
