//! The command line of `durward-journal-rate`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use journal_rate::RateArgs;

/// Write a journal of its own as fast as it goes, and print the rate as one JSON object
#[derive(Debug, Parser)]
#[command(name = "durward-journal-rate", version, about)]
struct Cli {
    #[command(flatten)]
    args: RateArgs,
}

fn main() -> ExitCode {
    match journal_rate::measure(&Cli::parse().args) {
        Ok(found) => {
            // The reader may have closed the pipe.
            let _ = writeln!(io::stdout(), "{found}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            let _ = writeln!(io::stderr(), "error: {message}");
            ExitCode::FAILURE
        }
    }
}
