//! `durward approvals`: see which calls wait for a person, and answer them.

mod decide;
mod grants;
mod list;
mod screen;
mod text;
mod watch;

use std::io::{self, Write};

use admin::AdminError;
use admin::approvals::ApprovalAnswer;
use clap::{Args, Subcommand};
use gate::approval::Choice;

use crate::failure::{self, CommandFamily};
use crate::places::Places;

/// The question could not be asked: a socket that cannot be used, an answer that cannot be printed.
const EXIT_CANNOT: u8 = 2;

/// After the help of `durward approvals`.
pub const HELP: &str = "\
A call waits when a rule with the effect hitl matches it. If nobody answers in time (50 s by default, see
`durward run --approval-timeout`), it is refused. The first answer counts.

Examples:
  durward approvals list                 the waiting calls of every running instance of this user
  durward approvals show k7f             the whole call, with its arguments and what it changes
  durward approvals watch                a live screen; answer with one key
  durward approvals allow k7f2m9qa       allow it, and the same call for a while
  durward approvals allow k7f --session  allow it, and the same call until its session ends
  durward approvals once k7f             allow only this call; three letters of an id are enough
  durward approvals deny k7f --reason \"not on a Friday\"
  durward approvals granted              the calls that pass for a while without a question
  durward approvals forget k7f           ask again at the next call

The live screen needs a terminal; without one, or with --plain, `watch` prints lines.

A call that is too long to be shown whole can be allowed only with --unseen.

Exit codes: 0 done; 1 no call with this id waits, it was answered already, or allowing it has to be confirmed;
2 an instance could not be asked.";

/// Arguments of `durward approvals`.
#[derive(Debug, Args)]
pub struct ApprovalsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List what waits, a line for each call
    List(list::ListArgs),
    /// Show one waiting call whole
    Show(list::ShowArgs),
    /// Show calls as they begin to wait, and answer them at a terminal
    Watch(watch::WatchArgs),
    /// Let a call pass, and the same call for a while
    Allow(decide::AllowArgs),
    /// Let a call pass, this once
    Once(decide::OnceArgs),
    /// Refuse a call
    Deny(decide::DenyArgs),
    /// List the calls that are allowed for a while
    Granted(grants::GrantedArgs),
    /// End such a grant, so that the next call asks again
    Forget(grants::ForgetArgs),
}

/// Runs the command and gives its exit code.
pub fn run(args: &ApprovalsArgs, places: &Places, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let done = match &args.command {
        Command::List(args) => list::run(args, places, out, err),
        Command::Show(args) => list::show(args, places, out, err),
        Command::Watch(args) => watch::run(args, places, out, err),
        Command::Allow(args) => {
            let choice = match args.session {
                true => Choice::Session,
                false => Choice::Allow,
            };
            allow(&args.once, choice, places, out, err)
        }
        Command::Once(args) => allow(args, Choice::Once, places, out, err),
        Command::Deny(args) => {
            let answer = ApprovalAnswer {
                choice: Choice::Deny,
                reason: args.reason.clone(),
                unseen: false,
            };
            decide::run(&args.decide, &answer, places, out, err)
        }
        Command::Granted(args) => grants::granted(args, places, out, err),
        Command::Forget(args) => grants::forget(args, places, out, err),
    };
    match done {
        Ok(code) => code,
        // A reader that closes the pipe has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            EXIT_CANNOT
        }
    }
}

fn allow(
    args: &decide::OnceArgs,
    choice: Choice,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let answer = ApprovalAnswer {
        choice,
        reason: None,
        unseen: args.unseen,
    };
    decide::run(&args.decide, &answer, places, out, err)
}

/// Prints what could not be read.
fn warn(warnings: &[String], err: &mut dyn Write) {
    for warning in warnings {
        let _ = writeln!(err, "warning: {warning}");
    }
}

/// Returns the exit code for an error; `is_elsewhere` if an instance that could not be asked may know better.
fn exit_code(error: &AdminError, is_elsewhere: bool) -> u8 {
    match is_elsewhere {
        true => EXIT_CANNOT,
        false => failure::exit_code(CommandFamily::Approvals, error.kind()),
    }
}
