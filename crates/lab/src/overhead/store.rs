//! A measurement kept: plain files in a directory of its own.

use super::Analysis;
use super::measure::{Launch, Plan};
use crate::error::LabError;
use crate::moment;
use serde::Serialize;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What was to be done, before what came of it.
#[derive(Serialize)]
struct Manifest<'a> {
    format: &'static str,
    version: &'a str,
    build: &'a str,
    operation: &'a str,
    arms: Vec<&'a crate::arm::Arm>,
    seed: u64,
    host: &'a crate::host::Host,
    load_average_before: Option<[f64; 3]>,
    warnings: &'a [String],
}

/// One counted call, as a line of `ops/w1.jsonl`.
#[derive(Serialize)]
struct Call<'a> {
    launch: usize,
    pair: usize,
    arm: &'a str,
    latency_us: f64,
}

/// Writes `<place>/<UTC time>-overhead/` with `manifest.json`, `summary.json` and `ops/w1.jsonl`.
pub(super) fn write(
    place: &Path,
    plan: &Plan,
    analysis: &Analysis,
    launches: &[Launch],
) -> Result<PathBuf, LabError> {
    let directory = place.join(format!("{}-overhead", moment::compact()));
    let failed = |source| LabError::Path {
        path: directory.clone(),
        source,
    };
    files(&directory, plan, analysis, launches).map_err(failed)?;
    Ok(directory)
}

fn files(
    directory: &Path,
    plan: &Plan,
    analysis: &Analysis,
    launches: &[Launch],
) -> io::Result<()> {
    fs::create_dir_all(directory.join("ops"))?;
    let manifest = Manifest {
        format: "durward-lab-run/1",
        version: analysis.version,
        build: analysis.build,
        operation: &analysis.operation,
        arms: plan.arms.iter().collect(),
        seed: plan.seed,
        host: &analysis.host,
        load_average_before: analysis.load_average_before,
        warnings: &analysis.warnings,
    };
    document(&directory.join("manifest.json"), &manifest)?;
    document(&directory.join("summary.json"), analysis)?;
    let mut calls = BufWriter::new(fs::File::create_new(directory.join("ops/w1.jsonl"))?);
    for (launch, laps) in (1..).zip(launches) {
        for (arm, lap) in plan.arms.iter().zip(laps) {
            for (pair, latency_us) in (1..).zip(&lap.calls_us) {
                let call = Call {
                    launch,
                    pair,
                    arm: &arm.name,
                    latency_us: *latency_us,
                };
                serde_json::to_writer(&mut calls, &call)?;
                calls.write_all(b"\n")?;
            }
        }
    }
    calls.flush()
}

fn document(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    serde_json::to_writer_pretty(&mut file, value)?;
    file.write_all(b"\n")
}
