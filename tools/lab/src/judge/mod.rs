//! Rules, what they are held against, and what came of it. A gate, a load run's thresholds and the reports share them.

mod quantity;
mod rule;
mod verdict;

pub(crate) use quantity::{ArmQuantities, Measured, Measurement, Quantity};
pub(crate) use rule::{Metric, Rule, parse};
pub(crate) use verdict::{Judged, Judgement};

use crate::error::LabError;
use crate::output::plain;
use crate::stats::Interval;
use crate::stats::gate::Verdict;
use rule::{Limit, absolute};
use std::io::{self, Write};

/// Exit code for a regression.
pub(crate) const EXIT_REGRESSED: u8 = 99;

/// The verdicts, one a line.
pub(crate) fn lines(judged: &Judgement, out: &mut dyn Write) -> io::Result<()> {
    judged.rules.iter().try_for_each(|one| {
        let word = match (one.verdict, one.warn) {
            (Verdict::Regressed, true) => "WARNING",
            (verdict, _) => verdict.word(),
        };
        let arm = plain(&one.arm.replace('\n', " "));
        writeln!(out, "{word:12} {arm}: {}: {}", one.rule, one.observed)
    })
}

/// Holds one rule against one variant.
///
/// # Errors
/// [`LabError::Incomparable`] where a side can't have the quantity.
pub(crate) fn judge(
    rule: &Rule,
    arm: &str,
    base: Option<&Measurement>,
    new: &Measurement,
) -> Result<Judged, LabError> {
    let after = quantity(rule, arm, new, "judged measurement")?;
    let before = match base.filter(|_| rule.is_relative()) {
        Some(base) => Some((quantity(rule, arm, base, "baseline")?, base.confidence)),
        None => None,
    };
    let (verdict, observed, interval) = match (rule.limit, before) {
        (Limit::Absolute { most }, _) => match after.interval(new.confidence) {
            Ok(interval) => {
                let (verdict, observed) = absolute(&interval, most, rule.metric);
                (verdict, observed, Some(interval))
            }
            Err(why) => (Verdict::Inconclusive, format!("-, {why}"), None),
        },
        (Limit::Relative { share }, Some((before, confidence))) => {
            match before.change(after, confidence) {
                Ok(change) => (
                    change.verdict(share),
                    percent(&change.interval()),
                    Some(change.interval()),
                ),
                Err(why) => (Verdict::Inconclusive, format!("-, {why}"), None),
            }
        }
        (Limit::Relative { .. }, None) => (Verdict::Inconclusive, "-, no baseline".into(), None),
    };
    Ok(Judged {
        rule: rule.text.clone(),
        warn: rule.warn,
        arm: arm.to_owned(),
        verdict,
        observed,
        interval,
    })
}

/// What a rule is about. A measurement that can never have it is no measurement for that rule.
fn quantity<'a>(
    rule: &Rule,
    arm: &str,
    side: &'a Measurement,
    which: &str,
) -> Result<&'a Quantity, LabError> {
    side.quantity(arm, rule.metric).ok_or_else(|| {
        LabError::Incomparable(format!(
            "the {which} has no {} of {arm}, so that {} cannot be judged; leave the rule out, or name other variants with --variant",
            rule.metric.name(),
            rule.text
        ))
    })
}

/// A relative change in per cent, with its interval.
pub(crate) fn percent(change: &Interval) -> String {
    let hundred = |share: f64| share * 100.0;
    match (change.ci_low, change.ci_high) {
        (Some(low), Some(high)) => format!(
            "{:+.1} % [{:+.1}, {:+.1}]",
            hundred(change.point),
            hundred(low),
            hundred(high)
        ),
        _ => format!("{:+.1} %, no interval", hundred(change.point)),
    }
}
