//! `PATH=VALUE[unit]`: a change of a parameter, as people write it.

use super::find;
use crate::compile::Instance;
use crate::error::SetError;
use crate::model::Quantity;
use crate::units::{Dimension, Unit, with_base};

/// What an assignment changed.
#[derive(Debug, Clone, PartialEq)]
pub struct AssignmentEffect {
    /// The quantity's path.
    pub path: String,
    /// Its number before, in base units.
    pub before: f64,
    /// Its number now, in base units.
    pub after: f64,
}

/// Splits `PATH=VALUE`, `PATH=VALUE unit` or `PATH=VALUE[unit]` at the last equals sign.
///
/// # Errors
/// A text that says what is missing.
pub fn parse(text: &str) -> Result<(&str, f64, Option<&str>), String> {
    let Some((path, value)) = text.rsplit_once('=') else {
        return Err(format!(
            "'{text}' has no '=': write PATH=VALUE or PATH=VALUE[unit]"
        ));
    };
    let value = value.trim();
    // The longest beginning that reads as a number; what follows is the unit.
    let ends = value.char_indices().map(|(i, c)| i + c.len_utf8()).rev();
    let number = ends
        .filter_map(|end| Some((end, number(value.get(..end)?)?)))
        .next();
    let Some((end, number)) = number else {
        return Err(format!(
            "'{value}' does not begin with a number: write PATH=VALUE or PATH=VALUE[unit]"
        ));
    };
    let rest = value.get(end..).unwrap_or_default().trim();
    let unit = rest
        .strip_prefix('[')
        .and_then(|r| r.strip_suffix(']'))
        .unwrap_or(rest)
        .trim();
    Ok((path.trim(), number, (!unit.is_empty()).then_some(unit)))
}

fn number(text: &str) -> Option<f64> {
    let text = text.trim_end();
    match text.parse::<f64>() {
        // The language's own spellings of infinity would swallow the beginning of units.
        Ok(value) if value.is_finite() => Some(value),
        Ok(value) if matches!(text.to_ascii_lowercase().as_str(), "inf" | "-inf" | "nan") => {
            Some(value)
        }
        _ => None,
    }
}

/// Sets every quantity that `path` names; the value is in `unit`, or in base units without one. A mass is taken for an
/// amount by molecular weight. All are checked before the first is changed.
///
/// # Errors
/// [`SetError`].
pub fn assign(
    instance: &mut Instance,
    path: &str,
    value: f64,
    unit: Option<&str>,
) -> Result<Vec<AssignmentEffect>, SetError> {
    let structure = std::sync::Arc::clone(instance.structure());
    let model = structure.model();
    let mut changes = Vec::new();
    for position in find(model, path)? {
        let Some(quantity) = model.quantities.get(position) else {
            continue;
        };
        let value = super::in_base(instance, position, value, unit)?;
        changes.push((position, quantity, value));
    }
    let mut trial = instance.clone();
    let mut assigned = Vec::with_capacity(changes.len());
    for (position, quantity, value) in changes {
        let before = trial.value(position).unwrap_or(f64::NAN);
        trial.set(position, value)?;
        assigned.push(AssignmentEffect {
            path: quantity.path.clone(),
            before,
            after: value,
        });
    }
    *instance = trial;
    Ok(assigned)
}

/// Returns a value in base units.
///
/// # Errors
/// [`SetError::Unit`] if the unit does not belong to the quantity.
pub fn to_base(quantity: &Quantity, value: f64, unit: Option<&str>) -> Result<f64, SetError> {
    let Some(name) = unit else { return Ok(value) };
    if name == quantity.unit {
        return Ok(value);
    }
    match dimensions(quantity).iter().find_map(|d| d.unit(name)) {
        Some(unit) => Ok(unit.to_base(value)),
        None => Err(SetError::Unit {
            path: quantity.path.clone(),
            unit: name.to_owned(),
            accepted: accepted_units(quantity),
        }),
    }
}

/// Returns the dimension that the file names, or those with the quantity's base unit.
pub(super) fn dimensions(quantity: &Quantity) -> Vec<Dimension> {
    match quantity.dimension.as_deref().and_then(Dimension::from_name) {
        Some(dimension) => vec![dimension],
        None => with_base(&quantity.unit).collect(),
    }
}

fn accepted_units(quantity: &Quantity) -> Vec<String> {
    let mut names: Vec<String> = dimensions(quantity)
        .into_iter()
        .flat_map(Dimension::units)
        .map(|u: Unit| u.name.to_owned())
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        names.push(if quantity.unit.is_empty() {
            "no unit".to_owned()
        } else {
            quantity.unit.clone()
        });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn assignments_split_into_path_value_and_unit() {
        for (text, path, value, unit) in [
            ("A|B=3", "A|B", 3.0, None),
            ("A|B = 3e-2[mg]", "A|B", 0.03, Some("mg")),
            ("A=b|c=1.5 l/min", "A=b|c", 1.5, Some("l/min")),
            ("x=-2 [\u{b5}mol]", "x", -2.0, Some("\u{b5}mol")),
            ("x=4e", "x", 4.0, Some("e")),
            ("x=1in", "x", 1.0, Some("in")),
        ] {
            assert_eq!(parse(text), Ok((path, value, unit)), "{text}");
        }
        assert!(parse("x").is_err());
        assert!(parse("x=").is_err());
        assert!(parse("x=abc").is_err());
        assert!(parse("x=nan").unwrap().1.is_nan());
    }
}
