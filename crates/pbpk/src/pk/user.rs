//! Parameters a user defines: a measure on an interval, perhaps divided by a factor.

use super::analysis::CurvePiece;
use super::curve::Curve;
use super::dosing::Dosing;

/// Measure on the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IntervalMeasure {
    /// Highest value.
    Maximum,
    /// Lowest value.
    Minimum,
    /// Time of the highest value.
    TimeOfMaximum,
    /// Time of the lowest value.
    TimeOfMinimum,
    /// Value at the end.
    Trough,
    /// Area under the curve.
    Area,
    /// Area under time × value.
    Moment,
    /// Area extrapolated to infinity.
    AreaToInfinity,
    /// Area from the end to infinity.
    AreaBeyond,
    /// Share of the area beyond the end.
    FractionBeyond,
    /// Mean residence time.
    Residence,
    /// Terminal half-life.
    HalfLife,
    /// Clearance: the dose of the interval over the area to infinity.
    Clearance,
    /// Volume of distribution at steady state.
    VolumeSteady,
    /// Volume of distribution in the terminal phase.
    VolumeTerminal,
    /// First time at which the value is at least this threshold.
    TimeOfThreshold(f64),
}

impl IntervalMeasure {
    /// Names by which a measure can be chosen, with the measure; a threshold is given apart.
    pub const NAMES: [(&'static str, Self); 16] = [
        ("C_max", Self::Maximum),
        ("C_min", Self::Minimum),
        ("t_max", Self::TimeOfMaximum),
        ("t_min", Self::TimeOfMinimum),
        ("C_trough", Self::Trough),
        ("AUC_tEnd", Self::Area),
        ("AUCM_tEnd", Self::Moment),
        ("AUC_inf", Self::AreaToInfinity),
        ("AUC_tEnd_inf", Self::AreaBeyond),
        ("FractionAucEndToInf", Self::FractionBeyond),
        ("MRT", Self::Residence),
        ("Thalf", Self::HalfLife),
        ("CL", Self::Clearance),
        ("Vss", Self::VolumeSteady),
        ("Vd", Self::VolumeTerminal),
        ("Tthreshold", Self::TimeOfThreshold(f64::NAN)),
    ];

    /// Returns the measure of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, m)| *m)
    }
}

/// A parameter defined by a user. An end of the interval is a time or the start of an application, plus
/// an offset; without either it is that of the curve.
#[derive(Debug, Clone, PartialEq)]
pub struct UserParameter {
    /// Name of the result.
    pub name: String,
    /// The measure.
    pub measure: IntervalMeasure,
    /// Start of the interval, in minutes.
    pub start: Option<f64>,
    /// Application (from 0) at which the interval starts, if `start` is not given.
    pub start_application: Option<usize>,
    /// Added to the start, in minutes.
    pub start_offset: f64,
    /// End of the interval, in minutes.
    pub end: Option<f64>,
    /// Application (from 0) that ends the interval with its start, if `end` is not given.
    pub end_application: Option<usize>,
    /// Added to the end, in minutes.
    pub end_offset: f64,
    /// The result is divided by this.
    pub normalisation: Option<f64>,
}

impl UserParameter {
    /// Returns a measure of the whole curve.
    #[must_use]
    pub fn new(name: &str, measure: IntervalMeasure) -> Self {
        Self {
            name: name.to_owned(),
            measure,
            start: None,
            start_application: None,
            start_offset: 0.0,
            end: None,
            end_application: None,
            end_offset: 0.0,
            normalisation: None,
        }
    }

    /// Returns the value in base units; NaN if the interval or an application does not exist.
    #[must_use]
    pub fn evaluate(&self, curve: Curve<'_>, dosing: &Dosing) -> f64 {
        let Some(part) = self.interval(curve, dosing) else {
            return f64::NAN;
        };
        let infusion = dosing
            .applications()
            .get(self.start_application.unwrap_or(0))
            .and_then(|a| a.infusion_time);
        let piece = CurvePiece::new(Some(part), self.dose(dosing), infusion);
        let value = match self.measure {
            IntervalMeasure::Maximum => part.maximum().1,
            IntervalMeasure::Minimum => part.minimum().1,
            IntervalMeasure::TimeOfMaximum => part.maximum().0,
            IntervalMeasure::TimeOfMinimum => part.minimum().0,
            IntervalMeasure::Trough => part.last(),
            IntervalMeasure::Area => part.area(),
            IntervalMeasure::Moment => part.moment(),
            IntervalMeasure::AreaToInfinity => piece.area_to_infinity(),
            IntervalMeasure::AreaBeyond => piece.area_beyond(),
            IntervalMeasure::FractionBeyond => piece.fraction_beyond(),
            IntervalMeasure::Residence => piece.residence(),
            IntervalMeasure::HalfLife => piece.half_life(),
            IntervalMeasure::Clearance => piece.clearance(),
            IntervalMeasure::VolumeSteady => piece.volume_steady(),
            IntervalMeasure::VolumeTerminal => piece.volume_terminal(),
            IntervalMeasure::TimeOfThreshold(threshold) => part.reaches(threshold),
        };
        self.normalisation.map_or(value, |factor| value / factor)
    }

    fn interval<'a>(&self, curve: Curve<'a>, dosing: &Dosing) -> Option<Curve<'a>> {
        let at = |application: usize| dosing.applications().get(application).map(|a| a.start);
        let from = match (self.start, self.start_application) {
            (Some(t), _) => t + self.start_offset,
            (None, Some(a)) => at(a)? + self.start_offset,
            (None, None) => curve.start(),
        };
        let to = match (self.end, self.end_application) {
            (Some(t), _) => t + self.end_offset,
            (None, Some(a)) => at(a)? + self.end_offset,
            (None, None) => curve.end(),
        };
        curve.between(from, to)
    }

    /// Returns the dose within the interval; `None` if a time or an offset is involved.
    fn dose(&self, dosing: &Dosing) -> Option<f64> {
        if self.start.is_some()
            || self.end.is_some()
            || self.start_offset != 0.0
            || self.end_offset != 0.0
        {
            return None;
        }
        let all = dosing.applications();
        let (from, to) = (
            self.start_application.unwrap_or(0),
            self.end_application.unwrap_or(all.len()),
        );
        let given = all.get(from..to).filter(|g| !g.is_empty())?;
        given.iter().map(|a| a.dose_per_weight).sum()
    }
}
