//! Two stored measurements: side by side, and compared with rules.

use crate::LabContext;
use crate::error::LabError;
use crate::judge::{
    self, EXIT_REGRESSED, GateRule, Judgement, Quantity, RuleMetric, judge, parse, percent,
};
use crate::output::plain;
use crate::stats::Interval;
use crate::stats::gate::ChangeVerdict;
use crate::summary::MeasurementSummary;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// Exit code for no verdict, if that is to fail.
const EXIT_INCONCLUSIVE: u8 = 98;

/// Put two stored measurements side by side.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The earlier measurement: a run directory, or what a command of the lab printed with --json [default:
    /// $MCP_BENCHMARK_BASELINE]
    base: Option<PathBuf>,
    /// The later one [default: $MCP_BENCHMARK_RESULT]
    new: Option<PathBuf>,
    /// Compare although machine or plan differ
    #[arg(long)]
    force: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Hold a measurement against a baseline.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rules: METRIC <= LIMIT, LIMIT relative (+10%) or absolute (150us, 2ms; 1% for error_rate); `warn` behind it makes
breaking it a warning. METRIC: p50 p90 p95 p99 mean overhead unexplained.p50 unexplained.p95 response.p50
response.p95 response.p99 ttft.p50 ttft.p95 error_rate.
A relative rule is broken where the estimate is beyond it and the interval excludes no change; an absolute one
where the whole interval is beyond it. A rule is kept where the whole interval is within the limit. The verdicts are kept in
the judged run directory as verdict.json, where `lab report` finds them.

Exit codes: 0 kept; 99 broken; 98 no verdict, with --on-inconclusive fail; 1 cannot be compared; 2 wrong usage.")]
pub struct GateArgs {
    /// The measurement to compare with; only relative rules need one [default: $MCP_BENCHMARK_BASELINE]
    #[arg(long, value_name = "BASE")]
    baseline: Option<PathBuf>,
    /// The measurement that is judged [default: $MCP_BENCHMARK_RESULT]
    new: Option<PathBuf>,
    /// A rule; repeatable
    #[arg(long, value_name = "RULE", required = true, value_parser = parse)]
    rule: Vec<GateRule>,
    /// Judge only this variant; repeatable [default: all but the first]
    #[arg(long = "variant", alias = "arm", value_name = "NAME")]
    arm: Vec<String>,
    /// What no verdict means
    #[arg(long, value_enum, default_value_t = UncertainExit::Warn)]
    on_inconclusive: UncertainExit,
    /// Judge although machine or plan differ
    #[arg(long)]
    force: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UncertainExit {
    Warn,
    Fail,
}

/// The document of a comparison.
#[derive(Debug, Serialize)]
struct ComparisonDocument {
    format: &'static str,
    rows: Vec<ComparedQuantity>,
}

/// One quantity of one variant in both measurements: times in microseconds, rates as shares.
#[derive(Debug, Serialize)]
struct ComparedQuantity {
    arm: String,
    metric: &'static str,
    #[serde(flatten)]
    both: Option<ComparedIntervals>,
    /// Why a side has no such figure.
    missing: Option<String>,
    /// Relative; nothing below two launches a side.
    change: Option<Interval>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
enum ComparedIntervals {
    Times {
        base_us: Interval,
        new_us: Interval,
    },
    Shares {
        base_share: Interval,
        new_share: Interval,
    },
}

impl ComparedQuantity {
    fn of(arm: &str, metric: RuleMetric, sides: [&Quantity; 2], confidence: f64) -> Self {
        let [base, new] = sides;
        let (both, missing) = match (base.interval(confidence), new.interval(confidence)) {
            (Ok(base_share), Ok(new_share)) if metric.is_rate() => {
                let both = ComparedIntervals::Shares {
                    base_share,
                    new_share,
                };
                (Some(both), None)
            }
            (Ok(base_us), Ok(new_us)) => (Some(ComparedIntervals::Times { base_us, new_us }), None),
            (Err(why), _) => (None, Some(format!("base: {why}"))),
            (_, Err(why)) => (None, Some(format!("new: {why}"))),
        };
        let change = base.change(new, confidence).ok();
        Self {
            arm: arm.to_owned(),
            metric: metric.name(),
            both,
            missing,
            change: change.map(|change| change.interval()),
        }
    }
}

/// Runs `lab compare`.
pub(crate) fn run(
    args: &CompareArgs,
    context: &LabContext,
    out: &mut dyn Write,
) -> Result<u8, LabError> {
    let base = load_measurement(
        args.base.as_ref(),
        context.benchmark_baseline.as_ref(),
        "BASE",
    )?;
    let new = load_measurement(args.new.as_ref(), context.benchmark_result.as_ref(), "NEW")?;
    let (base, new) = (
        MeasurementSummary::read(&base)?,
        MeasurementSummary::read(&new)?,
    );
    base.must_match(&new, args.force)?;
    let mut rows = Vec::new();
    for arm in base.measurement.arms() {
        for metric in RuleMetric::ALL {
            let (Some(before), Some(after)) = (
                base.measurement.quantity(arm, metric),
                new.measurement.quantity(arm, metric),
            ) else {
                continue;
            };
            rows.push(ComparedQuantity::of(
                arm,
                metric,
                [before, after],
                base.measurement.confidence,
            ));
        }
    }
    if rows.is_empty() {
        return Err(LabError::Incomparable(
            "the measurements have no variant in common: name them alike".into(),
        ));
    }
    let written = if args.json {
        let format = "durward-lab-compare/1";
        json(&ComparisonDocument { format, rows }, out)
    } else {
        table(&rows, out)
    };
    done(written)
}

/// Returns the measurement that was named, here or in the environment.
fn load_measurement(
    given: Option<&PathBuf>,
    fallback: Option<&PathBuf>,
    name: &str,
) -> Result<PathBuf, LabError> {
    given.or(fallback).cloned().ok_or_else(|| {
        LabError::Usage(format!(
            "{name} is missing: name a run directory or a document, or set MCP_BENCHMARK_RESULT and MCP_BENCHMARK_BASELINE"
        ))
    })
}

/// Runs `lab gate`.
pub(crate) fn gate(
    args: &GateArgs,
    context: &LabContext,
    out: &mut dyn Write,
) -> Result<u8, LabError> {
    let place = load_measurement(args.new.as_ref(), context.benchmark_result.as_ref(), "NEW")?;
    let new = MeasurementSummary::read(&place)?;
    let baseline = args
        .baseline
        .as_ref()
        .or(context.benchmark_baseline.as_ref());
    let base = baseline
        .map(|path| MeasurementSummary::read(path))
        .transpose()?;
    new.must_not_be_limited(args.force)?;
    new.must_be_whole(args.force)?;
    if let Some(base) = &base {
        base.must_be_whole(args.force)?;
        base.must_match(&new, args.force)?;
    } else if let Some(rule) = args.rule.iter().find(|rule| rule.is_relative()) {
        return Err(LabError::Usage(format!(
            "the rule {} needs --baseline",
            rule.text
        )));
    }
    let arms = arms_to_judge(&args.arm, &new)?;
    let mut judged = Vec::new();
    for rule in &args.rule {
        for arm in &arms {
            judged.push(judge(
                rule,
                arm,
                base.as_ref().map(|base| &base.measurement),
                &new.measurement,
            )?);
        }
    }
    let judged = Judgement::of(baseline.map(|path| path.display().to_string()), judged);
    judged.keep(&place)?;
    done(if args.json {
        json(&judged, out)
    } else {
        judge::lines(&judged, out)
    })?;
    Ok(match judged.verdict {
        ChangeVerdict::Regressed => EXIT_REGRESSED,
        ChangeVerdict::Inconclusive if args.on_inconclusive == UncertainExit::Fail => {
            EXIT_INCONCLUSIVE
        }
        ChangeVerdict::Inconclusive | ChangeVerdict::Ok => 0,
    })
}

/// Returns the variants that were named, or all but the first; never none, for then nothing would be judged.
fn arms_to_judge(named: &[String], new: &MeasurementSummary) -> Result<Vec<String>, LabError> {
    let known: Vec<&str> = new.measurement.arms().collect();
    if let Some(stranger) = named.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(LabError::Usage(format!(
            "the judged measurement has no variant {stranger}; it has {}",
            known.join(", ")
        )));
    }
    let skipped = usize::from(known.len() > 1);
    let arms: Vec<String> = match named {
        [] => known
            .iter()
            .skip(skipped)
            .map(|arm| (*arm).into())
            .collect(),
        named => named.to_vec(),
    };
    match arms.is_empty() {
        true => Err(LabError::Incomparable(
            "the judged measurement has no variant: nothing was measured".into(),
        )),
        false => Ok(arms),
    }
}

fn table(rows: &[ComparedQuantity], out: &mut dyn Write) -> io::Result<()> {
    let wide = rows.iter().map(|row| row.arm.chars().count()).max();
    let wide = wide.unwrap_or(0).max(3);
    writeln!(
        out,
        "{:wide$}  {:15} {:>10} {:>10}  change",
        "variant", "", "base us", "new us"
    )?;
    for row in rows {
        let change = match (&row.change, &row.missing) {
            (Some(change), _) => percent(change),
            (None, Some(why)) => format!("-, {why}"),
            (None, None) => "-, too few launches".into(),
        };
        let [base, new] = match row.both {
            Some(ComparedIntervals::Times { base_us, new_us }) => {
                [base_us, new_us].map(|side| format!("{:.1}", side.point))
            }
            Some(ComparedIntervals::Shares {
                base_share,
                new_share,
            }) => [base_share, new_share].map(|side| format!("{:.2} %", side.point * 100.0)),
            None => ["-", "-"].map(str::to_owned),
        };
        writeln!(
            out,
            "{:wide$}  {:15} {base:>10} {new:>10}  {change}",
            plain(&row.arm.replace('\n', " ")),
            row.metric,
        )?;
    }
    Ok(())
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
