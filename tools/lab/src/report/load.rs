//! The page of a load run.

use super::numbers::{group_thousands, short, time, whole};
use super::page::{FigureTile, MeasuredCase, NumberTable, PageSection, ReportPage};
use super::resources;
use super::svg::{Chart, ChartLine, EcdfChart, LineChart};
use crate::error::LabError;
use crate::judge::Judgement;
use crate::load::{FORMAT, LoadSummary, PhaseFigures};
use crate::run::{self, CallStatus};
use crate::stats::{Interval, SortedSamples, TimePercentiles};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads a run directory or a document.
pub(super) fn read(path: &Path) -> Result<ReportPage, LabError> {
    let load: LoadSummary = run::document_of(&run::summary_file(path)?, FORMAT)?;
    let mut sections = vec![times(&load), calls(&load)];
    if path.is_dir() {
        sections.extend(over_time(path, &load)?);
        let names = ["target".to_owned()];
        sections.extend(resources::section(&run::samples(path)?, &names));
    }
    let mut warnings = load.warnings.clone();
    warnings.extend(load.complaint.iter().map(|c| format!("first failure: {c}")));
    Ok(ReportPage {
        title: format!("Load: {}", load.operation),
        lead: load.target.clone(),
        tiles: load.phases.last().map(tiles).unwrap_or_default(),
        warnings,
        sections,
        facts: facts(&load),
        judged: Judgement::beside(path)?,
        cases: load.phases.iter().map(case).collect(),
    })
}

fn tiles(phase: &PhaseFigures) -> Vec<FigureTile> {
    let tail = |name: &str, times: &TimePercentiles, series| FigureTile {
        name: format!("{} p95 {name}", phase.name),
        value: times.p95_us.map_or("-".into(), |p95| time(p95.point)),
        note: times
            .p50_us
            .map_or(String::new(), |p50| format!("p50 {}", time(p50.point))),
        series,
    };
    vec![
        FigureTile {
            name: format!("{} good answers", phase.name),
            value: format!("{}/s", short(phase.rps)),
            note: phase.rate.map_or_else(
                || format!("{} workers, closed", phase.workers),
                |rate| format!("{} due per second", short(rate)),
            ),
            series: 0,
        },
        tail("response", &phase.response, 2),
        tail("service", &phase.service, 1),
        FigureTile {
            name: "failed".into(),
            value: format!("{:.2} %", phase.error_rate.point * 100.0),
            note: format!(
                "{} of {}",
                phase.calls - phase.ok,
                group_thousands(phase.calls as f64)
            ),
            series: 7,
        },
    ]
}

fn times(load: &LoadSummary) -> PageSection {
    let mut table =
        NumberTable::new(&["phase", "kind", "p50", "p90", "p95", "p99", "p99.9", "max"]);
    let cell = |interval: &Option<Interval>| interval.as_ref().map_or("-".into(), whole);
    for phase in &load.phases {
        let kinds = [
            ("service", Some(&phase.service)),
            ("response", Some(&phase.response)),
            ("ttft", phase.ttft.as_ref()),
        ];
        for (kind, times) in kinds.into_iter().filter_map(|(k, t)| Some((k, t?))) {
            table.rows.push(vec![
                phase.name.clone(),
                kind.into(),
                cell(&times.p50_us),
                cell(&times.p90_us),
                cell(&times.p95_us),
                cell(&times.p99_us),
                cell(&times.p999_us),
                times.max_us.map_or("-".into(), short),
            ]);
        }
    }
    PageSection {
        title: "Times, µs".into(),
        note: "Service counts from the write of a request, response from the instant at which the call was due. Good answers only; \
nearest-rank percentiles with distribution-free 95 % intervals; a dash stands where there are too few calls."
            .into(),
        charts: Vec::new(),
        table: Some(table),
    }
}

fn calls(load: &LoadSummary) -> PageSection {
    let mut table = NumberTable::new(&[
        "phase", "seconds", "calls", "good", "rate", "peak", "failed",
    ]);
    table.rows = load
        .phases
        .iter()
        .map(|phase| {
            let failures: Vec<String> = phase
                .failures
                .iter()
                .map(|(k, n)| format!("{n} {k}"))
                .collect();
            vec![
                phase.name.clone(),
                short(phase.seconds),
                group_thousands(phase.calls as f64),
                group_thousands(phase.ok as f64),
                format!("{}/s", short(phase.rps)),
                phase
                    .rps_peak
                    .map_or("-".into(), |peak| format!("{}/s", group_thousands(peak))),
                if failures.is_empty() {
                    "none".into()
                } else {
                    failures.join(", ")
                },
            ]
        })
        .collect();
    PageSection {
        title: "Calls".into(),
        note: String::new(),
        charts: Vec::new(),
        table: Some(table),
    }
}

/// Distribution and throughput, from the records of single calls.
fn over_time(run: &Path, load: &LoadSummary) -> Result<Vec<PageSection>, LabError> {
    let (mut service, mut response) = (Vec::new(), Vec::new());
    let mut seconds: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    run::operations(run, |record| {
        let latency_us = record.latency_ms * 1_000.0;
        let end_us = record.start_us + latency_us;
        let at = seconds.entry((end_us / 1e6) as u64).or_default();
        if record.status == CallStatus::Ok {
            at.0 += 1.0;
            service.push(latency_us);
            response.push(end_us - record.intended_us);
        } else {
            at.1 += 1.0;
        }
    })?;
    let series = vec![
        ("service".to_owned(), 1, SortedSamples::new(service)),
        ("response".to_owned(), 2, SortedSamples::new(response)),
    ];
    let line = |name: &str, series, of: fn(&(f64, f64)) -> f64| ChartLine {
        name: name.into(),
        series,
        points: seconds
            .iter()
            .map(|(second, counts)| (*second as f64, of(counts)))
            .collect(),
    };
    let mut lines = vec![line("good", 3, |counts| counts.0)];
    if load.phases.iter().any(|phase| phase.ok < phase.calls) {
        lines.push(line("failed", 7, |counts| counts.1));
    }
    Ok(vec![
        PageSection {
            title: "How the calls spread".into(),
            note: "The share of good calls that took at most so long. Where the curves part, calls waited before they could leave.".into(),
            charts: vec![Chart::Ecdf(EcdfChart {
                title: "cumulative distribution of service and response times".into(),
                series,
            })],
            table: None,
        },
        PageSection {
            title: "Second by second".into(),
            note: "Answers in each second of the run; the last one may be cut short.".into(),
            charts: vec![Chart::Lines(LineChart {
                title: "answers per second".into(),
                x_name: "seconds since the beginning".into(),
                y_name: "answers per second".into(),
                counts: true,
                lines,
            })],
            table: None,
        },
    ])
}

fn facts(load: &LoadSummary) -> Vec<(String, String)> {
    let phases: Vec<String> = load
        .phases
        .iter()
        .map(|phase| {
            format!(
                "{} ({}, {} workers)",
                phase.name, phase.model, phase.workers
            )
        })
        .collect();
    let generator = match load.generator.late_p99_us {
        Some(late) => format!(
            "{:.0} % of a core, calls left up to {late:.0} µs late (p99)",
            load.generator.cpu_percent
        ),
        None => format!("{:.0} % of a core", load.generator.cpu_percent),
    };
    [
        ("target", load.target.clone()),
        ("phases", phases.join(", ")),
        ("generator", generator),
        ("warm-up", format!("{} calls per worker", load.warm)),
        ("machine", load.host.describe()),
        ("lab", format!("{}, {} build", load.version, load.build)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn case(phase: &PhaseFigures) -> MeasuredCase {
    MeasuredCase {
        name: phase.name.clone(),
        seconds: phase.seconds,
        said: format!(
            "{} calls, {} good, {}/s",
            phase.calls,
            phase.ok,
            short(phase.rps)
        ),
    }
}
