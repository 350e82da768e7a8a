//! The page of an overhead measurement.

use super::numbers::{ends, grouped, maybe, short, whole};
use super::page::{Case, Page, Section, Table, Tile};
use super::resources;
use super::svg::{Bar, Chart, Ecdf, Forest, Line, Lines, Row, Stack};
use crate::error::LabError;
use crate::judge::Judgement;
use crate::overhead::{Analysis, ArmFigures, Comparison, FORMAT, loads};
use crate::run::{self, Status};
use crate::stats::Sorted;
use std::path::Path;

/// Reads a run directory or a document.
pub(super) fn read(path: &Path) -> Result<Page, LabError> {
    let analysis: Analysis = run::document_of(&run::summary_file(path)?, FORMAT)?;
    let mut sections = vec![added(&analysis)];
    sections.push(percentiles(&analysis));
    let names: Vec<String> = analysis
        .arms
        .iter()
        .map(|arm| arm.arm.name.clone())
        .collect();
    if path.is_dir() {
        sections.push(distribution(path, &names)?);
    }
    sections.push(launches(&analysis));
    sections.extend(stages(&analysis));
    sections.push(cold(&analysis));
    sections.push(processes(&analysis));
    if path.is_dir() {
        sections.extend(resources::section(&run::samples(path)?, &names));
    }
    Ok(Page {
        title: format!("Overhead of {}", analysis.operation),
        lead: format!(
            "{} launches × {} calls per variant, {} at a time; path {}, MCP {}.",
            analysis.launches,
            grouped(f64::from(analysis.runs)),
            analysis.concurrency,
            analysis.path,
            analysis.protocol
        ),
        tiles: tiles(&analysis),
        warnings: analysis.warnings.clone(),
        sections,
        facts: facts(&analysis),
        judged: Judgement::beside(path)?,
        cases: cases(&analysis),
    })
}

/// The number of a variant's colour.
fn series(analysis: &Analysis, name: &str) -> usize {
    let mut names = analysis.arms.iter().map(|arm| arm.arm.name.as_str());
    names.position(|arm| arm == name).unwrap_or_default()
}

fn tiles(analysis: &Analysis) -> Vec<Tile> {
    let tile = |found: &Comparison| Tile {
        name: found.arm.clone(),
        value: format!("{:+.1} µs", found.overhead_us.point),
        note: format!("{} over {}", ends(&found.overhead_us), found.baseline),
        series: series(analysis, &found.arm),
    };
    analysis.comparisons.iter().map(tile).collect()
}

/// A variant, with the baseline where there are several.
fn compared(analysis: &Analysis, found: &Comparison) -> String {
    let mut baselines = analysis.comparisons.iter().map(|c| &c.baseline);
    match baselines.all(|baseline| *baseline == found.baseline) {
        true => found.arm.clone(),
        false => format!("{} over {}", found.arm, found.baseline),
    }
}

fn added(analysis: &Analysis) -> Section {
    let rows = analysis.comparisons.iter().map(|found| Row {
        name: compared(analysis, found),
        series: series(analysis, &found.arm),
        interval: found.overhead_us,
        launches: found.per_launch_overhead_us.clone(),
    });
    let mut table = Table::new(&[
        "variant",
        "added, µs",
        "Hodges–Lehmann",
        "added p50",
        "added p95",
        "added p99",
    ]);
    table.rows = analysis
        .comparisons
        .iter()
        .map(|found| {
            vec![
                compared(analysis, found),
                whole(&found.overhead_us),
                short(found.hodges_lehmann_us),
                whole(&found.added_p50_us),
                maybe(found.added_p95_us.as_ref()),
                maybe(found.added_p99_us.as_ref()),
            ]
        })
        .collect();
    Section {
        title: "What each variant adds".into(),
        note: format!(
            "Faint dots are launches (the median of paired differences with the baseline), the bar is the {:.0} % interval \
of their mean. A dash stands where a launch has too few calls for that percentile.",
            analysis.confidence * 100.0
        ),
        charts: vec![Chart::Forest(Forest {
            title: "added time per call of each variant, with intervals".into(),
            rows: rows.collect(),
        })],
        table: Some(table),
    }
}

fn percentiles(analysis: &Analysis) -> Section {
    let mut table = Table::new(&[
        "variant", "calls", "p50", "p90", "p95", "p99", "min", "max", "spread",
    ]);
    let mut row = |arm: &ArmFigures| {
        table.rows.push(vec![
            arm.arm.name.clone(),
            grouped(arm.calls as f64),
            whole(&arm.p50_us),
            maybe(arm.p90_us.as_ref()),
            maybe(arm.p95_us.as_ref()),
            maybe(arm.p99_us.as_ref()),
            short(arm.min_us),
            short(arm.max_us),
            format!("{:.0} %", arm.spread * 100.0),
        ]);
    };
    analysis.arms.iter().for_each(&mut row);
    Section {
        title: "Times of a call, µs".into(),
        note: "Nearest-rank percentiles of a launch, averaged over launches. Spread is the standard deviation over the median."
            .into(),
        charts: Vec::new(),
        table: Some(table),
    }
}

fn distribution(run: &Path, names: &[String]) -> Result<Section, LabError> {
    let mut values = vec![Vec::new(); names.len()];
    run::operations(run, |record| {
        let at = names.iter().position(|name| *name == record.arm);
        let counted = matches!(record.status, Status::Ok | Status::Refused);
        if let (true, Some(of)) = (counted, at.and_then(|at| values.get_mut(at))) {
            of.push(record.latency_ms * 1_000.0);
        }
    })?;
    let series = names.iter().cloned().zip(0..).zip(values);
    Ok(Section {
        title: "How the calls spread".into(),
        note: "The share of all counted calls that took at most so long; the slowest and the fastest thousandth are left out."
            .into(),
        charts: vec![Chart::Ecdf(Ecdf {
            title: "cumulative distribution of call times".into(),
            series: series.map(|((n, c), v)| (n, c, Sorted::new(v))).collect(),
        })],
        table: None,
    })
}

fn launches(analysis: &Analysis) -> Section {
    let line = |(at, arm): (usize, &ArmFigures)| Line {
        name: arm.arm.name.clone(),
        series: at,
        points: (1..)
            .zip(&arm.per_launch)
            .filter_map(|(number, launch)| Some((f64::from(number), launch.p50_us?)))
            .collect(),
    };
    Section {
        title: "Launch by launch".into(),
        note: "The median call of every fresh start. Lines that move together show the machine, a line that moves alone shows its variant."
            .into(),
        charts: vec![Chart::Lines(Lines {
            title: "median call of each launch".into(),
            x_name: "launch".into(),
            y_name: "p50, µs".into(),
            counts: true,
            lines: analysis.arms.iter().enumerate().map(line).collect(),
        })],
        table: None,
    }
}

/// Where the time goes, for variants that keep a journal.
fn stages(analysis: &Analysis) -> Option<Section> {
    let known: Vec<_> = analysis
        .arms
        .iter()
        .filter_map(|arm| Some((arm.arm.name.clone(), arm.stages.as_ref()?)))
        .collect();
    let (_, first) = known.first()?;
    let mut head = vec!["variant".to_owned(), "outside".to_owned()];
    head.extend(first.stages.iter().map(|stage| plain(&stage.name)));
    head.push("unexplained".into());
    let rows = known.iter().map(|(name, figures)| {
        let mut row = vec![name.clone(), whole(&figures.outside_us)];
        row.extend(figures.stages.iter().map(|stage| short(stage.us.point)));
        row.push(whole(&figures.unexplained_us));
        row
    });
    let bars = known.iter().map(|(name, figures)| {
        let mut pieces: Vec<(String, f64)> = figures
            .stages
            .iter()
            .map(|stage| (plain(&stage.name), stage.us.point))
            .collect();
        pieces.push(("unexplained".into(), figures.unexplained_us.point));
        Bar {
            name: name.clone(),
            pieces,
        }
    });
    Some(Section {
        title: "Where the time goes".into(),
        note: "Means over counted calls, µs: the watch outside = the stages of the variant's own journal + unexplained. \
Upstream holds the server itself; unexplained holds the client's two pipes and all that the arm does not know of itself."
            .into(),
        charts: vec![Chart::Stack(Stack {
            title: "mean call by stage".into(),
            bars: bars.collect(),
        })],
        table: Some(Table {
            rows: rows.collect(),
            head,
        }),
    })
}

fn plain(stage: &str) -> String {
    stage.trim_end_matches("_us").to_owned()
}

fn cold(analysis: &Analysis) -> Section {
    let mut table = Table::new(&[
        "variant",
        "spawn to handshake",
        "first call",
        "both",
        "added",
    ]);
    let milliseconds = |interval: &crate::stats::Interval| whole(&interval.scaled(1e-3));
    table.rows = analysis
        .arms
        .iter()
        .map(|arm| {
            let added = analysis.comparisons.iter().find(|c| c.arm == arm.arm.name);
            vec![
                arm.arm.name.clone(),
                milliseconds(&arm.start_us),
                milliseconds(&arm.first_us),
                milliseconds(&arm.cold_us),
                added.map_or_else(|| "-".into(), |c| milliseconds(&c.added_cold_us)),
            ]
        })
        .collect();
    Section {
        title: "Cold start, ms".into(),
        note: "One value per launch: from the spawn to the answer to the handshake, then the first call.".into(),
        charts: Vec::new(),
        table: Some(table),
    }
}

fn processes(analysis: &Analysis) -> Section {
    let mut table = Table::new(&[
        "process",
        "variant",
        "CPU µs/call",
        "switches/call",
        "RSS MiB",
        "high water",
        "fds",
        "threads",
    ]);
    for arm in &analysis.arms {
        for process in &arm.processes {
            table.rows.push(vec![
                process.command.clone(),
                arm.arm.name.clone(),
                short(process.cpu_us_per_call),
                short(process.switches_per_call),
                short(process.resident_kib as f64 / 1_024.0),
                short(process.high_water_kib as f64 / 1_024.0),
                process.descriptors.to_string(),
                process.threads.to_string(),
            ]);
        }
    }
    Section {
        title: "Processes".into(),
        note: "Processor time and switches are means of launches; memory, descriptors and threads are the largest of all launches."
            .into(),
        charts: Vec::new(),
        table: Some(table),
    }
}

fn facts(analysis: &Analysis) -> Vec<(String, String)> {
    let pinned = analysis.pinned_core.map_or_else(
        || "nothing".to_owned(),
        |core| format!("client, variants and servers on core {core}"),
    );
    let mut facts = vec![
        ("design", analysis.design.clone()),
        (
            "calls",
            format!(
                "{} per variant and launch after {} to warm up, turns of {}, {} µs apart",
                analysis.runs, analysis.warmup, analysis.turn, analysis.delay_us
            ),
        ),
        ("pinned", pinned),
        ("seed", analysis.seed.to_string()),
        ("machine", analysis.host.describe()),
        ("load average", loads(analysis)),
        (
            "lab",
            format!("{}, {} build", analysis.version, analysis.build),
        ),
    ];
    let commands: Vec<(String, String)> = analysis
        .arms
        .iter()
        .map(|arm| {
            let words: Vec<_> = arm
                .arm
                .command()
                .iter()
                .map(|w| w.to_string_lossy())
                .collect();
            (arm.arm.name.clone(), words.join(" "))
        })
        .collect();
    facts.extend(
        commands
            .iter()
            .map(|(name, line)| (name.as_str(), line.clone())),
    );
    facts.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()
}

fn cases(analysis: &Analysis) -> Vec<Case> {
    let case = |arm: &ArmFigures| Case {
        name: arm.arm.name.clone(),
        seconds: arm.p50_us.point / 1e6,
        said: format!("p50 {} us of {} calls", whole(&arm.p50_us), arm.calls),
    };
    analysis.arms.iter().map(case).collect()
}
