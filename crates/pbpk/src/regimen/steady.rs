//! How many doses come before the curves repeat.

use std::sync::Arc;

use super::copy::{self, Application};
use super::{Regimen, RegimenError, RegimenReport};
use crate::compile::{Instance, Structure};
use crate::model::{Model, OutputGrid};
use crate::path;
use crate::run::{RunError, RunOptions, run};
use crate::watch::{Question, Watch};

/// Doses of the first attempt; each further one has twice as many.
const DOSES_MIN: usize = 8;
/// Doses of the last attempt.
const LEAD_IN_MAX: usize = 512;
/// Largest change from one interval to the next, relative to the highest value.
const CHANGE_MAX: f64 = 1e-4;
/// Differences of so many absolute tolerances count as none.
const ABS_TOLS: f64 = 100.0;
/// Points of an interval that are compared.
const POINTS: usize = 8;

/// Returns after how many doses each output of an interval is that of the interval before. An output that only
/// grows, as in urine, repeats when it grows by the same amount in each interval.
pub(super) fn lead_in(
    model: &Model,
    regimen: &Regimen,
    interrupt: Option<Question<'_>>,
) -> Result<usize, RegimenError> {
    let watch = &Watch::new(interrupt);
    let interval = regimen.interval.unwrap_or(f64::NAN);
    let application = Application::find(model, regimen)?;
    let start = regimen.start.unwrap_or(application.start);
    let mut outputs: Vec<usize> = model
        .selections
        .iter()
        .filter_map(|selection| path::find_one(model, selection).ok())
        .collect();
    if outputs.is_empty() {
        outputs = model.outputs();
    }
    let mut doses = DOSES_MIN;
    loop {
        let trial = Regimen {
            number: doses,
            steady: false,
            ..regimen.clone()
        };
        let mut few = model.clone();
        few.grid = OutputGrid {
            intervals: Vec::new(),
            times: vec![start + interval],
        };
        let dosed = copy::give_doses(few, &[trial], RegimenReport::default(), watch)?.0;
        let times: Vec<f64> = (0..=doses * POINTS)
            .map(|i| start + interval * i as f64 / POINTS as f64)
            .collect();
        let failed = |message: String| RegimenError::Run { message };
        let structure = Structure::with_watch(Arc::new(dosed), outputs.clone(), watch)
            .map_err(|error| failed(error.to_string()))?;
        let individual = Instance::with_watch(&structure, watch)?;
        let options = RunOptions {
            times: Some(&times),
            rel_tol: Some(individual.structure().model().solver.rel_tol.min(1e-6)),
            interrupt,
            ..RunOptions::default()
        };
        let results = run(&individual, &options).map_err(|failure| match failure.error {
            RunError::Interrupted { cause, .. } => RegimenError::Interrupted { cause },
            error => failed(error.to_string()),
        })?;
        let floor = ABS_TOLS * results.settings.abs_tol;
        let curves: Vec<Vec<f64>> = (0..results.paths.len())
            .map(|output| results.column(output).collect())
            .collect();
        let is_steady = |k: usize| curves.iter().all(|curve| repeats(curve, k, floor));
        // The last dose that is compared has an interval of its own.
        if let Some(first) = (2..doses).find(|k| is_steady(*k)) {
            return Ok(first);
        }
        if doses >= LEAD_IN_MAX {
            let last = doses - 1;
            let changing = curves.iter().zip(results.paths.iter());
            let changing = changing.filter(|(curve, _)| !repeats(curve, last, floor));
            return Err(RegimenError::Unsteady {
                doses,
                outputs: changing.map(|(_, path)| path.clone()).collect(),
            });
        }
        doses *= 2;
    }
}

/// Returns whether interval `k`, from 0, is that before it: equal, or by the same amount above.
fn repeats(curve: &[f64], k: usize, floor: f64) -> bool {
    let interval = |k: usize| {
        let from = k * POINTS;
        curve.get(from..=from + POINTS).unwrap_or_default()
    };
    let (now, before, earlier) = (interval(k), interval(k - 1), interval(k - 2));
    if now.len() != before.len() || now.len() != earlier.len() || now.is_empty() {
        return false;
    }
    let peak = now.iter().fold(0.0_f64, |peak, v| peak.max(v.abs()));
    let allowed = CHANGE_MAX * peak + floor;
    let steps = now.iter().zip(before).map(|(a, b)| a - b);
    let earlier_steps = before.iter().zip(earlier).map(|(a, b)| a - b);
    // Times without a value, which are NaN, say nothing.
    let is_small = |change: f64, allowed: f64| change.is_nan() || change.abs() <= allowed;
    let equal = steps.clone().all(|step| is_small(step, allowed));
    let grows = steps
        .zip(earlier_steps)
        .all(|(step, earlier)| is_small(step - earlier, CHANGE_MAX * step.abs() + floor));
    equal || grows
}
