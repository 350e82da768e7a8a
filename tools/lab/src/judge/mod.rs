//! Rules, what they are compared with, and what came of it. A gate, a load run's thresholds and the reports share them.

mod quantity;
mod rule;
mod verdict;

pub(crate) use quantity::{ArmQuantities, MeasuredQuantities, NamedQuantity, Quantity};
pub(crate) use rule::{GateRule, RuleMetric, parse};
pub(crate) use verdict::{Judgement, RuleVerdict};

use crate::error::LabError;
use crate::output::plain;
use crate::stats::Interval;
use crate::stats::gate::ChangeVerdict;
use rule::{RuleLimit, absolute};
use std::io::{self, Write};

/// Exit code for a regression.
pub(crate) const EXIT_REGRESSED: u8 = 99;

/// The verdicts, one a line.
pub(crate) fn lines(judged: &Judgement, out: &mut dyn Write) -> io::Result<()> {
    judged.rules.iter().try_for_each(|one| {
        let word = match (one.verdict, one.warn) {
            (ChangeVerdict::Regressed, true) => "WARNING",
            (verdict, _) => verdict.word(),
        };
        let arm = plain(&one.arm.replace('\n', " "));
        writeln!(out, "{word:12} {arm}: {}: {}", one.rule, one.observed)
    })
}

/// Applies one rule to one variant.
///
/// # Errors
/// [`LabError::Incomparable`] if a side can't have the quantity.
pub(crate) fn judge(
    rule: &GateRule,
    arm: &str,
    base: Option<&MeasuredQuantities>,
    new: &MeasuredQuantities,
) -> Result<RuleVerdict, LabError> {
    let after = quantity(rule, arm, new, "judged measurement")?;
    let before = match base.filter(|_| rule.is_relative()) {
        Some(base) => Some((quantity(rule, arm, base, "baseline")?, base.confidence)),
        None => None,
    };
    let (verdict, observed, interval) = match (rule.limit, before) {
        (RuleLimit::Absolute { most }, _) => match after.interval(new.confidence) {
            Ok(interval) => {
                let (verdict, observed) = absolute(&interval, most, rule.metric);
                (verdict, observed, Some(interval))
            }
            Err(why) => (ChangeVerdict::Inconclusive, format!("-, {why}"), None),
        },
        (RuleLimit::Relative { share }, Some((before, confidence))) => {
            match before.change(after, confidence) {
                Ok(change) => (
                    change.verdict(share),
                    percent(&change.interval()),
                    Some(change.interval()),
                ),
                Err(why) => (ChangeVerdict::Inconclusive, format!("-, {why}"), None),
            }
        }
        (RuleLimit::Relative { .. }, None) => {
            (ChangeVerdict::Inconclusive, "-, no baseline".into(), None)
        }
    };
    Ok(RuleVerdict {
        rule: rule.text.clone(),
        warn: rule.warn,
        arm: arm.to_owned(),
        verdict,
        observed,
        interval,
    })
}

/// Returns the quantity of a rule. A measurement that can never have it is an error for that rule.
fn quantity<'a>(
    rule: &GateRule,
    arm: &str,
    side: &'a MeasuredQuantities,
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

/// Returns a relative change in per cent, with its interval.
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
