//! A load run's quantities, and its thresholds held against them.

use super::summary::{Load, PhaseFigures};
use crate::error::LabError;
use crate::judge::{
    ArmQuantities, Judged, Judgement, Measured, Measurement, Metric, Quantity, Rule, judge,
};
use crate::stats::Interval;
use crate::stats::Times;
use crate::summary::{Summarised, Summary};

impl Load {
    /// The quantities of every phase, as variants.
    pub(crate) fn measurement(&self) -> Measurement {
        Measurement {
            confidence: crate::stats::CONFIDENCE,
            arms: self.phases.iter().map(quantities).collect(),
        }
    }

    /// Holds thresholds against the last phase; nothing without thresholds. All are absolute.
    pub(super) fn judge(&self, rules: &[Rule]) -> Result<Option<Judgement>, LabError> {
        if rules.is_empty() {
            return Ok(None);
        }
        let measurement = self.measurement();
        let Some(arm) = measurement.arms().last().map(str::to_owned) else {
            return Ok(None);
        };
        let judged: Result<Vec<Judged>, LabError> = rules
            .iter()
            .map(|rule| judge(rule, &arm, None, &measurement))
            .collect();
        Ok(Some(Judgement::of(None, judged?)))
    }
}

impl Summarised for Load {
    fn summary(&self) -> Summary {
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
        Summary {
            limited: self.generator.reasons.first().cloned(),
            torn: self.aborted.then(|| "it was stopped".to_owned()),
            ..Summary::of("load", likeness, self.measurement())
        }
    }
}

fn quantities(phase: &PhaseFigures) -> ArmQuantities {
    let mut quantities = Vec::new();
    let mut add = |of: &Times, named: &[(Metric, &str, Option<Interval>)]| {
        for (metric, name, interval) in named {
            let why = || of.missing.get(*name).cloned().unwrap_or_default();
            let found = interval.map_or_else(|| Quantity::Missing(why()), Quantity::Run);
            quantities.push(Measured {
                metric: *metric,
                quantity: found,
            });
        }
    };
    let (service, response) = (&phase.service, &phase.response);
    add(
        service,
        &[
            (Metric::P50, "p50", service.p50_us),
            (Metric::P90, "p90", service.p90_us),
            (Metric::P95, "p95", service.p95_us),
            (Metric::P99, "p99", service.p99_us),
        ],
    );
    add(
        response,
        &[
            (Metric::ResponseP50, "p50", response.p50_us),
            (Metric::ResponseP95, "p95", response.p95_us),
            (Metric::ResponseP99, "p99", response.p99_us),
        ],
    );
    let none = || Quantity::Missing("no answer was streamed".into());
    match &phase.ttft {
        Some(ttft) => add(
            ttft,
            &[
                (Metric::TtftP50, "p50", ttft.p50_us),
                (Metric::TtftP95, "p95", ttft.p95_us),
            ],
        ),
        None => quantities.extend([Metric::TtftP50, Metric::TtftP95].map(|metric| Measured {
            metric,
            quantity: none(),
        })),
    }
    quantities.push(Measured {
        metric: Metric::ErrorRate,
        quantity: Quantity::Run(phase.error_rate),
    });
    ArmQuantities {
        name: phase.name.clone(),
        quantities,
    }
}
