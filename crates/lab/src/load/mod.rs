//! Load on one target: what it does at a given rate, or with a given number of clients.
//!
//! Two models. *Closed*: each worker calls again when its answer came; a stall hides the calls that would
//! have come meanwhile. *Open*: calls are due at computed instants, whatever came before; a call that could
//! not leave in time waits, and its response time counts from the instant at which it was due (not from a
//! late waking, which would hide the wait again). Service time, from the write to the read, stands beside it.
//!
//! Failures are counted by kind and are never times: a refusal, `isError`, another content than the first
//! answer's, 429, no answer in time, a broken connection.

mod args;
mod drive;
mod http;
mod pace;
mod report;
mod store;
mod summary;
mod target;
mod worker;

pub use args::LoadArgs;
pub(crate) use summary::{FORMAT, Load, PhaseFigures, Times};

use crate::compare::{self, EXIT_REGRESSED, Judgement};
use crate::error::{EXIT_ABORTED, LabError};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::run::{Manifest, RunDirectory, Sampler, write_whole};
use crate::stats::gate::Verdict;
use crate::{Context, moment};
use std::io::Write;

/// Runs `lab load`.
pub(crate) fn run(
    args: &LoadArgs,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, LabError> {
    let plan = args.plan()?;
    let place = args.out.as_deref();
    let run = place
        .map(|place| RunDirectory::create(place, "load"))
        .transpose()?;
    let manifest = Manifest::of("load", &format!("{plan:?}"), plan.seed, context);
    let sampler = run.as_ref().map(Sampler::start).transpose()?;
    let started_ms = moment::now_ms();
    let mut progress = Progress::new(&mut *err, args.telling.kind(context));
    let profiled = args
        .profile
        .zip(run.as_ref().map(|run| run.file("perf.data")));
    let driven = drive::drive(
        &plan,
        &Interrupt::listen()?,
        sampler.as_ref(),
        &mut progress,
        profiled,
    )?;
    drop(progress);
    sampler.map(Sampler::finish).transpose()?;
    let load = Load::of(&plan, &driven, &manifest);
    let judged = compare::judge_load(&args.threshold, &load)?;
    if let Some(run) = &run {
        store::write(run, manifest, &plan, &load, &driven, started_ms)?;
        if let Some(judged) = &judged {
            judged.keep(run.path())?;
        }
        match &driven.profile {
            Some(Ok(page)) => write_whole(&run.file("profile.txt"), page.as_bytes())?,
            Some(Err(why)) => {
                // Who does not read it misses a page and nothing else.
                let _ = writeln!(err, "warning: no profile of the target: {why}");
            }
            None => {}
        }
        // Whoever does not read it finds the directory all the same.
        let _ = writeln!(err, "stored in {}", run.path().display());
    }
    let written = if args.json {
        report::json(&load, out)
    } else {
        report::text(&load, judged.as_ref(), out)
    };
    written.map_err(|source| LabError::System {
        what: "write the result",
        source,
    })?;
    Ok(exit_code(&load, judged.as_ref()))
}

fn exit_code(load: &Load, judged: Option<&Judgement>) -> u8 {
    if load.aborted {
        EXIT_ABORTED
    } else if judged.is_some_and(|judged| judged.verdict == Verdict::Regressed) {
        EXIT_REGRESSED
    } else {
        u8::from(load.phases.iter().all(|phase| phase.ok == 0))
    }
}
