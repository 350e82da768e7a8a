//! Regimens: doses that a model is given instead of those of its file.
//!
//! An application of the model is the template: the container with a `Start time` and a dose. It is copied for each
//! further dose, with its parameters, states, events and terms in the rates of other states, as PK-Sim writes a
//! protocol of several doses. A dosed model is a model like any other: it runs, is fitted and exported the same way.

mod copy;
mod error;
mod notation;
mod steady;

pub use error::RegimenError;

use crate::model::Model;
use crate::watch::{Question, Watch};

/// Most doses of a model.
pub const DOSES_MAX: usize = 1_000;
/// Most output times that a regimen adds.
pub const TIMES_ADDED_MAX: usize = 1_000_000;
/// Most quantities that a regimen adds.
pub const QUANTITIES_ADDED_MAX: usize = 1_000_000;

/// An amount as people write it: a number with its unit.
#[derive(Debug, Clone, PartialEq)]
pub struct DoseAmount {
    /// The number.
    pub value: f64,
    /// Unit of a mass, a mass per body weight or an amount of substance.
    pub unit: String,
}

/// Doses of one application of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Regimen {
    /// Each dose.
    pub dose: DoseAmount,
    /// Path or pattern of the application's container, or its last part; `None` for the only one of the model.
    pub container: Option<String>,
    /// Time of the first dose in minutes; `None` for that of the file.
    pub start: Option<f64>,
    /// From one dose to the next, in minutes.
    pub interval: Option<f64>,
    /// Number of doses.
    pub number: usize,
    /// Duration of each infusion in minutes; `None` for that of the file.
    pub infusion: Option<f64>,
    /// The first dose, if it is another one.
    pub loading: Option<DoseAmount>,
    /// Whether doses come first until the curves repeat, and `number` counts from there.
    pub steady: bool,
}

/// Doses and warnings of regimens that were applied.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RegimenReport {
    /// Containers of all doses, with their times in minutes.
    pub doses: Vec<(String, f64)>,
    /// Effects that may surprise.
    pub warnings: Vec<String>,
}

/// Returns the model with these regimens instead of its own doses.
///
/// # Errors
/// [`RegimenError`].
pub fn apply(
    model: Model,
    regimens: &[Regimen],
    interrupt: Option<Question<'_>>,
) -> Result<(Model, RegimenReport), RegimenError> {
    let watch = Watch::new(interrupt);
    let mut counted = regimens.to_vec();
    let mut report = RegimenReport::default();
    for regimen in counted.iter_mut().filter(|regimen| regimen.steady) {
        let before = steady::lead_in(&model, regimen, interrupt)?;
        regimen.number += before;
        report.warnings.push(format!(
            "the steady state is reached after {before} doses: the dose at {} min is the first at steady state",
            regimen.start.unwrap_or(0.0) + before as f64 * regimen.interval.unwrap_or(0.0)
        ));
    }
    copy::give_doses(model, &counted, report, &watch)
}
