//! A measurement for people, and as one JSON document.

use super::OverheadAnalysis;
use crate::stats::Interval;
use std::io::{self, Write};

pub(super) fn json(analysis: &OverheadAnalysis, out: &mut dyn Write) -> io::Result<()> {
    crate::summary::SummaryDocument::of(analysis).print(out)
}

pub(crate) fn text(analysis: &OverheadAnalysis, out: &mut dyn Write) -> io::Result<()> {
    let pinned = analysis
        .pinned_core
        .map_or("not pinned".to_owned(), |core| {
            format!("all on core {core}")
        });
    writeln!(
        out,
        "{}, path {}, MCP {}",
        analysis.operation, analysis.path, analysis.protocol
    )?;
    writeln!(
        out,
        "{} launches x {} calls (after {} to warm up), turns of {}, seed {}, {pinned}",
        analysis.launches, analysis.runs, analysis.warmup, analysis.turn, analysis.seed
    )?;
    writeln!(
        out,
        "{}; load {}",
        analysis.host.describe(),
        loads(analysis)
    )?;
    writeln!(out, "design: {}\n", analysis.design)?;
    let wide = analysis
        .arms
        .iter()
        .map(|arm| arm.arm.name.chars().count())
        .max();
    let wide = wide.unwrap_or(0).max(3);
    writeln!(
        out,
        "{:wide$}  {:>9} {:>9} {:>9} {:>9}  {:>9}",
        "variant", "p50 us", "p95 us", "p99 us", "max us", "start ms"
    )?;
    for arm in &analysis.arms {
        writeln!(
            out,
            "{:wide$}  {:>9} {:>9} {:>9} {:>9.1}  {:>9.1}",
            arm.arm.name,
            point(Some(&arm.p50_us)),
            point(arm.p95_us.as_ref()),
            point(arm.p99_us.as_ref()),
            arm.max_us,
            arm.start_us.point / 1_000.0,
        )?;
    }
    writeln!(out)?;
    comparisons(analysis, wide, out)?;
    for warning in &analysis.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    Ok(())
}

/// What each variant adds, and what of it was a person's time.
fn comparisons(analysis: &OverheadAnalysis, wide: usize, out: &mut dyn Write) -> io::Result<()> {
    for found in &analysis.comparisons {
        writeln!(
            out,
            "{:wide$}  added over {}: {} us (p50 {}, p99 {})",
            found.arm,
            found.baseline,
            whole(&found.overhead_us),
            whole(&found.added_p50_us),
            found
                .added_p99_us
                .as_ref()
                .map_or("-, too few calls a launch".into(), whole),
        )?;
        if let Some(approval) = &found.approval {
            writeln!(
                out,
                "{:wide$}  without the approver's {} us: {} us (it took {})",
                "",
                approval.delay_us,
                whole(&approval.wait_cost_us),
                whole(&approval.held_us)
            )?;
        }
    }
    Ok(())
}

/// Load averages of one minute before and after.
pub(crate) fn loads(analysis: &OverheadAnalysis) -> String {
    let minute = |load: Option<[f64; 3]>| load.map_or("?".to_owned(), |[m, ..]| m.to_string());
    format!(
        "{} to {}",
        minute(analysis.load_average_before),
        minute(analysis.load_average_after)
    )
}

/// Returns the estimate, or a dash.
pub(crate) fn point(interval: Option<&Interval>) -> String {
    interval.map_or("-".to_owned(), |i| format!("{:.1}", i.point))
}

/// Returns the estimate with its interval.
pub(crate) fn whole(interval: &Interval) -> String {
    match (interval.ci_low, interval.ci_high) {
        (Some(low), Some(high)) => format!("{:.1} [{low:.1}, {high:.1}]", interval.point),
        _ => format!("{:.1} [one launch, no interval]", interval.point),
    }
}
