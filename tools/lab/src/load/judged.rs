//! A load run's quantities, and its thresholds compared with them.

use super::summary::{LoadSummary, PhaseFigures};
use crate::error::LabError;
use crate::judge::{
    ArmQuantities, GateRule, Judgement, MeasuredQuantities, NamedQuantity, Quantity, RuleMetric,
    RuleVerdict, judge,
};
use crate::stats::Interval;
use crate::stats::TimePercentiles;
use crate::summary::{MeasurementSummary, SummarySource};

impl LoadSummary {
    /// Returns the quantities of every phase, as variants.
    pub(crate) fn measurement(&self) -> MeasuredQuantities {
        MeasuredQuantities {
            confidence: crate::stats::CONFIDENCE,
            arms: self.phases.iter().map(quantities).collect(),
        }
    }

    /// Holds thresholds against the last phase; nothing without thresholds. All are absolute.
    pub(super) fn judge(&self, rules: &[GateRule]) -> Result<Option<Judgement>, LabError> {
        if rules.is_empty() {
            return Ok(None);
        }
        let measurement = self.measurement();
        let Some(arm) = measurement.arms().last().map(str::to_owned) else {
            return Ok(None);
        };
        let judged: Result<Vec<RuleVerdict>, LabError> = rules
            .iter()
            .map(|rule| judge(rule, &arm, None, &measurement))
            .collect();
        Ok(Some(Judgement::of(None, judged?)))
    }
}

impl SummarySource for LoadSummary {
    fn summary(&self) -> MeasurementSummary {
        let shape = |phase: &PhaseFigures| {
            format!(
                "{} {} {:?} {}",
                phase.name, phase.model, phase.rate, phase.workers
            )
        };
        let shapes: Vec<String> = self.phases.iter().map(shape).collect();
        let likeness = [
            ("build", self.build.clone()),
            ("operation", self.operation.clone()),
            ("phases", shapes.join(", ")),
            ("processor", self.host.processor.clone()),
            ("cores", self.host.cores.to_string()),
        ];
        MeasurementSummary {
            limited: self.generator.reasons.first().cloned(),
            torn: self.aborted.then(|| "it was stopped".to_owned()),
            ..MeasurementSummary::of("load", likeness, self.measurement())
        }
    }
}

fn quantities(phase: &PhaseFigures) -> ArmQuantities {
    let mut quantities = Vec::new();
    let mut add = |of: &TimePercentiles, named: &[(RuleMetric, &str, Option<Interval>)]| {
        for (metric, name, interval) in named {
            let why = || of.missing.get(*name).cloned().unwrap_or_default();
            let found = interval.map_or_else(|| Quantity::Missing(why()), Quantity::Run);
            quantities.push(NamedQuantity {
                metric: *metric,
                quantity: found,
            });
        }
    };
    let (service, response) = (&phase.service, &phase.response);
    add(
        service,
        &[
            (RuleMetric::P50, "p50", service.p50_us),
            (RuleMetric::P90, "p90", service.p90_us),
            (RuleMetric::P95, "p95", service.p95_us),
            (RuleMetric::P99, "p99", service.p99_us),
        ],
    );
    add(
        response,
        &[
            (RuleMetric::ResponseP50, "p50", response.p50_us),
            (RuleMetric::ResponseP95, "p95", response.p95_us),
            (RuleMetric::ResponseP99, "p99", response.p99_us),
        ],
    );
    let none = || Quantity::Missing("no answer was streamed".into());
    match &phase.ttft {
        Some(ttft) => add(
            ttft,
            &[
                (RuleMetric::TtftP50, "p50", ttft.p50_us),
                (RuleMetric::TtftP95, "p95", ttft.p95_us),
            ],
        ),
        None => quantities.extend([RuleMetric::TtftP50, RuleMetric::TtftP95].map(|metric| {
            NamedQuantity {
                metric,
                quantity: none(),
            }
        })),
    }
    quantities.push(NamedQuantity {
        metric: RuleMetric::ErrorRate,
        quantity: Quantity::Run(phase.error_rate),
    });
    ArmQuantities {
        name: phase.name.clone(),
        quantities,
    }
}
