//! The command line `sim` on its own.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(
    name = "pbpk",
    version,
    about = "Read, run and analyse PBPK simulations"
)]
struct Cli {
    #[command(flatten)]
    args: pbpk::cli::Args,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let code = pbpk::cli::run(cli.args, &mut out, &mut std::io::stderr());
    // A failed flush was reported already, or has no reader.
    let _ = out.flush();
    ExitCode::from(code)
}
