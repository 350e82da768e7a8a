//! The command line.

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use gate::approval::{PENDING_LIMIT, REMEMBER_S_MAX, TIMEOUT_S_MAX, TIMEOUT_S_MIN};

use crate::config::settings::{Approval, Setting};
use crate::config::{Origin, Source};

/// Stands between AI agents and the tools they use: judges every call, writes it down, forwards it.
#[derive(Debug, Parser)]
#[command(name = "durward", version, about, after_help = EXAMPLES, propagate_version = true)]
pub struct Cli {
    /// Where journal and keys are kept [default: $XDG_STATE_HOME/durward]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "DURWARD_STATE_DIR",
        hide_env_values = true
    )]
    pub state_dir: Option<PathBuf>,
    /// The configuration [default: durward.yaml in $XDG_CONFIG_HOME/durward, where it is there]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "DURWARD_CONFIG",
        hide_env_values = true
    )]
    pub config: Option<PathBuf>,
    /// Read no configuration
    #[arg(long, global = true)]
    pub no_config: bool,
    /// Say more on standard error; twice for everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads the command line, and where some of its values came from. Ends the process where it
    /// cannot be read.
    pub fn read() -> (Self, Given) {
        let matches = Self::command().get_matches();
        let below = matches.subcommand().map_or(&matches, |(_, below)| below);
        let given = Given {
            state_dir: origin(&matches, "state_dir", "--state-dir", "DURWARD_STATE_DIR"),
            policy: origin(below, "policy", "--policy", "DURWARD_POLICY"),
        };
        match Self::from_arg_matches(&matches) {
            Ok(cli) => (cli, given),
            Err(error) => error.exit(),
        }
    }

    /// Which configuration is meant.
    pub fn config_source(&self) -> Source {
        match &self.config {
            _ if self.no_config => Source::None,
            Some(file) => Source::File(file.clone()),
            None => Source::Default,
        }
    }
}

/// Where values of the command line came from.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    pub state_dir: Origin,
    pub policy: Origin,
}

fn origin(matches: &ArgMatches, id: &str, flag: &'static str, variable: &'static str) -> Origin {
    match matches
        .try_contains_id(id)
        .map(|_| matches.value_source(id))
    {
        Ok(Some(ValueSource::EnvVariable)) => Origin::Environment(variable),
        Ok(Some(ValueSource::CommandLine)) => Origin::Flag(flag),
        _ => Origin::Default,
    }
}

const EXAMPLES: &str = "\
Examples:
  durward init                                        a first configuration and policy
  durward demo                                        a guided tour, everything embedded
  durward run -- npx -y @modelcontextprotocol/server-filesystem /tmp
  durward run --policy policy.json -- my-mcp-server   guard it with your own rules
  durward policy explain --tool read_file --path /etc/hosts
  durward logs show                                   what was decided
  durward approvals watch                             what waits for you, and your answers
  durward audit verify                                is the journal what was written

In an MCP client's configuration, put `durward run --` before the server's own command;
`durward install` does it for you.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Guard one MCP server over stdio: one of the configuration, or a command
    #[command(after_help = RUN_HELP)]
    Run(Box<RunArgs>),
    /// Guard many MCP servers for many clients, over HTTP
    #[command(after_help = crate::serve::HELP)]
    Serve(Box<crate::serve::ServeArgs>),
    /// Keys with which programs call `durward serve`
    #[command(after_help = crate::keys::HELP)]
    Keys(crate::keys::KeysArgs),
    /// Say what the configuration comes to, and what is wrong with it
    #[command(after_help = crate::config::check::HELP)]
    Check(crate::config::check::CheckArgs),
    /// A guided tour on embedded parts: nothing is touched outside a temporary directory
    Demo,
    /// Write rules, check them, understand them, try them before they apply
    Policy(crate::policy::PolicyArgs),
    /// Approved definitions of tools: what changed, and whether that is well
    #[command(after_help = crate::pins::HELP)]
    Pins(crate::pins::PinsArgs),
    /// Read and verify the journal
    Audit(crate::audit::AuditArgs),
    /// Have running instances read their policy and configuration again
    #[command(after_help = crate::reload::command::HELP)]
    Reload(crate::reload::command::ReloadArgs),
    /// Write a first configuration and policy
    #[command(after_help = crate::init::HELP)]
    Init(crate::init::InitArgs),
    /// The journal as a person reads it: decisions, operations, changes of the policy
    #[command(after_help = crate::logs::HELP)]
    Logs(crate::logs::LogsArgs),
    /// Put a guarded server into an MCP client's configuration
    #[command(after_help = crate::install::HELP)]
    Install(crate::install::InstallArgs),
    /// What is here: state, journal, running instances
    Status(crate::status::StatusArgs),
    /// Print a shell's completions
    #[command(after_help = crate::completions::COMPLETIONS_HELP)]
    Completions(crate::completions::CompletionsArgs),
    /// Print the manual page, or write all of them
    #[command(after_help = crate::completions::MAN_HELP)]
    Man(crate::completions::ManArgs),
    /// See and answer the calls that wait for a person
    #[command(after_help = crate::approvals::HELP)]
    Approvals(crate::approvals::ApprovalsArgs),
    /// Read, run and analyse Open Systems Pharmacology models
    Sim(pbpk::cli::Args),
    /// Measure, and mock servers to measure against
    #[command(subcommand)]
    Lab(lab::Args),
    /// Print a reference page
    #[command(name = "__docs", hide = true)]
    Docs {
        /// commands, reasons, policy or keys
        page: String,
    },
    /// How many records a second the journal takes
    #[command(name = "__journal-rate", hide = true)]
    JournalRate(crate::journal_rate::RateArgs),
}

const RUN_HELP: &str = "\
Examples:
  durward run -- npx -y @modelcontextprotocol/server-filesystem /tmp
  durward run files                                   the server \"files\" of durward.yaml
  durward run --url https://mcp.example/mcp           a server over Streamable HTTP

Without --policy the starter policy applies: tools whose name says that they only read pass, every
other tool waits for a person: `durward approvals list` shows what waits, `durward approvals allow ID`
answers. Nobody answering in time is a no.

Limits cannot be switched off, only raised. A tool that is called too often waits for a person
(--limit-then hitl); calls beyond --limit-requests are refused, with data.retry_after_ms.

Exit codes: 0 the client closed its side; 1 the server ended by itself; 10 the journal failed;
16 wrong configuration.";

/// Arguments of `durward run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The rules, as JSON
    #[arg(
        long,
        value_name = "FILE",
        env = "DURWARD_POLICY",
        hide_env_values = true
    )]
    pub policy: Option<PathBuf>,
    /// The server's name in rules (`backend_id`) and in the journal [default: from the command]
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub name: Option<String>,
    /// Pass this variable of the environment on to the server, or set it; repeatable
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub environment: Vec<net::environment::Extra>,
    /// Keep the server off Durward's own files by the kernel: if possible, or else do not start it, or not
    /// at all [default: auto]
    #[arg(long, value_name = "auto|require|off", value_parser = crate::sandbox::confine)]
    pub confine: Option<net::confine::Confine>,
    /// Limit what the server can reach to these directories (and the system's own); repeatable
    #[arg(long, value_name = "read=DIR,write=DIR,exec=DIR,network=none")]
    pub sandbox: Vec<crate::sandbox::SandboxFlag>,
    /// How long the server may take to answer a call, in seconds [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub call_timeout: Option<u64>,
    /// The same for one tool; repeatable
    #[arg(long, value_name = "TOOL=SECONDS", value_parser = tool_timeout)]
    pub tool_timeout: Vec<(String, u64)>,
    #[command(flatten)]
    pub approval: ApprovalArgs,
    /// When journal records are forced to the disk [default: interval]
    #[arg(long, value_enum)]
    pub sync: Option<Sync>,
    /// Do not take up changes of the configuration and the policy by themselves; SIGHUP still does
    #[arg(long)]
    pub no_watch: bool,
    /// Reach the server here, over Streamable HTTP; with a command too, start that where nobody answers
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    pub url: Option<String>,
    /// How to reach the server [default: auto, which is http first where there is a URL]
    #[arg(long, value_enum)]
    pub transport: Option<RunTransport>,
    /// Send the key in this variable of the environment to the server, as a bearer token
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// Our certificate for the server, with its chain, as PEM
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub client_cert: Option<PathBuf>,
    /// The private key of --client-cert, as PEM
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub client_key: Option<PathBuf>,
    /// Certificate authorities to trust instead of the system's, as PEM
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Allow a URL with http:// to another machine, where anyone on the way can read and change it
    #[arg(long)]
    pub insecure_http: bool,
    /// What is done about what servers say of themselves
    #[command(flatten)]
    pub screening: ScreeningArgs,
    /// How much callers may
    #[command(flatten)]
    pub limits: crate::limits::LimitArgs,
    /// A server of the configuration, by its name
    #[arg(value_name = "SERVER")]
    pub server: Option<String>,
    /// The server's command
    #[arg(last = true, conflicts_with = "server", value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// What is done about descriptions and definitions.
#[derive(Debug, Clone, clap::Args)]
pub struct ScreeningArgs {
    /// What happens where a tool's definition is not the one that was approved [default: warn]
    #[arg(long, value_enum)]
    pub pin: Option<Pin>,
    /// Take the targets of links out of descriptions
    #[arg(long)]
    pub strip_links: bool,
    /// Cut descriptions to this many characters
    #[arg(long, value_name = "CHARS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub description_length: Option<u32>,
}

/// How calls wait for a person.
#[derive(Debug, Clone, clap::Args)]
pub struct ApprovalArgs {
    /// How long a call waits for a person's answer, in seconds; nobody answering is a no [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(TIMEOUT_S_MIN..=TIMEOUT_S_MAX))]
    approval_timeout: Option<u64>,
    /// How long `allow` holds for the very same call, in seconds; 0: never [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=REMEMBER_S_MAX))]
    approval_remember: Option<u64>,
    /// Most calls that may wait for a person at once [default: 1000]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=PENDING_LIMIT as u64))]
    approval_pending_max: Option<u64>,
    /// Most calls of one caller that may wait for a person at once [default: 20]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=PENDING_LIMIT as u64))]
    approval_waiting_max: Option<u64>,
    /// Most times within a minute that one caller may have a person asked [default: 60]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=PENDING_LIMIT as u64))]
    approval_per_minute: Option<u64>,
}

impl ApprovalArgs {
    /// As the gate takes them: what was given here, else what the configuration says.
    pub fn options(&self, settings: &Approval) -> gate::approval::Options {
        let count = |given: Option<u64>, setting: &Setting<u64>| {
            usize::try_from(given.unwrap_or(setting.value)).unwrap_or(PENDING_LIMIT)
        };
        let ms = |seconds: Option<u64>, setting: u64| {
            seconds.map_or(setting, |seconds| seconds.saturating_mul(1_000))
        };
        gate::approval::Options {
            timeout_ms: ms(self.approval_timeout, settings.timeout.value.0),
            remember_ms: ms(self.approval_remember, settings.remember.value.0),
            pending_max: count(self.approval_pending_max, &settings.pending_max),
            waiting_per_caller_max: count(self.approval_waiting_max, &settings.waiting_max),
            asked_per_minute_max: count(self.approval_per_minute, &settings.per_minute),
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum RunTransport {
    /// HTTP first, three tries; where nobody answers, the command
    Auto,
    /// The command, over its standard streams
    Stdio,
    /// The URL
    Http,
}

impl From<RunTransport> for crate::config::values::Transport {
    fn from(given: RunTransport) -> Self {
        match given {
            RunTransport::Auto => Self::Auto,
            RunTransport::Stdio => Self::Stdio,
            RunTransport::Http => Self::Http,
        }
    }
}

/// When journal records are forced to the disk.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Sync {
    /// Once a second: survives the end of the process, may lose the last second with the power
    Interval,
    /// Before each call goes out
    Every,
    /// When the system likes
    Never,
}

/// A tool's own time.
pub fn tool_timeout(text: &str) -> Result<(String, u64), String> {
    let (tool, seconds) = text
        .rsplit_once('=')
        .filter(|(tool, _)| !tool.is_empty())
        .ok_or("write it as TOOL=SECONDS")?;
    match seconds.parse() {
        Ok(seconds @ 1..=86_400) => Ok((tool.to_owned(), seconds)),
        _ => Err(format!(
            "\"{}\" is no number of seconds from 1 to 86400",
            seconds.escape_debug()
        )),
    }
}

/// How strictly definitions are held to what was approved.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Pin {
    /// Definitions are not looked at
    Off,
    /// The change is told of, and passes
    Warn,
    /// The tool is neither shown nor called until its definition is approved
    Enforce,
}

/// Names become parts of tool names on the wire, where two underscores separate.
pub fn server_name(text: &str) -> Result<String, String> {
    let plain = !text.is_empty()
        && text.len() <= 64
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if plain && !text.contains("__") && !text.ends_with('_') {
        Ok(text.to_owned())
    } else {
        Err("a server's name has 1 to 64 letters, digits, - _ or ., no double underscore and none at its end".into())
    }
}
