//! Two stored measurements: side by side, and held against rules.

mod rule;
mod stored;

use crate::error::LabError;
use crate::stats::gate::{Change, Verdict};
use rule::{Limit, Metric, Rule};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use stored::Stored;

/// Exit code for a regression.
const EXIT_REGRESSED: u8 = 99;
/// Exit code for no verdict, where that is to fail.
const EXIT_INCONCLUSIVE: u8 = 98;

/// Put two stored measurements side by side.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The earlier measurement: a run directory, or what `overhead --json` printed
    base: PathBuf,
    /// The later one
    new: PathBuf,
    /// Compare although machine or plan differ
    #[arg(long)]
    force: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Hold a measurement against a baseline.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rules: METRIC <= LIMIT, METRIC one of p50 p95 p99 mean overhead, LIMIT relative (+10%) or absolute (150us, 2ms).
A relative rule is broken where the estimate is beyond it and the interval excludes no change; an absolute one
where the whole interval is beyond it. Either is kept where the whole interval is within.

Exit codes: 0 kept; 99 broken; 98 no verdict, with --on-inconclusive fail; 1 cannot be compared; 2 wrong usage.")]
pub struct GateArgs {
    /// The measurement to hold others against
    #[arg(long, value_name = "BASE")]
    baseline: PathBuf,
    /// The measurement that is judged
    new: PathBuf,
    /// A rule; repeatable
    #[arg(long, value_name = "RULE", required = true, value_parser = rule::parse)]
    rule: Vec<Rule>,
    /// Judge only this arm; repeatable [default: all but the first]
    #[arg(long, value_name = "NAME")]
    arm: Vec<String>,
    /// What no verdict means
    #[arg(long, value_enum, default_value_t = Unsure::Warn)]
    on_inconclusive: Unsure,
    /// Judge although machine or plan differ
    #[arg(long)]
    force: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Unsure {
    Warn,
    Fail,
}

/// One quantity of one arm in both measurements.
#[derive(Debug, Serialize)]
struct Row {
    arm: String,
    metric: &'static str,
    base_us: f64,
    new_us: f64,
    /// Relative; nothing below two launches a side.
    change: Option<Change>,
}

/// One rule held against one arm.
#[derive(Debug, Serialize)]
struct Judged {
    rule: String,
    arm: String,
    verdict: Verdict,
    observed: String,
}

/// Runs `lab compare`.
pub(crate) fn run(args: &CompareArgs, out: &mut dyn Write) -> Result<u8, LabError> {
    let (base, new) = (Stored::read(&args.base)?, Stored::read(&args.new)?);
    base.must_match(&new, args.force)?;
    let mut rows = Vec::new();
    for arm in base.arms() {
        for metric in Metric::ALL {
            let (Some(before), Some(after)) =
                (base.launches(arm, metric), new.launches(arm, metric))
            else {
                continue;
            };
            rows.push(Row {
                arm: arm.to_owned(),
                metric: metric.name(),
                base_us: crate::stats::mean(&before),
                new_us: crate::stats::mean(&after),
                change: Change::between(&before, &after, base.confidence()),
            });
        }
    }
    let written = if args.json {
        json(&rows, out)
    } else {
        table(&rows, out)
    };
    done(written)
}

/// Runs `lab gate`.
pub(crate) fn gate(args: &GateArgs, out: &mut dyn Write) -> Result<u8, LabError> {
    let (base, new) = (Stored::read(&args.baseline)?, Stored::read(&args.new)?);
    base.must_match(&new, args.force)?;
    let arms: Vec<String> = if args.arm.is_empty() {
        new.arms().skip(1).map(str::to_owned).collect()
    } else {
        args.arm.clone()
    };
    let mut judged = Vec::new();
    for rule in &args.rule {
        for arm in &arms {
            judged.push(judge(rule, arm, &base, &new)?);
        }
    }
    let written = if args.json {
        json(&judged, out)
    } else {
        judged.iter().try_for_each(|one| {
            let verdict = format!("{:?}", one.verdict).to_uppercase();
            writeln!(
                out,
                "{verdict:12} {}: {}: {}",
                one.arm, one.rule, one.observed
            )
        })
    };
    done(written)?;
    let any = |verdict| judged.iter().any(|one| one.verdict == verdict);
    Ok(match () {
        () if any(Verdict::Regressed) => EXIT_REGRESSED,
        () if any(Verdict::Inconclusive) && args.on_inconclusive == Unsure::Fail => {
            EXIT_INCONCLUSIVE
        }
        () => 0,
    })
}

fn judge(rule: &Rule, arm: &str, base: &Stored, new: &Stored) -> Result<Judged, LabError> {
    let values = |side: &Stored, which: &str| {
        side.launches(arm, rule.metric)
            .ok_or_else(|| LabError::Invalid {
                arm: arm.to_owned(),
                what: format!(
                    "the {which} has no {} for it in every launch; measure more calls",
                    rule.metric.name()
                ),
            })
    };
    let after = values(new, "judged measurement")?;
    let (verdict, observed) = match rule.limit {
        Limit::Absolute { us } => rule::absolute(&after, us, new.confidence()),
        Limit::Relative { share } => {
            let before = values(base, "baseline")?;
            match Change::between(&before, &after, base.confidence()) {
                Some(change) => (change.verdict(share), percent(&change)),
                None => (
                    Verdict::Inconclusive,
                    "-, too few launches, or values that are not positive".into(),
                ),
            }
        }
    };
    Ok(Judged {
        rule: rule.text.clone(),
        arm: arm.to_owned(),
        verdict,
        observed,
    })
}

fn table(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let wide = rows.iter().map(|row| row.arm.chars().count()).max();
    let wide = wide.unwrap_or(0).max(3);
    writeln!(
        out,
        "{:wide$}  {:8} {:>10} {:>10}  change",
        "arm", "", "base us", "new us"
    )?;
    for row in rows {
        let change = row
            .change
            .as_ref()
            .map_or("-, too few launches".into(), percent);
        writeln!(
            out,
            "{:wide$}  {:8} {:>10.1} {:>10.1}  {change}",
            row.arm, row.metric, row.base_us, row.new_us
        )?;
    }
    Ok(())
}

fn percent(change: &Change) -> String {
    let hundred = |share: f64| share * 100.0;
    format!(
        "{:+.1} % [{:+.1}, {:+.1}]",
        hundred(change.point),
        hundred(change.ci_low),
        hundred(change.ci_high)
    )
}

fn json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

fn done(written: io::Result<()>) -> Result<u8, LabError> {
    written.map(|()| 0).map_err(|source| LabError::System {
        what: "write the result",
        source,
    })
}
