//! The page of an overhead measurement.

use super::numbers::{ends, group_thousands, maybe, short, whole};
use super::page::{FigureTile, MeasuredCase, NumberTable, PageSection, ReportPage};
use super::resources;
use super::svg::{
    Chart, ChartLine, EcdfChart, ForestChart, ForestRow, LineChart, StackBar, StackChart,
};
use crate::error::LabError;
use crate::judge::Judgement;
use crate::overhead::{ArmFigures, FORMAT, OverheadAnalysis, VariantComparison, loads};
use crate::run::{self, CallStatus};
use crate::stats::SortedSamples;
use std::path::Path;

/// Reads a run directory or a document.
pub(super) fn read(path: &Path) -> Result<ReportPage, LabError> {
    let analysis: OverheadAnalysis = run::document_of(&run::summary_file(path)?, FORMAT)?;
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
    Ok(ReportPage {
        title: format!("Overhead of {}", analysis.operation),
        lead: format!(
            "{} launches × {} calls per variant, {} at a time; path {}, MCP {}.",
            analysis.launches,
            group_thousands(f64::from(analysis.runs)),
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

/// Returns the number of a variant's colour.
fn series(analysis: &OverheadAnalysis, name: &str) -> usize {
    let mut names = analysis.arms.iter().map(|arm| arm.arm.name.as_str());
    names.position(|arm| arm == name).unwrap_or_default()
}

fn tiles(analysis: &OverheadAnalysis) -> Vec<FigureTile> {
    let tile = |found: &VariantComparison| FigureTile {
        name: found.arm.clone(),
        value: format!("{:+.1} µs", found.overhead_us.point),
        note: format!("{} over {}", ends(&found.overhead_us), found.baseline),
        series: series(analysis, &found.arm),
    };
    analysis.comparisons.iter().map(tile).collect()
}

/// Returns the name of a variant, with the baseline if there are several.
fn comparison_name(analysis: &OverheadAnalysis, found: &VariantComparison) -> String {
    let mut baselines = analysis.comparisons.iter().map(|c| &c.baseline);
    match baselines.all(|baseline| *baseline == found.baseline) {
        true => found.arm.clone(),
        false => format!("{} over {}", found.arm, found.baseline),
    }
}

fn added(analysis: &OverheadAnalysis) -> PageSection {
    let rows = analysis.comparisons.iter().map(|found| ForestRow {
        name: comparison_name(analysis, found),
        series: series(analysis, &found.arm),
        interval: found.overhead_us,
        launches: found.per_launch_overhead_us.clone(),
    });
    let mut table = NumberTable::new(&[
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
                comparison_name(analysis, found),
                whole(&found.overhead_us),
                short(found.hodges_lehmann_us),
                whole(&found.added_p50_us),
                maybe(found.added_p95_us.as_ref()),
                maybe(found.added_p99_us.as_ref()),
            ]
        })
        .collect();
    PageSection {
        title: "What each variant adds".into(),
        note: format!(
            "Faint dots are launches (the median of paired differences with the baseline), the bar is the {:.0} % interval \
of their mean. A dash stands where a launch has too few calls for that percentile.",
            analysis.confidence * 100.0
        ),
        charts: vec![Chart::Forest(ForestChart {
            title: "added time per call of each variant, with intervals".into(),
            rows: rows.collect(),
        })],
        table: Some(table),
    }
}

fn percentiles(analysis: &OverheadAnalysis) -> PageSection {
    let mut table = NumberTable::new(&[
        "variant", "calls", "p50", "p90", "p95", "p99", "min", "max", "spread",
    ]);
    let mut row = |arm: &ArmFigures| {
        table.rows.push(vec![
            arm.arm.name.clone(),
            group_thousands(arm.calls as f64),
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
    PageSection {
        title: "Times of a call, µs".into(),
        note: "Nearest-rank percentiles of a launch, averaged over launches. Spread is the standard deviation over the median."
            .into(),
        charts: Vec::new(),
        table: Some(table),
    }
}

fn distribution(run: &Path, names: &[String]) -> Result<PageSection, LabError> {
    let mut values = vec![Vec::new(); names.len()];
    run::operations(run, |record| {
        let at = names.iter().position(|name| *name == record.arm);
        let counted = matches!(record.status, CallStatus::Ok | CallStatus::Refused);
        if let (true, Some(of)) = (counted, at.and_then(|at| values.get_mut(at))) {
            of.push(record.latency_ms * 1_000.0);
        }
    })?;
    let series = names.iter().cloned().zip(0..).zip(values);
    Ok(PageSection {
        title: "How the calls spread".into(),
        note: "The share of all counted calls that took at most so long; the slowest and the fastest thousandth are left out."
            .into(),
        charts: vec![Chart::Ecdf(EcdfChart {
            title: "cumulative distribution of call times".into(),
            series: series.map(|((n, c), v)| (n, c, SortedSamples::new(v))).collect(),
        })],
        table: None,
    })
}

fn launches(analysis: &OverheadAnalysis) -> PageSection {
    let line = |(at, arm): (usize, &ArmFigures)| ChartLine {
        name: arm.arm.name.clone(),
        series: at,
        points: (1..)
            .zip(&arm.per_launch)
            .filter_map(|(number, launch)| Some((f64::from(number), launch.p50_us?)))
            .collect(),
    };
    PageSection {
        title: "Launch by launch".into(),
        note: "The median call of every fresh start. Lines that move together show the machine, a line that moves alone shows its variant."
            .into(),
        charts: vec![Chart::Lines(LineChart {
            title: "median call of each launch".into(),
            x_name: "launch".into(),
            y_name: "p50, µs".into(),
            counts: true,
            lines: analysis.arms.iter().enumerate().map(line).collect(),
        })],
        table: None,
    }
}

/// Returns the section of stages, for variants with a journal.
fn stages(analysis: &OverheadAnalysis) -> Option<PageSection> {
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
        StackBar {
            name: name.clone(),
            pieces,
        }
    });
    Some(PageSection {
        title: "Where the time goes".into(),
        note: "Means over counted calls, µs: the watch outside = the stages of the variant's own journal + unexplained. \
Upstream holds the server itself; unexplained holds the client's two pipes and all that the arm does not know of itself."
            .into(),
        charts: vec![Chart::Stack(StackChart {
            title: "mean call by stage".into(),
            bars: bars.collect(),
        })],
        table: Some(NumberTable {
            rows: rows.collect(),
            head,
        }),
    })
}

fn plain(stage: &str) -> String {
    stage.trim_end_matches("_us").to_owned()
}

fn cold(analysis: &OverheadAnalysis) -> PageSection {
    let mut table = NumberTable::new(&[
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
    PageSection {
        title: "Cold start, ms".into(),
        note: "One value per launch: from the spawn to the answer to the handshake, then the first call.".into(),
        charts: Vec::new(),
        table: Some(table),
    }
}

fn processes(analysis: &OverheadAnalysis) -> PageSection {
    let mut table = NumberTable::new(&[
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
    PageSection {
        title: "Processes".into(),
        note: "Processor time and switches are means of launches; memory, descriptors and threads are the largest of all launches."
            .into(),
        charts: Vec::new(),
        table: Some(table),
    }
}

fn facts(analysis: &OverheadAnalysis) -> Vec<(String, String)> {
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

fn cases(analysis: &OverheadAnalysis) -> Vec<MeasuredCase> {
    let case = |arm: &ArmFigures| MeasuredCase {
        name: arm.arm.name.clone(),
        seconds: arm.p50_us.point / 1e6,
        said: format!("p50 {} us of {} calls", whole(&arm.p50_us), arm.calls),
    };
    analysis.arms.iter().map(case).collect()
}
