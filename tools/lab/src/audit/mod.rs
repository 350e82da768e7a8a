//! Latencies as a log has them: the journal of `durward`, or the two audit files of the access proxy.
//!
//! A log has the view of its writer: the transport and the wake-ups on the way are not in it. `lab overhead` measures
//! the wait of a client; the difference between the two is its *unexplained*.

mod args;
mod jobs;
mod record;
mod report;
mod source;

pub use args::AuditArgs;

use crate::error::LabError;
use crate::judge::{ArmQuantities, MeasuredQuantities, NamedQuantity, Quantity, RuleMetric};
use crate::stats::{Interval, SortedSamples, mean, percentile::samples_min};
use crate::summary::{MeasurementSummary, SummaryDocument, SummarySource};
use record::AuditedCall;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The name and version of the document.
const FORMAT: &str = "durward-lab-audit-latency/1";

/// The whole report.
#[derive(Debug, Serialize)]
struct LatencyReport {
    format: &'static str,
    /// Sources of the records.
    sources: Vec<String>,
    /// Decisions that were read.
    decisions: usize,
    /// Decisions with an operation.
    joined: usize,
    /// Decisions that were left out by `--exclude` or `--date`.
    excluded: usize,
    groups: Vec<DecisionGroup>,
    /// Wait and run times of jobs, if they were requested.
    jobs: Option<DecisionGroup>,
    notes: Vec<String>,
}

/// The calls of one decision, or all of them.
#[derive(Debug, Serialize)]
struct DecisionGroup {
    name: String,
    n: usize,
    rows: Vec<LatencyRow>,
}

/// One quantity.
#[derive(Debug, Serialize)]
struct LatencyRow {
    metric: &'static str,
    n: usize,
    median_ms: Option<f64>,
    mean_ms: Option<f64>,
    /// Nearest rank: a value that was measured, never above the largest.
    p95_ms: Option<f64>,
    min_ms: Option<f64>,
    max_ms: Option<f64>,
    /// Why median or p95 are missing, by name.
    missing: BTreeMap<&'static str, String>,
    /// The same for rules, in microseconds.
    #[serde(skip)]
    quantities: Vec<NamedQuantity>,
}

/// Confidence of the intervals that rules are compared with.
const CONFIDENCE: f64 = 0.95;

/// Percentiles with their intervals, in microseconds.
fn quantities(sorted: &SortedSamples) -> Vec<NamedQuantity> {
    let us = |ms: Interval| Interval {
        point: ms.point * 1e3,
        ci_low: ms.ci_low.map(|low| low * 1e3),
        ci_high: ms.ci_high.map(|high| high * 1e3),
        n: ms.n,
    };
    [
        (RuleMetric::P50, 0.5),
        (RuleMetric::P95, 0.95),
        (RuleMetric::P99, 0.99),
    ]
    .map(|(metric, q)| NamedQuantity {
        metric,
        quantity: match sorted.interval(q, CONFIDENCE) {
            Ok(interval) => Quantity::Run(us(interval)),
            Err(why) => Quantity::Missing(why),
        },
    })
    .into()
}

impl SummarySource for LatencyReport {
    fn summary(&self) -> MeasurementSummary {
        let groups = self.groups.iter().chain(&self.jobs);
        let arms = groups.flat_map(|group| {
            group.rows.iter().map(|row| ArmQuantities {
                name: format!("{}: {}", group.name, row.metric),
                quantities: row.quantities.clone(),
            })
        });
        let measurement = MeasuredQuantities {
            confidence: CONFIDENCE,
            arms: arms.collect(),
        };
        MeasurementSummary::of("audit-latency", [], measurement)
    }
}

impl LatencyRow {
    fn of(metric: &'static str, values: Vec<f64>) -> Self {
        let average = mean(&values);
        let sorted = SortedSamples::new(values);
        let ends = sorted.ends();
        let n = sorted.len();
        let mut missing = BTreeMap::new();
        let mut told = |name: &'static str, q| {
            let found = sorted.at_supported(q);
            if found.is_none() && n > 0 {
                missing.insert(
                    name,
                    format!("{n} of the {} values it needs", samples_min(q)),
                );
            }
            found
        };
        Self {
            metric,
            n,
            median_ms: told("median", 0.5),
            p95_ms: told("p95", 0.95),
            mean_ms: ends.map(|_| average),
            min_ms: ends.map(|(min, _)| min),
            max_ms: ends.map(|(_, max)| max),
            quantities: quantities(&sorted),
            missing,
        }
    }
}

/// Runs `lab audit-latency`.
pub(crate) fn run(args: &AuditArgs, out: &mut dyn Write) -> Result<u8, LabError> {
    let read = source::read(args)?;
    let (kept, excluded) = select(read.calls, args);
    let mut groups = Vec::new();
    if args.by_decision {
        let mut parts: BTreeMap<&str, Vec<&AuditedCall>> = BTreeMap::new();
        for call in &kept {
            parts.entry(&call.decision).or_default().push(call);
        }
        groups.extend(parts.into_iter().map(|(name, calls)| group(name, &calls)));
    } else {
        groups.push(group("all", &kept.iter().collect::<Vec<_>>()));
    }
    let latencies = LatencyReport {
        format: FORMAT,
        sources: read.sources,
        decisions: kept.len(),
        joined: kept
            .iter()
            .filter(|call| call.duration_ms.is_some())
            .count(),
        excluded,
        groups,
        jobs: args.jobs.as_deref().map(jobs::read).transpose()?,
        notes: read.notes,
    };
    if latencies.decisions == 0 && latencies.jobs.is_none() {
        return Err(LabError::path(&args.file, nothing(excluded)));
    }
    if let Some(file) = &args.output {
        crate::run::write_document(file, &SummaryDocument::of(&latencies))?;
    }
    let written = if args.json {
        report::json(&latencies, out)
    } else {
        report::text(&latencies, out)
    };
    written.map_err(|source| LabError::System {
        what: "write the result",
        source,
    })?;
    Ok(0)
}

/// Returns the error of an empty result.
fn nothing(excluded: usize) -> io::Error {
    io::Error::other(match excluded {
        0 => {
            "it holds no decision; name a journal, or the access proxy's decisions.jsonl".to_owned()
        }
        all => format!("all {all} decisions in it were left out by --date or --exclude"),
    })
}

fn select(calls: Vec<AuditedCall>, args: &AuditArgs) -> (Vec<AuditedCall>, usize) {
    let all = calls.len();
    let kept: Vec<AuditedCall> = calls
        .into_iter()
        .filter(|call| !(args.excludes_approval() && call.is_approval()))
        .filter(|call| {
            args.date
                .as_ref()
                .is_none_or(|date| call.time.starts_with(date))
        })
        .collect();
    let excluded = all - kept.len();
    (kept, excluded)
}

fn group(name: &str, calls: &[&AuditedCall]) -> DecisionGroup {
    let column =
        |of: fn(&AuditedCall) -> Option<f64>| calls.iter().filter_map(|call| of(call)).collect();
    DecisionGroup {
        name: name.to_owned(),
        n: calls.len(),
        rows: vec![
            LatencyRow::of("policy eval", column(|call| call.eval_ms)),
            LatencyRow::of("approval wait", column(|call| call.approval_ms)),
            LatencyRow::of("policy total", column(|call| call.policy_ms)),
            LatencyRow::of("end to end", column(|call| call.duration_ms)),
            LatencyRow::of("upstream", column(AuditedCall::upstream_ms)),
        ],
    }
}
