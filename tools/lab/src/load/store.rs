//! A load run kept as a run directory.

use super::args::Plan;
use super::drive::Driven;
use super::summary::Load;
use super::worker::Done;
use crate::error::LabError;
use crate::run::{Manifest, OpRecord, OpsWriter, Recorded, RunDirectory, Status};
use crate::summary::Document;
use std::collections::BTreeMap;
use std::time::Duration;

/// The length of the intervals of the histogram log.
const INTERVAL: Duration = Duration::from_secs(10);

/// Writes what was done into the run directory. `started_ms` is the Unix time of its beginning.
pub(super) fn write(
    run: &RunDirectory,
    mut manifest: Manifest,
    plan: &Plan,
    load: &Load,
    driven: &Driven,
    started_ms: u64,
) -> Result<(), LabError> {
    manifest.warnings.clone_from(&load.warnings);
    run.document("manifest.json", &manifest)?;
    for (number, calls) in (1..).zip(&driven.workers) {
        worker(run, number, plan, &load.operation, calls, started_ms)?;
    }
    histograms(run, plan, &load.operation, driven, started_ms)?;
    // The summary comes last: a directory that has one is whole.
    run.document("summary.json", &Document::of(load))
}

fn phase_name(plan: &Plan, phase: u32) -> &str {
    let phase = plan.phases.get(phase as usize);
    phase.map_or("", |phase| phase.name.as_str())
}

fn worker(
    run: &RunDirectory,
    number: u32,
    plan: &Plan,
    op: &str,
    calls: &[Done],
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
    plan: &Plan,
    op: &str,
    driven: &Driven,
    started_ms: u64,
) -> Result<(), LabError> {
    let mut intervals: BTreeMap<(u64, u32), Vec<f64>> = BTreeMap::new();
    for done in driven.workers.iter().flatten() {
        if done.status == Status::Ok {
            let end_us = done.start_us + done.latency_us;
            let at = (end_us / 1e6 / INTERVAL.as_secs_f64()) as u64;
            let times = intervals.entry((at, done.phase)).or_default();
            times.push(end_us - done.intended_us);
        }
    }
    let recorded: Result<Vec<Recorded>, LabError> = intervals
        .into_iter()
        .map(|((at, phase), times)| {
            let begin = INTERVAL * u32::try_from(at).unwrap_or(u32::MAX);
            let name = phase_name(plan, phase);
            Recorded::of(op, name, begin, INTERVAL, times.into_iter())
        })
        .collect();
    Recorded::write_all(run, started_ms, &recorded?)
}
