//! `durward audit`: is the journal what was written, and what does it say?
//!
//! Standard output carries data only: records, or the report. What cannot be done is said on standard error.

mod repair;
pub mod show;
mod verify;

use std::io::{self, Write};
use std::path::PathBuf;

use admin::calls::{RecordConditions, Since};
use admin::{AdminError, StatePaths};
use clap::{Args, Subcommand, ValueEnum};
use gate::journal::HEAD_FILE;
use gate::journal::audit::{AuditError, Filter, Kind};

use crate::failure::{self, CommandFamily};

/// Examples of `durward audit`.
pub const HELP: &str = "\
Examples:
  durward audit verify                        verify that nothing was altered or cut off
  durward audit verify --running              the same for a job that runs beside an instance
  durward audit repair                        set aside what was altered, and begin a new chain
  durward audit show --refused --since 1d     whole records of the refusals of a day
  durward audit tail --follow --json          every record as it is written

`durward logs` shows the same records as tables.";

const SHOW_HELP: &str = "\
Examples:
  durward audit show --limit 5
  durward audit show --tool write_file --decision deny
  durward audit show --since 1h --json | jq -r .reason";

const TAIL_HELP: &str = "\
Examples:
  durward audit tail --follow                 end with Ctrl-C
  durward audit tail --follow --refused --json";

/// Nothing is wrong, and nothing is left open.
pub const SOUND: u8 = 0;
/// The journal was changed.
pub const TAMPERED: u8 = 1;
/// Nothing can be said: nothing to read, no key, a bad argument.
pub const CANNOT_VERIFY: u8 = 2;
/// Nothing is wrong with what is there; whether that is all cannot be proven.
pub const OPEN: u8 = 3;

/// Largest `--limit`.
const LIMIT_MAX: u64 = 1_000_000;

/// Arguments of `durward audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify that the journal has not been altered and is complete
    #[command(after_help = verify::EXIT_CODES)]
    Verify(verify::VerifyArgs),
    /// Move changed segments aside as evidence and begin a new chain
    #[command(after_help = repair::HELP)]
    Repair(repair::RepairArgs),
    /// Print the latest matching records
    #[command(after_help = SHOW_HELP)]
    Show(SelectArgs),
    /// Print the latest records; with --follow also new ones
    #[command(after_help = TAIL_HELP)]
    Tail(TailArgs),
}

/// Which records to print.
#[derive(Debug, Args)]
struct SelectArgs {
    /// Directory of the journal, or one segment file
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print each record as the JSON that was written
    #[arg(long)]
    json: bool,
    /// Only records of this kind
    #[arg(long, value_enum)]
    kind: Option<KindArg>,
    /// Only calls that the policy decided so; --refused also finds those that a person refused
    #[arg(long, value_parser = ["allow", "deny", "hitl"])]
    decision: Option<String>,
    #[command(flatten)]
    conditions: Conditions,
    /// Only records of this call
    #[arg(long, value_name = "ID")]
    op: Option<String>,
    /// Only records of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only records of the last 30s, 5m, 1h, 7d and so on, or since a UTC time such as 2026-11-21T03:38:09Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,
    /// Print at most this many records, the latest
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=LIMIT_MAX))]
    limit: u64,
}

/// Conditions that `audit` and `logs` share.
#[derive(Debug, Args)]
pub struct Conditions {
    /// Only refusals of every kind: by a rule, a limit or a person, for want of an answer, and rejected keys
    #[arg(long)]
    pub refused: bool,
    /// Only records of this caller
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,
    /// Only records about this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only records about this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Only decisions that this rule made
    #[arg(long, value_name = "ID")]
    rule: Option<String>,
    /// Only records with this reason or outcome, such as denied_by_rule or user_denied
    #[arg(long, value_name = "LABEL")]
    reason: Option<String>,
    /// Only records of this run: the value of x-durward-run, or the trace id of traceparent
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

impl Conditions {
    /// Whether only records of one run are asked for.
    pub fn has_run(&self) -> bool {
        self.run.is_some()
    }

    /// Returns the filter, tightened by the conditions.
    pub fn tighten(&self, filter: Filter) -> Filter {
        let conditions = RecordConditions {
            refused: self.refused,
            caller: self.caller.clone(),
            tool: self.tool.clone(),
            server: self.server.clone(),
            rule: self.rule.clone(),
            reason: self.reason.clone(),
            run: self.run.clone(),
        };
        conditions.tighten(filter)
    }
}

#[derive(Debug, Args)]
struct TailArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Go on printing what is written from now on
    #[arg(long, short)]
    follow: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindArg {
    Decision,
    Operation,
    Auth,
    System,
    Config,
}

/// The installation that a command is about, and the time.
pub struct Context {
    /// Its paths; `--dir` and `--key` name others.
    pub paths: StatePaths,
    /// The journal's directory.
    pub journal: PathBuf,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    Admin(AdminError),
    Write(io::Error),
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        Failure::Admin(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Write(error)
    }
}

/// Runs the command and returns its exit code: [`SOUND`], [`TAMPERED`], [`CANNOT_VERIFY`] or [`OPEN`]. A reader that closes the pipe has
/// seen enough: that is success.
pub fn run(args: &AuditArgs, context: &Context, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = match &args.command {
        Command::Verify(args) => verify::run(args, context, out),
        Command::Repair(args) => repair::run(args, context, out, err),
        Command::Show(args) => show::run(args, context, false, out, err),
        Command::Tail(args) => show::run(&args.select, context, args.follow, out, err),
    };
    ended(result, err)
}

/// The exit code of a command that reads the journal; says what it could not do.
pub fn ended(result: Result<u8, Failure>, err: &mut dyn Write) -> u8 {
    let message = match result {
        Ok(code) => return code,
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => return SOUND,
        Err(Failure::Write(error)) => format!("cannot write: {error}"),
        Err(Failure::Admin(error)) => {
            let hint = match &error {
                AdminError::NoJournal(_) => {
                    "\n  hint: it is created by the first `durward run` or `durward serve`"
                        .to_owned()
                }
                AdminError::Journal(AuditError::NotAHead { .. }) => {
                    format!("\n  hint: the head of a journal is {HEAD_FILE} in its key directory")
                }
                AdminError::JournalKey(_) => {
                    "\n  hint: name the public key of the journal with --key FILE".to_owned()
                }
                _ => String::new(),
            };
            let _ = writeln!(err, "error: {error}{hint}");
            return failure::exit_code(CommandFamily::Journal, error.kind());
        }
    };
    // Where standard error is gone too, the exit code still tells.
    let _ = writeln!(err, "error: {message}");
    CANNOT_VERIFY
}

impl SelectArgs {
    fn filter(&self, now_ms: i64) -> Filter {
        self.conditions.tighten(Filter {
            kind: self.kind.map(|kind| match kind {
                KindArg::Decision => Kind::Decision,
                KindArg::Operation => Kind::Operation,
                KindArg::Auth => Kind::Auth,
                KindArg::System => Kind::System,
                KindArg::Config => Kind::Config,
            }),
            decision: self.decision.clone(),
            since_ms: self.since.map(|since| since.at_ms(now_ms)),
            op: self.op.clone(),
            session_id: self.session.clone(),
            ..Filter::default()
        })
    }
}

/// Reads the beginning of a time range.
///
/// # Errors
/// A sentence.
pub fn since(text: &str) -> Result<Since, String> {
    text.parse()
}

#[cfg(test)]
mod tests;
