//! A measurement kept as a run directory.

use super::Analysis;
use super::measure::{Measured, Plan};
use crate::error::LabError;
use crate::run::{Manifest, OpRecord, OpsWriter, Recorded, RunDirectory, Status};
use std::time::Duration;

/// Writes what was measured into the run directory. `started_ms` is the Unix time of its beginning.
pub(super) fn write(
    run: &RunDirectory,
    mut manifest: Manifest,
    plan: &Plan,
    analysis: &Analysis,
    measured: &Measured,
    started_ms: u64,
) -> Result<(), LabError> {
    manifest.warnings.clone_from(&analysis.warnings);
    run.document("manifest.json", &manifest)?;
    operations(run, plan, measured, started_ms)?;
    histograms(run, plan, measured, started_ms)?;
    // The summary comes last: a directory that has one is whole.
    run.document("summary.json", analysis)
}

fn operations(
    run: &RunDirectory,
    plan: &Plan,
    measured: &Measured,
    started_ms: u64,
) -> Result<(), LabError> {
    let mut calls = OpsWriter::create(run, 1, started_ms)?;
    let op = plan.operation.name();
    for (launch, laps) in (1..).zip(&measured.launches) {
        for (at, (arm, lap)) in plan.arms.iter().zip(laps).enumerate() {
            let status = if plan.deny && at > 0 {
                Status::Refused
            } else {
                Status::Ok
            };
            let times = lap.calls_us.iter().zip(&lap.begun_us).zip(&lap.bytes);
            for (pair, ((latency_us, start_us), bytes)) in (1..).zip(times) {
                calls.write(&OpRecord {
                    ts: calls.stamp(*start_us),
                    worker: 1,
                    op: op.clone(),
                    latency_ms: latency_us / 1_000.0,
                    status,
                    arm: arm.name.clone(),
                    launch,
                    pair,
                    intended_us: *start_us,
                    start_us: *start_us,
                    bytes: *bytes as u64,
                    ttft_us: None,
                })?;
            }
        }
    }
    calls.finish()
}

/// One histogram per launch and arm.
fn histograms(
    run: &RunDirectory,
    plan: &Plan,
    measured: &Measured,
    started_ms: u64,
) -> Result<(), LabError> {
    let mut recorded = Vec::new();
    for laps in &measured.launches {
        for (arm, lap) in plan.arms.iter().zip(laps) {
            let micros =
                |us: Option<f64>| Duration::from_secs_f64(us.unwrap_or(0.0).max(0.0) / 1e6);
            let begin = micros(lap.begun_us.first().copied());
            let last = lap.begun_us.last().zip(lap.calls_us.last());
            let end = micros(last.map(|(begun, call)| begun + call));
            recorded.push(Recorded::of(
                &plan.operation.name(),
                &arm.name,
                begin,
                end.saturating_sub(begin),
                lap.calls_us.iter().copied(),
            )?);
        }
    }
    Recorded::write_all(run, started_ms, &recorded)
}
