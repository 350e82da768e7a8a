//! All parameters of one curve under one dosing.

use super::catalogue::{CATALOGUE, PkParameter};
use super::curve::Curve;
use super::dosing::{Dosing, DrugApplication};
use super::terminal::TerminalPhase;
use crate::units::Dimension;
use std::collections::BTreeMap;

/// Dimension of the outputs for which the catalogue is made.
const MOLAR: &str = "Concentration (molar)";

/// One parameter with its value in base units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PkValue {
    /// Which parameter.
    pub parameter: &'static PkParameter,
    /// Its value; NaN if it cannot be computed.
    pub value: f64,
}

impl PkValue {
    /// Returns the value in the unit of reports.
    #[must_use]
    pub fn display(&self) -> f64 {
        self.parameter.display(self.value)
    }

    /// Returns the value and its unit for an output in this base unit. The catalogue is one of molar concentrations: the
    /// highest value and the area of another output are in the unit of that output, and what rests on a concentration
    /// has no unit then.
    #[must_use]
    pub fn display_in(&self, unit: &str) -> (f64, String) {
        let own = self.parameter;
        if unit.is_empty() || Dimension::from_name(MOLAR).is_some_and(|d| d.base() == unit) {
            return (self.display(), own.display_unit.to_owned());
        }
        match own.dimension {
            MOLAR => (self.value, unit.to_owned()),
            "AUC (molar)" => (self.value, format!("{unit}*min")),
            "Time" | "Fraction" => (self.display(), own.display_unit.to_owned()),
            _ => (self.value, String::new()),
        }
    }
}

/// Values in catalogue order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PkAnalysis {
    /// Only the parameters defined for the dosing.
    pub values: Vec<PkValue>,
}

impl PkAnalysis {
    /// Returns the value of a parameter in base units; `None` if it is not defined for the dosing.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values
            .iter()
            .find(|v| v.parameter.name == name)
            .map(|v| v.value)
    }
}

/// Parameters of a piece of the curve together with a dose.
pub(super) struct CurvePiece<'a> {
    pub(super) curve: Option<Curve<'a>>,
    terminal: Option<TerminalPhase>,
    dose: Option<f64>,
    infusion: f64,
}

impl<'a> CurvePiece<'a> {
    pub(super) fn new(curve: Option<Curve<'a>>, dose: Option<f64>, infusion: Option<f64>) -> Self {
        Self {
            terminal: curve.and_then(|c| c.terminal()),
            curve,
            dose,
            infusion: infusion.unwrap_or(0.0),
        }
    }

    /// Returns a figure of the curve, if there is one.
    pub(super) fn figure(&self, of: impl FnOnce(&Curve<'a>) -> f64) -> f64 {
        self.curve.as_ref().map_or(f64::NAN, of)
    }

    fn tail(&self, of: impl FnOnce(&TerminalPhase) -> f64) -> f64 {
        self.terminal.as_ref().map_or(f64::NAN, of)
    }

    pub(super) fn area_beyond(&self) -> f64 {
        self.tail(TerminalPhase::area)
    }

    pub(super) fn area_to_infinity(&self) -> f64 {
        self.figure(Curve::area) + self.area_beyond()
    }

    pub(super) fn half_life(&self) -> f64 {
        self.tail(TerminalPhase::half_life)
    }

    pub(super) fn fraction_beyond(&self) -> f64 {
        self.area_beyond() / self.area_to_infinity()
    }

    /// Mean residence time, half an infusion taken off.
    pub(super) fn residence(&self) -> f64 {
        (self.figure(Curve::moment) + self.tail(TerminalPhase::moment)) / self.area_to_infinity()
            - self.infusion / 2.0
    }

    pub(super) fn clearance(&self) -> f64 {
        self.per_dose(1.0).recip() / self.area_to_infinity()
    }

    pub(super) fn volume_steady(&self) -> f64 {
        self.clearance() * self.residence()
    }

    pub(super) fn volume_terminal(&self) -> f64 {
        self.clearance() / self.tail(|t| t.lambda)
    }

    fn per_dose(&self, value: f64) -> f64 {
        match self.dose {
            Some(dose) if dose > 0.0 => value / dose,
            _ => f64::NAN,
        }
    }
}

/// Collects values and their normalised twins by name.
struct ValueSheet(BTreeMap<String, f64>);

impl ValueSheet {
    fn set_value(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), value);
    }

    fn put_both(&mut self, name: &str, value: f64, piece: &CurvePiece<'_>) {
        self.set_value(name, value);
        self.0.insert(format!("{name}_norm"), piece.per_dose(value));
    }

    fn peak(&mut self, suffix: &str, piece: &CurvePiece<'_>) {
        let (time, value) = piece.curve.map_or((f64::NAN, f64::NAN), |c| c.maximum());
        self.put_both(&format!("C_max{suffix}"), value, piece);
        self.set_value(&format!("t_max{suffix}"), time);
    }
}

/// Computes every catalogue parameter that is defined for the dosing.
///
/// With several applications the intervals run from the grid point nearest to one application to that
/// nearest to the next, and from the last to the end of the curve; `MRT` and `Thalf` are those of the
/// first interval.
#[must_use]
pub fn analyse(curve: Curve<'_>, dosing: &Dosing) -> PkAnalysis {
    let mut sheet = ValueSheet(BTreeMap::new());
    let applications = dosing.applications();
    let infusion = applications.first().and_then(|a| a.infusion_time);
    let full = CurvePiece::new(Some(curve), dosing.total(), infusion);
    sheet.peak("", &full);
    sheet.set_value("C_tEnd", full.figure(Curve::last));
    sheet.put_both("AUC_tEnd", full.figure(Curve::area), &full);
    match applications {
        [first, second, ..] => {
            let (before, last) = match applications {
                [.., before, last] => (before, last),
                _ => (first, second),
            };
            multiple(&mut sheet, curve, [first, second, before, last]);
        }
        _ => {
            sheet.put_both("AUC_inf", full.area_to_infinity(), &full);
            sheet.set_value("FractionAucLastToInf", full.fraction_beyond());
            sheet.set_value("MRT", full.residence());
            sheet.set_value("Thalf", full.half_life());
            sheet.set_value("CL", full.clearance());
            sheet.set_value("Vss", full.volume_steady());
            sheet.set_value("Vd", full.volume_terminal());
        }
    }
    let defined = CATALOGUE
        .iter()
        .filter(|p| p.mode.fits(dosing.is_multiple()));
    let values = defined
        .map(|parameter| PkValue {
            parameter,
            value: sheet.0.get(parameter.name).copied().unwrap_or(f64::NAN),
        })
        .collect();
    PkAnalysis { values }
}

/// First, last-but-one and last dosing interval.
fn multiple(
    sheet: &mut ValueSheet,
    curve: Curve<'_>,
    [first, second, before, last]: [&DrugApplication; 4],
) {
    let one = CurvePiece::new(
        curve.between(first.start, second.start),
        first.dose_per_weight,
        first.infusion_time,
    );
    sheet.peak("_tD1_tD2", &one);
    sheet.set_value("C_trough_tD2", one.figure(Curve::last));
    sheet.put_both("AUC_tD1_tD2", one.figure(Curve::area), &one);
    sheet.put_both("AUC_inf_tD1", one.area_to_infinity(), &one);
    sheet.set_value("MRT", one.residence());
    sheet.set_value("Thalf", one.half_life());

    let but_one = CurvePiece::new(
        curve.between(before.start, last.start),
        before.dose_per_weight,
        None,
    );
    sheet.set_value("C_trough_tDLast", but_one.figure(Curve::last));
    sheet.put_both(
        "AUC_tDLast_minus_1_tDLast",
        but_one.figure(Curve::area),
        &but_one,
    );

    let end = CurvePiece::new(
        curve.between(last.start, curve.end()),
        last.dose_per_weight,
        None,
    );
    sheet.peak("_tDLast_tEnd", &end);
    sheet.put_both("AUC_inf_tDLast", end.area_to_infinity(), &end);
    sheet.set_value("Thalf_tDLast_tEnd", end.half_life());
}
