//! In which unit the values of a quantity are shown.

use super::assignment::{dimensions, to_base};
use crate::compile::Instance;
use crate::error::SetError;
use crate::units::{Dimension, Unit};

/// Dimensions of amounts of substance and the same of masses: one is the other times the molecular weight, all in base
/// units.
const OF_MASS: [(&str, &str); 3] = [
    ("Amount", "Mass"),
    ("Concentration (molar)", "Concentration (mass)"),
    ("AUC (molar)", "AUC (mass)"),
];
const MOLECULAR_WEIGHT: &str = "Molecular weight";

/// From base units to a unit: `(value · weight − offset) / factor`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DisplayUnit {
    unit: Unit,
    weight: f64,
}

impl DisplayUnit {
    /// Returns the unit.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.unit.name
    }

    /// Returns a value in this unit.
    #[must_use]
    pub fn of_base(&self, value: f64) -> f64 {
        self.unit.from_base(value * self.weight)
    }

    /// Returns in base units a value that is in this unit.
    #[must_use]
    pub fn to_base(&self, value: f64) -> f64 {
        self.unit.to_base(value) / self.weight
    }
}

/// Returns in base units a value that is in this unit: one of the quantity's dimension or, with the molecular weight of
/// its molecule, of the mass instead of the amount and the other way round.
///
/// # Errors
/// [`SetError::Unit`] if the unit does not fit.
pub fn in_base(
    individual: &Instance,
    position: usize,
    value: f64,
    unit: Option<&str>,
) -> Result<f64, SetError> {
    let model = individual.structure().model();
    let quantity = model
        .quantities
        .get(position)
        .ok_or_else(|| SetError::UnknownPath {
            path: format!("position {position}"),
            nearest: Vec::new(),
        })?;
    match (to_base(quantity, value, unit), unit) {
        (Err(error), Some(name)) => match display(individual, position, name) {
            Some(display) => Ok(display.to_base(value)),
            None => Err(error),
        },
        (value, _) => value,
    }
}

/// Returns the conversion of a quantity's values to this unit: one of its own dimension or, with the molecular weight
/// of its molecule, of the mass instead of the amount and the other way round. `display` is the unit of the file, else
/// that of the dimension. `None` if the unit does not fit.
#[must_use]
pub fn display(individual: &Instance, position: usize, unit: &str) -> Option<DisplayUnit> {
    let quantity = individual.structure().model().quantities.get(position)?;
    let own = dimensions(quantity);
    let name = match unit {
        "display" => match &quantity.display_unit {
            Some(unit) => unit.as_str(),
            None => own.first()?.default_unit(),
        },
        unit => unit,
    };
    if let Some(unit) = own.iter().find_map(|d| d.unit(name)) {
        return Some(DisplayUnit { unit, weight: 1.0 });
    }
    let of_mass = OF_MASS.iter().find_map(|(molar, mass)| {
        let is = |name: &str| own.iter().any(|d| d.name() == name);
        let other = |name: &str| Dimension::from_name(name).and_then(|d| d.unit(unit));
        match (is(molar), is(mass)) {
            (true, _) => other(mass).map(|unit| (unit, true)),
            (_, true) => other(molar).map(|unit| (unit, false)),
            _ => None,
        }
    });
    let (unit, times) = of_mass?;
    let weight = molecular_weight(individual, &quantity.path)?;
    let weight = if times { weight } else { 1.0 / weight };
    Some(DisplayUnit { unit, weight })
}

/// Returns the molecular weight of the molecule on a path, in kg/µmol: the last part of the path that has one, else the
/// only one of the model.
fn molecular_weight(individual: &Instance, path: &str) -> Option<f64> {
    let model = individual.structure().model();
    let delimiter = model.delimiter;
    let weight = |molecule: &str| {
        let short = format!("{molecule}{delimiter}{MOLECULAR_WEIGHT}");
        let full = format!("{}{delimiter}{short}", model.name);
        model.position(&short).or_else(|| model.position(&full))
    };
    let only = || {
        let suffix = format!("{delimiter}{MOLECULAR_WEIGHT}");
        let all = model.quantities.iter().enumerate();
        let mut all = all.filter(|(_, q)| q.path.ends_with(&suffix));
        match (all.next(), all.next()) {
            (Some((position, _)), None) => Some(position),
            _ => None,
        }
    };
    let position = path.rsplit(delimiter).find_map(weight).or_else(only)?;
    individual.value(position).filter(|w| *w > 0.0)
}
