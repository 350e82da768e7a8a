//! What an overhead run says in the words of every measurement.

use super::analysis::{Analysis, ArmFigures, LaunchFigures};
use crate::judge::{ArmQuantities, Measured, Measurement, Metric, Quantity};
use crate::summary::{Summarised, Summary};

impl Summarised for Analysis {
    fn summary(&self) -> Summary {
        let calls = format!(
            "{} calls after {}, turns of {}, {} at once, {} us apart",
            self.runs, self.warmup, self.turn, self.concurrency, self.delay_us
        );
        let likeness = [
            ("build", self.build.clone()),
            ("operation", self.operation.clone()),
            ("protocol", self.protocol.clone()),
            ("path", self.path.clone()),
            ("calls", calls),
            ("pinning", format!("{:?}", self.pinned_core)),
            ("processor", self.host.processor.clone()),
            ("cores", self.host.cores.to_string()),
        ];
        Summary {
            torn: self
                .failure
                .clone()
                .or_else(|| self.aborted.then(|| "it was stopped".to_owned())),
            ..Summary::of("overhead", likeness, self.measurement(""))
        }
    }
}

impl Analysis {
    /// The quantities of every variant, its name behind `prefix`.
    pub(crate) fn measurement(&self, prefix: &str) -> Measurement {
        let arms = self.arms.iter().map(|arm| ArmQuantities {
            name: format!("{prefix}{}", arm.arm.name),
            quantities: quantities(arm, self),
        });
        Measurement {
            confidence: self.confidence,
            arms: arms.collect(),
        }
    }
}

fn quantities(arm: &ArmFigures, analysis: &Analysis) -> Vec<Measured> {
    type Of = fn(&LaunchFigures) -> Option<f64>;
    let per_launch: [(Metric, Of); 5] = [
        (Metric::P50, |l| l.p50_us),
        (Metric::P90, |l| l.p90_us),
        (Metric::P95, |l| l.p95_us),
        (Metric::P99, |l| l.p99_us),
        (Metric::Mean, |l| Some(l.mean_us)),
    ];
    let mut quantities = Vec::new();
    let mut add = |metric, values: Option<Vec<f64>>| {
        let few = || Quantity::Missing("a launch has too few calls for it".into());
        quantities.push(Measured {
            metric,
            quantity: values.map_or_else(few, Quantity::Launches),
        });
    };
    for (metric, of) in per_launch {
        add(metric, arm.per_launch.iter().map(of).collect());
    }
    let name = &arm.arm.name;
    if let Some(found) = analysis.comparisons.iter().find(|c| c.arm == *name) {
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
    quantities
}
