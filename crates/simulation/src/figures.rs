//! Numbers and units as clients read them.

use serde_json::Value;

/// What stands for no unit.
pub const UNITLESS: &str = "unitless";

/// A number; what JSON cannot write is null.
#[must_use]
pub fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// A unit.
#[must_use]
pub fn unit(unit: &str) -> &str {
    if unit.is_empty() { UNITLESS } else { unit }
}
