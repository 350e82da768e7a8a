//! What the guide makes of a scenario's figures.

use serde::Serialize;

use super::figures::PhaseTold;
use super::scenario::Scenario;

/// Amplification beyond which a line is severe.
const SEVERE: f64 = 10.0;

/// A verdict and its reasons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Verdict {
    pub verdict: &'static str,
    pub reasons: Vec<String>,
    /// Whether the run may be called good.
    pub is_good: bool,
}

impl Verdict {
    fn new(verdict: &'static str, is_good: bool, reasons: Vec<String>) -> Self {
        Self {
            verdict,
            reasons,
            is_good,
        }
    }

    /// That of a scenario; `most` is how many connections the server gives, where it tells.
    pub fn of(scenario: Scenario, phases: &[PhaseTold], most: Option<f64>) -> Self {
        if let Some(lost) = phases.iter().find(|phase| phase.running < phase.asked) {
            let wrong = format!(
                "{} of {} workers ran ({}): what was measured is not what was asked for",
                lost.running, lost.asked, lost.name
            );
            return Self::new("INVALID", false, vec![wrong]);
        }
        let failed: usize = phases.iter().map(|phase| phase.failed).sum();
        match scenario {
            Scenario::ExhaustionTest => Self::exhausted(phases, most),
            Scenario::SustainedLoad => Self::sustained(phases),
            Scenario::LatencyTest => Self::latency(phases, failed),
            Scenario::ConnectionRate => {
                let best = phases
                    .iter()
                    .max_by(|a, b| a.connects_per_s.total_cmp(&b.connects_per_s));
                let best = best.map(|best| {
                    format!(
                        "best with {}: {:.1} connections/s",
                        best.name, best.connects_per_s
                    )
                });
                Self::counted(failed, best.into_iter().collect())
            }
            Scenario::CommandThroughput => Self::counted(failed, Vec::new()),
        }
    }

    fn counted(failed: usize, mut reasons: Vec<String>) -> Self {
        if failed > 0 {
            reasons.push(format!("{failed} calls failed"));
        }
        Self::new(
            if failed == 0 { "PASS" } else { "FAIL" },
            failed == 0,
            reasons,
        )
    }

    fn sustained(phases: &[PhaseTold]) -> Self {
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

    fn latency(phases: &[PhaseTold], failed: usize) -> Self {
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
        Self::counted(failed, reasons)
    }

    fn exhausted(phases: &[PhaseTold], most: Option<f64>) -> Self {
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
    use crate::ssh::figures::Latency;

    fn phase(asked: usize, connects: usize, rejected: usize, failed: usize) -> PhaseTold {
        PhaseTold {
            asked,
            running: asked,
            connects,
            rejected,
            failed,
            total: 1_000,
            rps: 10.0,
            rps_peak: 12.0,
            ..PhaseTold::default()
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
            let told = Verdict::of(Scenario::ExhaustionTest, &phases, Some(10.0));
            assert_eq!(told.verdict, verdict, "{told:?}");
        }
    }

    #[test]
    fn a_worker_that_did_not_run_makes_the_run_invalid() {
        let mut lost = phase(5, 1, 0, 0);
        lost.running = 4;
        for scenario in Scenario::ALL {
            let told = Verdict::of(scenario, &[lost.clone()], Some(10.0));
            assert_eq!((told.verdict, told.is_good), ("INVALID", false));
        }
    }

    #[test]
    fn sustained_load_warns_of_peaks_and_fails_for_errors() {
        let told = |phase: PhaseTold| Verdict::of(Scenario::SustainedLoad, &[phase], None).verdict;
        assert_eq!(told(phase(5, 1, 0, 10)), "PASS");
        assert_eq!(told(phase(5, 1, 0, 11)), "FAIL");
        let peaked = PhaseTold {
            rps_peak: 21.0,
            ..phase(5, 1, 0, 0)
        };
        assert_eq!(told(peaked), "WARN");
        let slow = PhaseTold {
            latency: Latency {
                p99: Some(10.0),
                max: Some(51.0),
                ..Latency::default()
            },
            ..phase(5, 1, 0, 0)
        };
        assert_eq!(told(slow), "WARN");
    }
}
