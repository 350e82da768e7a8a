//! A load run for people, and as one JSON document.

use super::summary::{LoadSummary, PhaseFigures};
use crate::judge;
use crate::stats::Interval;
use crate::stats::TimePercentiles;
use std::io::{self, Write};

pub(super) fn json(load: &LoadSummary, out: &mut dyn Write) -> io::Result<()> {
    crate::summary::SummaryDocument::of(load).print(out)
}

pub(super) fn text(load: &LoadSummary, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} on {}", load.operation, load.target)?;
    writeln!(out, "{}", load.host.describe())?;
    for phase in &load.phases {
        one(phase, out)?;
    }
    writeln!(
        out,
        "\ngenerator: {:.0} % of a core{}",
        load.generator.cpu_percent,
        load.generator
            .late_p99_us
            .map_or(String::new(), |late| format!(
                ", calls left up to {late:.0} us late (p99)"
            ))
    )?;
    if let Some(complaint) = &load.complaint {
        writeln!(out, "first failure: {complaint}")?;
    }
    for warning in &load.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    let judged = load.thresholds.as_ref();
    judged.map_or(Ok(()), |judged| judge::lines(judged, out))
}

fn one(phase: &PhaseFigures, out: &mut dyn Write) -> io::Result<()> {
    let pace = match phase.rate {
        Some(rate) => format!("open, {rate}/s due, up to {} at once", phase.workers),
        None => format!("closed, {} workers", phase.workers),
    };
    writeln!(out, "\n{}: {pace}, {:.1} s", phase.name, phase.seconds)?;
    let failures: Vec<String> = phase
        .failures
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    writeln!(
        out,
        "{} calls, {} good, {:.1}/s{}{}",
        phase.calls,
        phase.ok,
        phase.rps,
        phase
            .rps_peak
            .map_or(String::new(), |peak| format!(" (peak {peak:.0}/s)")),
        if failures.is_empty() {
            String::new()
        } else {
            format!("; failed: {}", failures.join(", "))
        }
    )?;
    writeln!(
        out,
        "{:9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "us", "p50", "p90", "p95", "p99", "p99.9", "max"
    )?;
    row("service", &phase.service, out)?;
    row("response", &phase.response, out)?;
    if let Some(ttft) = &phase.ttft {
        row("ttft", ttft, out)?;
    }
    for (name, why) in &phase.service.missing {
        writeln!(out, "no {name}: {why}")?;
    }
    Ok(())
}

fn row(name: &str, times: &TimePercentiles, out: &mut dyn Write) -> io::Result<()> {
    let point = |interval: &Option<Interval>| {
        interval
            .as_ref()
            .map_or("-".to_owned(), |i| format!("{:.1}", i.point))
    };
    writeln!(
        out,
        "{name:9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        point(&times.p50_us),
        point(&times.p90_us),
        point(&times.p95_us),
        point(&times.p99_us),
        point(&times.p999_us),
        times
            .max_us
            .map_or("-".to_owned(), |max| format!("{max:.1}"))
    )
}
