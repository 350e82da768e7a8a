//! How a rate grows with workers: a scaling law over stored load runs, with its intervals.

mod fit;

use std::io::Write;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use crate::error::LabError;
use crate::run::{parsed, summary_file};
use fit::{CONFIDENCE, Point, fit};

/// Fit a scaling law to stored load runs with several numbers of workers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  durward-lab load ssh connection_rate
  durward-lab scale loadtest_results/loadtest_20261122_101500 --at 16,32

The law is X(n) = lambda n / (1 + sigma (n-1) + kappa n (n-1)): lambda is the rate of one worker, sigma the share that
is done one after the other, kappa the cost of agreeing. A rate at more workers than were measured is a guess; the
table says which are. Intervals need runs at one more number of workers than the law has parameters.

Exit codes: 0 fitted; 1 the runs cannot be read, or no law fits them; 2 wrong usage.")]
pub struct ScaleArgs {
    /// Runs of `lab load` or `lab load ssh`, or their summary.json
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Numbers of workers to estimate the rate for
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    at: Vec<u32>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parts of a run's document that are read, of either kind.
#[derive(Debug, Deserialize)]
struct RunDocument {
    phases: Vec<RunPhase>,
}

#[derive(Debug, Deserialize)]
struct RunPhase {
    /// `asked` in runs of `lab load ssh`.
    #[serde(alias = "asked")]
    workers: u32,
    rps: f64,
    /// In runs of `lab load` at a rate, which say nothing about scaling.
    rate: Option<f64>,
}

/// Runs `lab scale`.
pub(crate) fn run(args: &ScaleArgs, out: &mut dyn Write) -> Result<u8, LabError> {
    let points = points(&args.runs)?;
    let mut numbers: Vec<u32> = points.iter().map(|(n, _)| *n as u32).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() < 3 {
        let wrong = format!(
            "the runs have {} numbers of workers, and a law wants three or more",
            numbers.len()
        );
        return Err(LabError::Incomparable(wrong));
    }
    let Some(law) = fit(&points) else {
        let wrong = "no law fits these rates: they do not grow with workers in any way";
        return Err(LabError::Incomparable(wrong.into()));
    };
    let most = numbers.last().copied().unwrap_or(1);
    let wanted = numbers.iter().chain(&args.at);
    let rates: Vec<(u32, Option<f64>, f64)> = wanted
        .map(|n| {
            let of_n: Vec<f64> = points
                .iter()
                .filter(|(of, _)| *of as u32 == *n)
                .map(|(_, rate)| *rate)
                .collect();
            let measured = (!of_n.is_empty()).then(|| crate::stats::mean(&of_n));
            (*n, measured, law.rate(f64::from(*n)))
        })
        .collect();
    let named = ["lambda", "sigma", "kappa"]
        .into_iter()
        .zip(law.values)
        .zip(law.intervals);
    let written = if args.json {
        let told: Vec<_> = named
            .map(|((name, value), interval)| json!({"parameter": name, "value": value, "interval": interval}))
            .collect();
        let rates: Vec<_> = rates
            .iter()
            .map(|(n, measured, fitted)| json!({"workers": n, "measured_rps": measured, "fitted_rps": fitted, "is_beyond": *n > most}))
            .collect();
        let document = json!({
            "format": "durward-lab-scale/1", "confidence": CONFIDENCE, "points": points.len(),
            "parameters": told, "peak_workers": law.peak(), "rates": rates,
        });
        writeln!(out, "{document:#}")
    } else {
        text(named, law.peak(), &rates, most, out)
    };
    written.map(|()| 0).map_err(|source| LabError::System {
        what: "write the result",
        source,
    })
}

fn points(runs: &[PathBuf]) -> Result<Vec<Point>, LabError> {
    let mut points = Vec::new();
    for path in runs {
        let file = summary_file(path)?;
        let document: RunDocument = parsed(&file)?;
        let closed = document.phases.iter().filter(|phase| phase.rate.is_none());
        let good = closed.filter(|phase| phase.rps > 0.0 && phase.workers > 0);
        points.extend(good.map(|phase| (f64::from(phase.workers), phase.rps)));
    }
    Ok(points)
}

fn text(
    named: impl Iterator<Item = ((&'static str, f64), Option<[f64; 2]>)>,
    peak: Option<f64>,
    rates: &[(u32, Option<f64>, f64)],
    most: u32,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    for ((name, value), interval) in named {
        let interval = interval.map_or(
            "no interval: too few numbers of workers, or left out as it would be negative".into(),
            |[low, high]| format!("[{low:.5}, {high:.5}] at {:.0} %", CONFIDENCE * 100.0),
        );
        writeln!(out, "{name:<7} {value:>12.5}  {interval}")?;
    }
    match peak {
        Some(peak) => writeln!(out, "the rate is highest with {peak:.1} workers")?,
        None => writeln!(out, "the rate grows with every worker")?,
    }
    writeln!(
        out,
        "{:>8} {:>12} {:>12}",
        "workers", "measured/s", "fitted/s"
    )?;
    for (n, measured, fitted) in rates {
        let measured = measured.map_or("-".into(), |rate| format!("{rate:.1}"));
        let beyond = if *n > most {
            "  beyond what was measured"
        } else {
            ""
        };
        writeln!(out, "{n:>8} {measured:>12} {fitted:>12.1}{beyond}")?;
    }
    Ok(())
}
