//! Rules of the gate: `p95 <= +10%`, `overhead <= 40us`.

use crate::stats::Interval;
use crate::stats::gate::Verdict;

/// A quantity that every launch of an arm has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    P50,
    P95,
    P99,
    Mean,
    /// The median of paired differences with the baseline arm.
    Overhead,
}

/// How much is allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    /// 0.1 for ten per cent more than the baseline.
    Relative { share: f64 },
    Absolute {
        /// In microseconds.
        us: f64,
    },
}

/// A rule as given, and as understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub(super) text: String,
    pub(super) metric: Metric,
    pub(super) limit: Limit,
}

impl Metric {
    pub(super) const ALL: [Self; 5] = [Self::P50, Self::P95, Self::P99, Self::Mean, Self::Overhead];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Mean => "mean",
            Self::Overhead => "overhead",
        }
    }
}

/// Reads `METRIC <= LIMIT` (or `<`, which means the same for measured numbers).
pub(super) fn parse(text: &str) -> Result<Rule, String> {
    let (metric, limit) = text
        .split_once("<=")
        .or_else(|| text.split_once('<'))
        .ok_or("a rule is METRIC <= LIMIT, for example p95 <= +10%")?;
    let metric = Metric::ALL
        .into_iter()
        .find(|known| known.name() == metric.trim())
        .ok_or_else(|| {
            let names = Metric::ALL.map(Metric::name).join(", ");
            format!("{} is no metric; it is one of {names}", metric.trim())
        })?;
    Ok(Rule {
        text: text.trim().into(),
        metric,
        limit: parse_limit(limit.trim())?,
    })
}

fn parse_limit(text: &str) -> Result<Limit, String> {
    let wrong = || format!("{text} is no limit; it is like +10%, 150us, 2ms or 1s");
    let number = |digits: &str| match digits.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(wrong()),
    };
    if let Some(share) = text
        .strip_prefix('+')
        .and_then(|rest| rest.strip_suffix('%'))
    {
        return Ok(Limit::Relative {
            share: number(share)? / 100.0,
        });
    }
    for (unit, us) in [("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)] {
        if let Some(digits) = text.strip_suffix(unit) {
            return Ok(Limit::Absolute {
                us: number(digits)? * us,
            });
        }
    }
    Err(wrong())
}

/// The verdict on an absolute limit: the whole interval decides.
pub(super) fn absolute(launches: &[f64], limit_us: f64, confidence: f64) -> (Verdict, String) {
    let interval = Interval::over_launches(launches, confidence);
    let (Some(low), Some(high)) = (interval.ci_low, interval.ci_high) else {
        return (
            Verdict::Inconclusive,
            format!("{:.1} us of one launch", interval.point),
        );
    };
    let verdict = if high <= limit_us {
        Verdict::Ok
    } else if low > limit_us {
        Verdict::Regressed
    } else {
        Verdict::Inconclusive
    };
    (
        verdict,
        format!("{:.1} us [{low:.1}, {high:.1}]", interval.point),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_can_be_read() {
        let relative = |share| Limit::Relative { share };
        let absolute = |us| Limit::Absolute { us };
        for (text, metric, limit) in [
            ("p95 <= +10%", Metric::P95, relative(0.1)),
            ("p50<+2.5 %", Metric::P50, relative(0.025)),
            ("overhead <= 40us", Metric::Overhead, absolute(40.0)),
            ("p99 < 1.5ms", Metric::P99, absolute(1_500.0)),
            ("mean<=2s", Metric::Mean, absolute(2e6)),
        ] {
            let rule = parse(text).unwrap();
            assert_eq!(rule.metric, metric, "{text}");
            match (rule.limit, limit) {
                (Limit::Relative { share: a }, Limit::Relative { share: b })
                | (Limit::Absolute { us: a }, Limit::Absolute { us: b }) => {
                    assert!((a - b).abs() < 1e-12, "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn rules_that_cannot() {
        for text in [
            "",
            "p95",
            "p95 <= ",
            "p95 <= 10",
            "p95 <= +x%",
            "p95 <= -5us",
            "p95 <= 10%",
            "p42 <= 1us",
            "p95 >= 1us",
            "p95 <= infus",
            "p95 <= NaNms",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn absolute_limits_ask_the_whole_interval() {
        let launches = [38.0, 40.0, 42.0];
        for (limit, expect) in [
            (60.0, Verdict::Ok),
            (41.0, Verdict::Inconclusive),
            (30.0, Verdict::Regressed),
        ] {
            assert_eq!(absolute(&launches, limit, 0.95).0, expect, "{limit}");
        }
        assert_eq!(absolute(&[1.0], 9.0, 0.95).0, Verdict::Inconclusive);
    }
}
