//! Rules of the gate: `p95 <= +10%`, `overhead <= 40us`.

use crate::stats::Interval;
use crate::stats::gate::ChangeVerdict;
use std::fmt;

/// A quantity that a measurement may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum RuleMetric {
    #[serde(rename = "p50")]
    P50,
    #[serde(rename = "p90")]
    P90,
    #[serde(rename = "p95")]
    P95,
    #[serde(rename = "p99")]
    P99,
    #[serde(rename = "mean")]
    Mean,
    /// The median of paired differences with the baseline variant.
    #[serde(rename = "overhead")]
    Overhead,
    /// What no stage of a variant's journal explains, percentiles of calls.
    #[serde(rename = "unexplained.p50")]
    UnexplainedP50,
    #[serde(rename = "unexplained.p95")]
    UnexplainedP95,
    /// Percentiles from the moment a call was due.
    #[serde(rename = "response.p50")]
    ResponseP50,
    #[serde(rename = "response.p95")]
    ResponseP95,
    #[serde(rename = "response.p99")]
    ResponseP99,
    /// Percentiles to the first part of a streamed answer.
    #[serde(rename = "ttft.p50")]
    TtftP50,
    #[serde(rename = "ttft.p95")]
    TtftP95,
    /// The share of calls that failed.
    #[serde(rename = "error_rate")]
    ErrorRate,
}

/// How much is allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RuleLimit {
    /// 0.1 for ten per cent more than the baseline.
    Relative { share: f64 },
    /// Microseconds, or a share for a rate.
    Absolute { most: f64 },
}

/// A rule as given, and as understood.
#[derive(Debug, Clone, PartialEq)]
pub struct GateRule {
    pub(crate) text: String,
    /// Whether breaking it is a warning only.
    pub(super) warn: bool,
    pub(super) metric: RuleMetric,
    pub(super) limit: RuleLimit,
}

impl RuleMetric {
    pub(crate) const ALL: [Self; 14] = [
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::Mean,
        Self::Overhead,
        Self::UnexplainedP50,
        Self::UnexplainedP95,
        Self::ResponseP50,
        Self::ResponseP95,
        Self::ResponseP99,
        Self::TtftP50,
        Self::TtftP95,
        Self::ErrorRate,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Mean => "mean",
            Self::Overhead => "overhead",
            Self::UnexplainedP50 => "unexplained.p50",
            Self::UnexplainedP95 => "unexplained.p95",
            Self::ResponseP50 => "response.p50",
            Self::ResponseP95 => "response.p95",
            Self::ResponseP99 => "response.p99",
            Self::TtftP50 => "ttft.p50",
            Self::TtftP95 => "ttft.p95",
            Self::ErrorRate => "error_rate",
        }
    }

    pub(crate) fn is_rate(self) -> bool {
        self == Self::ErrorRate
    }

    /// Returns a value of it, for people.
    pub(super) fn say(self, value: f64) -> String {
        if self.is_rate() {
            format!("{:.2} %", value * 100.0)
        } else {
            format!("{value:.1} us")
        }
    }
}

/// Reads `METRIC <= LIMIT` (or `<`, which means the same for measured numbers), with `warn` behind it where
/// breaking it is a warning only.
pub(crate) fn parse(text: &str) -> Result<GateRule, String> {
    let (body, warn) = match text.trim().strip_suffix("warn") {
        Some(body) => (body, true),
        None => (text, false),
    };
    let (metric, limit) = body
        .split_once("<=")
        .or_else(|| body.split_once('<'))
        .ok_or("a rule is METRIC <= LIMIT, for example p95 <= +10%")?;
    let metric = RuleMetric::ALL
        .into_iter()
        .find(|known| known.name() == metric.trim())
        .ok_or_else(|| {
            let names = RuleMetric::ALL.map(RuleMetric::name).join(", ");
            format!("{} is not a metric; it is one of {names}", metric.trim())
        })?;
    Ok(GateRule {
        text: text.trim().into(),
        warn,
        metric,
        limit: parse_limit(limit.trim(), metric.is_rate())?,
    })
}

fn parse_limit(text: &str, rate: bool) -> Result<RuleLimit, String> {
    let wrong = || {
        let like = if rate { "1%" } else { "+10%, 150us, 2ms or 1s" };
        format!("{text} is not a limit; it is like {like}")
    };
    let number = |digits: &str| match digits.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 && !digits.contains('+') => Ok(number),
        _ => Err(wrong()),
    };
    let percent = text.strip_suffix('%');
    if rate {
        let most = number(percent.ok_or_else(wrong)?)? / 100.0;
        return Ok(RuleLimit::Absolute { most });
    }
    if let Some(share) = percent.and_then(|rest| rest.strip_prefix('+')) {
        return Ok(RuleLimit::Relative {
            share: number(share)? / 100.0,
        });
    }
    for (unit, us) in [("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)] {
        if let Some(digits) = text.strip_suffix(unit) {
            return Ok(RuleLimit::Absolute {
                most: number(digits)? * us,
            });
        }
    }
    Err(wrong())
}

impl fmt::Display for GateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl GateRule {
    /// Returns whether a load run has what it is about.
    pub(crate) fn fits_load(&self) -> bool {
        match self.metric {
            RuleMetric::P50
            | RuleMetric::P90
            | RuleMetric::P95
            | RuleMetric::P99
            | RuleMetric::ResponseP50
            | RuleMetric::ResponseP95
            | RuleMetric::ResponseP99
            | RuleMetric::TtftP50
            | RuleMetric::TtftP95
            | RuleMetric::ErrorRate => true,
            RuleMetric::Mean
            | RuleMetric::Overhead
            | RuleMetric::UnexplainedP50
            | RuleMetric::UnexplainedP95 => false,
        }
    }

    /// Returns whether it needs a baseline.
    pub(crate) fn is_relative(&self) -> bool {
        matches!(self.limit, RuleLimit::Relative { .. })
    }
}

/// Returns the verdict on an absolute limit: the whole interval decides.
pub(crate) fn absolute(
    interval: &Interval,
    most: f64,
    metric: RuleMetric,
) -> (ChangeVerdict, String) {
    let point = metric.say(interval.point);
    let (Some(low), Some(high)) = (interval.ci_low, interval.ci_high) else {
        return (ChangeVerdict::Inconclusive, format!("{point}, no interval"));
    };
    let verdict = if high <= most {
        ChangeVerdict::Ok
    } else if low > most {
        ChangeVerdict::Regressed
    } else {
        ChangeVerdict::Inconclusive
    };
    let observed = format!("{point} [{}, {}]", metric.say(low), metric.say(high));
    (verdict, observed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_can_be_read() {
        let relative = |share| RuleLimit::Relative { share };
        let absolute = |most| RuleLimit::Absolute { most };
        for (text, metric, limit) in [
            ("p95 <= +10%", RuleMetric::P95, relative(0.1)),
            ("p50<+2.5 %", RuleMetric::P50, relative(0.025)),
            ("overhead <= 40us", RuleMetric::Overhead, absolute(40.0)),
            ("p99 < 1.5ms", RuleMetric::P99, absolute(1_500.0)),
            ("mean<=2s", RuleMetric::Mean, absolute(2e6)),
            ("error_rate < 1%", RuleMetric::ErrorRate, absolute(0.01)),
            (
                "unexplained.p95 < 20us",
                RuleMetric::UnexplainedP95,
                absolute(20.0),
            ),
            ("p90 <= 5ms warn", RuleMetric::P90, absolute(5_000.0)),
        ] {
            let rule = parse(text).unwrap();
            assert_eq!(rule.metric, metric, "{text}");
            assert_eq!(rule.warn, text.ends_with("warn"));
            match (rule.limit, limit) {
                (RuleLimit::Relative { share: a }, RuleLimit::Relative { share: b })
                | (RuleLimit::Absolute { most: a }, RuleLimit::Absolute { most: b }) => {
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
            "error_rate <= +1%",
            "error_rate <= 1ms",
            "warn",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn absolute_limits_ask_the_whole_interval() {
        let launches = Interval::over_launches(&[38.0, 40.0, 42.0], 0.95);
        for (most, expect) in [
            (60.0, ChangeVerdict::Ok),
            (41.0, ChangeVerdict::Inconclusive),
            (30.0, ChangeVerdict::Regressed),
        ] {
            assert_eq!(
                absolute(&launches, most, RuleMetric::P50).0,
                expect,
                "{most}"
            );
        }
        let one = Interval::over_launches(&[1.0], 0.95);
        assert_eq!(
            absolute(&one, 9.0, RuleMetric::P50).0,
            ChangeVerdict::Inconclusive
        );
    }
}
