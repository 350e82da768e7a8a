//! The 31 parameters of the suite's catalogue.

/// For which dosing a parameter is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DosingMode {
    /// Single and multiple dosing.
    Always,
    /// One application only.
    Single,
    /// Two or more applications.
    Multi,
}

impl DosingMode {
    /// Returns whether the parameter is defined for a number of applications.
    #[must_use]
    pub fn fits(self, multiple: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Single => !multiple,
            Self::Multi => multiple,
        }
    }
}

/// One entry of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PkParameter {
    /// Name, as in result files.
    pub name: &'static str,
    /// When it is defined.
    pub mode: DosingMode,
    /// Dimension, as the suite names it.
    pub dimension: &'static str,
    /// Unit of the computed value.
    pub unit: &'static str,
    /// Unit in which the suite reports it.
    pub display_unit: &'static str,
    /// Reported value = computed value times this.
    pub display_factor: f64,
    /// Description.
    pub description: &'static str,
}

impl PkParameter {
    /// Converts a computed value to the unit of reports.
    #[must_use]
    pub fn display(&self, value: f64) -> f64 {
        value * self.display_factor
    }
}

/// Dimension with its base unit, report unit and factor.
pub(super) type Measured = (&'static str, &'static str, &'static str, f64);

pub(super) const CONCENTRATION: Measured = ("Concentration (molar)", "µmol/l", "µmol/l", 1.0);
const CONCENTRATION_NORM: Measured = ("Concentration (mass)", "kg/l", "mg/l", 1e6);
pub(super) const TIME: Measured = ("Time", "min", "h", 1.0 / 60.0);
pub(super) const AREA: Measured = ("AUC (molar)", "µmol*min/l", "µmol*min/l", 1.0);
const AREA_NORM: Measured = ("AUC (mass)", "kg*min/l", "µg*min/l", 1e9);
pub(super) const FRACTION: Measured = ("Fraction", "", "", 1.0);
const CLEARANCE: Measured = ("Flow per weight", "l/min/kg", "ml/min/kg", 1e3);
const VOLUME: Measured = ("Volume per body weight", "l/kg", "ml/kg", 1e3);

pub(super) const fn entry(
    name: &'static str,
    mode: DosingMode,
    measured: Measured,
    description: &'static str,
) -> PkParameter {
    let (dimension, unit, display_unit, display_factor) = measured;
    PkParameter {
        name,
        mode,
        dimension,
        unit,
        display_unit,
        display_factor,
        description,
    }
}

use DosingMode::{Always, Multi, Single};

/// All parameters, in the order of reports. `_norm` means divided by dose per body weight.
#[rustfmt::skip]
pub const CATALOGUE: [PkParameter; 31] = [
    entry("C_max", Always, CONCENTRATION, "highest concentration"),
    entry("C_max_norm", Always, CONCENTRATION_NORM, "highest concentration per total dose"),
    entry("C_max_tD1_tD2", Multi, CONCENTRATION, "highest concentration between first and second dose"),
    entry("C_max_tD1_tD2_norm", Multi, CONCENTRATION_NORM, "highest concentration between first and second dose, per first dose"),
    entry("C_max_tDLast_tEnd", Multi, CONCENTRATION, "highest concentration after the last dose"),
    entry("C_max_tDLast_tEnd_norm", Multi, CONCENTRATION_NORM, "highest concentration after the last dose, per last dose"),
    entry("t_max", Always, TIME, "time of the highest concentration"),
    entry("t_max_tD1_tD2", Multi, TIME, "time of the highest concentration between first and second dose"),
    entry("t_max_tDLast_tEnd", Multi, TIME, "time of the highest concentration after the last dose"),
    entry("C_tEnd", Always, CONCENTRATION, "concentration at the last time"),
    entry("C_trough_tD2", Multi, CONCENTRATION, "concentration just before the second dose"),
    entry("C_trough_tDLast", Multi, CONCENTRATION, "concentration just before the last dose"),
    entry("AUC_tEnd", Always, AREA, "area under the curve up to the last time"),
    entry("AUC_tEnd_norm", Always, AREA_NORM, "area under the curve up to the last time, per total dose"),
    entry("AUC_inf", Single, AREA, "area under the curve up to infinity"),
    entry("AUC_inf_norm", Single, AREA_NORM, "area under the curve up to infinity, per dose"),
    entry("AUC_tD1_tD2", Multi, AREA, "area between first and second dose"),
    entry("AUC_tD1_tD2_norm", Multi, AREA_NORM, "area between first and second dose, per first dose"),
    entry("AUC_tDLast_minus_1_tDLast", Multi, AREA, "area between the last dose but one and the last"),
    entry("AUC_tDLast_minus_1_tDLast_norm", Multi, AREA_NORM, "area between the last dose but one and the last, per last dose but one"),
    entry("AUC_inf_tD1", Multi, AREA, "area after the first dose up to infinity, as if no other followed"),
    entry("AUC_inf_tD1_norm", Multi, AREA_NORM, "area after the first dose up to infinity, as if no other followed, per first dose"),
    entry("AUC_inf_tDLast", Multi, AREA, "area after the last dose up to infinity"),
    entry("AUC_inf_tDLast_norm", Multi, AREA_NORM, "area after the last dose up to infinity, per last dose"),
    entry("MRT", Always, TIME, "mean residence time; with several doses, of the first"),
    entry("Thalf", Always, TIME, "terminal half-life; with several doses, of the first"),
    entry("Thalf_tDLast_tEnd", Multi, TIME, "terminal half-life after the last dose"),
    entry("FractionAucLastToInf", Single, FRACTION, "share of the area beyond the last time"),
    entry("CL", Single, CLEARANCE, "total clearance over bioavailability"),
    entry("Vss", Single, VOLUME, "volume of distribution at steady state over bioavailability"),
    entry("Vd", Single, VOLUME, "volume of distribution in the terminal phase over bioavailability"),
];

/// Returns the catalogue entry of a name.
#[must_use]
pub fn parameter(name: &str) -> Option<&'static PkParameter> {
    CATALOGUE.iter().find(|p| p.name == name)
}
