//! Dimensions and units: every stored number is in the base unit of its dimension.
//!
//! base = value · factor + offset. An unknown unit is never guessed.

pub mod normal;

use std::collections::HashMap;
use std::sync::OnceLock;

/// One line a dimension: name, base unit, default unit, then `unit=factor` or `unit=factor+offset`, between tabs.
const CATALOGUE: &str = include_str!("dimensions.tsv");

/// A dimension of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimension {
    line: &'static str,
}

/// A unit of a dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// As written.
    pub name: &'static str,
    /// Base units in one of this unit.
    pub factor: f64,
    /// Base units at zero of this unit.
    pub offset: f64,
}

impl Dimension {
    /// Returns all dimensions, in alphabetical order.
    pub fn all() -> impl Iterator<Item = Self> {
        CATALOGUE
            .lines()
            .filter(|l| !l.is_empty())
            .map(|line| Self { line })
    }

    /// Returns the dimension of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        static BY_NAME: OnceLock<HashMap<&str, Dimension>> = OnceLock::new();
        BY_NAME
            .get_or_init(|| Self::all().map(|d| (d.name(), d)).collect())
            .get(name)
            .copied()
    }

    fn field(self, i: usize) -> &'static str {
        self.line.split('\t').nth(i).unwrap_or_default()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.field(0)
    }

    /// Returns the unit of stored values.
    #[must_use]
    pub fn base(self) -> &'static str {
        self.field(1)
    }

    /// Returns the unit shown by default.
    #[must_use]
    pub fn default_unit(self) -> &'static str {
        self.field(2)
    }

    /// Its units.
    pub fn units(self) -> impl Iterator<Item = Unit> {
        self.line.split('\t').skip(3).filter_map(|field| {
            let (name, numbers) = field.rsplit_once('=')?;
            let (factor, offset) = numbers.split_once('+').unwrap_or((numbers, "0"));
            Some(Unit {
                name,
                factor: factor.parse().ok()?,
                offset: offset.parse().ok()?,
            })
        })
    }

    /// Returns the unit of this name; micro may be written µ (either code point) or u, and litres L.
    #[must_use]
    pub fn unit(self, name: &str) -> Option<Unit> {
        let wanted = fold_signs(name);
        let in_litres = wanted.replace('L', "l");
        self.units()
            .find(|u| u.name == name.trim())
            .or_else(|| self.units().find(|u| fold_signs(u.name) == wanted))
            .or_else(|| self.units().find(|u| fold_signs(u.name) == in_litres))
    }
}

impl Unit {
    /// From this unit to the base unit.
    #[must_use]
    pub fn to_base(&self, value: f64) -> f64 {
        value * self.factor + self.offset
    }

    /// From the base unit to this unit.
    #[must_use]
    pub fn from_base(&self, value: f64) -> f64 {
        (value - self.offset) / self.factor
    }
}

/// Signs that mean the same.
fn fold_signs(name: &str) -> String {
    name.trim()
        .chars()
        .map(|c| {
            if matches!(c, '\u{3bc}' | '\u{b5}') {
                'u'
            } else {
                c
            }
        })
        .collect()
}

/// Returns the base unit of a dimension.
#[must_use]
pub fn base_unit(dimension: &str) -> Option<&'static str> {
    Dimension::from_name(dimension).map(Dimension::base)
}

/// Returns all dimensions with the base unit `unit`.
pub fn with_base(unit: &str) -> impl Iterator<Item = Dimension> + use<'_> {
    Dimension::all().filter(move |d| !unit.is_empty() && d.base() == unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dimension: &str, unit: &str, value: f64, base: f64) {
        let unit = Dimension::from_name(dimension).unwrap().unit(unit).unwrap();
        assert!(
            (unit.to_base(value) - base).abs() <= 1e-12 * base.abs(),
            "{dimension} {}",
            unit.name
        );
        assert!((unit.from_base(base) - value).abs() <= 1e-12 * value.abs());
    }

    #[test]
    fn units_convert_to_base() {
        check("Time", "h", 2.0, 120.0);
        check("Amount", "mmol", 3.0, 3000.0);
        check("Amount", "umol", 3.0, 3.0);
        check("Amount", "\u{3bc}mol", 3.0, 3.0);
        check("Molecular weight", "g/mol", 200.0, 200e-9);
        check("Length", "cm", 1.0, 0.1);
        check("Flow", "L/h", 6.0, 0.1);
        check("Concentration (mass)", "mg/L", 1.0, 1e-6);
    }

    #[test]
    fn every_base_unit_has_factor_one() {
        assert_eq!(Dimension::all().count(), 94);
        for d in Dimension::all() {
            assert!(d.units().count() > 0, "{}", d.name());
            if let Some(u) = d.unit(d.base()) {
                assert_eq!((u.factor, u.offset), (1.0, 0.0), "{}", d.name());
            }
        }
    }

    #[test]
    fn unknown_units_are_not_guessed() {
        assert!(
            Dimension::from_name("Time")
                .unwrap()
                .unit("fortnight")
                .is_none()
        );
        assert!(Dimension::from_name("Times").is_none());
    }
}
