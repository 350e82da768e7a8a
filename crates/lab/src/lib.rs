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
mod driver;
mod error;
mod host;
mod overhead;
mod processes;
mod stats;

pub use error::LabError;
pub use overhead::OverheadArgs;

use std::io::Write;
use std::path::PathBuf;

/// What the lab can do.
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// Measure what an arm adds to a direct call
    Overhead(Box<OverheadArgs>),
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

/// Runs a command of the lab; gives its exit code: 0 done, 1 failed, 2 wrong usage.
pub fn run(args: Args, context: &Context, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let done = match args {
        Args::Overhead(args) => overhead::run(&args, context, out, err),
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
