//! Project tasks: `cargo xtask tidy`, `sizes`, `docs` and `parity`.
//!
//! Nothing here is shipped, nothing here opens a socket, and nothing but `docs` writes a file of the repository.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod command;
mod docs;
mod finding;
mod parity;
mod test_index;
mod tidy;

const USAGE: &str = "\
usage: cargo xtask TASK
  tidy   check the rules of this repository that the compiler does not check
  sizes  list the longest files and functions; fails nothing
  docs   write the generated reference pages again
  parity compare docs/parity.toml with the papers and run its commands in their quick form
";

fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    match run(&mut out) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // If standard error is gone as well, there is no place to report to.
            let _ = writeln!(io::stderr().lock(), "xtask: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the task named on the command line; `false` means that it found something.
fn run(out: &mut impl Write) -> Result<bool, command::TaskError> {
    let root = root();
    let task = std::env::args().nth(1);
    match task.as_deref() {
        Some("tidy") => tidy::run(&root, out),
        Some("sizes") => tidy::sizes::run(&root, out),
        Some("docs") => docs::write_all(&root, out),
        Some("parity") => parity::run(&root, out),
        _ => {
            out.write_all(USAGE.as_bytes())?;
            Ok(task.is_none())
        }
    }
}

/// Returns the repository root: the folder above this package.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}
