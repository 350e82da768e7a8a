//! `durward pins`: which definitions were approved, what differs from them, and approving it.
//!
//! Texts of servers are printed so that nothing in them acts on a terminal or hides from a reader.

mod approve;
mod diff;
mod list;
mod propose;

use std::io::{self, Write};

use admin::AdminError;
use clap::{Args, Subcommand};

use crate::config::Settings;
use crate::failure::{self, CommandFamily};
use crate::places::Places;

/// All is well; for `diff`: nothing waits.
const DONE: u8 = 0;
/// Something waits (`diff`), or pins are damaged (`list`).
const DIFFERS: u8 = 1;
/// It could not be done.
const TROUBLE: u8 = 2;

/// Shown below the command's help.
pub const HELP: &str = "\
The first complete list of a server's tools is pinned. Approve it to let its annotations (readOnlyHint) count in favour of
its tools; until then they only count against them. At a terminal you are then shown what each tool of a server of
durward.yaml seems to do, and may declare that (servers.NAME.tools), as it is or with changes. A definition that changes later, or a tool that is added,
waits until you approve it; with `durward run --pin enforce` it is hidden and cannot be called until then. Running
instances pick up an approval by themselves.

Examples:
  durward pins list                 servers, and how many definitions wait
  durward pins diff files           what changed, as a diff
  durward pins approve files --all  approve all definitions of one server
  durward pins propose files        what its tools seem to do, to declare in durward.yaml
  durward pins approve files --all --accept-classes     approve, and accept the proposed classes

Exit codes: 0 done, or nothing waits; 1 something waits (diff) or pins are damaged (list); 2 it could not be done.";

/// Arguments of `durward pins`.
#[derive(Debug, Args)]
pub struct PinsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List servers and tools, and definitions that wait for approval
    List(ListArgs),
    /// Show waiting definitions as changes to the approved ones
    Diff(DiffArgs),
    /// Approve definitions that wait
    Approve(ApproveArgs),
    /// Propose what each tool does, as lines for `tools` of the server in durward.yaml
    Propose(ProposeArgs),
    /// Drop all pins of a server: its next list is trusted like a first one
    Forget(ForgetArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only this server, with its tools
    server: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DiffArgs {
    /// Only this server
    server: Option<String>,
    /// Only this tool
    tool: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ApproveArgs {
    /// The server
    server: String,
    /// The tools whose waiting definitions are approved
    #[arg(required_unless_present = "all", value_name = "TOOL")]
    tools: Vec<String>,
    /// Approve everything that waits, and what was pinned from the first list
    #[arg(long, conflicts_with_all = ["tools", "digest"])]
    all: bool,
    /// Approve only the definition whose digest begins so, as `diff` shows it
    #[arg(long, value_name = "HEX", value_parser = digest)]
    digest: Option<String>,
    /// Declare the proposed class of each approved tool in durward.yaml without asking
    #[arg(long)]
    accept_classes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ProposeArgs {
    /// The server
    server: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ForgetArgs {
    /// The server
    server: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Why a command could not do its work.
#[derive(Debug)]
enum Failure {
    Admin(AdminError),
    Write(io::Error),
    /// The operation was done, and not all that was asked for.
    Declaration(String),
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

/// Runs the command; gives the exit code.
pub fn run(
    args: &PinsArgs,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let outcome = match &args.command {
        Command::List(args) => list::run(args, places, out),
        Command::Diff(args) => diff::run(args, places, out),
        Command::Approve(args) => approve::approve(args, settings, places, out),
        Command::Propose(args) => propose::run(args, places, out),
        Command::Forget(args) => approve::forget(args, places, out),
    };
    let (code, message) = match outcome {
        Ok(code) => return code,
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => return DONE,
        Err(Failure::Write(error)) => (TROUBLE, format!("cannot write: {error}")),
        Err(Failure::Admin(error)) => {
            let code = failure::exit_code(CommandFamily::Pins, error.kind());
            (code, error.to_string())
        }
        Err(Failure::Declaration(message)) => (TROUBLE, message),
    };
    let _ = writeln!(err, "error: {message}");
    code
}

fn digest(text: &str) -> Result<String, String> {
    let text = text.to_ascii_lowercase();
    if (8..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(text)
    } else {
        Err("give the first 8 to 64 hexadecimal digits of the digest".into())
    }
}

/// The beginning of a digest, for people.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
