//! The budgets over HTTP, row by row.

use super::rates::ConnectionRate;
use super::{HttpSides, WebGroup, WebResults};
use crate::overhead::{VariantComparison, whole};
use crate::standard::causes;
use crate::stats::Interval;

/// Added to a call at the median, in microseconds.
pub(super) const ADDED_P50_US_MAX: f64 = 60.0;
/// Added at the 99th percentile where HTTP is on the client's side, in microseconds.
pub(super) const ADDED_P99_US_MAX: f64 = 150.0;
/// Resident memory at rest, in KiB.
pub(super) const RESIDENT_KIB_MAX: u64 = 15 * 1024;

/// A budget and what was measured.
#[derive(Debug)]
pub(in super::super) struct BudgetVerdict {
    pub(in super::super) what: String,
    pub(in super::super) budget: String,
    pub(in super::super) measured: String,
    /// The best peer's name and figure, and ours over that.
    pub(in super::super) peer: Option<(String, f64)>,
    /// Cause, by the stages of our variant.
    pub(in super::super) cause: String,
    /// Whether there is a peer that could be had.
    pub(in super::super) wants_peer: bool,
    pub(in super::super) kept: bool,
}

impl HttpSides {
    /// Calls a second with many connections, at least; `None` if none are requested.
    pub(super) fn per_second_min(self) -> Option<f64> {
        match self {
            Self::HttpToStdio => Some(30_000.0),
            Self::HttpToHttp => Some(20_000.0),
            Self::StdioToHttp | Self::StdioToHttpBesidePeers => None,
        }
    }

    fn p99_us_max(self) -> Option<f64> {
        self.per_second_min().map(|_| ADDED_P99_US_MAX)
    }
}

/// Returns whether this is our own variant.
pub(super) fn is_ours(arm: &str) -> bool {
    arm.starts_with("durward")
}

/// Returns whether the added latency of our variant is within its budgets; nothing for other variants and baselines.
pub(super) fn is_kept(hop: HttpSides, found: &VariantComparison) -> Option<bool> {
    if !is_ours(&found.arm) || found.baseline != hop.baseline() {
        return None;
    }
    let p99 = hop.p99_us_max().is_none_or(|most| {
        let added = found.added_p99_us.as_ref();
        added.is_some_and(|added| added.upper() <= most)
    });
    Some(found.overhead_us.upper() <= ADDED_P50_US_MAX && p99)
}

/// Returns every budget of the design over HTTP.
pub(in super::super) fn rows(web: &WebResults) -> Vec<BudgetVerdict> {
    let mut rows = Vec::new();
    for group in &web.groups {
        rows.extend(latency(group));
        rows.extend(rate(group, &web.rates));
    }
    rows
}

fn latency(group: &WebGroup) -> Vec<BudgetVerdict> {
    let (hop, baseline) = (group.hop, group.hop.baseline());
    let against = |ours: bool| {
        let mut all = group.analysis.comparisons.iter();
        all.find(move |c| {
            c.baseline == baseline && is_ours(&c.arm) == ours && !c.arm.starts_with("bare")
        })
    };
    let Some(ours) = against(true) else {
        return Vec::new();
    };
    let peer = against(false);
    let row =
        |percentile: &str, most: f64, mine: &Interval, theirs: Option<&Interval>| BudgetVerdict {
            what: format!("{}, {percentile} over {baseline}", hop.title()),
            budget: format!("≤ {most:.0} µs"),
            measured: format!("{} µs", whole(mine)),
            peer: peer.zip(theirs).map(|(peer, theirs)| {
                (
                    format!("{} {} µs", peer.arm, whole(theirs)),
                    mine.point / theirs.point,
                )
            }),
            cause: causes::in_analysis(&group.analysis, &ours.arm).unwrap_or_default(),
            wants_peer: hop.per_second_min().is_some(),
            kept: mine.upper() <= most,
        };
    let mut rows = vec![row(
        "p50",
        ADDED_P50_US_MAX,
        &ours.overhead_us,
        peer.map(|p| &p.overhead_us),
    )];
    if let (Some(most), Some(mine)) = (hop.p99_us_max(), &ours.added_p99_us) {
        rows.push(row(
            "p99",
            most,
            mine,
            peer.and_then(|p| p.added_p99_us.as_ref()),
        ));
    }
    rows
}

fn rate(group: &WebGroup, rates: &[ConnectionRate]) -> Vec<BudgetVerdict> {
    let hop = group.hop;
    let of = |ours: bool| {
        let mut all = rates.iter().filter(move |rate| rate.hop == hop);
        all.find(move |rate| {
            is_ours(&rate.arm) == ours && !rate.arm.starts_with("bare") && rate.arm != "direct"
        })
    };
    let (Some(least), Some(ours)) = (hop.per_second_min(), of(true)) else {
        return Vec::new();
    };
    let peer = of(false);
    let mebibytes = |kib: u64| kib as f64 / 1024.0;
    let alone = causes::in_analysis(&group.analysis, &ours.arm).unwrap_or_default();
    vec![
        BudgetVerdict {
            cause: format!(
                "a call takes {:.0} µs at the median with all connections; one at a time, {alone}",
                ours.p50_us
            ),
            what: format!("{}, {} connections", hop.title(), ours.connections),
            budget: format!("≥ {least:.0}/s"),
            measured: format!("{}/s", thousands(&ours.per_second)),
            peer: peer.map(|peer| {
                let said = format!("{} {}/s", peer.arm, thousands(&peer.per_second));
                (said, ours.per_second.point / peer.per_second.point)
            }),
            wants_peer: true,
            kept: ours.per_second.lower() >= least,
        },
        BudgetVerdict {
            cause: format!(
                "its helpers hold {:.1} MiB more, under load it holds {:.1} MiB",
                mebibytes(ours.helpers_kib),
                mebibytes(ours.loaded_kib)
            ),
            what: format!("{}, resident at rest", hop.title()),
            budget: format!("≤ {} MiB", RESIDENT_KIB_MAX / 1024),
            measured: format!("{:.1} MiB", mebibytes(ours.resting_kib)),
            peer: peer.map(|peer| {
                let said = format!("{} {:.1} MiB", peer.arm, mebibytes(peer.resting_kib));
                (
                    said,
                    ours.resting_kib as f64 / peer.resting_kib.max(1) as f64,
                )
            }),
            wants_peer: true,
            kept: ours.resting_kib <= RESIDENT_KIB_MAX,
        },
    ]
}

/// Returns a rate without decimals, with its interval.
pub(in super::super) fn thousands(rate: &Interval) -> String {
    match (rate.ci_low, rate.ci_high) {
        (Some(low), Some(high)) => format!("{:.0} [{low:.0}, {high:.0}]", rate.point),
        _ => format!("{:.0}", rate.point),
    }
}
