//! Measured values as callers give them: `[{output, unit, timeUnit, times, values, lloq, weight}]`.

use pbpk::compile::Instance;
use pbpk::units::Dimension;
use serde_json::Value;
use toolkit::server::Args;

use crate::fault::Fault;
use crate::figures::UNITLESS;

/// Most measured values of one call.
const POINTS_MAX: usize = 10_000;

/// Values of one output.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObservedOutput {
    /// The output's path.
    pub(super) output: String,
    /// The unit of the values, if one is given.
    pub(super) unit: Option<String>,
    /// Times in minutes, and values.
    pub(super) points: Vec<(f64, f64)>,
    /// Limit of quantification: a value at or below it is censored.
    pub(super) limit: Option<f64>,
    /// Factor of the residuals.
    pub(super) weight: f64,
}

/// Reads them; there may be none.
///
/// # Errors
/// [`Fault`] of the first that is wrong.
pub(super) fn read(args: Args<'_>, field: &str) -> Result<Vec<ObservedOutput>, Fault> {
    let listed = args.get(field).and_then(Value::as_array);
    let all: Vec<ObservedOutput> = listed
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(at, one)| one_of(one, &format!("{field}[{at}]")))
        .collect::<Result<_, _>>()?;
    match all.iter().map(|one| one.points.len()).sum::<usize>() {
        points if points > POINTS_MAX => {
            let wrong = format!("{points} values are more than {POINTS_MAX}");
            Err(Fault::input(field, wrong).code("value_error"))
        }
        _ => Ok(all),
    }
}

fn one_of(one: &Value, field: &str) -> Result<ObservedOutput, Fault> {
    let text = |name: &str| one.get(name).and_then(Value::as_str);
    let wrong = |name: &str, what: &str| {
        Err(Fault::input(&format!("{field}.{name}"), what.to_owned()).code("value_error"))
    };
    let Some(output) = text("output") else {
        return wrong("output", "output has to name the curve by its path");
    };
    let minutes = match text("timeUnit").unwrap_or("min") {
        "s" => 1.0 / 60.0,
        "min" => 1.0,
        "h" => 60.0,
        "day(s)" | "d" | "day" => 1_440.0,
        _ => return wrong("timeUnit", "timeUnit is s, min, h or d"),
    };
    let numbers = |name: &str| -> Vec<f64> {
        let listed = one.get(name).and_then(Value::as_array);
        let numbers = listed.into_iter().flatten().map(Value::as_f64);
        numbers.map(|number| number.unwrap_or(f64::NAN)).collect()
    };
    let (times, values) = (numbers("times"), numbers("values"));
    if times.len() != values.len() || times.is_empty() {
        return wrong(
            "values",
            "times and values have to be lists of the same length, and not empty",
        );
    }
    let mut points: Vec<(f64, f64)> = times
        .iter()
        .map(|time| time * minutes)
        .zip(values)
        .collect();
    if points
        .iter()
        .any(|(time, value)| !time.is_finite() || *time < 0.0 || !value.is_finite())
    {
        return wrong(
            "times",
            "times and values have to be numbers, and no time is below 0",
        );
    }
    let limit = one.get("lloq").and_then(Value::as_f64);
    if let Some(limit) = limit {
        for (_, value) in &mut points {
            *value = value.max(limit);
        }
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let weight = one.get("weight").and_then(Value::as_f64).unwrap_or(1.0);
    if !(weight > 0.0 && weight.is_finite()) {
        return wrong("weight", "weight has to be above 0");
    }
    Ok(ObservedOutput {
        output: output.to_owned(),
        unit: text("unit").map(str::to_owned),
        points,
        limit,
        weight,
    })
}

impl ObservedOutput {
    /// Returns a value in the base unit of a quantity; a mass is taken for an amount by molecular weight.
    ///
    /// # Errors
    /// [`Fault`] if the unit does not fit.
    pub(super) fn of_quantity(
        &self,
        value: f64,
        individual: &Instance,
        position: usize,
    ) -> Result<f64, Fault> {
        let unit = self.unit.as_deref().filter(|unit| *unit != UNITLESS);
        pbpk::path::in_base(individual, position, value, unit)
            .map_err(|error| Fault::input("unit", error.to_string()).code("unit"))
    }

    /// Returns a value in the base unit that a curve has.
    ///
    /// # Errors
    /// [`Fault`] if the unit is none of that dimension.
    pub(super) fn in_base(&self, value: f64, base: &str) -> Result<f64, Fault> {
        let Some(name) = self.unit.as_deref() else {
            return Ok(value);
        };
        if name == base || (base.is_empty() && name == UNITLESS) {
            return Ok(value);
        }
        let mut dimensions = Dimension::all().filter(|dimension| dimension.base() == base);
        match dimensions.find_map(|dimension| dimension.unit(name)) {
            Some(unit) => Ok(unit.to_base(value)),
            None => {
                let wrong = format!(
                    "'{name}' is not a unit of {}, which is in '{base}'",
                    self.output
                );
                Err(Fault::input("unit", wrong).code("unit"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(observed: Value) -> Result<Vec<ObservedOutput>, Fault> {
        let members = json!({"observed": observed});
        read(Args::new(members.as_object().unwrap()), "observed")
    }

    #[test]
    fn values_are_read_by_time_and_in_minutes() {
        let read = of(
            json!([{"output": "A|B", "unit": "mmol/l", "timeUnit": "h", "times": [2, 1], "values": [20, 10]}]),
        );
        let read = read.unwrap();
        assert_eq!(read[0].points, [(60.0, 10.0), (120.0, 20.0)]);
        assert_eq!(read[0].in_base(2.0, "µmol/l").unwrap(), 2_000.0);
        assert!(read[0].in_base(2.0, "l").is_err());
        assert_eq!(of(Value::Null).unwrap(), []);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        for (one, field) in [
            (json!({"times": [1], "values": [1]}), "observed[0].output"),
            (
                json!({"output": "A", "times": [1, 2], "values": [1]}),
                "observed[0].values",
            ),
            (json!({"output": "A"}), "observed[0].values"),
            (
                json!({"output": "A", "times": [-1], "values": [1]}),
                "observed[0].times",
            ),
            (
                json!({"output": "A", "times": [1], "values": ["x"]}),
                "observed[0].times",
            ),
            (
                json!({"output": "A", "times": [1], "values": [1], "timeUnit": "fortnight"}),
                "observed[0].timeUnit",
            ),
            (
                json!({"output": "A", "times": [1], "values": [1], "weight": 0}),
                "observed[0].weight",
            ),
        ] {
            let fault = of(json!([one])).unwrap_err();
            assert_eq!(fault.details[0].field.as_deref(), Some(field), "{one}");
        }
        let many: Vec<u32> = (0..10_001).collect();
        assert!(of(json!([{"output": "A", "times": many, "values": many}])).is_err());
    }
}
