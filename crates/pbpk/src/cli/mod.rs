//! The command line `sim`: info, params, run, population, merge, individual, batch, sensitivity, fit,
//! steady, pk, plot, study, report, explain, diff, export.
//!
//! Data goes to `out`, everything else to `err`; nothing is written anywhere but there and to files that the caller
//! names. The caller turns the returned code into the exit code of its process.

mod args;
mod batch;
mod cache;
mod diff;
mod explain;
mod export;
mod failure;
mod fit;
mod individual;
mod info;
mod json;
mod model;
mod observed;
mod params;
mod pk;
mod plot;
mod population;
mod sensitivity;
mod simulate;
mod steady;
mod study;
mod table;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use args::StudyCommand;
pub use args::{Args, Command};
use failure::CommandFailure;

/// Everything went well.
pub const OK: u8 = 0;
/// A model could not be read or run, or a file not be written.
pub const FAILED: u8 = 1;
/// The request itself makes no sense: an unknown path, a wrong unit, a value out of range.
pub const MISUSED: u8 = 2;

/// Whether the process is to end.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Ends all commands of this process soon, for what listens to Ctrl-C: they say that they were cancelled, and what they
/// have finished stays.
pub fn stop() {
    STOPPED.store(true, Ordering::Relaxed);
}

/// Returns whether [`stop`] was called.
pub fn is_stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Carries out one command and returns the exit code.
pub fn run(args: Args, out: &mut dyn Write, err: &mut (dyn Write + Send)) -> u8 {
    carry_out(&args, out, err)
}

fn carry_out(args: &Args, out: &mut dyn Write, err: &mut (dyn Write + Send)) -> u8 {
    let done = match &args.command {
        Command::Info(a) => info::run(a, out, err),
        Command::Params(a) => params::run(a, out, err),
        Command::Run(a) => simulate::run(a, out, err),
        Command::Steady(a) => steady::run(a, out, err),
        Command::Pk(a) => pk::run(a, out, err),
        Command::Plot(a) => plot::run(a, out, err),
        Command::Population(a) => population::run(a, out, err),
        Command::Merge(a) => population::merge(a, out),
        Command::Individual(a) => individual::run(a, out, err),
        Command::Study(a) => match &a.command {
            StudyCommand::Run(a) => study::run(a, out, err),
        },
        Command::Report(a) => study::report(a, out, err),
        Command::Batch(a) => batch::run(a, out, err),
        Command::Sensitivity(a) => sensitivity::run(a, out, err),
        Command::Fit(a) => fit::run(a, out, err),
        Command::Explain(a) => explain::run(a, out, err),
        Command::Diff(a) => diff::run(a, out, err),
        Command::Export(a) => export::run(a, out, err),
    };
    match done.and_then(|()| out.flush().map_err(CommandFailure::from)) {
        Ok(()) => OK,
        Err(failure) => failure.report(err),
    }
}
