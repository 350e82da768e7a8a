//! The figures of a run.

use std::collections::BTreeMap;

use serde::Serialize;

use super::diagnosis::{self, Diagnosis};
use super::phase::{TimedCall, WorkerPhase};
use super::scenario::SshScenario;
use super::scrape::{MetricsScrape, ServerLimits};
use super::verdict::ScenarioVerdict;
use crate::host::HostInfo;
use crate::judge::{ArmQuantities, MeasuredQuantities, NamedQuantity, Quantity, RuleMetric};
use crate::stats::{TimePercentiles, share};
use crate::summary::{MeasurementSummary, SummarySource};

/// The name and version of the document.
const FORMAT: &str = "durward-lab-ssh/1";
const CONFIDENCE: f64 = 0.95;
/// Factor of a rate that is estimated for more processors.
const EFFICIENCY: f64 = 0.85;
/// Codes by which a server says that it has no room for another connection.
const FULL: [&str; 4] = [
    "too_many_connections",
    "too_many_sessions",
    "queue_full",
    "queue_timed_out",
];

/// A run that is over.
pub(super) struct SshRun {
    pub test_id: String,
    pub version: String,
    pub build: String,
    pub started_ms: u64,
    pub scenario: SshScenario,
    pub target: String,
    pub target_cpus: u32,
    pub server_cpus: u32,
    pub host: HostInfo,
    pub aborted: bool,
    pub phases: Vec<WorkerPhase>,
    pub before: MetricsScrape,
    pub after: Option<MetricsScrape>,
    pub samples: Vec<MetricsScrape>,
}

/// Latencies of calls that went well, in milliseconds; percentiles interpolate linearly at p/100 · (n−1).
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct LatencyFigures {
    pub min: Option<f64>,
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

/// Report of a phase.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct PhaseReport {
    pub name: String,
    pub host: String,
    pub asked: usize,
    pub running: usize,
    pub seconds: f64,
    pub total: usize,
    pub ok: usize,
    /// Not those that were refused for want of room, if that is what the scenario is for.
    pub failed: usize,
    /// Connections that were refused for want of room.
    pub rejected: usize,
    /// Connections that were made.
    pub connects: usize,
    pub connects_per_s: f64,
    /// Calls that went well in a second; the highest is of whole seconds.
    pub rps: f64,
    pub rps_peak: f64,
    pub latency: LatencyFigures,
    /// Calls by name: how many went well, and how many failed.
    pub per_op: BTreeMap<String, [usize; 2]>,
    /// Failures by code.
    pub errors: BTreeMap<String, usize>,
    /// The first failure in words.
    pub complaint: Option<String>,
    #[serde(skip)]
    pub times_us: Vec<f64>,
}

/// The pool of connections, from the server's own counts.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct PoolReport {
    /// Of all channels that were asked for, how many were there at once.
    pub hit_rate: Option<f64>,
    pub hits: f64,
    pub misses: f64,
    pub creates: f64,
    pub health_fails: f64,
    pub commands_blocked: Option<f64>,
    /// Most connections with a command at one look.
    pub peak_active: f64,
}

/// An estimate for a machine with more processors.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RateEstimate {
    pub measured_rps: f64,
    pub server_cpus: u32,
    pub target_cpus: u32,
    pub estimated_rps: f64,
    pub factor: f64,
    /// How busy the server's processors were, sampled during the run, per cent of all of them.
    pub cpu_percent: Option<f64>,
    pub confidence: &'static str,
    pub because: &'static str,
}

/// Everything that is said of a run.
#[derive(Debug, Serialize)]
pub(super) struct RunReport {
    pub format: &'static str,
    pub version: String,
    pub build: String,
    pub test_id: String,
    pub scenario: SshScenario,
    pub target: String,
    pub host: HostInfo,
    pub started_ms: u64,
    pub duration_s: f64,
    pub aborted: bool,
    pub limits: ServerLimits,
    pub phases: Vec<PhaseReport>,
    pub pool: PoolReport,
    pub extrapolation: Option<RateEstimate>,
    pub verdict: ScenarioVerdict,
    pub diagnoses: Vec<Diagnosis>,
    pub is_good: bool,
}

impl SshRun {
    /// Returns the figures.
    pub fn report(&self) -> RunReport {
        let wants_refusals = self.scenario.wants_refusals();
        let phases: Vec<PhaseReport> = self
            .phases
            .iter()
            .map(|of| PhaseReport::of(of, wants_refusals))
            .collect();
        let limits = self.after.as_ref().unwrap_or(&self.before).in_force();
        let verdict = ScenarioVerdict::of(self.scenario, &phases, limits.connections_to_a_host);
        RunReport {
            format: FORMAT,
            version: self.version.clone(),
            build: self.build.clone(),
            test_id: self.test_id.clone(),
            scenario: self.scenario,
            target: self.target.clone(),
            host: self.host.clone(),
            started_ms: self.started_ms,
            duration_s: phases.iter().map(|phase| phase.seconds).sum(),
            aborted: self.aborted,
            pool: self.pool(),
            extrapolation: self.extrapolated(&phases),
            diagnoses: diagnosis::of(&phases, &limits, self.after.is_some()),
            is_good: verdict.is_good && !self.aborted,
            limits,
            phases,
            verdict,
        }
    }

    fn pool(&self) -> PoolReport {
        let Some(after) = &self.after else {
            return PoolReport::default();
        };
        let delta = |name: &str| {
            let [before, after] = [&self.before, after].map(|of| of.sum(name).unwrap_or_default());
            (after - before).max(0.0)
        };
        let (hits, misses) = (delta("mcp_pool_hits_total"), delta("mcp_pool_misses_total"));
        let active = self
            .samples
            .iter()
            .filter_map(|of| of.sum("mcp_pool_connections_active"));
        PoolReport {
            hit_rate: (hits + misses > 0.0).then(|| hits / (hits + misses)),
            hits,
            misses,
            creates: delta("mcp_pool_creates_total"),
            health_fails: delta("mcp_pool_health_fails_total"),
            commands_blocked: after.sum("mcp_ssh_commands_blocked_total"),
            peak_active: active.fold(0.0, f64::max),
        }
    }

    /// Returns the rate of the best phase on more processors; the guide's formula, with a confidence that depends on
    /// how busy they were.
    fn extrapolated(&self, phases: &[PhaseReport]) -> Option<RateEstimate> {
        let rps = phases.iter().map(|phase| phase.rps).fold(0.0, f64::max);
        if rps <= 0.0 || self.scenario.wants_refusals() {
            return None;
        }
        let factor = f64::from(self.target_cpus) / f64::from(self.server_cpus) * EFFICIENCY;
        let cpu_percent = self.cpu_percent();
        let (confidence, because) = confidence(cpu_percent);
        Some(RateEstimate {
            measured_rps: rps,
            server_cpus: self.server_cpus,
            target_cpus: self.target_cpus,
            estimated_rps: rps * factor,
            factor,
            cpu_percent,
            confidence,
            because,
        })
    }

    /// How busy the server was between the first sample and the last.
    fn cpu_percent(&self) -> Option<f64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let [from, to] = [first, last].map(|of| of.sum("process_cpu_seconds_total"));
        let seconds = last.at_s - first.at_s;
        (seconds > 0.0).then_some(())?;
        Some((to? - from?) / seconds / f64::from(self.server_cpus) * 100.0)
    }
}

/// Returns the guide's table of confidence.
fn confidence(cpu_percent: Option<f64>) -> (&'static str, &'static str) {
    match cpu_percent {
        None => ("LOW", "the server does not tell how busy it was"),
        Some(percent) if percent < 50.0 => ("LOW", "not bound by the processor, may not scale"),
        Some(percent) if percent <= 80.0 => ("MEDIUM", "likely to scale with more processors"),
        Some(_) => ("HIGH", "bound by the processor, more of them should help"),
    }
}

impl PhaseReport {
    fn of(phase: &WorkerPhase, wants_refusals: bool) -> Self {
        let ops: Vec<&TimedCall> = phase.ops().collect();
        let good: Vec<&&TimedCall> = ops.iter().filter(|op| op.error.is_none()).collect();
        let (mut per_op, mut errors) = (BTreeMap::<String, [usize; 2]>::new(), BTreeMap::new());
        let mut rejected = 0;
        for op in &ops {
            let counts = per_op.entry(op.name.to_owned()).or_default();
            match &op.error {
                None => counts[0] += 1,
                Some(wrong) => {
                    counts[1] += 1;
                    *errors.entry(wrong.code.clone()).or_insert(0) += 1;
                    rejected += usize::from(is_full(op));
                }
            }
        }
        let expected = if wants_refusals { rejected } else { 0 };
        let failed = ops.len() - good.len() - expected;
        let connects = per_op.get("ssh_connect").map_or(0, |counts| counts[0]);
        let unexpected = |op: &&&TimedCall| !(wants_refusals && is_full(op));
        let complaint = ops
            .iter()
            .filter(unexpected)
            .find_map(|op| op.error.as_ref());
        // One bad connection at the beginning is no latency of a command.
        let timed: Vec<f64> = good.iter().map(|op| op.latency_ms).collect();
        Self {
            name: phase.name.clone(),
            host: phase.host.clone(),
            asked: usize::try_from(phase.asked).unwrap_or(usize::MAX),
            running: phase.running(),
            seconds: phase.seconds,
            total: ops.len(),
            ok: good.len(),
            failed,
            rejected,
            connects,
            connects_per_s: connects as f64 / phase.seconds,
            rps: good.len() as f64 / phase.seconds,
            rps_peak: peak(&good, phase.seconds),
            latency: LatencyFigures::of(timed.clone()),
            per_op,
            errors,
            complaint: complaint.map(|wrong| wrong.text.clone()),
            times_us: timed.iter().map(|ms| ms * 1e3).collect(),
        }
    }

    fn quantities(&self) -> ArmQuantities {
        let times = TimePercentiles::of(self.times_us.clone());
        let named = [
            (RuleMetric::P50, "p50", times.p50_us),
            (RuleMetric::P95, "p95", times.p95_us),
            (RuleMetric::P99, "p99", times.p99_us),
        ];
        let mut quantities: Vec<NamedQuantity> = named
            .into_iter()
            .map(|(metric, name, interval)| {
                let why = || times.missing.get(name).cloned().unwrap_or_default();
                let quantity = interval.map_or_else(|| Quantity::Missing(why()), Quantity::Run);
                NamedQuantity { metric, quantity }
            })
            .collect();
        quantities.push(NamedQuantity {
            metric: RuleMetric::ErrorRate,
            quantity: Quantity::Run(share(self.failed, self.total, CONFIDENCE)),
        });
        ArmQuantities {
            name: self.name.clone(),
            quantities,
        }
    }
}

fn is_full(op: &TimedCall) -> bool {
    let code = op.error.as_ref().map(|wrong| wrong.code.as_str());
    op.name == "ssh_connect" && code.is_some_and(|code| FULL.contains(&code))
}

/// Returns the most calls that went well in one whole second.
fn peak(good: &[&&TimedCall], seconds: f64) -> f64 {
    let mut buckets: BTreeMap<u64, usize> = BTreeMap::new();
    for op in good {
        *buckets.entry(op.at_s as u64).or_default() += 1;
    }
    // A second that was cut short has too few; one that is alone is all there is.
    let whole = buckets
        .iter()
        .filter(|(at, _)| (**at as f64) + 1.0 <= seconds);
    let most = whole.map(|(_, count)| *count).max();
    most.map_or(good.len() as f64 / seconds, |most| most as f64)
}

impl LatencyFigures {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |percent: f64| {
            let rank = percent / 100.0 * (times.len().checked_sub(1)? as f64);
            let (low, high) = (
                times.get(rank.floor() as usize)?,
                times.get(rank.ceil() as usize)?,
            );
            Some(low + (high - low) * rank.fract())
        };
        Self {
            min: times.first().copied(),
            p50: at(50.0),
            p95: at(95.0),
            p99: at(99.0),
            max: times.last().copied(),
        }
    }
}

impl SummarySource for RunReport {
    fn summary(&self) -> MeasurementSummary {
        let phases: Vec<String> = self
            .phases
            .iter()
            .map(|of| format!("{} on {}", of.name, of.host))
            .collect();
        let likeness = [
            ("build", self.build.clone()),
            ("operation", format!("ssh {}", self.scenario.name())),
            ("phases", phases.join(", ")),
            ("processor", self.host.processor.clone()),
            ("cores", self.host.cores.to_string()),
        ];
        let measurement = MeasuredQuantities {
            confidence: CONFIDENCE,
            arms: self.phases.iter().map(PhaseReport::quantities).collect(),
        };
        let invalid = (self.verdict.verdict == "INVALID").then(|| self.verdict.reasons.join("; "));
        MeasurementSummary {
            torn: self
                .aborted
                .then(|| "it was stopped".to_owned())
                .or(invalid),
            ..MeasurementSummary::of("load", likeness, measurement)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssh::client::CallFailure;
    use crate::ssh::phase::WorkerCalls;

    #[test]
    fn percentiles_interpolate_linearly_as_those_of_the_guide() {
        let latency = LatencyFigures::of(vec![40.0, 10.0, 30.0, 20.0]);
        assert_eq!((latency.min, latency.max), (Some(10.0), Some(40.0)));
        assert_eq!(latency.p50, Some(25.0));
        assert!((latency.p95.unwrap() - 38.5).abs() < 1e-9);
        assert!(LatencyFigures::of(Vec::new()).p50.is_none());
        assert_eq!(LatencyFigures::of(vec![7.0]).p99, Some(7.0));
    }

    /// Returns a phase of two workers: one with good calls, slower and slower, and one that met errors and did not
    /// finish.
    fn phase() -> WorkerPhase {
        let op = |name, latency_ms, code: Option<&str>| TimedCall {
            ts_ms: 0,
            at_s: latency_ms / 1e3,
            name,
            latency_ms,
            error: code.map(|code| CallFailure {
                code: code.to_owned(),
                text: "it is refused".to_owned(),
            }),
        };
        let good = WorkerCalls {
            ops: vec![
                op("ssh_connect", 10.0, None),
                op("ssh_run_command", 20.0, None),
                op("ssh_run_command", 30.0, None),
            ],
            is_running: true,
        };
        let bad = WorkerCalls {
            ops: vec![
                op("ssh_connect", 900.0, Some("too_many_connections")),
                op("ssh_run_command", 900.0, Some("policy")),
            ],
            is_running: false,
        };
        WorkerPhase {
            name: "load".into(),
            host: "web".into(),
            asked: 2,
            seconds: 2.0,
            workers: vec![good, bad],
        }
    }

    #[test]
    fn a_total_is_what_went_well_and_what_failed_and_errors_are_in_no_rate_and_no_time() {
        let told = PhaseReport::of(&phase(), false);
        assert_eq!((told.total, told.ok, told.failed), (5, 3, 2));
        assert_eq!(told.per_op["ssh_run_command"], [2, 1]);
        assert_eq!((told.rps, told.latency.max), (1.5, Some(30.0)));
        assert_eq!((told.asked, told.running), (2, 1));
        // Where refusals for want of room are wanted, they are no failures.
        let told = PhaseReport::of(&phase(), true);
        assert_eq!((told.ok, told.failed, told.rejected), (3, 1, 1));
    }

    #[test]
    fn confidence_is_that_of_the_measured_processor() {
        for (percent, expect) in [
            (None, "LOW"),
            (Some(49.9), "LOW"),
            (Some(50.0), "MEDIUM"),
            (Some(80.0), "MEDIUM"),
            (Some(80.1), "HIGH"),
        ] {
            assert_eq!(confidence(percent).0, expect, "{percent:?}");
        }
    }
}
