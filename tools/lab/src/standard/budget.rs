//! The budgets of the hop over stdio, and the figure that is compared with them: the upper end of the interval.

use super::{ComparisonGroup, StandardResults, approval, features, web};
use crate::overhead::VariantComparison;

/// Added to a call at the median, in microseconds.
pub(super) const ADDED_P50_US_MAX: f64 = 40.0;
/// Added at the 99th percentile, in microseconds.
pub(super) const ADDED_P99_US_MAX: f64 = 150.0;
/// Resident memory at rest, in KiB.
pub(super) const RESIDENT_KIB_MAX: u64 = 15 * 1024;
/// From spawn to the answer to `initialize`, in microseconds.
pub(super) const START_US_MAX: f64 = 50_000.0;

/// Returns whether a guarded variant keeps both budgets of the hop; nothing for variants that have none.
pub(super) fn verdict(group: &ComparisonGroup, comparison: &VariantComparison) -> Option<bool> {
    if !group.budgeted || !comparison.arm.starts_with("durward") {
        return None;
    }
    // Without enough calls for a p99 the budget is not kept: it was not shown.
    let p99 = comparison
        .added_p99_us
        .is_some_and(|added| added.upper() <= ADDED_P99_US_MAX);
    Some(comparison.overhead_us.upper() <= ADDED_P50_US_MAX && p99)
}

/// Returns whether any budget is missed.
pub(super) fn short(standard: &StandardResults) -> bool {
    let hop = standard.groups.iter().any(|group| {
        let mut verdicts = group.analysis.comparisons.iter();
        verdicts.any(|comparison| verdict(group, comparison) == Some(false))
    });
    let waiting = approval::of(standard).is_some_and(|ratio| !approval::is_kept(&ratio));
    let features = features::of(standard)
        .iter()
        .any(|row| row.is_kept == Some(false));
    let web = web::rows(&standard.web).iter().any(|row| !row.kept);
    let missing = standard.absent.iter().any(|absent| absent.ours);
    hop || waiting
        || features
        || web
        || missing
        || standard
            .one_url
            .as_ref()
            .is_some_and(|found| !found.is_kept())
        || !standard.journal_rate.is_kept()
        || !memory_kept(standard)
        || !start_kept(standard)
}

/// Returns whether the memory at rest is within its budget.
pub(super) fn memory_kept(standard: &StandardResults) -> bool {
    standard.idle.resident_kib <= RESIDENT_KIB_MAX
}

/// Returns whether the start is within its budget.
pub(super) fn start_kept(standard: &StandardResults) -> bool {
    standard.idle.start_us.upper() <= START_US_MAX
}

/// Returns the word for a verdict.
pub(super) fn word(kept: bool) -> &'static str {
    if kept { "PASS" } else { "SHORT" }
}
