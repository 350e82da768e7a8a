//! Cost of waiting for a person: the overhead without the time that the approver took on purpose.

use super::analysis::paired_median;
use super::measure::{LaunchTimes, OverheadPlan};
use crate::stats::{Interval, median};
use serde::{Deserialize, Serialize};

/// The wait of a variant with calls that needed an approval.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ApprovalWait {
    /// The fixed time from a question to its answer, in microseconds.
    pub(crate) delay_us: f64,
    /// The time it really was, by the approver's own watch; the median of a launch.
    pub(crate) held_us: Interval,
    /// The overhead without the fixed time: asking, finding out, judging again, and the hop itself.
    pub(crate) wait_cost_us: Interval,
}

impl ApprovalWait {
    /// Returns the figures of a variant beside the baseline; `None` without approvals.
    pub(super) fn of(plan: &OverheadPlan, pairs: &[(&LaunchTimes, &LaunchTimes)]) -> Option<Self> {
        let delay_us = plan.person.as_ref()?.delay_us()?;
        let held: Vec<f64> = pairs.iter().map(|(_, lap)| median(&lap.held_us)).collect();
        let costs: Vec<f64> = pairs
            .iter()
            .map(|(base, lap)| paired_median(&base.calls_us, &lap.calls_us) - delay_us)
            .collect();
        Some(Self {
            delay_us,
            held_us: Interval::over_launches(&held, plan.confidence),
            wait_cost_us: Interval::over_launches(&costs, plan.confidence),
        })
    }
}
