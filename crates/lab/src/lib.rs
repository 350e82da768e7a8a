//! Measures any of this from outside, as a stranger would: what a process in the middle adds to a call,
//! with an interval, beside the same call without it.
//!
//! Invariants, as absences:
//! - the lab links neither the gate nor a face: of what it measures it knows what comes out of its pipes;
//! - it reads no environment and never exits by itself;
//! - no time counts whose answer was not checked: a wrong or failed answer is an error, never a fast call;
//! - no percentile is interpolated, and no interval pools the calls of several launches.

mod affinity;
mod arm;
mod compare;
mod driver;
mod error;
mod host;
mod moment;
mod overhead;
mod processes;
mod standard;
mod stats;

pub use compare::{CompareArgs, GateArgs};
pub use error::LabError;
pub use overhead::OverheadArgs;
pub use standard::StandardArgs;

use std::io::Write;
use std::path::PathBuf;

/// What the lab can do.
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// Measure what an arm adds to a direct call
    Overhead(Box<OverheadArgs>),
    /// Measure the standard set and hold it against the budgets
    Standard(StandardArgs),
    /// Put two stored measurements side by side
    Compare(CompareArgs),
    /// Hold a measurement against a baseline and rules; exit 99 for a regression
    Gate(GateArgs),
    /// A process to test and to measure against
    #[command(subcommand)]
    Mock(mocks::Args),
}

/// What the lab is told by the binary.
#[derive(Debug, Clone)]
pub struct Context {
    /// Our own binary, to start arms from.
    pub own_binary: PathBuf,
    /// Its version.
    pub version: &'static str,
}

/// Runs a command of the lab; gives its exit code: 0 done, 1 failed, 2 wrong usage, 98 and 99
/// as [`GateArgs`] says.
pub fn run(args: Args, context: &Context, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let done = match args {
        Args::Overhead(args) => overhead::run(&args, context, out, err),
        Args::Standard(args) => standard::run(&args, context, out, err),
        Args::Compare(args) => compare::run(&args, out),
        Args::Gate(args) => compare::gate(&args, out),
        Args::Mock(mock) => {
            return mocks::run(mock).unwrap_or_else(|error| {
                let _ = writeln!(err, "error: {error}");
                1
            });
        }
    };
    done.unwrap_or_else(|error| {
        // Whoever closed standard error does not want to know.
        let _ = writeln!(err, "error: {error}");
        error.exit_code()
    })
}
