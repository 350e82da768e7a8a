//! Verdict of the guide on a scenario's figures.

use serde::Serialize;

use super::figures::PhaseReport;
use super::scenario::SshScenario;

/// Amplification beyond which a line is severe.
const SEVERE: f64 = 10.0;

/// A verdict and its reasons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ScenarioVerdict {
    pub verdict: &'static str,
    pub reasons: Vec<String>,
    /// Whether the run may be called good.
    pub is_good: bool,
}

impl ScenarioVerdict {
    fn new(verdict: &'static str, is_good: bool, reasons: Vec<String>) -> Self {
        Self {
            verdict,
            reasons,
            is_good,
        }
    }

    /// Returns the verdict of a scenario; `most` is the server's limit of connections, if known.
    pub fn of(scenario: SshScenario, phases: &[PhaseReport], most: Option<f64>) -> Self {
        if let Some(lost) = phases.iter().find(|phase| phase.running < phase.asked) {
            let wrong = format!(
                "{} of {} workers ran ({}): what was measured is not what was asked for",
                lost.running, lost.asked, lost.name
            );
            return Self::new("INVALID", false, vec![wrong]);
        }
        let failed: usize = phases.iter().map(|phase| phase.failed).sum();
        match scenario {
            SshScenario::ExhaustionTest => Self::exhausted(phases, most),
            SshScenario::SustainedLoad => Self::sustained(phases),
            SshScenario::LatencyTest => Self::latency(phases, failed),
            SshScenario::ConnectionRate => {
                let best = phases
                    .iter()
                    .max_by(|a, b| a.connects_per_s.total_cmp(&b.connects_per_s));
                let best = best.map(|best| {
                    format!(
                        "best with {}: {:.1} connections/s",
                        best.name, best.connects_per_s
                    )
                });
                Self::of_failures(failed, best.into_iter().collect())
            }
            SshScenario::CommandThroughput => Self::of_failures(failed, Vec::new()),
        }
    }

    fn of_failures(failed: usize, mut reasons: Vec<String>) -> Self {
        if failed > 0 {
            reasons.push(format!("{failed} calls failed"));
        }
        Self::new(
            if failed == 0 { "PASS" } else { "FAIL" },
            failed == 0,
            reasons,
        )
    }

    fn sustained(phases: &[PhaseReport]) -> Self {
        let mut reasons = Vec::new();
        let mut is_good = true;
        for phase in phases {
            let share = phase.failed as f64 / (phase.total.max(1)) as f64;
            if share > 0.01 {
                reasons.push(format!(
                    "{:.1} % of the calls failed, more than 1 %",
                    share * 100.0
                ));
                is_good = false;
            }
            if phase.rps_peak > 2.0 * phase.rps {
                reasons.push(format!(
                    "peak {:.1}/s is more than twice the average {:.1}/s",
                    phase.rps_peak, phase.rps
                ));
            }
            if let (Some(max), Some(p99)) = (phase.latency.max, phase.latency.p99)
                && max > 5.0 * p99
            {
                reasons.push(format!(
                    "the slowest call took {max:.1} ms, more than five times p99 ({p99:.1} ms)"
                ));
            }
            if phase.rps_peak <= 1.5 * phase.rps {
                reasons.push("stable: the peak is within 1.5 times the average".into());
            }
        }
        let warned = reasons.iter().any(|reason| !reason.starts_with("stable"));
        let verdict = match (is_good, warned) {
            (false, _) => "FAIL",
            (true, true) => "WARN",
            (true, false) => "PASS",
        };
        Self::new(verdict, is_good, reasons)
    }

    fn latency(phases: &[PhaseReport], failed: usize) -> Self {
        let baseline = phases.first().and_then(|phase| phase.latency.p50);
        let mut reasons = Vec::new();
        for phase in phases.iter().skip(1) {
            if let (Some(p50), Some(base)) =
                (phase.latency.p50, baseline.filter(|base| *base > 0.0))
            {
                let times = p50 / base;
                let severe = if times > SEVERE { ", severe" } else { "" };
                reasons.push(format!(
                    "{}: {times:.1} times the baseline's p50{severe}",
                    phase.name
                ));
            }
        }
        Self::of_failures(failed, reasons)
    }

    fn exhausted(phases: &[PhaseReport], most: Option<f64>) -> Self {
        let Some(phase) = phases.first() else {
            return Self::new("INCONCLUSIVE", false, vec!["nothing ran".into()]);
        };
        let attempts = phase.connects + phase.rejected;
        let rate = phase.rejected as f64 / (attempts.max(1)) as f64;
        let workers = phase.asked as f64;
        let expected = most.map_or(0.0, |most| ((workers - most) / workers).max(0.0));
        let told = format!(
            "{} of {attempts} connections were refused for want of room: {:.1} %, expected {:.1} %",
            phase.rejected,
            rate * 100.0,
            expected * 100.0
        );
        if expected <= 0.0 && phase.failed == 0 {
            let advice = "the server has room for all of them: serve with --profile normal, or use more workers";
            return Self::new("INCONCLUSIVE", false, vec![told, advice.into()]);
        }
        if phase.failed > 0 {
            let other = format!("{} calls failed for another reason", phase.failed);
            return Self::new("FAIL", false, vec![told, other]);
        }
        let verdict = match rate {
            rate if rate <= 0.0 => "INCONCLUSIVE",
            rate if rate < 2.0 * expected => "PASS",
            _ => "REVIEW",
        };
        Self::new(verdict, verdict == "PASS", vec![told])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssh::figures::LatencyFigures;

    fn phase(asked: usize, connects: usize, rejected: usize, failed: usize) -> PhaseReport {
        PhaseReport {
            asked,
            running: asked,
            connects,
            rejected,
            failed,
            total: 1_000,
            rps: 10.0,
            rps_peak: 12.0,
            ..PhaseReport::default()
        }
    }

    #[test]
    fn exhaustion_passes_where_about_as_many_are_refused_as_there_is_no_room_for() {
        for (connects, rejected, failed, verdict) in [
            (100, 50, 0, "PASS"),
            (150, 0, 0, "INCONCLUSIVE"),
            (50, 100, 0, "REVIEW"),
            (100, 50, 1, "FAIL"),
        ] {
            let phases = [phase(15, connects, rejected, failed)];
            let told = ScenarioVerdict::of(SshScenario::ExhaustionTest, &phases, Some(10.0));
            assert_eq!(told.verdict, verdict, "{told:?}");
        }
    }

    #[test]
    fn a_worker_that_did_not_run_makes_the_run_invalid() {
        let mut lost = phase(5, 1, 0, 0);
        lost.running = 4;
        for scenario in SshScenario::ALL {
            let told = ScenarioVerdict::of(scenario, &[lost.clone()], Some(10.0));
            assert_eq!((told.verdict, told.is_good), ("INVALID", false));
        }
    }

    #[test]
    fn sustained_load_warns_of_peaks_and_fails_for_errors() {
        let told = |phase: PhaseReport| {
            ScenarioVerdict::of(SshScenario::SustainedLoad, &[phase], None).verdict
        };
        assert_eq!(told(phase(5, 1, 0, 10)), "PASS");
        assert_eq!(told(phase(5, 1, 0, 11)), "FAIL");
        let peaked = PhaseReport {
            rps_peak: 21.0,
            ..phase(5, 1, 0, 0)
        };
        assert_eq!(told(peaked), "WARN");
        let slow = PhaseReport {
            latency: LatencyFigures {
                p99: Some(10.0),
                max: Some(51.0),
                ..LatencyFigures::default()
            },
            ..phase(5, 1, 0, 0)
        };
        assert_eq!(told(slow), "WARN");
    }
}
