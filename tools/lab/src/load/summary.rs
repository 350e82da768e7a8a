//! Figures of a load run: times, failures by kind, rates, and whether the generator itself was the limit.

use super::args::{LoadPhase, LoadPlan};
use super::drive::{DriveResult, FinishedPhase};
use super::pace::Pace;
use super::worker::CompletedCall;
use crate::host::{self, HostInfo};
use crate::judge::Judgement;
use crate::run::{CallStatus, RunManifest};
use crate::stats::{CONFIDENCE, Interval, SortedSamples, TimePercentiles, share};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name and version of the document.
pub(crate) const FORMAT: &str = "durward-lab-load/1";
/// How late a free worker may leave, its p99 as a share of the median service time.
const LATE_SHARE_MAX: f64 = 0.1;
/// How much of a core the generator may use, in per cent.
const GENERATOR_CPU_MAX: f64 = 80.0;
/// The kind of failure of a call that was due and never left.
const UNSENT: &str = "unsent";
/// A load average per core from which a warning is due.
const BUSY: f64 = 0.8;

/// Everything that is said about one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LoadSummary {
    pub(crate) format: String,
    pub(crate) version: String,
    pub(crate) build: String,
    pub(crate) target: String,
    pub(crate) operation: String,
    pub(crate) seed: u64,
    pub(crate) workers: u32,
    pub(crate) warm: u32,
    pub(crate) aborted: bool,
    pub(crate) host: HostInfo,
    pub(crate) load_average_before: Option<[f64; 3]>,
    pub(crate) load_average_after: Option<[f64; 3]>,
    pub(crate) generator: GeneratorLimits,
    pub(crate) phases: Vec<PhaseFigures>,
    /// The first of all complaints.
    pub(crate) complaint: Option<String>,
    /// The thresholds compared with the last phase; nothing without thresholds.
    #[serde(default)]
    pub(crate) thresholds: Option<Judgement>,
    pub(crate) warnings: Vec<String>,
}

/// Whether the lab was the limit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GeneratorLimits {
    /// Then the figures are the generator's, and a gate refuses them.
    pub(crate) limited: bool,
    pub(crate) reasons: Vec<String>,
    /// Processor time of the lab, as a share of one core.
    pub(crate) cpu_percent: f64,
    /// How late a free worker left, p99, in microseconds; nothing in a closed loop.
    pub(crate) late_p99_us: Option<f64>,
}

/// One phase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PhaseFigures {
    pub(crate) name: String,
    /// `open` or `closed`.
    pub(crate) model: String,
    /// Calls per second that were due; nothing in a closed loop.
    pub(crate) rate: Option<f64>,
    pub(crate) workers: u32,
    pub(crate) seconds: f64,
    pub(crate) calls: usize,
    pub(crate) ok: usize,
    /// Failures by kind, as the records name it.
    pub(crate) failures: BTreeMap<String, usize>,
    /// The share of calls that failed.
    pub(crate) error_rate: Interval,
    /// Good answers per second.
    pub(crate) rps: f64,
    /// The same in its best whole second; nothing in a phase shorter than one.
    pub(crate) rps_peak: Option<f64>,
    /// From the write of a request to the read of its answer, good calls only.
    pub(crate) service: TimePercentiles,
    /// The same from the instant at which the call was due.
    pub(crate) response: TimePercentiles,
    /// To the first part of streamed answers.
    pub(crate) ttft: Option<TimePercentiles>,
}

impl LoadSummary {
    /// Works out the figures.
    pub(super) fn of(plan: &LoadPlan, driven: &DriveResult, manifest: &RunManifest) -> Self {
        let phases: Vec<PhaseFigures> = (0..)
            .zip(&driven.phases)
            .filter_map(|(number, stretch)| {
                let done: Vec<&CompletedCall> = driven
                    .workers
                    .iter()
                    .flatten()
                    .filter(|done| done.phase == number)
                    .collect();
                let phase = plan.phases.get(number as usize)?;
                let workers = match phase.pace {
                    Pace::Closed { workers } => workers,
                    Pace::Open { .. } => plan.workers,
                };
                Some(PhaseFigures::of(phase, workers, stretch, &done))
            })
            .collect();
        let generator = GeneratorLimits::of(plan, driven, &phases);
        Self {
            format: FORMAT.into(),
            version: manifest.version.clone(),
            build: manifest.build.clone(),
            target: plan.target.clone(),
            operation: plan.aim.operation(),
            seed: plan.seed,
            workers: plan.workers,
            warm: plan.warm,
            aborted: driven.aborted,
            host: manifest.host.clone(),
            load_average_before: manifest.load_average_before,
            load_average_after: host::load_average(),
            warnings: warnings(manifest, driven, &generator, &phases),
            generator,
            phases,
            complaint: driven.complaint.clone(),
            thresholds: None,
        }
    }
}

impl PhaseFigures {
    fn of(
        phase: &LoadPhase,
        workers: u32,
        stretch: &FinishedPhase,
        done: &[&CompletedCall],
    ) -> Self {
        let (pace, seconds) = (phase.pace, (stretch.end - stretch.begin).as_secs_f64());
        let good: Vec<&&CompletedCall> =
            done.iter().filter(|d| d.status == CallStatus::Ok).collect();
        let mut failures = BTreeMap::new();
        for bad in done.iter().filter(|d| d.status != CallStatus::Ok) {
            *failures.entry(bad.status.name()).or_insert(0) += 1;
        }
        let unsent = usize::try_from(stretch.unsent).unwrap_or(usize::MAX);
        if unsent > 0 {
            failures.insert(UNSENT.to_owned(), unsent);
        }
        let calls = done.len() + unsent;
        let response = good
            .iter()
            .map(|d| d.start_us + d.latency_us - d.intended_us);
        let streamed: Option<Vec<f64>> = good.iter().map(|d| d.ttft_us).collect();
        Self {
            name: phase.name.clone(),
            model: match pace {
                Pace::Closed { .. } => "closed".into(),
                Pace::Open { .. } => "open".into(),
            },
            rate: match pace {
                Pace::Closed { .. } => None,
                Pace::Open { rate } => Some(rate),
            },
            workers,
            seconds,
            calls,
            ok: good.len(),
            error_rate: share(calls - good.len(), calls, CONFIDENCE),
            failures,
            rps: good.len() as f64 / seconds.max(1e-9),
            rps_peak: peak(&good, seconds),
            service: TimePercentiles::of(good.iter().map(|d| d.latency_us).collect()),
            response: TimePercentiles::of(response.collect()),
            ttft: streamed
                .filter(|all| !all.is_empty())
                .map(TimePercentiles::of),
        }
    }
}

/// Good answers in the best whole second.
fn peak(good: &[&&CompletedCall], seconds: f64) -> Option<f64> {
    let begin = good
        .iter()
        .map(|d| d.start_us)
        .fold(f64::INFINITY, f64::min);
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    for done in good {
        let second = ((done.start_us + done.latency_us - begin) / 1e6) as u64;
        if ((second + 1) as f64) <= seconds {
            *counts.entry(second).or_default() += 1;
        }
    }
    counts.values().max().map(|count| f64::from(*count))
}

impl GeneratorLimits {
    fn of(plan: &LoadPlan, driven: &DriveResult, phases: &[PhaseFigures]) -> Self {
        let mut reasons = Vec::new();
        let mut worst = None;
        for (number, (phase, figures)) in (0..).zip(plan.phases.iter().zip(phases)) {
            let Pace::Open { .. } = phase.pace else {
                continue;
            };
            let late = driven.workers.iter().flatten();
            let late = late.filter(|d| d.phase == number).map(|d| d.late_us);
            let p99 = SortedSamples::new(late.collect())
                .at(0.99)
                .unwrap_or_default();
            worst = Some(f64::max(worst.unwrap_or_default(), p99));
            let median = figures
                .service
                .p50_us
                .map_or(f64::INFINITY, |p50| p50.point);
            if p99 > LATE_SHARE_MAX * median {
                reasons.push(format!(
                    "{}: calls left up to {p99:.0} us late (p99), more than a tenth of the median of {median:.0} us",
                    figures.name
                ));
            }
        }
        if driven.generator_cpu_percent > GENERATOR_CPU_MAX {
            reasons.push(format!(
                "the generator used {:.0} % of a core",
                driven.generator_cpu_percent
            ));
        }
        Self {
            limited: !reasons.is_empty(),
            reasons,
            cpu_percent: driven.generator_cpu_percent,
            late_p99_us: worst,
        }
    }
}

fn warnings(
    manifest: &RunManifest,
    driven: &DriveResult,
    generator: &GeneratorLimits,
    phases: &[PhaseFigures],
) -> Vec<String> {
    let mut found = Vec::new();
    if manifest.build == "debug" {
        found.push("this is a debug build: its figures say nothing about a release".to_owned());
    }
    if driven.aborted {
        found.push("stopped early".to_owned());
    }
    if driven.profile.is_some() {
        found.push("profiled while it ran: times are longer than without".to_owned());
    }
    if let Some([minute, ..]) = manifest.load_average_before
        && minute > BUSY * manifest.host.cores as f64
    {
        found.push(format!(
            "the machine was busy before the start: load {minute} on {} cores",
            manifest.host.cores
        ));
    }
    for reason in &generator.reasons {
        found.push(format!("generator_limited: {reason}"));
    }
    for phase in phases {
        if let Some(unsent) = phase.failures.get(UNSENT) {
            found.push(format!(
                "{}: {unsent} calls were due and never left: its times are only those of the calls that did",
                phase.name
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn failures_are_counted_and_are_no_times() {
        let done = |latency_us, status| CompletedCall {
            phase: 0,
            intended_us: 0.0,
            start_us: 5.0,
            latency_us,
            late_us: 0.0,
            bytes: 1,
            ttft_us: None,
            status,
        };
        let all: Vec<CompletedCall> = (0..80)
            .map(|n| done(100.0 + f64::from(n), CallStatus::Ok))
            .chain([
                done(1.0, CallStatus::ToolError),
                done(1.0, CallStatus::Timeout),
                done(2.0, CallStatus::Timeout),
            ])
            .collect();
        let all: Vec<&CompletedCall> = all.iter().collect();
        let phase = LoadPhase {
            name: "a".into(),
            duration: Duration::from_secs(2),
            pace: Pace::Open { rate: 44.0 },
        };
        let stretch = FinishedPhase {
            begin: Duration::ZERO,
            end: Duration::from_secs(2),
            unsent: 5,
        };
        let found = PhaseFigures::of(&phase, 1, &stretch, &all);
        assert_eq!((found.calls, found.ok), (88, 80));
        assert_eq!(found.failures["unsent"], 5);
        assert_eq!(found.failures["tool_error"], 1);
        assert_eq!(found.failures["timeout"], 2);
        assert_eq!(found.service.min_us, Some(100.0));
        assert_eq!(found.response.min_us, Some(105.0));
        assert!((found.error_rate.point - 8.0 / 88.0).abs() < 1e-12);
        assert_eq!(found.service.p99_us, None);
        assert_eq!(found.service.missing["p99"], "80 of the 368 calls it needs");
        assert!(found.service.p95_us.is_some());
        assert_eq!(found.ttft.map(|t| t.n), None);
    }
}
