//! Cost of parts that are off by default: inspection, a sandbox, and telemetry with a collector that is absent or never
//! answers.

use super::budget::word;
use super::ratio::{self, format_ratio};
use super::workspace::StandardWorkspace;
use super::{ComparisonGroup, StandardResults};
use crate::error::LabError;
use crate::overhead::{ArmFigures, OverheadPlan};
use crate::stats::Interval;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::{self, Write as _};

/// The title of the table.
pub(super) const TITLE: &str = "`tools/call echo`, 50 rules, with parts that are off by default";
/// How many times as long a call may take at the median while spans are sent to a collector that does not take them.
const TELEMETRY_RATIO_MAX: f64 = 1.1;
/// Prefix of the names of the variants with telemetry.
const TELEMETRY: &str = "durward, otel";
/// Nothing listens here.
const ABSENT: &str = "http://127.0.0.1:9";

/// Returns the variants, the plain one first.
pub(super) fn plan(
    workspace: &StandardWorkspace,
    plan: OverheadPlan,
) -> Result<OverheadPlan, LabError> {
    let silent = workspace.silent_collector()?;
    let otel = |endpoint: String| json!({ "otel": { "endpoint": endpoint } });
    let inspect = json!({ "inspect": { "secrets": { "secrets": "all", "action": "mask" } } });
    let sandbox: Vec<OsString> = workspace
        .binaries()
        .into_iter()
        .flat_map(|folder| {
            let mut read = OsString::from("read=");
            read.push(folder);
            [OsString::from("--sandbox"), read]
        })
        .collect();
    let rows: [(&str, Value, &[OsString]); 5] = [
        ("durward, plain", json!({}), &[]),
        ("durward, inspect: all secrets", inspect, &[]),
        ("durward, sandbox", json!({}), &sandbox),
        ("durward, otel, no collector", otel(ABSENT.into()), &[]),
        (
            "durward, otel, collector silent",
            otel(format!("http://{silent}")),
            &[],
        ),
    ];
    let arms = rows
        .iter()
        .map(|(name, configuration, flags)| workspace.guarded_with(name, configuration, flags));
    Ok(OverheadPlan {
        arms: arms.collect::<Result<_, _>>()?,
        ..plan
    })
}

/// A variant's median over that of the plain one, and whether the budget is kept if there is one.
pub(super) struct MedianRatio {
    pub(super) arm: String,
    pub(super) ratio: Interval,
    pub(super) is_kept: Option<bool>,
}

impl MedianRatio {
    /// Returns the budget as tables write it.
    pub(super) fn budget(&self) -> String {
        self.is_kept
            .map_or("-".into(), |_| format!("≤ {TELEMETRY_RATIO_MAX:.2}"))
    }

    /// Returns the word for the verdict; empty if there is no budget.
    pub(super) fn word(&self) -> &'static str {
        self.is_kept.map_or("", word)
    }
}

/// Returns the ratios of a table; none for other tables.
fn of_group(group: &ComparisonGroup) -> Vec<MedianRatio> {
    let arms = group.analysis.arms.as_slice();
    let (TITLE, Some((plain, others))) = (group.title, arms.split_first()) else {
        return Vec::new();
    };
    let ratio = |arm: &ArmFigures| {
        let ratio = ratio::of(plain, arm, group.analysis.confidence);
        let name = arm.arm.name.clone();
        let is_bounded = name.starts_with(TELEMETRY);
        MedianRatio {
            is_kept: is_bounded.then(|| ratio.upper() <= TELEMETRY_RATIO_MAX),
            arm: name,
            ratio,
        }
    };
    others.iter().map(ratio).collect()
}

/// Returns the ratios of the standard run.
pub(super) fn of(standard: &StandardResults) -> Vec<MedianRatio> {
    standard.groups.iter().flat_map(of_group).collect()
}

/// Writes the text below the table.
pub(super) fn below(group: &ComparisonGroup, page: &mut String) -> fmt::Result {
    for row in of_group(group) {
        let verdict = match row.is_kept {
            Some(_) => format!(" (budget {}): {}", row.budget(), row.word()),
            None => String::new(),
        };
        writeln!(
            page,
            "\n{}: p50 over the plain one's {}{verdict}.",
            row.arm,
            format_ratio(&row.ratio)
        )?;
    }
    Ok(())
}
