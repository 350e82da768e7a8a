//! Quantities of a measurement, as far as rules need them.

use serde::{Deserialize, Serialize};

use super::rule::RuleMetric;
use crate::stats::Interval;
use crate::stats::gate::RelativeChange;

/// The quantities of every variant of a measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MeasuredQuantities {
    pub(crate) confidence: f64,
    /// The baseline first.
    pub(crate) arms: Vec<ArmQuantities>,
}

/// The quantities of one variant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ArmQuantities {
    pub(crate) name: String,
    pub(crate) quantities: Vec<NamedQuantity>,
}

/// One quantity by its name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NamedQuantity {
    pub(crate) metric: RuleMetric,
    #[serde(flatten)]
    pub(crate) quantity: Quantity,
}

/// Values of a quantity: times in microseconds, rates as shares.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Quantity {
    /// One value per launch.
    Launches(Vec<f64>),
    /// One value of a run that has no launches, with its own interval.
    Run(Interval),
    /// There were too few calls for it; why.
    Missing(String),
}

impl MeasuredQuantities {
    /// Returns the names of the variants, the baseline first.
    pub(crate) fn arms(&self) -> impl Iterator<Item = &str> {
        self.arms.iter().map(|arm| arm.name.as_str())
    }

    /// Returns a quantity of a variant; nothing if a measurement of this kind has none such.
    pub(crate) fn quantity(&self, arm: &str, metric: RuleMetric) -> Option<&Quantity> {
        let found = self.arms.iter().find(|known| known.name == arm)?;
        let mut quantities = found.quantities.iter();
        quantities
            .find(|known| known.metric == metric)
            .map(|known| &known.quantity)
    }
}

impl Quantity {
    /// Returns the quantity with its interval, or why there is none.
    pub(crate) fn interval(&self, confidence: f64) -> Result<Interval, String> {
        match self {
            Self::Launches(values) => Ok(Interval::over_launches(values, confidence)),
            Self::Run(interval) => Ok(*interval),
            Self::Missing(why) => Err(why.clone()),
        }
    }

    /// Returns the relative change to a later measurement, or why there is none.
    pub(crate) fn change(&self, after: &Self, confidence: f64) -> Result<RelativeChange, String> {
        match (self, after) {
            (Self::Launches(before), Self::Launches(after)) => {
                RelativeChange::between(before, after, confidence)
                    .ok_or_else(|| "too few launches, or values that are not positive".into())
            }
            (Self::Missing(why), _) | (_, Self::Missing(why)) => Err(why.clone()),
            _ => Err("a run without launches has no relative change".into()),
        }
    }
}
