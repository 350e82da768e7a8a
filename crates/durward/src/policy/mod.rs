//! `durward policy`: write rules, check them, understand them, try them before they apply.
//!
//! Nothing here sends or forwards anything, and nothing but `init` and `rollback` writes. Standard output carries
//! what was asked for; what cannot be done is said on standard error.

mod cases;
mod check;
mod explain;
pub mod history;
mod init;
mod replay;
mod show;
pub mod source;
mod text;

use std::io::{self, Write};

use std::sync::Arc;

use admin::AdminError;
use admin::policy::ListedServer;
use clap::{Args, Subcommand};
use toolkit::mcp::Builtin;

use crate::config::Settings;
use crate::failure::{self, CommandFamily, EXIT_CONFIGURATION};
use crate::places::Places;

/// All is as it should be.
const EXIT_FINE: u8 = 0;
/// A case failed, or a replay with `--check` found a difference.
const EXIT_DIFFERENT: u8 = 1;
/// The question cannot be answered: a bad argument, nothing to read.
const EXIT_CANNOT: u8 = 2;

/// Returns the servers to which rules from this source apply; all if the policy is read for `every` server.
pub fn listed_servers<'a>(
    source: &source::PolicySource,
    every: bool,
    settings: &'a Settings,
) -> Vec<ListedServer<'a>> {
    let has_policy = |server| every || settings.policy_of(server).0 == *source;
    // A built-in server states what its tools do.
    let own = settings.servers.iter().filter(|own| own.builtin.is_none());
    let own = own.filter(|server| has_policy(Some(*server)));
    let own = own.map(|server| (&server.name, &server.reads));
    let of_clients = settings.client_servers.iter().filter(|_| has_policy(None));
    let of_clients = of_clients.map(|server| (&server.name, &server.reads));
    own.chain(of_clients)
        .map(|(name, reads)| ListedServer {
            name,
            declared: &reads.arguments,
        })
        .collect()
}

/// Starts the built-in server of this name; `None` if it is another one, or if it cannot be used, which `durward check`
/// reports.
pub fn builtin_of(settings: &Settings, server: &str, places: &Places) -> Option<Arc<Builtin>> {
    let configured = settings.server(server)?.builtin.as_ref()?;
    configured.start(server, places).ok()
}

/// Arguments of `durward policy`.
/// Examples of `durward policy`.
pub const HELP: &str = "\
Examples:
  durward policy check policy.json
  durward policy explain --tool read_file --path /etc/hosts --policy policy.json
  durward policy test cases.json --policy policy.json
  durward policy replay --policy policy.json      what it would have decided about past calls

`durward policy init` writes the starter policy, to edit it. `durward help policy` is the reference of
conditions, `durward help cookbook` has ten policies.";

#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the starter policy to a file
    #[command(after_help = init::HELP)]
    Init(init::InitArgs),
    /// Validate a policy and warn about rules without effect
    #[command(after_help = check::HELP)]
    Check(check::CheckArgs),
    /// List the rules in the order in which they decide
    #[command(after_help = show::HELP)]
    Show(show::ShowArgs),
    /// Explain what happens to a call, rule by rule
    #[command(after_help = explain::HELP)]
    Explain(explain::ExplainArgs),
    /// Test a policy with a file of calls and expected decisions
    #[command(after_help = cases::HELP)]
    Test(cases::TestArgs),
    /// Compare a policy with the decisions in a journal
    #[command(after_help = replay::HELP)]
    Replay(replay::ReplayArgs),
    /// List the versions of a policy that were in force
    #[command(after_help = history::HISTORY_HELP)]
    History(history::HistoryArgs),
    /// Show what changed between two versions
    #[command(after_help = history::DIFF_HELP)]
    Diff(history::DiffArgs),
    /// Write an earlier version to the policy's file
    #[command(after_help = history::ROLLBACK_HELP)]
    Rollback(history::RollbackArgs),
}

/// What a command is about beside its arguments.
#[derive(Debug, Clone, Copy)]
struct Context<'c> {
    settings: &'c Settings,
    places: &'c Places,
}

impl Context<'_> {
    fn builtin(&self, server: &str) -> Option<Arc<Builtin>> {
        builtin_of(self.settings, server, self.places)
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
enum Failure {
    /// The operation failed.
    Admin(AdminError),
    /// The policy, or a file that goes with it, cannot be used.
    Configuration(String),
    /// The question cannot be answered.
    Cannot(String),
    /// The answer could not be written.
    Write(io::Error),
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        Self::Admin(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Whether a file holds a policy that `durward run` would take.
///
/// # Errors
/// A sentence that names the file, with line and column where the text is at fault.
pub fn check_file(file: &std::path::Path, places: &Places) -> Result<(), String> {
    source::of_file(file, source::Protected::AsRun, places).map(drop)
}

/// Runs the command and gives its exit code. A reader that closes the pipe has seen enough.
pub fn run(
    args: &PolicyArgs,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let context = &Context { settings, places };
    let out = &mut io::BufWriter::new(out);
    let done = match &args.command {
        Command::Init(args) => init::run(args, out),
        Command::Check(args) => check::run(args, context, out, err),
        Command::Show(args) => show::run(args, context, out, err),
        Command::Explain(args) => explain::run(args, context, out, err),
        Command::Test(args) => cases::run(args, context, out, err),
        Command::Replay(args) => replay::run(args, context, out, err),
        Command::History(args) => history::history(args, context, out, err),
        Command::Diff(args) => history::diff(args, context, out, err),
        Command::Rollback(args) => history::rollback(args, context, out, err),
    };
    let done = done.and_then(|code| Ok(out.flush().map(|()| code)?));
    let (code, message) = match done {
        Ok(code) => return code,
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return EXIT_FINE;
        }
        Err(Failure::Write(error)) => (EXIT_CANNOT, format!("cannot write: {error}")),
        Err(Failure::Admin(error)) => {
            let code = failure::exit_code(CommandFamily::Policy, error.kind());
            (code, error.to_string())
        }
        Err(Failure::Cannot(message)) => (EXIT_CANNOT, message),
        Err(Failure::Configuration(message)) => (EXIT_CONFIGURATION, message),
    };
    // Where standard error is gone too, the exit code still tells.
    let _ = writeln!(err, "error: {message}");
    code
}
