//! The three verdicts on a change between two measurements, each given as one positive value per launch.

use super::{Interval, mean, student, variance};
use serde::{Deserialize, Serialize};

/// What is said of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Verdict {
    /// The estimate is beyond the limit, and the interval excludes no change.
    Regressed,
    /// The whole interval is below the limit.
    Ok,
    /// Neither: more launches are needed.
    Inconclusive,
}

impl Verdict {
    /// The word for it, as documents and pages have it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Regressed => "REGRESSED",
            Self::Ok => "OK",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

/// A relative change with its interval; 0.1 stands for ten per cent more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Change {
    pub(crate) point: f64,
    pub(crate) ci_low: f64,
    pub(crate) ci_high: f64,
    /// Launches of both sides together.
    pub(crate) n: usize,
}

impl Change {
    /// The ratio of geometric means over launches, with Welch's t interval on the logarithms; nothing
    /// below two launches a side or where a value is not positive.
    pub(crate) fn between(base: &[f64], new: &[f64], confidence: f64) -> Option<Self> {
        let logs = |values: &[f64]| -> Option<Vec<f64>> {
            let positive = values.len() >= 2 && values.iter().all(|v| *v > 0.0);
            positive.then(|| values.iter().map(|v| v.ln()).collect())
        };
        let (base, new) = (logs(base)?, logs(new)?);
        let point = mean(&new) - mean(&base);
        let shares =
            [&base, &new].map(|side| (variance(side) / side.len() as f64, side.len() as f64));
        let total: f64 = shares.iter().map(|(share, _)| share).sum();
        let spread: f64 = shares
            .iter()
            .map(|(share, n)| share * share / (n - 1.0))
            .sum();
        // Without any spread there is nothing to be unsure of.
        let half = if spread > 0.0 {
            student::two_sided(confidence, (total * total / spread).max(1.0)) * total.sqrt()
        } else {
            0.0
        };
        Some(Self {
            point: point.exp_m1(),
            ci_low: (point - half).exp_m1(),
            ci_high: (point + half).exp_m1(),
            n: base.len() + new.len(),
        })
    }

    /// As an estimate like any other.
    pub(crate) fn interval(&self) -> Interval {
        Interval {
            point: self.point,
            ci_low: Some(self.ci_low),
            ci_high: Some(self.ci_high),
            n: self.n,
        }
    }

    /// The verdict for a limit on the increase, 0.1 for ten per cent.
    pub(crate) fn verdict(&self, limit: f64) -> Verdict {
        if self.point > limit && self.ci_low > 0.0 {
            Verdict::Regressed
        } else if self.ci_high < limit {
            Verdict::Ok
        } else {
            Verdict::Inconclusive
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Random, Sorted};

    const LAUNCHES: usize = 10;
    const CALLS: usize = 100;
    const ROUNDS: usize = 1_000;

    /// The p95 of each launch: lognormal calls (cv 0.25) around a median that the launch itself moves by 5 %.
    fn run(random: &mut Random, slower: f64) -> Vec<f64> {
        (0..LAUNCHES)
            .map(|_| {
                let median = 100.0 * slower * (0.05 * random.normal()).exp();
                let calls = (0..CALLS)
                    .map(|_| random.lognormal(median, 0.246))
                    .collect();
                Sorted::new(calls).at(0.95).unwrap()
            })
            .collect()
    }

    fn share(seed: u64, slower: f64, wanted: Verdict) -> f64 {
        let mut random = Random::new(seed);
        let hits = (0..ROUNDS)
            .filter(|_| {
                let (base, new) = (run(&mut random, 1.0), run(&mut random, slower));
                Change::between(&base, &new, 0.95).unwrap().verdict(0.1) == wanted
            })
            .count();
        hits as f64 / ROUNDS as f64
    }

    #[test]
    fn the_same_against_itself_raises_no_alarm_in_98_of_100() {
        let alarms = share(11, 1.0, Verdict::Regressed);
        assert!(alarms <= 0.02, "{alarms}");
    }

    #[test]
    fn twenty_per_cent_slower_is_caught_in_95_of_100() {
        let caught = share(12, 1.2, Verdict::Regressed);
        assert!(caught >= 0.95, "{caught}");
    }

    #[test]
    fn twenty_per_cent_slower_never_passes() {
        let passed = share(13, 1.2, Verdict::Ok);
        assert!(passed <= 0.001, "{passed}");
    }

    #[test]
    fn a_rule_on_the_point_alone_would_cry_wolf() {
        // The rule that this one replaces: five calls of one launch, p95 compared. The proof can fail.
        let mut random = Random::new(14);
        let mut p95 = || {
            let calls = (0..5).map(|_| random.lognormal(100.0, 0.246)).collect();
            Sorted::new(calls).at(0.95).unwrap()
        };
        let alarms = (0..ROUNDS).filter(|_| p95() < p95() / 1.1).count();
        assert!(alarms > ROUNDS / 4, "{alarms}");
    }

    #[test]
    fn verdicts() {
        let change = |point, ci_low, ci_high| Change {
            point,
            ci_low,
            ci_high,
            n: 20,
        };
        for (change, expect) in [
            (change(0.2, 0.05, 0.3), Verdict::Regressed),
            (change(0.2, -0.05, 0.4), Verdict::Inconclusive),
            (change(0.05, 0.01, 0.09), Verdict::Ok),
            (change(0.05, 0.01, 0.12), Verdict::Inconclusive),
            (change(-0.3, -0.4, -0.2), Verdict::Ok),
        ] {
            assert_eq!(change.verdict(0.1), expect, "{change:?}");
        }
    }

    #[test]
    fn too_little_is_no_change() {
        assert_eq!(Change::between(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(Change::between(&[1.0, 0.0], &[1.0, 2.0], 0.95), None);
        let same = Change::between(&[2.0, 2.0], &[3.0, 3.0], 0.95).unwrap();
        assert!((same.point - 0.5).abs() < 1e-12 && (same.ci_low - 0.5).abs() < 1e-12);
    }
}
