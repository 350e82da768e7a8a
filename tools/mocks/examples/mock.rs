//! Runs one mock, for the crate's own black-box tests.

use clap::Parser;
use std::{io::Write, process::ExitCode};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    mock: mocks::MockCommand,
}

fn main() -> ExitCode {
    match mocks::run(Cli::parse().mock) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
