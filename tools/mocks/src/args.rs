//! The command line of the mocks.

use crate::conformance::ConformanceSessions;
use crate::echo::{EchoServer, StallSchedule};
use crate::files::{FileRoots, FileServer};
use crate::hostile::{HostileArgs, HostileBehaviour, HostileServer};
use crate::http::HttpSite;
use crate::record::RecordedMachine;
use crate::server::{ProtocolMachine, ProtocolServer};
use crate::server_args::ServerArgs;
use crate::ssh::{self, SshTargetArgs};
use crate::{MockError, bare, http, relay, stdio};
use std::{
    ffi::OsString,
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, Instant},
};

/// A mock to run.
#[derive(Debug, clap::Subcommand)]
pub enum MockCommand {
    /// An MCP server that returns what it is given.
    Echo(EchoArgs),
    /// An MCP server with ten file tools, confined to directories.
    Files(FilesArgs),
    /// An MCP server with the fixtures that the official conformance suite asks for.
    Conformance(ConformanceArgs),
    /// An MCP server that breaks the protocol in a chosen way.
    Hostile(HostileArgs),
    /// A process in the middle that only moves bytes: between its own stdio and a child's, or over HTTP.
    Relay(RelayArgs),
    /// A process between a client over stdio and a server over HTTP that only moves frames.
    Bridge(BridgeArgs),
    /// SSH servers on loopback: seven that differ in one thing each, and a twin of each behind a bad line.
    #[command(after_help = ssh::HELP)]
    SshTarget(SshTargetArgs),
}

/// Options of `echo`.
#[derive(Debug, clap::Args)]
pub struct EchoArgs {
    /// How long every call takes, in microseconds.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600_000_000))]
    pub delay_us: u64,
    /// How long the text of the tool `sized` is, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(0..=67_108_864))]
    pub reply_bytes: u64,
    /// Stop answering for so long at the end of every period, in milliseconds.
    #[arg(long, value_name = "MILLISECONDS", requires = "stall_every_ms", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub stall_ms: Option<u64>,
    /// The period of the stalls, in milliseconds.
    #[arg(long, value_name = "MILLISECONDS", requires = "stall_ms", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub stall_every_ms: Option<u64>,
    /// List this many tools: the four, then echo under other names.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub tools: Option<u16>,
    /// Say that the list of tools may change (it does not).
    #[arg(long)]
    pub announce_changes: bool,
    /// What every mock server accepts.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Options of `files`.
#[derive(Debug, clap::Args)]
pub struct FilesArgs {
    /// A directory the tools may reach, with all beneath it; repeatable [default: the current directory]
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

/// Options of `conformance`.
#[derive(Debug, clap::Args)]
pub struct ConformanceArgs {
    /// What every mock server accepts.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Options of `relay`.
#[derive(Debug, clap::Args)]
pub struct RelayArgs {
    /// Take HTTP connections at this address instead of standard input and output; port 0 takes a free one.
    /// The endpoint's URL is the first line of standard output.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<SocketAddr>,
    /// Where the connections lead, instead of a command, of which each connection has a child.
    #[arg(
        long,
        value_name = "URL",
        requires = "http",
        conflicts_with = "command"
    )]
    pub url: Option<String>,
    /// The program to run and its arguments.
    #[arg(required_unless_present = "url", last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Options of `bridge`.
#[derive(Debug, clap::Args)]
pub struct BridgeArgs {
    /// The server's endpoint.
    #[arg(long, value_name = "URL")]
    pub url: String,
}

/// Runs a mock until its input ends, or over HTTP until it is told to end; returns the exit code.
///
/// # Errors
/// When the mock cannot start, or its standard input or output fails.
pub fn run(args: MockCommand) -> Result<u8, MockError> {
    match args {
        MockCommand::Echo(args) => {
            let echo = EchoServer {
                delay: Duration::from_micros(args.delay_us),
                reply_bytes: args.reply_bytes,
                stall: args
                    .stall_ms
                    .zip(args.stall_every_ms)
                    .map(|(length, period)| StallSchedule {
                        since: Instant::now(),
                        period: Duration::from_millis(period),
                        length: Duration::from_millis(length),
                    }),
                tools: args.tools.map(usize::from),
                announces: args.announce_changes,
            };
            let (eras, count) = (args.server.eras, args.server.counter()?);
            serve(&args.server, move || {
                ProtocolServer::new(echo, eras, count.clone())
            })
        }
        MockCommand::Files(args) => {
            let roots = if args.any_root {
                FileRoots::any()?
            } else {
                FileRoots::beneath(&args.root)?
            };
            let files = FileServer::new(roots).announcing(args.announce_changes);
            let eras = args.server.eras;
            let count = args.server.counter()?;
            serve(&args.server, move || {
                ProtocolServer::new(files.clone(), eras, count.clone())
            })
        }
        MockCommand::Conformance(args) => {
            let sessions = ConformanceSessions::new(args.server.eras, args.server.counter()?);
            serve(&args.server, move || sessions.open())
        }
        MockCommand::Hostile(args) => hostile(&args),
        MockCommand::Relay(args) => match (args.http, args.url) {
            (None, _) => relay::run(&args.command),
            (Some(address), None) => bare::front::relay(address, args.command),
            (Some(address), Some(url)) => bare::tunnel::run(address, &url),
        },
        MockCommand::Bridge(args) => bare::bridge::run(&args.url),
        MockCommand::SshTarget(args) => ssh::run(&args),
    }
}

/// Serves machines of one kind: one over standard input and output, or one a session over HTTP.
fn serve<M: ProtocolMachine + 'static>(
    args: &ServerArgs,
    open: impl Fn() -> M + Send + Sync + 'static,
) -> Result<u8, MockError> {
    let record = args.recorder()?;
    let open = move || RecordedMachine::new(open(), record.clone());
    match args.http {
        None => stdio::serve(&mut open()).map_err(MockError::Stdio),
        Some(address) if args.bare => bare::front::host(address, open()),
        Some(address) => http::run(
            address,
            HttpSite {
                open: Box::new(move || Box::new(open())),
                shared: false,
                eras: args.eras,
                form: args.replies,
                ignores_term: false,
            },
        ),
    }
}

fn hostile(args: &HostileArgs) -> Result<u8, MockError> {
    let first = HostileServer::new(args, args.server.counter()?)?;
    let record = args.server.recorder()?;
    let open = move || RecordedMachine::new(first.clone(), record.clone());
    let Some(address) = args.server.http else {
        return stdio::serve(&mut open()).map_err(MockError::Stdio);
    };
    let site = HttpSite {
        open: Box::new(move || Box::new(open())),
        // At which call it misbehaves is counted over all requests.
        shared: true,
        eras: args.server.eras,
        form: args.server.replies,
        ignores_term: args.behaviour == HostileBehaviour::IgnoreTerm,
    };
    http::run(address, site)
}
