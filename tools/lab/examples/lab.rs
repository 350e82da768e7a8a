//! Runs one command of the lab, for the crate's own black-box tests.

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    lab: lab::Args,
}

fn main() -> ExitCode {
    let context = lab::Context {
        own_binary: std::env::current_exe().unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION"),
        argv: std::env::args().collect(),
        terminal: false,
        benchmark_result: None,
        benchmark_baseline: None,
    };
    let code = lab::run(
        Cli::parse().lab,
        &context,
        &mut std::io::stdout(),
        &mut std::io::stderr(),
    );
    ExitCode::from(code)
}
