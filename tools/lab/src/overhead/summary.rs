//! What an overhead run says in the words of every measurement.

use super::analysis::{ArmFigures, LaunchFigures, OverheadAnalysis};
use crate::judge::{ArmQuantities, MeasuredQuantities, NamedQuantity, Quantity, RuleMetric};
use crate::summary::{MeasurementSummary, SummarySource};

impl SummarySource for OverheadAnalysis {
    fn summary(&self) -> MeasurementSummary {
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
        MeasurementSummary {
            torn: self
                .failure
                .clone()
                .or_else(|| self.aborted.then(|| "it was stopped".to_owned())),
            ..MeasurementSummary::of("overhead", likeness, self.measurement(""))
        }
    }
}

impl OverheadAnalysis {
    /// Returns the quantities of every variant, its name behind `prefix`.
    pub(crate) fn measurement(&self, prefix: &str) -> MeasuredQuantities {
        let arms = self.arms.iter().map(|arm| ArmQuantities {
            name: format!("{prefix}{}", arm.arm.name),
            quantities: quantities(arm, self),
        });
        MeasuredQuantities {
            confidence: self.confidence,
            arms: arms.collect(),
        }
    }
}

fn quantities(arm: &ArmFigures, analysis: &OverheadAnalysis) -> Vec<NamedQuantity> {
    type Of = fn(&LaunchFigures) -> Option<f64>;
    let per_launch: [(RuleMetric, Of); 5] = [
        (RuleMetric::P50, |l| l.p50_us),
        (RuleMetric::P90, |l| l.p90_us),
        (RuleMetric::P95, |l| l.p95_us),
        (RuleMetric::P99, |l| l.p99_us),
        (RuleMetric::Mean, |l| Some(l.mean_us)),
    ];
    let mut quantities = Vec::new();
    let mut add = |metric, values: Option<Vec<f64>>| {
        let few = || Quantity::Missing("a launch has too few calls for it".into());
        quantities.push(NamedQuantity {
            metric,
            quantity: values.map_or_else(few, Quantity::Launches),
        });
    };
    for (metric, of) in per_launch {
        add(metric, arm.per_launch.iter().map(of).collect());
    }
    let name = &arm.arm.name;
    if let Some(found) = analysis.comparisons.iter().find(|c| c.arm == *name) {
        add(
            RuleMetric::Overhead,
            Some(found.per_launch_overhead_us.clone()),
        );
    }
    if let Some(stages) = &arm.stages {
        let tails = stages.per_launch_unexplained_p95_us.iter().copied();
        add(
            RuleMetric::UnexplainedP50,
            Some(stages.per_launch_unexplained_p50_us.clone()),
        );
        add(RuleMetric::UnexplainedP95, tails.collect());
    }
    quantities
}
