//! Numbers as clients read them.

use pbpk::pk::Curve;
use serde_json::{Value, json};

use super::columns::Columns;
use crate::figures::{number, unit};

/// One point of a curve.
#[must_use]
pub fn time_value(time: f64, value: f64) -> Value {
    json!({"time": number(time), "value": number(value)})
}

/// Returns a column as a series.
#[must_use]
pub fn series(columns: &Columns, at: usize) -> Value {
    let points = columns.times.iter().zip(columns.column(at));
    let values: Vec<Value> = points
        .map(|(time, value)| time_value(*time, *value))
        .collect();
    let column = columns.columns.get(at);
    json!({
        "parameter": column.map_or("", |column| &column.parameter),
        "unit": unit(column.map_or("", |column| &column.unit)),
        "values": values,
    })
}

/// Highest value, its time, and the area under the curve by linear trapezoids over all points.
#[must_use]
pub fn metrics(times: &[f64], values: &[f64]) -> [f64; 3] {
    Curve::new(times, values).map_or([f64::NAN; 3], |curve| {
        let (tmax, cmax) = curve.maximum();
        [cmax, tmax, curve.area()]
    })
}
