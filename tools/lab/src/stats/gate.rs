//! The three verdicts on a change between two measurements, each given as one positive value per launch.

use super::{Interval, mean, student, variance};
use serde::{Deserialize, Serialize};

/// Verdict on a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum ChangeVerdict {
    /// The estimate is beyond the limit, and the interval excludes no change.
    Regressed,
    /// The whole interval is below the limit.
    Ok,
    /// Neither: more launches are needed.
    Inconclusive,
}

impl ChangeVerdict {
    /// Returns the word for it, as documents and pages have it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Regressed => "REGRESSED",
            Self::Ok => "OK",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

/// A relative change with its interval; 0.1 means ten per cent more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct RelativeChange {
    pub(crate) point: f64,
    pub(crate) ci_low: f64,
    pub(crate) ci_high: f64,
    /// Launches of both sides together.
    pub(crate) n: usize,
}

impl RelativeChange {
    /// The ratio of geometric means over launches, with Welch's t interval on the logarithms; `None` below two launches
    /// a side or for a value that is not positive.
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

    /// Returns the verdict for a limit on the increase, 0.1 for ten per cent.
    pub(crate) fn verdict(&self, limit: f64) -> ChangeVerdict {
        if self.point > limit && self.ci_low > 0.0 {
            ChangeVerdict::Regressed
        } else if self.ci_high < limit {
            ChangeVerdict::Ok
        } else {
            ChangeVerdict::Inconclusive
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{SeededRandom, SortedSamples};

    const LAUNCHES: usize = 10;
    const CALLS: usize = 100;
    const ROUNDS: usize = 1_000;

    /// Returns the p95 of each launch: lognormal calls (cv 0.25) around a median that the launch itself moves by 5 %.
    fn run(random: &mut SeededRandom, slower: f64) -> Vec<f64> {
        (0..LAUNCHES)
            .map(|_| {
                let median = 100.0 * slower * (0.05 * random.normal()).exp();
                let calls = (0..CALLS)
                    .map(|_| random.lognormal(median, 0.246))
                    .collect();
                SortedSamples::new(calls).at(0.95).unwrap()
            })
            .collect()
    }

    fn share(seed: u64, slower: f64, wanted: ChangeVerdict) -> f64 {
        let mut random = SeededRandom::new(seed);
        let hits = (0..ROUNDS)
            .filter(|_| {
                let (base, new) = (run(&mut random, 1.0), run(&mut random, slower));
                RelativeChange::between(&base, &new, 0.95)
                    .unwrap()
                    .verdict(0.1)
                    == wanted
            })
            .count();
        hits as f64 / ROUNDS as f64
    }

    #[test]
    fn the_same_against_itself_raises_no_alarm_in_98_of_100() {
        let alarms = share(11, 1.0, ChangeVerdict::Regressed);
        assert!(alarms <= 0.02, "{alarms}");
    }

    #[test]
    fn twenty_per_cent_slower_is_caught_in_95_of_100() {
        let caught = share(12, 1.2, ChangeVerdict::Regressed);
        assert!(caught >= 0.95, "{caught}");
    }

    #[test]
    fn twenty_per_cent_slower_never_passes() {
        let passed = share(13, 1.2, ChangeVerdict::Ok);
        assert!(passed <= 0.001, "{passed}");
    }

    #[test]
    fn a_rule_on_the_point_alone_would_cry_wolf() {
        // The rule that this one replaces: five calls of one launch, p95 compared. The proof can fail.
        let mut random = SeededRandom::new(14);
        let mut p95 = || {
            let calls = (0..5).map(|_| random.lognormal(100.0, 0.246)).collect();
            SortedSamples::new(calls).at(0.95).unwrap()
        };
        let alarms = (0..ROUNDS).filter(|_| p95() < p95() / 1.1).count();
        assert!(alarms > ROUNDS / 4, "{alarms}");
    }

    #[test]
    fn verdicts() {
        let change = |point, ci_low, ci_high| RelativeChange {
            point,
            ci_low,
            ci_high,
            n: 20,
        };
        for (change, expect) in [
            (change(0.2, 0.05, 0.3), ChangeVerdict::Regressed),
            (change(0.2, -0.05, 0.4), ChangeVerdict::Inconclusive),
            (change(0.05, 0.01, 0.09), ChangeVerdict::Ok),
            (change(0.05, 0.01, 0.12), ChangeVerdict::Inconclusive),
            (change(-0.3, -0.4, -0.2), ChangeVerdict::Ok),
        ] {
            assert_eq!(change.verdict(0.1), expect, "{change:?}");
        }
    }

    #[test]
    fn too_little_is_no_change() {
        assert_eq!(RelativeChange::between(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(
            RelativeChange::between(&[1.0, 0.0], &[1.0, 2.0], 0.95),
            None
        );
        let same = RelativeChange::between(&[2.0, 2.0], &[3.0, 3.0], 0.95).unwrap();
        assert!((same.point - 0.5).abs() < 1e-12 && (same.ci_low - 0.5).abs() < 1e-12);
    }
}
