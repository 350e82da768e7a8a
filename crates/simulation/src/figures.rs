//! Numbers and units as clients read them.

use serde_json::Value;

/// Name for no unit.
pub const UNITLESS: &str = "unitless";

/// Returns a number; what JSON cannot write is null.
#[must_use]
pub fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Returns a unit.
#[must_use]
pub fn unit(unit: &str) -> &str {
    if unit.is_empty() { UNITLESS } else { unit }
}

/// A whole number, also if it is written with a fraction of 0, which is the same number in JSON.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number from 0 to 2^53"
)]
#[must_use]
pub fn whole(number: &Value) -> Option<u64> {
    let written =
        |number: f64| number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
    let float = || {
        number
            .as_f64()
            .filter(|number| written(*number))
            .map(|number| number as u64)
    };
    number.as_u64().or_else(float)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_are_whole_however_they_are_written() {
        for (value, expect) in [
            (json!(3), Some(3)),
            (json!(3.0), Some(3)),
            (json!(1e4), Some(10_000)),
            (json!(3.5), None),
            (json!(-1), None),
            (json!(1e300), None),
            (json!("3"), None),
            (json!(null), None),
        ] {
            assert_eq!(whole(&value), expect, "{value}");
        }
    }
}
