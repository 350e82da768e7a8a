//! A load run kept as a run directory.

use super::args::LoadPlan;
use super::drive::DriveResult;
use super::summary::LoadSummary;
use super::worker::CompletedCall;
use crate::error::LabError;
use crate::run::{CallStatus, LoggedHistogram, OpRecord, OpsWriter, RunDirectory, RunManifest};
use crate::summary::SummaryDocument;
use std::collections::BTreeMap;
use std::time::Duration;

/// The length of the intervals of the histogram log.
const INTERVAL: Duration = Duration::from_secs(10);

/// Writes what was done into the run directory. `started_ms` is the Unix time of its beginning.
pub(super) fn write(
    run: &RunDirectory,
    mut manifest: RunManifest,
    plan: &LoadPlan,
    load: &LoadSummary,
    driven: &DriveResult,
    started_ms: u64,
) -> Result<(), LabError> {
    manifest.warnings.clone_from(&load.warnings);
    run.document("manifest.json", &manifest)?;
    for (number, calls) in (1..).zip(&driven.workers) {
        worker(run, number, plan, &load.operation, calls, started_ms)?;
    }
    histograms(run, plan, &load.operation, driven, started_ms)?;
    // The summary comes last: a directory that has one is whole.
    run.document("summary.json", &SummaryDocument::of(load))
}

fn phase_name(plan: &LoadPlan, phase: u32) -> &str {
    let phase = plan.phases.get(phase as usize);
    phase.map_or("", |phase| phase.name.as_str())
}

fn worker(
    run: &RunDirectory,
    number: u32,
    plan: &LoadPlan,
    op: &str,
    calls: &[CompletedCall],
    started_ms: u64,
) -> Result<(), LabError> {
    let mut out = OpsWriter::create(run, number, started_ms)?;
    for (pair, done) in (1..).zip(calls) {
        out.write(&OpRecord {
            ts: out.stamp(done.start_us),
            worker: number,
            op: op.to_owned(),
            latency_ms: done.latency_us / 1e3,
            status: done.status,
            arm: phase_name(plan, done.phase).to_owned(),
            launch: 1,
            pair,
            intended_us: done.intended_us,
            start_us: done.start_us,
            bytes: done.bytes,
            ttft_us: done.ttft_us,
        })?;
    }
    out.finish()
}

/// Response times of good calls, per phase and interval.
fn histograms(
    run: &RunDirectory,
    plan: &LoadPlan,
    op: &str,
    driven: &DriveResult,
    started_ms: u64,
) -> Result<(), LabError> {
    let mut intervals: BTreeMap<(u64, u32), Vec<f64>> = BTreeMap::new();
    for done in driven.workers.iter().flatten() {
        if done.status == CallStatus::Ok {
            let end_us = done.start_us + done.latency_us;
            let at = (end_us / 1e6 / INTERVAL.as_secs_f64()) as u64;
            let times = intervals.entry((at, done.phase)).or_default();
            times.push(end_us - done.intended_us);
        }
    }
    let recorded: Result<Vec<LoggedHistogram>, LabError> = intervals
        .into_iter()
        .map(|((at, phase), times)| {
            let begin = INTERVAL * u32::try_from(at).unwrap_or(u32::MAX);
            let name = phase_name(plan, phase);
            LoggedHistogram::of(op, name, begin, INTERVAL, times.into_iter())
        })
        .collect();
    LoggedHistogram::write_all(run, started_ms, &recorded?)
}
