//! A measurement read back, as far as comparing needs it: what makes it like another, and the value of each
//! quantity in each launch.

use crate::error::LabError;
use crate::judge::{ArmQuantities, Measurement, Metric, Quantity};
use crate::load::{self, Load, PhaseFigures};
use crate::overhead::{Analysis, ArmFigures, FORMAT, LaunchFigures};
use crate::run;
use std::path::Path;

/// A stored measurement.
#[derive(Debug)]
pub(super) struct Stored {
    /// Names and values that must be the same on both sides.
    likeness: Vec<(&'static str, String)>,
    /// Why the generator was the limit, if it was.
    limited: Option<String>,
    /// Why it is not whole, if it is not.
    torn: Option<String>,
    measurement: Measurement,
}

impl Stored {
    pub(super) fn measurement(&self) -> &Measurement {
        &self.measurement
    }

    /// Reads a run directory's summary, or a document by itself.
    pub(super) fn read(path: &Path) -> Result<Self, LabError> {
        let file = run::summary_file(path)?;
        match run::format_of(&file)?.as_str() {
            load::FORMAT => Ok(Self::of_load(&run::document_of(&file, load::FORMAT)?)),
            _ => Ok(Self::of_overhead(&run::document_of(&file, FORMAT)?)),
        }
    }

    fn of_load(load: &Load) -> Self {
        let phases = load.phases.iter();
        let shape = |phase: &PhaseFigures| {
            format!(
                "{} {} {:?} {}",
                phase.name, phase.model, phase.rate, phase.workers
            )
        };
        let shapes: Vec<String> = phases.clone().map(shape).collect();
        Self {
            likeness: vec![
                ("kind", "load".into()),
                ("build", load.build.clone()),
                ("operation", load.operation.clone()),
                ("phases", shapes.join(", ")),
                ("processor", load.host.processor.clone()),
                ("cores", load.host.cores.to_string()),
            ],
            limited: load.generator.reasons.first().cloned(),
            torn: load.aborted.then(|| "it was stopped".to_owned()),
            measurement: load.measurement(),
        }
    }

    fn of_overhead(analysis: &Analysis) -> Self {
        let calls = format!(
            "{} calls after {}, turns of {}, {} at once, {} us apart",
            analysis.runs, analysis.warmup, analysis.turn, analysis.concurrency, analysis.delay_us
        );
        Self {
            limited: None,
            torn: match &analysis.failure {
                Some(why) => Some(why.clone()),
                None => analysis.aborted.then(|| "it was stopped".to_owned()),
            },
            likeness: vec![
                ("kind", "overhead".into()),
                ("build", analysis.build.clone()),
                ("operation", analysis.operation.clone()),
                ("protocol", analysis.protocol.clone()),
                ("path", analysis.path.clone()),
                ("calls", calls),
                ("pinning", format!("{:?}", analysis.pinned_core)),
                ("processor", analysis.host.processor.clone()),
                ("cores", analysis.host.cores.to_string()),
            ],
            measurement: Measurement {
                confidence: analysis.confidence,
                arms: analysis
                    .arms
                    .iter()
                    .map(|arm| figures(arm, analysis))
                    .collect(),
            },
        }
    }

    /// Refuses to compare what was measured in different ways, unless forced.
    pub(super) fn must_match(&self, other: &Self, force: bool) -> Result<(), LabError> {
        let pairs = self.likeness.iter().zip(&other.likeness);
        match pairs.into_iter().find(|(left, right)| left != right) {
            Some(((what, left), (_, right))) if !force => Err(LabError::Incomparable(format!(
                "the measurements differ in {what} ({left} against {right}); --force compares them all the same"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses what says more about the generator than about the target, unless forced.
    pub(super) fn must_not_be_limited(&self, force: bool) -> Result<(), LabError> {
        match &self.limited {
            Some(why) if !force => Err(LabError::Incomparable(format!(
                "the generator was the limit of this run ({why}); measure with less load, or judge it all the same with --force"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses what was stopped or failed before it was done, unless forced.
    pub(super) fn must_be_whole(&self, force: bool) -> Result<(), LabError> {
        match &self.torn {
            Some(why) if !force => Err(LabError::Incomparable(format!(
                "the measurement is not whole: {why}; measure again, or judge what there is with --force"
            ))),
            _ => Ok(()),
        }
    }
}

/// The quantities of one arm of an overhead run.
fn figures(arm: &ArmFigures, analysis: &Analysis) -> ArmQuantities {
    type Of = fn(&LaunchFigures) -> Option<f64>;
    let per_launch: [(Metric, Of); 5] = [
        (Metric::P50, |l| l.p50_us),
        (Metric::P90, |l| l.p90_us),
        (Metric::P95, |l| l.p95_us),
        (Metric::P99, |l| l.p99_us),
        (Metric::Mean, |l| Some(l.mean_us)),
    ];
    let name = arm.arm.name.clone();
    let mut quantities = Vec::new();
    let mut add = |metric, values: Option<Vec<f64>>| {
        let few = || Quantity::Missing("a launch has too few calls for it".into());
        quantities.push((metric, values.map_or_else(few, Quantity::Launches)));
    };
    for (metric, of) in per_launch {
        add(metric, arm.per_launch.iter().map(of).collect());
    }
    if let Some(found) = analysis.comparisons.iter().find(|c| c.arm == name) {
        add(Metric::Overhead, Some(found.per_launch_overhead_us.clone()));
    }
    if let Some(stages) = &arm.stages {
        let tails = stages.per_launch_unexplained_p95_us.iter().copied();
        add(
            Metric::UnexplainedP50,
            Some(stages.per_launch_unexplained_p50_us.clone()),
        );
        add(Metric::UnexplainedP95, tails.collect());
    }
    ArmQuantities { name, quantities }
}
