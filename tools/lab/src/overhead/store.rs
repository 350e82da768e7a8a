//! A measurement kept as a run directory: its manifest before anything is measured, the calls of each launch
//! as soon as it is over, the figures last. A run that is killed leaves what it had.

use super::OverheadAnalysis;
use super::measure::{Launch, OverheadMeasurement, OverheadPlan};
use crate::error::LabError;
use crate::run::{CallStatus, LoggedHistogram, OpRecord, OpsWriter, RunDirectory, RunManifest};
use crate::summary::SummaryDocument;
use std::time::Duration;

/// The run directory of a measurement under way.
#[derive(Debug)]
pub(crate) struct OverheadStore {
    run: RunDirectory,
    manifest: RunManifest,
    calls: OpsWriter,
    started_ms: u64,
    launches: u32,
}

impl OverheadStore {
    /// Begins a run. `started_ms` is the Unix time of its beginning.
    pub(super) fn begin(
        run: RunDirectory,
        manifest: RunManifest,
        started_ms: u64,
    ) -> Result<Self, LabError> {
        run.document("manifest.json", &manifest)?;
        let calls = OpsWriter::create(&run, 1, started_ms)?;
        Ok(Self {
            run,
            manifest,
            calls,
            started_ms,
            launches: 0,
        })
    }

    /// Its directory.
    pub(super) fn run(&self) -> &RunDirectory {
        &self.run
    }

    /// Writes the calls of a launch that is over.
    pub(super) fn launch(&mut self, plan: &OverheadPlan, laps: &Launch) -> Result<(), LabError> {
        self.launches += 1;
        let op = plan.operation.name();
        for (at, (arm, lap)) in plan.arms.iter().zip(laps).enumerate() {
            let status = if plan.deny && at >= plan.references {
                CallStatus::Refused
            } else {
                CallStatus::Ok
            };
            let times = lap.calls_us.iter().zip(&lap.begun_us).zip(&lap.bytes);
            for (pair, ((latency_us, start_us), bytes)) in (1..).zip(times) {
                self.calls.write(&OpRecord {
                    ts: self.calls.stamp(*start_us),
                    worker: 1,
                    op: op.clone(),
                    latency_ms: latency_us / 1_000.0,
                    status,
                    arm: arm.name.clone(),
                    launch: self.launches,
                    pair,
                    intended_us: *start_us,
                    start_us: *start_us,
                    bytes: *bytes as u64,
                    ttft_us: None,
                })?;
            }
        }
        self.calls.flush()
    }

    /// Writes the figures. The summary comes last: a directory that has one is whole.
    pub(super) fn finish(
        mut self,
        plan: &OverheadPlan,
        analysis: &OverheadAnalysis,
        measured: &OverheadMeasurement,
    ) -> Result<RunDirectory, LabError> {
        self.manifest.warnings.clone_from(&analysis.warnings);
        self.run.document("manifest.json", &self.manifest)?;
        self.calls.finish()?;
        histograms(&self.run, plan, measured, self.started_ms)?;
        self.run
            .document("summary.json", &SummaryDocument::of(analysis))?;
        Ok(self.run)
    }
}

/// One histogram per launch and variant.
fn histograms(
    run: &RunDirectory,
    plan: &OverheadPlan,
    measured: &OverheadMeasurement,
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
            recorded.push(LoggedHistogram::of(
                &plan.operation.name(),
                &arm.name,
                begin,
                end.saturating_sub(begin),
                lap.calls_us.iter().copied(),
            )?);
        }
    }
    LoggedHistogram::write_all(run, started_ms, &recorded)
}
