//! The rows about people: a call that waits for a yes, and calls that do not while others wait.

use super::ratio::{self, format_ratio};
use super::workspace::{MockServer, RuleSet, StandardWorkspace};
use super::{ComparisonGroup, StandardResults};
use crate::error::LabError;
use crate::overhead::{OverheadPlan, whole};
use crate::person::PersonRole;
use crate::stats::Interval;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// The titles of the two tables.
pub(super) const ASKED: &str = "`tools/call read_file`, a person asked first";
pub(super) const PENDING: &str = "`tools/call read_file`, while 50 other calls wait for a person";
/// Calls that wait meanwhile.
const CALLS_WAITING: usize = 50;
/// How many times as long an allowed call may take at the median while others wait.
pub(super) const RATIO_MAX: f64 = 1.1;

/// Returns a call that goes on as soon as a person who takes no time said yes.
pub(super) fn with_approval(
    workspace: &StandardWorkspace,
    plan: OverheadPlan,
) -> Result<OverheadPlan, LabError> {
    let server = MockServer::Files;
    Ok(OverheadPlan {
        arms: vec![
            workspace.direct(server),
            workspace.guard_server(server, RuleSet::Asked(4))?,
            workspace.guard_server(server, RuleSet::Asked(1_000))?,
        ],
        person: Some(PersonRole::Approves {
            delay: Duration::ZERO,
            at_once: 1,
        }),
        ..plan
    })
}

/// Returns the same variant twice; in the second, calls wait on the same connection.
pub(super) fn pending(
    workspace: &StandardWorkspace,
    plan: OverheadPlan,
) -> Result<OverheadPlan, LabError> {
    let guarded = |name: &str| workspace.guarded_as(name, MockServer::Files, RuleSet::Four);
    Ok(OverheadPlan {
        arms: vec![
            guarded("durward, none waits")?,
            guarded(&format!("durward, {CALLS_WAITING} wait"))?,
        ],
        person: Some(PersonRole::Ignores {
            calls: CALLS_WAITING,
            operation: workspace.write(),
        }),
        ..plan
    })
}

/// The p50 while others wait over the p50 while none does; nothing for other tables.
pub(super) fn ratio(group: &ComparisonGroup) -> Option<Interval> {
    if group.title != PENDING {
        return None;
    }
    let [alone, crowded] = group.analysis.arms.as_slice() else {
        return None;
    };
    Some(ratio::of(alone, crowded, group.analysis.confidence))
}

/// Returns the ratio of the standard run.
pub(super) fn of(standard: &StandardResults) -> Option<Interval> {
    standard.groups.iter().find_map(ratio)
}

/// What of a call grew while others waited.
pub(super) fn cause(standard: &StandardResults) -> Option<String> {
    let group = standard
        .groups
        .iter()
        .find(|group| group.title == PENDING)?;
    match group.analysis.arms.as_slice() {
        [alone, crowded] => Some(super::causes::between(alone, crowded)),
        _ => None,
    }
}

/// Returns whether the ratio is within its budget.
pub(super) fn is_kept(ratio: &Interval) -> bool {
    ratio.upper() <= RATIO_MAX
}

/// Writes the text below a table of these.
pub(super) fn below(group: &ComparisonGroup, page: &mut String) -> fmt::Result {
    for comparison in &group.analysis.comparisons {
        let Some(approval) = &comparison.approval else {
            continue;
        };
        writeln!(
            page,
            "\n{}: the lab plays the person, over the control socket; the answer took {} µs and the wait cost {} µs beside that fixed time.",
            comparison.arm,
            whole(&approval.held_us),
            whole(&approval.wait_cost_us),
        )?;
    }
    let Some(ratio) = ratio(group) else {
        return Ok(());
    };
    writeln!(
        page,
        "\np50 over p50 while none waits: {} (budget ≤ {RATIO_MAX:.2}): {}.",
        format_ratio(&ratio),
        super::budget::word(is_kept(&ratio))
    )
}
