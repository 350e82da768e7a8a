//! `durward-lab`: measurements and mock servers on the command line. `durward lab` runs it.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, ValueEnum};

/// Names the `durward` to measure; `durward lab` sets it to itself.
const GUARD: &str = "DURWARD_PROGRAM";
/// Characters on a line of a generated page.
const PAGE_WIDTH: usize = 100;

/// Measure overhead and load, and run mock servers
#[derive(Debug, Parser)]
#[command(name = "durward-lab", version, about, after_help = lab::HELP, propagate_version = true)]
#[command(disable_help_subcommand = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    #[command(flatten)]
    Lab(lab::LabCommand),
    /// Print a shell's completions
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write all of them
    Man {
        /// Write the page of every command into this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print docs/reference/lab.md
    #[command(name = "__docs", hide = true)]
    Docs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

fn main() -> ExitCode {
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let done = match Cli::parse().command {
        Command::Lab(args) => {
            let code = lab::run(args, &context(), &mut out, &mut err);
            // The reader may have closed the pipe.
            let _ = out.flush();
            return ExitCode::from(code);
        }
        Command::Completions { shell } => print_completions(shell, &mut out),
        Command::Man { dir } => print_manual(dir.as_deref(), &mut out),
        Command::Docs => print_page(&mut out),
    };
    match done {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(err, "error: cannot write: {error}");
            ExitCode::from(2)
        }
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}

/// Returns the surroundings that the library is not to read by itself.
fn context() -> lab::LabContext {
    let lab_binary = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("durward-lab"));
    lab::LabContext {
        guard_binary: variable(GUARD).map_or_else(|| guard_beside(&lab_binary), PathBuf::from),
        lab_binary,
        version: env!("CARGO_PKG_VERSION"),
        argv: std::env::args().collect(),
        terminal: io::stderr().is_terminal(),
        benchmark_result: variable("MCP_BENCHMARK_RESULT").map(PathBuf::from),
        benchmark_baseline: variable("MCP_BENCHMARK_BASELINE").map(PathBuf::from),
    }
}

/// Returns the `durward` in the directory of this program, else the first one on PATH.
fn guard_beside(lab_binary: &Path) -> PathBuf {
    let name = OsStr::new("durward");
    let beside = lab_binary.with_file_name(name);
    let path = variable("PATH").unwrap_or_default();
    let mut found = std::iter::once(beside.clone())
        .chain(std::env::split_paths(&path).map(|folder| folder.join(name)))
        .filter(|program| program.is_file());
    found.next().unwrap_or(beside)
}

/// Returns a variable of the environment; nothing if it is unset or empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the binary reads the environment, the library does not"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn print_completions(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    let mut line = Cli::command();
    clap_complete::generate(shell, &mut line, "durward-lab", &mut script);
    out.write_all(&script)
}

fn print_manual(dir: Option<&Path>, out: &mut dyn Write) -> io::Result<()> {
    let line = Cli::command();
    match dir {
        None => clap_mangen::Man::new(line).render(out),
        Some(dir) => {
            std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(line, dir))
        }
    }
}

fn print_page(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# Commands of the lab\n\nGenerated from the code (`cargo xtask docs`). `durward lab COMMAND` runs `durward-lab COMMAND`."
    )?;
    let mut root = Cli::command().term_width(PAGE_WIDTH);
    root.build();
    describe(&mut root, out)
}

/// Prints the help of a command and of every command below it.
fn describe(command: &mut clap::Command, out: &mut dyn Write) -> io::Result<()> {
    let name = command
        .get_bin_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned();
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    writeln!(out, "\n## `{name}`\n\n```text\n{}\n```", lines.join("\n"))?;
    for below in command.get_subcommands_mut() {
        if !below.is_hide_set() && below.get_name() != "help" {
            describe(below, out)?;
        }
    }
    Ok(())
}
