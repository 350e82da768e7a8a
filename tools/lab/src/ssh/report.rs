//! The report, in the shape that the guide shows.

use std::io::{self, Write};

use super::figures::{PhaseReport, RunReport};
use super::scenario::SshScenario;
use super::scrape::ServerLimits;
use crate::summary::SummaryDocument;

const WIDTH: usize = 70;

pub(super) fn json(told: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    SummaryDocument::of(told).print(out)
}

/// The scenarios.
pub(super) fn list(out: &mut dyn Write) -> io::Result<()> {
    for scenario in SshScenario::ALL {
        let workers: Vec<String> = scenario.workers().iter().map(u32::to_string).collect();
        writeln!(
            out,
            "{:<20} {:>4} s, {} workers: {}",
            scenario.name(),
            scenario.duration().as_secs(),
            workers.join(", "),
            scenario.about()
        )?;
    }
    Ok(())
}

pub(super) fn text(told: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    let (double, single) = ("=".repeat(WIDTH), "-".repeat(WIDTH));
    writeln!(out, "{double}\n{:^WIDTH$}\n{double}\n", "LOAD TEST RESULTS")?;
    writeln!(out, "Test ID:    {}", told.test_id)?;
    writeln!(out, "Scenario:   {}", told.scenario.name())?;
    writeln!(out, "Duration:   {:.1}s", told.duration_s)?;
    writeln!(out, "Machine:    {}", told.host.describe())?;
    writeln!(out, "Limits:     {}", limits(&told.limits))?;
    for phase in &told.phases {
        let title = told.scenario.name().to_uppercase().replace('_', " ");
        writeln!(out, "\n{single}\n{title}: {}\n{single}", phase.name)?;
        one(phase, out)?;
    }
    writeln!(out, "\n{single}\nPOOL STATISTICS\n{single}")?;
    let rate = told
        .pool
        .hit_rate
        .map_or("-".into(), |rate| format!("{:.0}%", rate * 100.0));
    writeln!(out, "  Hit Rate:           {rate}")?;
    writeln!(out, "  Connections made:   {}", told.pool.creates)?;
    writeln!(out, "  Peak Active:        {}", told.pool.peak_active)?;
    if let Some(more) = &told.extrapolation {
        writeln!(
            out,
            "\n{single}\nEXTRAPOLATION (to {} CPU)\n{single}",
            more.target_cpus
        )?;
        writeln!(
            out,
            "  Measured RPS:      {:.1} (on {} cores)",
            more.measured_rps, more.server_cpus
        )?;
        writeln!(
            out,
            "  Estimated RPS:     {:.1} (on {} cores)",
            more.estimated_rps, more.target_cpus
        )?;
        writeln!(out, "  Scaling factor:    {:.2}x", more.factor)?;
        let busy = more
            .cpu_percent
            .map_or("not told".into(), |percent| format!("{percent:.0} %"));
        writeln!(
            out,
            "  Confidence:        {} (server's CPU {busy}: {})",
            more.confidence, more.because
        )?;
    }
    writeln!(
        out,
        "\n{single}\nVERDICT: {}\n{single}",
        told.verdict.verdict
    )?;
    for reason in &told.verdict.reasons {
        writeln!(out, "  {reason}")?;
    }
    for diagnosis in &told.diagnoses {
        writeln!(
            out,
            "  {}: {}\n    {}",
            diagnosis.entry, diagnosis.found, diagnosis.advice
        )?;
    }
    writeln!(out, "{double}")
}

fn limits(of: &ServerLimits) -> String {
    let told = [
        (of.connections_to_a_host, "connections to a host"),
        (of.sessions, "sessions"),
        (of.calls_per_minute, "calls a minute"),
        (of.calls_of_a_tool_per_minute, "of one tool in its window"),
    ];
    let told: Vec<String> = told
        .iter()
        .filter_map(|(most, what)| Some(format!("{} {what}", (*most)?)))
        .collect();
    if told.is_empty() {
        return "the server does not tell".into();
    }
    told.join(", ")
}

fn one(phase: &PhaseReport, out: &mut dyn Write) -> io::Result<()> {
    let share = phase.ok as f64 / phase.total.max(1) as f64 * 100.0;
    writeln!(
        out,
        "\nTHROUGHPUT ({} of {} workers ran, {:.1} s)",
        phase.running, phase.asked, phase.seconds
    )?;
    writeln!(out, "  Total Requests:     {}", phase.total)?;
    writeln!(out, "  Successful:         {} ({share:.1}%)", phase.ok)?;
    writeln!(out, "  Failed:             {}", phase.failed)?;
    if phase.rejected > 0 {
        writeln!(out, "  Refused, no room:   {}", phase.rejected)?;
    }
    writeln!(
        out,
        "  Requests/Second:    {:.1} avg, {:.1} peak",
        phase.rps, phase.rps_peak
    )?;
    for (name, [ok, failed]) in &phase.per_op {
        writeln!(out, "    {name:<18} {ok} ok, {failed} failed")?;
    }
    writeln!(out, "\nLATENCY (milliseconds)")?;
    let latency = &phase.latency;
    for (name, time) in [
        ("Min", latency.min),
        ("p50", latency.p50),
        ("p95", latency.p95),
        ("p99", latency.p99),
        ("Max", latency.max),
    ] {
        let time = time.map_or("-".into(), |ms| format!("{ms:.1}"));
        writeln!(out, "  {:<7} {time}", format!("{name}:"))?;
    }
    for (code, count) in &phase.errors {
        writeln!(out, "  {count} {code}")?;
    }
    phase.complaint.as_ref().map_or(Ok(()), |first| {
        writeln!(out, "  first failure: {}", crate::output::plain(first))
    })
}
