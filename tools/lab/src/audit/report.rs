//! The latencies of a log for people, and as one JSON document.

use super::{DecisionGroup, LatencyReport};
use crate::summary::SummaryDocument;
use std::collections::BTreeSet;
use std::io::{self, Write};

pub(super) fn json(latencies: &LatencyReport, out: &mut dyn Write) -> io::Result<()> {
    SummaryDocument::of(latencies).print(out)
}

pub(super) fn text(latencies: &LatencyReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{} decisions, {} with their operation, {} left out",
        latencies.decisions, latencies.joined, latencies.excluded
    )?;
    for group in latencies.groups.iter().chain(&latencies.jobs) {
        table(group, out)?;
    }
    for note in &latencies.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

fn table(group: &DecisionGroup, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{} (n={})", group.name, group.n)?;
    writeln!(
        out,
        "{:14} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "ms", "n", "median", "mean", "p95", "min", "max"
    )?;
    let cell = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.3}"));
    for row in &group.rows {
        writeln!(
            out,
            "{:14} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}",
            row.metric,
            row.n,
            cell(row.median_ms),
            cell(row.mean_ms),
            cell(row.p95_ms),
            cell(row.min_ms),
            cell(row.max_ms)
        )?;
    }
    let mut told = BTreeSet::new();
    for (name, why) in group.rows.iter().flat_map(|row| &row.missing) {
        if told.insert((*name, why)) {
            writeln!(out, "no {name}: {why}")?;
        }
    }
    Ok(())
}
