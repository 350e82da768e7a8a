//! `durward completions` and `durward man`: what a shell and `man` know of the command line, from
//! the same description that parses it.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Command, ValueEnum};

use crate::help;

/// Characters on a line of a manual page, which `man` indents.
const MAN_WIDTH: usize = 70;

pub const COMPLETIONS_HELP: &str = "\
Examples:
  durward completions bash > ~/.local/share/bash-completion/completions/durward
  durward completions zsh > ~/.zfunc/_durward           (with ~/.zfunc in fpath)
  durward completions fish > ~/.config/fish/completions/durward.fish";

pub const MAN_HELP: &str = "\
Examples:
  durward man | man -l -
  durward man --dir ~/.local/share/man/man1     one page per command: man durward-run";

/// Arguments of `durward completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Arguments of `durward man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write the page of every command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints the completions of this command line, whose help has these pages; gives the exit code.
pub fn completions(
    args: &CompletionsArgs,
    (line, pages): (&Command, &[&'static str]),
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(line, pages), "durward", &mut script);
    ended(out.write_all(&script), err)
}

/// The command line that a person types: without commands that the program calls itself by, and with what
/// `durward help` knows.
fn visible(line: &Command, pages: &[&'static str]) -> Command {
    let shown = line.get_subcommands().filter(|below| !below.is_hide_set());
    let commands = help::GROUPS.iter().flat_map(|(_, names)| names.iter());
    let words: Vec<&'static str> = commands.chain(pages).copied().collect();
    let about = line.get_about().map(ToString::to_string);
    Command::new("durward")
        .version(env!("CARGO_PKG_VERSION"))
        .about(about.unwrap_or_default())
        .propagate_version(true)
        .disable_help_subcommand(true)
        .args(line.get_arguments())
        .subcommands(shown)
        .mut_subcommand("help", |help| {
            help.mut_arg("words", |arg| {
                arg.value_parser(PossibleValuesParser::new(words))
            })
        })
        .mut_subcommand("lab", |lab| {
            lab.mut_arg("args", |arg| {
                arg.value_parser(PossibleValuesParser::new(crate::lab::COMMANDS))
            })
        })
}

/// Prints the manual page of this command line or writes all pages; gives the exit code.
pub fn man(args: &ManArgs, line: Command, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    // The foot of a page has no room for the commit and the target.
    let line = help::fitted(line, Some(MAN_WIDTH)).version(env!("CARGO_PKG_VERSION"));
    let done = match &args.dir {
        None => clap_mangen::Man::new(line).render(out),
        Some(dir) => {
            std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(line, dir))
        }
    };
    ended(done, err)
}

fn ended(done: io::Result<()>, err: &mut dyn Write) -> u8 {
    match done {
        Ok(()) => 0,
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            let _ = writeln!(err, "error: cannot write: {error}");
            2
        }
    }
}
