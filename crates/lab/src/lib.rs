//! Measures any of this from outside, as a stranger would.
//!
//! Invariants, as absences: the lab links neither the gate nor a face, reads no environment, and
//! knows of what it measures only what comes out of its pipes.

use std::io::Write;
use std::path::PathBuf;

/// What the lab can do.
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// A process to test and to measure against.
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

/// Runs a command of the lab; gives its exit code.
pub fn run(args: Args, _context: &Context, _out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match args {
        Args::Mock(mock) => mocks::run(mock).unwrap_or_else(|error| {
            let _ = writeln!(err, "error: {error}");
            1
        }),
    }
}
