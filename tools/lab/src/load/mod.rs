//! Load on one target: what it does at a given rate, or with a given number of clients.
//!
//! Two models. *Closed*: each worker calls again when its answer came; a stall hides the calls that would have come
//! meanwhile. *Open*: calls are due at computed instants, independent of earlier answers; a call that could not leave
//! in time waits, and its response time counts from the instant at which it was due (not from a late waking, which
//! would hide the wait again). Service time is from the write to the read.
//!
//! Failures are counted by kind and are never times: a refusal, `isError`, another content than the first
//! answer's, 429, no answer in time, a broken connection.

mod args;
mod drive;
mod http;
mod judged;
mod pace;
mod report;
mod store;
mod summary;
mod target;
mod worker;

pub use args::LoadArgs;
use args::LoadPlan;
pub(crate) use args::{LoadCommand, duration};
use drive::DriveResult;
pub(crate) use summary::{FORMAT, LoadSummary, PhaseFigures};

use crate::error::{EXIT_ABORTED, EXIT_FAILED, LabError};
use crate::interrupt::InterruptFlag;
use crate::judge::EXIT_REGRESSED;
use crate::progress::ProgressOutput;
use crate::run::{ResourceSampler, RunDirectory, RunManifest, write_whole};
use crate::stats::gate::ChangeVerdict;
use crate::{LabContext, wall_clock};
use std::io::Write;

/// Runs `lab load`.
pub(crate) fn run(
    args: &LoadArgs,
    context: &LabContext,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, LabError> {
    let (plan, interrupt) = (args.plan()?, InterruptFlag::listen()?);
    let place = args.out.as_deref();
    let run = place
        .map(|place| RunDirectory::create(place, "load"))
        .transpose()?;
    let manifest = RunManifest::of("load", &format!("{plan:?}"), plan.seed, context);
    if let Some(run) = &run {
        // A killed run still has its manifest.
        run.document("manifest.json", &manifest)?;
    }
    let sampler = run.as_ref().map(ResourceSampler::start).transpose()?;
    let started_ms = wall_clock::now_ms();
    let mut progress = ProgressOutput::new(&mut *err, args.progress.kind(context));
    let profiled = args
        .profile
        .zip(run.as_ref().map(|run| run.file("perf.data")));
    let driven = drive::drive(&plan, &interrupt, sampler.as_ref(), &mut progress, profiled)?;
    drop(progress);
    sampler.map(ResourceSampler::finish).transpose()?;
    let mut load = LoadSummary::of(&plan, &driven, &manifest);
    load.thresholds = load.judge(&args.threshold)?;
    let mut lost = false;
    if let Some(run) = &run {
        let kept = keep(run, manifest, &plan, &load, &driven, started_ms);
        lost = kept.is_err();
        // The directory is there even if this line cannot be written, and the figures follow below.
        let _ = match kept {
            Ok(()) => writeln!(err, "stored in {}", run.path().display()),
            Err(error) => writeln!(err, "error: not stored: {error}"),
        };
        if let Some(Err(why)) = &driven.profile {
            // Who does not read it misses a page and nothing else.
            let _ = writeln!(err, "warning: no profile of the target: {why}");
        }
    }
    let written = if args.json {
        report::json(&load, out)
    } else {
        report::text(&load, out)
    };
    written.map_err(|source| LabError::System {
        what: "write the result",
        source,
    })?;
    Ok(if lost { EXIT_FAILED } else { exit_code(&load) })
}

/// Keeps what was measured, the verdicts and the profile.
fn keep(
    run: &RunDirectory,
    manifest: RunManifest,
    plan: &LoadPlan,
    load: &LoadSummary,
    driven: &DriveResult,
    started_ms: u64,
) -> Result<(), LabError> {
    if let Some(Ok(page)) = &driven.profile {
        write_whole(&run.file("profile.txt"), page.as_bytes())?;
    }
    if let Some(judged) = &load.thresholds {
        judged.keep(run.path())?;
    }
    store::write(run, manifest, plan, load, driven, started_ms)
}

fn exit_code(load: &LoadSummary) -> u8 {
    let judged = load.thresholds.as_ref();
    if load.aborted {
        EXIT_ABORTED
    } else if judged.is_some_and(|judged| judged.verdict == ChangeVerdict::Regressed) {
        EXIT_REGRESSED
    } else {
        u8::from(load.phases.iter().all(|phase| phase.ok == 0))
    }
}
