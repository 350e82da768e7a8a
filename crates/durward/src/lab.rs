//! `durward lab`: runs `durward-lab`, which measures and has mock servers. It is a program of its own, so that the product links
//! neither.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use clap::Args;

/// The program.
const PROGRAM: &str = "durward-lab";
/// Names this program to the lab, which measures it.
const GUARD: &str = "DURWARD_PROGRAM";
/// `durward-lab` is not installed; a shell ends with the same.
const EXIT_MISSING: u8 = 127;
/// `durward-lab` is there and cannot be started.
const EXIT_UNSTARTED: u8 = 126;

pub const HELP: &str = "\
Commands:
  overhead       measure what a variant adds to a direct call
  load           put a target under load: a tool, a URL, or SSH hosts behind a tool server
  scale          fit a scaling law to stored load runs
  soak           report whether memory, descriptors or times grow over a stored load run
  users          have users talk to models, and check every reply
  standard       measure the standard set and compare it with the budgets
  audit-latency  show the latencies in a journal
  compare        compare two stored measurements
  gate           compare a measurement with a baseline and rules
  report         show a stored measurement as a page
  farm           make the three hosts of the SSH load-testing guide
  mock           run a process to test and to measure against

Examples:
  durward lab overhead --help
  durward lab load tool --target 'durward lab mock echo' --workers 4 --duration 5s

`durward lab ARGS` runs `durward-lab ARGS`, which is installed beside durward or on PATH: `cargo install --path tools/lab` builds it.
Its reference page is docs/reference/lab.md.

Exit codes: those of durward-lab; 126 it cannot be started; 127 it is not installed.";

/// The commands of `durward-lab`, for completions.
pub const COMMANDS: [&str; 12] = [
    "overhead",
    "load",
    "scale",
    "soak",
    "users",
    "standard",
    "audit-latency",
    "compare",
    "gate",
    "report",
    "farm",
    "mock",
];

/// Arguments of `durward lab`.
#[derive(Debug, Args)]
pub struct LabArgs {
    /// A command of durward-lab and its arguments
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    args: Vec<OsString>,
}

/// Becomes `durward-lab` with these arguments; returns an exit code only if that fails.
pub fn run(args: &LabArgs, own_binary: &Path, err: &mut dyn Write) -> u8 {
    become_lab(&args.args, own_binary, err)
}

/// Becomes `durward-lab WORDS --help`; returns an exit code only if that fails.
pub fn show_help(words: &[&str], own_binary: &Path, err: &mut dyn Write) -> u8 {
    let words = words.iter().copied().chain(["--help"]);
    let args: Vec<OsString> = words.map(OsString::from).collect();
    become_lab(&args, own_binary, err)
}

/// Replaces this process, so that streams, signals and the exit code are the lab's.
fn become_lab(args: &[OsString], own_binary: &Path, err: &mut dyn Write) -> u8 {
    let beside = own_binary.with_file_name(PROGRAM);
    let program = match beside.is_file() {
        true => beside.as_path(),
        false => Path::new(PROGRAM),
    };
    let error = Command::new(program)
        .args(args)
        .env(GUARD, own_binary)
        .exec();
    if error.kind() != io::ErrorKind::NotFound {
        let _ = writeln!(err, "error: cannot start {}: {error}", program.display());
        return EXIT_UNSTARTED;
    }
    let _ = writeln!(
        err,
        "error: {PROGRAM} is not installed: it is neither {} nor on PATH\n  hint: build it with `cargo install --path tools/lab` in a checkout of Durward",
        beside.display()
    );
    EXIT_MISSING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_each_command_that_completions_offer() {
        let listed: Vec<&str> = HELP
            .lines()
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(listed, COMMANDS);
    }
}
