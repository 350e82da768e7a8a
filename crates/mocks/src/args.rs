//! The command line of the mocks.

use crate::count::Count;
use crate::echo::Echo;
use crate::files::{Files, Roots};
use crate::hostile::{Hostile, HostileArgs};
use crate::server::{Eras, Server};
use crate::{MockError, relay, stdio};
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// A mock to run.
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// An MCP server that returns what it is given.
    Echo(EchoArgs),
    /// An MCP server with ten file tools, confined to directories.
    Files(FilesArgs),
    /// An MCP server that breaks the protocol in a chosen way.
    Hostile(HostileArgs),
    /// A byte relay between its own stdio and a child's.
    Relay(RelayArgs),
}

/// What every mock server accepts.
#[derive(Debug, clap::Args)]
pub struct ServerArgs {
    /// Which protocol eras to speak.
    #[arg(long, value_enum, default_value_t = Eras::Both)]
    pub eras: Eras,
    /// Append one line to FILE for every tools/call that arrives, before it acts.
    #[arg(long, value_name = "FILE")]
    pub count: Option<PathBuf>,
}

/// Options of `echo`.
#[derive(Debug, clap::Args)]
pub struct EchoArgs {
    /// How long every call takes, in microseconds.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600_000_000))]
    pub delay_us: u64,
    /// How long the text of the tool `sized` is, in bytes.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(0..=67_108_864))]
    pub reply_bytes: u64,
    /// What every mock server accepts.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Options of `files`.
#[derive(Debug, clap::Args)]
pub struct FilesArgs {
    /// A directory the tools may reach, with all beneath it; repeatable. Default: the current directory.
    #[arg(long, value_name = "DIR", conflicts_with = "any_root")]
    pub root: Vec<PathBuf>,
    /// Reach the whole file system.
    #[arg(long)]
    pub any_root: bool,
    /// Say that the list of tools may change (it does not).
    #[arg(long)]
    pub announce_changes: bool,
    /// What every mock server accepts.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Options of `relay`.
#[derive(Debug, clap::Args)]
pub struct RelayArgs {
    /// The program to run and its arguments.
    #[arg(required = true, last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl ServerArgs {
    pub(crate) fn counter(&self) -> Result<Option<Count>, MockError> {
        self.count.as_deref().map(Count::open).transpose()
    }
}

/// Runs a mock over standard input and output until its input ends; returns the exit code.
///
/// # Errors
/// When the mock cannot start, or its standard input or output fails.
pub fn run(args: Args) -> Result<u8, MockError> {
    match args {
        Args::Echo(args) => {
            let echo = Echo {
                delay: Duration::from_micros(args.delay_us),
                reply_bytes: args.reply_bytes,
            };
            let mut server = Server::new(echo, args.server.eras, args.server.counter()?);
            stdio::serve(&mut server).map_err(MockError::Stdio)
        }
        Args::Files(args) => {
            let roots = if args.any_root {
                Roots::any()?
            } else {
                Roots::beneath(&args.root)?
            };
            let files = Files::new(roots).announcing(args.announce_changes);
            let mut server = Server::new(files, args.server.eras, args.server.counter()?);
            stdio::serve(&mut server).map_err(MockError::Stdio)
        }
        Args::Hostile(args) => stdio::serve(&mut Hostile::new(&args)?).map_err(MockError::Stdio),
        Args::Relay(args) => relay::run(&args.command),
    }
}
