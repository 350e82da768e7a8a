//! `durward ssh serve`: `durward serve` with a configuration that is built in.
//!
//! The configuration and the shipped rules are written below the state directory, so that whatever reads a
//! configuration (`check`, `reload`, `status`) finds what applies.

use std::io::Write;
use std::path::{Path, PathBuf};

use ::ssh::rules;
use clap::{Args, Parser, ValueEnum};

use crate::config::{self, Origin, Source};
use crate::failure::Failure;
use crate::flags::Given;
use crate::places::Places;
use crate::serve::{self, ServeArgs};
use crate::wrap;

pub const HELP: &str = "\
Examples:
  durward ssh serve                               the hosts of ssh_hosts.yaml, at port 3000
  durward ssh serve --hosts hosts.yaml --port 0   on any free port
  durward ssh serve --profile loadtest --calls-per-minute 60000    for durward lab load ssh
  durward ssh serve --print > durward.yaml        a configuration to edit, for durward serve

The tools are at / and /mcp; /health and /metrics report the state. The shipped rules (`durward ssh rules`) decide which
commands may run, unless --policy names others. For TLS, API keys and everything else, use `durward serve` with the
configuration that --print writes.

The exit codes are those of `durward serve`.";

/// The server's name in the configuration.
const NAME: &str = "ssh";
/// The file of hosts where none is named.
const HOSTS: &str = "ssh_hosts.yaml";

/// Arguments of `durward ssh serve`.
#[derive(Debug, Args)]
pub struct SshServeArgs {
    /// The port to listen at; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    port: u16,
    /// The address to listen at
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: std::net::IpAddr,
    /// The file with the hosts [default: ssh_hosts.yaml in the configuration directory]
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// The policy [default: the shipped rules]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// How many calls a caller may make, and how many connections a host gets
    #[arg(long, value_enum, default_value_t = Profile::Normal)]
    profile: Profile,
    /// Calls a minute, instead of the profile's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    calls_per_minute: Option<u64>,
    /// How much is logged
    #[arg(long, value_name = "LEVEL", value_enum, ignore_case = true, default_value_t = Level::Warn)]
    pub debug: Level,
    /// Threads that serve
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=64))]
    workers: u64,
    /// How long a session may be unused before it ends, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(60..=86_400))]
    session_timeout: u64,
    /// Repair requests of clients that write "jsonrpc" as a number or initialize without a protocol version
    #[arg(long)]
    lenient: bool,
    /// Print the configuration, and serve nothing
    #[arg(long)]
    print: bool,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Level {
    /// What went wrong
    #[value(alias = "ERROR")]
    Error,
    /// And what may go wrong
    Warn,
    /// And what happens
    Info,
    /// Everything
    Debug,
}

/// Limits on calls.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Profile {
    /// 100 calls a minute, 10 connections to a host
    Normal,
    /// 500 calls a minute, 20 connections to a host
    Loadtest,
}

/// `durward serve`, to be read from words.
#[derive(Debug, Parser)]
struct Bare {
    #[command(flatten)]
    serve: ServeArgs,
}

impl SshServeArgs {
    fn configuration(&self, hosts: &Path, policy: &Path) -> String {
        let (calls, connections) = match self.profile {
            Profile::Normal => (100, 10),
            Profile::Loadtest => (500, 20),
        };
        let calls = self.calls_per_minute.unwrap_or(calls);
        let listen = std::net::SocketAddr::new(self.bind, self.port);
        let lenient = if self.lenient { "lenient: true\n" } else { "" };
        let quoted = |path: &Path| serde_json::Value::from(path.to_string_lossy()).to_string();
        format!(
            "listen: \"{listen}\"\n{lenient}policy: {}\nservers:\n  {NAME}:\n    builtin: ssh\n    hosts: {}\n    connections_max: {connections}\nlimits:\n  requests: {{ rate: {calls}/m, burst: {calls} }}\n  per_tool: {{ calls: {calls}, window: 60s, then: refuse }}\n",
            quoted(policy),
            quoted(hosts),
        )
    }

    /// As `durward serve` is told; the rest is in the configuration.
    fn words(&self) -> Vec<String> {
        let (threads, idle) = (self.workers.to_string(), self.session_timeout.to_string());
        let words = [
            "serve",
            "--root",
            NAME,
            "--threads",
            &threads,
            "--session-idle",
            &idle,
        ];
        words.map(str::to_owned).to_vec()
    }
}

/// Serves until a signal ends it; gives the exit code.
pub fn run(
    args: &SshServeArgs,
    mut places: Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let done = settled(args, &mut places, out);
    let (serving, settings, file) = match done {
        Ok(Some(done)) => done,
        Ok(None) => return 0,
        Err(failure) => {
            let _ = writeln!(err, "error: {}", failure.message);
            return failure.code;
        }
    };
    let given = Given {
        state_dir: Origin::Default,
        policy: Origin::Default,
    };
    serve::run(
        &serving,
        &given,
        Source::File(file),
        settings,
        &places,
        out,
        err,
    )
}

type Settled = (ServeArgs, config::Settings, PathBuf);

/// Writes the configuration, and reads it as any other; nothing where it is only to be printed.
fn settled(
    args: &SshServeArgs,
    places: &mut Places,
    out: &mut dyn Write,
) -> Result<Option<Settled>, Failure> {
    let hosts = match &args.hosts {
        Some(file) => places.absolute(file),
        None => places.config.join(HOSTS),
    };
    let below = places.state.join(format!("ssh-serve-{}", args.port));
    let policy = match &args.policy {
        Some(file) => places.absolute(file),
        None => below.join("policy.json"),
    };
    let text = args.configuration(&hosts, &policy);
    if args.print {
        let _ = out.write_all(text.as_bytes());
        if args.policy.is_none() {
            let _ = writeln!(out, "# durward ssh rules > {}", policy.display());
        }
        return Ok(None);
    }
    if !hosts.is_file() {
        return Err(Failure::configuration(format!(
            "the hosts file {} does not exist; name one with --hosts",
            hosts.display()
        )));
    }
    let written = |file: &str, text: &str| {
        let path = below.join(file);
        state::directory::create_private(&below)
            .and_then(|()| state::directory::replace_private(&path, text.as_bytes(), false))
            .map(|()| path)
            .map_err(Failure::journal)
    };
    written("policy.json", &rules::policy())?;
    let file = written(config::FILE_NAME, &text)?;
    let wrong = |error: String| Failure::configuration(error);
    let settings = config::load(&Source::File(file.clone()), places).map_err(wrong)?;
    settings.lay_out(places, Origin::Default);
    places.guarded.merge(wrap::guarded(&places.state));
    let bare = Bare::try_parse_from(args.words()).map_err(|error| wrong(error.to_string()))?;
    let _ = out.write_all(text.as_bytes());
    let serving = ServeArgs {
        policy: None,
        ..bare.serve
    };
    Ok(Some((serving, settings, file)))
}
