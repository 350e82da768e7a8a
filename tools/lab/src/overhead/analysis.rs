//! From raw times to figures.

use super::approval::ApprovalWait;
use super::measure::{LaunchTimes, OverheadMeasurement, OverheadPlan, comparisons};
use super::stages::StageFigures;
use super::usage::{self, ProcessFigures};
use crate::LabContext;
use crate::host::{self, HostInfo};
use crate::run;
use crate::stats::{Interval, SortedSamples, hodges_lehmann, mean, median, variance};
use crate::variant::Variant;
use serde::{Deserialize, Serialize};

/// The name and version of the document.
pub(crate) const FORMAT: &str = "durward-lab-overhead/1";
/// Arrangement of variants and launches; every result has it.
const DESIGN: &str = "each launch starts every variant afresh; within it the variants take turns in random order, reversed \
in every second round; call i of a variant is paired with call i of the baseline; a launch counts as the median \
of its paired differences; intervals are Student's t over launches, from 20 launches on a bootstrap over launches; percentiles are nearest-rank";
/// A spread of standard deviation over median from which a variant counts as unstable, as in the access
/// proxy's paper.
const UNSTABLE: f64 = 0.5;
/// A load average per core from which a warning is due.
const BUSY: f64 = 0.8;

/// Everything that is said about one measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OverheadAnalysis {
    pub(crate) format: String,
    pub(crate) version: String,
    /// How the lab itself was built: `release` or `debug`.
    pub(crate) build: String,
    pub(crate) operation: String,
    pub(crate) protocol: String,
    pub(crate) path: String,
    pub(crate) design: String,
    pub(crate) launches: u32,
    pub(crate) runs: u32,
    pub(crate) warmup: u32,
    pub(crate) turn: u32,
    /// Calls under way at once.
    pub(crate) concurrency: u32,
    pub(crate) delay_us: u64,
    pub(crate) seed: u64,
    /// Whether it was stopped before all launches were made.
    pub(crate) aborted: bool,
    /// Why a later launch failed; the figures are of those before it.
    #[serde(default)]
    pub(crate) failure: Option<String>,
    pub(crate) confidence: f64,
    /// The core that client, variants and servers shared.
    pub(crate) pinned_core: Option<usize>,
    pub(crate) host: HostInfo,
    pub(crate) load_average_before: Option<[f64; 3]>,
    pub(crate) load_average_after: Option<[f64; 3]>,
    pub(crate) arms: Vec<ArmFigures>,
    pub(crate) comparisons: Vec<VariantComparison>,
    pub(crate) warnings: Vec<String>,
}

/// One variant by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ArmFigures {
    #[serde(flatten)]
    pub(crate) arm: Variant,
    /// Counted calls of all launches.
    pub(crate) calls: usize,
    /// Percentiles of a launch, averaged over launches.
    pub(crate) p50_us: Interval,
    pub(crate) p90_us: Option<Interval>,
    pub(crate) p95_us: Option<Interval>,
    pub(crate) p99_us: Option<Interval>,
    pub(crate) min_us: f64,
    pub(crate) max_us: f64,
    /// From spawn to the answer to the handshake.
    pub(crate) start_us: Interval,
    /// The first call after the handshake.
    pub(crate) first_us: Interval,
    /// From spawn through the handshake to the answer to the first call.
    pub(crate) cold_us: Interval,
    /// Standard deviation over median, the median of launches.
    pub(crate) spread: f64,
    pub(crate) stable: bool,
    /// The part of the variance of a call that lies between launches.
    pub(crate) variance_between_share: f64,
    pub(crate) per_launch: Vec<LaunchFigures>,
    /// Resources of its processes, itself first.
    pub(crate) processes: Vec<ProcessFigures>,
    /// The watch compared with the variant's own journal; `None` for a variant without one.
    pub(crate) stages: Option<StageFigures>,
    /// Why there are no stages although the variant has a journal.
    pub(crate) stages_missing: Option<String>,
}

/// One variant in one launch.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LaunchFigures {
    pub(crate) p50_us: Option<f64>,
    /// `None` with too few calls for it, like those below.
    pub(crate) p90_us: Option<f64>,
    pub(crate) p95_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    pub(crate) mean_us: f64,
    pub(crate) max_us: f64,
}

/// A variant against the baseline.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct VariantComparison {
    pub(crate) arm: String,
    pub(crate) baseline: String,
    /// Median of paired differences.
    pub(crate) overhead_us: Interval,
    /// The same by Hodges and Lehmann over launches: one odd launch moves it little.
    pub(crate) hodges_lehmann_us: f64,
    /// Addition to a cold start: spawn, handshake and first call together.
    pub(crate) added_cold_us: Interval,
    pub(crate) added_p50_us: Interval,
    pub(crate) added_p95_us: Option<Interval>,
    pub(crate) added_p99_us: Option<Interval>,
    /// The median of paired differences of each launch.
    pub(crate) per_launch_overhead_us: Vec<f64>,
    /// For variants with approvals: the wait within the overhead, and the cost of waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<ApprovalWait>,
}

impl OverheadAnalysis {
    /// Works out the figures.
    pub(crate) fn of(
        plan: &OverheadPlan,
        measured: &OverheadMeasurement,
        load_average_before: Option<[f64; 3]>,
        context: &LabContext,
    ) -> Self {
        let (host, launches) = (HostInfo::read(), &measured.launches);
        let laps = |arm: usize| launches.iter().filter_map(move |launch| launch.get(arm));
        let arms: Vec<ArmFigures> = plan
            .arms
            .iter()
            .enumerate()
            .map(|(at, arm)| ArmFigures::of(arm, laps(at), plan.confidence))
            .collect();
        let comparisons = comparisons(plan, launches);
        let warnings = warnings(plan, measured, &arms, load_average_before, host.cores);
        Self {
            format: FORMAT.into(),
            version: context.version.into(),
            build: run::build().into(),
            operation: plan.operation.describe(),
            protocol: plan.protocol.revision().into(),
            path: path(plan),
            design: DESIGN.into(),
            launches: u32::try_from(launches.len()).unwrap_or(u32::MAX),
            runs: plan.runs,
            warmup: plan.warmup,
            turn: plan.turn,
            concurrency: plan.concurrency,
            delay_us: plan.delay_us,
            seed: plan.seed,
            aborted: measured.aborted,
            failure: measured.failure.as_ref().map(ToString::to_string),
            confidence: plan.confidence,
            pinned_core: plan.pin,
            host,
            load_average_before,
            load_average_after: host::load_average(),
            arms,
            comparisons,
            warnings,
        }
    }
}

impl ArmFigures {
    fn of<'a>(arm: &Variant, laps: impl Iterator<Item = &'a LaunchTimes>, confidence: f64) -> Self {
        let laps: Vec<&LaunchTimes> = laps.collect();
        let sorted: Vec<SortedSamples> = laps
            .iter()
            .map(|lap| SortedSamples::new(lap.calls_us.clone()))
            .collect();
        let medians: Vec<f64> = sorted.iter().filter_map(|s| s.at(0.5)).collect();
        let variances: Vec<f64> = laps.iter().map(|lap| variance(&lap.calls_us)).collect();
        let spreads: Vec<f64> = variances
            .iter()
            .zip(&medians)
            .map(|(variance, median)| variance.sqrt() / median.max(1e-9))
            .collect();
        let ends: Vec<(f64, f64)> = sorted.iter().filter_map(SortedSamples::ends).collect();
        let over = |of: fn(&LaunchTimes) -> f64| {
            let values: Vec<f64> = laps.iter().map(|lap| of(lap)).collect();
            Interval::over_launches(&values, confidence)
        };
        let (stages, stages_missing) = stages(&laps, confidence);
        let (between, within) = (variance(&medians), mean(&variances));
        let spread = median(&spreads);
        Self {
            arm: arm.clone(),
            calls: laps.iter().map(|lap| lap.calls_us.len()).sum(),
            p50_us: Interval::over_launches(&medians, confidence),
            p90_us: percentile_interval(&sorted, 0.9, confidence),
            p95_us: percentile_interval(&sorted, 0.95, confidence),
            p99_us: percentile_interval(&sorted, 0.99, confidence),
            min_us: ends.iter().map(|e| e.0).fold(f64::INFINITY, f64::min),
            max_us: ends.iter().map(|e| e.1).fold(0.0, f64::max),
            start_us: over(|lap| lap.start_us),
            first_us: over(|lap| lap.first_us),
            cold_us: over(|lap| lap.start_us + lap.first_us),
            spread,
            stable: spread < UNSTABLE,
            variance_between_share: between / (between + within).max(1e-12),
            per_launch: laps
                .iter()
                .zip(&sorted)
                .map(|(lap, sorted)| LaunchFigures {
                    p50_us: sorted.at(0.5),
                    p90_us: sorted.at_supported(0.9),
                    p95_us: sorted.at_supported(0.95),
                    p99_us: sorted.at_supported(0.99),
                    mean_us: mean(&lap.calls_us),
                    max_us: sorted.ends().map_or(0.0, |(_, max)| max),
                })
                .collect(),
            processes: usage::figures(laps.iter().map(|lap| lap.usage.as_slice())),
            stages,
            stages_missing,
        }
    }
}

/// Returns the stages of a variant that has a journal, or why they are unknown.
fn stages(laps: &[&LaunchTimes], confidence: f64) -> (Option<StageFigures>, Option<String>) {
    let explained: Result<Vec<_>, &String> = laps
        .iter()
        .filter_map(|lap| lap.explained.as_ref())
        .map(Result::as_ref)
        .collect();
    match explained {
        Ok(launches) => (StageFigures::of(&launches, confidence), None),
        Err(why) => (None, Some(why.clone())),
    }
}

/// Returns a percentile of each launch, where every launch has calls enough for it.
fn percentile_interval(launches: &[SortedSamples], q: f64, confidence: f64) -> Option<Interval> {
    let values: Option<Vec<f64>> = launches
        .iter()
        .map(|launch| launch.at_supported(q))
        .collect();
    Some(Interval::over_launches(&values?, confidence))
}

impl VariantComparison {
    /// Compares the laps of a variant with those of the baseline, launch by launch.
    pub(super) fn of(
        arm: &str,
        baseline: &str,
        pairs: &[(&LaunchTimes, &LaunchTimes)],
        confidence: f64,
    ) -> Self {
        let overheads: Vec<f64> = pairs
            .iter()
            .map(|(base, lap)| paired_median(&base.calls_us, &lap.calls_us))
            .collect();
        let sorted: Vec<(SortedSamples, SortedSamples)> = pairs
            .iter()
            .map(|(base, lap)| {
                (
                    SortedSamples::new(base.calls_us.clone()),
                    SortedSamples::new(lap.calls_us.clone()),
                )
            })
            .collect();
        let added = |q: f64| {
            let values: Option<Vec<f64>> = sorted
                .iter()
                .map(|(base, lap)| Some(lap.at_supported(q)? - base.at_supported(q)?))
                .collect();
            Some(Interval::over_launches(&values?, confidence))
        };
        let halves: Vec<f64> = sorted
            .iter()
            .filter_map(|(base, lap)| Some(lap.at(0.5)? - base.at(0.5)?))
            .collect();
        let cold = |lap: &LaunchTimes| lap.start_us + lap.first_us;
        let colds: Vec<f64> = pairs
            .iter()
            .map(|(base, lap)| cold(lap) - cold(base))
            .collect();
        Self {
            arm: arm.into(),
            baseline: baseline.into(),
            overhead_us: Interval::over_launches(&overheads, confidence),
            hodges_lehmann_us: hodges_lehmann(&overheads),
            added_cold_us: Interval::over_launches(&colds, confidence),
            added_p50_us: Interval::over_launches(&halves, confidence),
            added_p95_us: added(0.95),
            added_p99_us: added(0.99),
            per_launch_overhead_us: overheads,
            approval: None,
        }
    }
}

/// What happened to the calls on their way, in a word or a few.
fn path(plan: &OverheadPlan) -> String {
    match &plan.person {
        Some(person) => person.path(),
        None if plan.deny => "deny".into(),
        None => "allow".into(),
    }
}

/// Returns the median of the differences of calls with the same number.
pub(crate) fn paired_median(base: &[f64], other: &[f64]) -> f64 {
    let differences: Vec<f64> = base
        .iter()
        .zip(other)
        .map(|(base, other)| other - base)
        .collect();
    median(&differences)
}

fn warnings(
    plan: &OverheadPlan,
    measured: &OverheadMeasurement,
    arms: &[ArmFigures],
    load: Option<[f64; 3]>,
    cores: usize,
) -> Vec<String> {
    let mut found = Vec::new();
    if measured.aborted {
        found.push("stopped early: launches are missing".to_owned());
    }
    if let Some(why) = &measured.failure {
        found.push(format!(
            "it failed after {} launches, of which the figures are: {why}",
            measured.launches.len()
        ));
    }
    if plan.launches_max > plan.launches {
        found.push(
            "the number of launches was chosen while measuring: intervals are a little too narrow"
                .to_owned(),
        );
    }
    if cfg!(debug_assertions) {
        found.push("this is a debug build: its figures say nothing about a release".to_owned());
    }
    if measured.launches.len() < 5 {
        found.push("fewer than 5 launches: indicative only".to_owned());
    }
    if plan.pin.is_none() {
        found.push(
            "nothing is pinned: placement alone moves such figures by up to five times".to_owned(),
        );
    }
    if let Some([minute, ..]) = load
        && minute > BUSY * cores as f64
    {
        found.push(format!(
            "the machine was busy before the start: load {minute} on {cores} cores"
        ));
    }
    let unstable: Vec<String> = arms
        .iter()
        .filter(|arm| !arm.stable)
        .map(|arm| format!("{} ({:.0} %)", arm.arm.name, arm.spread * 100.0))
        .collect();
    for arm in arms {
        if let Some(why) = &arm.stages_missing {
            found.push(format!("no stages for {}: {why}", arm.arm.name));
        }
    }
    if !unstable.is_empty() {
        found.push(format!(
            "unstable by the standard deviation over the median, from 50 %: {}",
            unstable.join("; ")
        ));
    }
    found
}
