//! The page of a measurement of which nothing is known but its summary.

use super::numbers::whole;
use super::page::{MeasuredCase, NumberTable, PageSection, ReportPage};
use crate::error::LabError;
use crate::judge::{ArmQuantities, Judgement, RuleMetric};
use crate::summary::MeasurementSummary;
use std::path::Path;

/// Reads a document.
pub(super) fn read(path: &Path) -> Result<ReportPage, LabError> {
    let summary = MeasurementSummary::read(path)?;
    let measurement = &summary.measurement;
    let held = |metric: &RuleMetric| {
        let arms = &mut measurement.arms();
        arms.any(|arm| measurement.quantity(arm, *metric).is_some())
    };
    let metrics: Vec<RuleMetric> = RuleMetric::ALL.into_iter().filter(held).collect();
    let names: Vec<&str> = metrics.iter().map(|metric| metric.name()).collect();
    let mut table = NumberTable::new(&[&["variant"][..], &names].concat());
    for arm in &measurement.arms {
        let cells = metrics.iter().map(|metric| cell(arm, *metric, &summary));
        table
            .rows
            .push(std::iter::once(arm.name.clone()).chain(cells).collect());
    }
    let traits = summary.likeness.iter();
    Ok(ReportPage {
        title: format!("Measurement: {}", summary.kind),
        lead: format!("{} variants", measurement.arms.len()),
        tiles: Vec::new(),
        warnings: summary
            .torn
            .iter()
            .chain(&summary.limited)
            .cloned()
            .collect(),
        cases: measurement.arms.iter().map(case).collect(),
        sections: vec![PageSection {
            title: "Figures".into(),
            note: "Times in microseconds, failures as shares, each with its interval.".into(),
            charts: Vec::new(),
            table: Some(table),
        }],
        facts: traits
            .map(|known| (known.what.clone(), known.value.clone()))
            .collect(),
        judged: Judgement::beside(path)?,
    })
}

fn cell(arm: &ArmQuantities, metric: RuleMetric, summary: &MeasurementSummary) -> String {
    let confidence = summary.measurement.confidence;
    let found = summary.measurement.quantity(&arm.name, metric);
    match found.map(|quantity| quantity.interval(confidence)) {
        Some(Ok(share)) if metric.is_rate() => format!("{:.2} %", share.point * 100.0),
        Some(Ok(interval)) => whole(&interval),
        Some(Err(_)) | None => "-".into(),
    }
}

fn case(arm: &ArmQuantities) -> MeasuredCase {
    MeasuredCase {
        name: arm.name.clone(),
        seconds: 0.0,
        said: format!("{} quantities", arm.quantities.len()),
    }
}
