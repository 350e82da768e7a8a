//! Flags that several commands have, and what they come to beside the configuration.

use gate::approval::{PENDING_LIMIT, REMEMBER_S_MAX, TIMEOUT_S_MAX, TIMEOUT_S_MIN};
use gate::journal::SyncPolicy;
use mcp::federation::Prefix;
use mcp::message::refusal::Refusals;

use crate::config::settings::{Approval, Setting};
use crate::config::{Origin, Settings, values};

/// Where values of the command line came from.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    pub state_dir: Origin,
    pub policy: Origin,
}

/// What is done about descriptions and definitions.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ScreeningArgs {
    /// What to do if a tool's definition differs from the approved one [default: warn]
    #[arg(long, value_enum)]
    pub pin: Option<Pin>,
    /// Remove the targets of links from descriptions
    #[arg(long)]
    pub strip_links: bool,
    /// Cut descriptions to this many characters
    #[arg(long, value_name = "CHARS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub description_length: Option<u32>,
}

/// How strictly definitions are held to what was approved.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Pin {
    /// Do not check definitions
    Off,
    /// Warn, and let the tool pass
    Warn,
    /// Hide the tool and refuse calls until the definition is approved
    Enforce,
}

/// How names are spelled in front of several servers.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct PrefixArgs {
    /// In front of all servers: put SERVER__ before the names of tools where there is more than one server (auto), or
    /// always [default: auto]
    #[arg(long, value_name = "auto|always", value_parser = prefix)]
    pub prefix: Option<Prefix>,
}

fn prefix(word: &str) -> Result<Prefix, String> {
    values::of_word(word).ok_or_else(|| "write auto or always".into())
}

/// How refused tool calls are answered.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct RefusalArgs {
    /// Answer a refused tool call with a tool result (isError) or a JSON-RPC error [default: result]
    #[arg(long, value_name = "result|error", value_parser = refusals)]
    refusals: Option<Refusals>,
}

impl RefusalArgs {
    /// What was given here, else what the configuration says.
    pub fn over(self, settings: &Settings) -> Refusals {
        self.refusals.unwrap_or(settings.refusals.value)
    }
}

fn refusals(word: &str) -> Result<Refusals, String> {
    values::of_word(word).ok_or_else(|| "write result or error".into())
}

/// How calls wait for a person.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ApprovalArgs {
    /// How long a call waits for a person's answer, in seconds; without an answer the call is refused [default: 50]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(TIMEOUT_S_MIN..=TIMEOUT_S_MAX))]
    approval_timeout: Option<u64>,
    /// How long `allow` is remembered for the same call, in seconds; 0: never [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=REMEMBER_S_MAX))]
    approval_remember: Option<u64>,
    /// Most calls that may wait for a person at once [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=PENDING_LIMIT as u64))]
    approval_pending_max: Option<u64>,
    /// Most calls of one caller that may wait for a person at once [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=PENDING_LIMIT as u64))]
    approval_waiting_max: Option<u64>,
    /// Most questions of one caller per minute [default: 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=PENDING_LIMIT as u64))]
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
    /// HTTP first, three tries; then the command
    Auto,
    /// The command, over its standard streams
    Stdio,
    /// The URL
    Http,
}

impl From<RunTransport> for values::Transport {
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
    /// Once a second: a power failure may lose the last second
    Interval,
    /// Before each call is sent
    Every,
    /// Left to the operating system
    Never,
}

/// When journal records are forced to the disk: by the flag, else by the configuration.
pub fn sync_policy(flag: Option<Sync>, settings: &Settings) -> SyncPolicy {
    let sync = match flag {
        Some(Sync::Interval) => values::Sync::Interval,
        Some(Sync::Every) => values::Sync::Every,
        Some(Sync::Never) => values::Sync::Never,
        None => settings.sync.value,
    };
    match sync {
        values::Sync::Interval => SyncPolicy::Interval { interval_ms: 1_000 },
        values::Sync::Every => SyncPolicy::Every,
        values::Sync::Never => SyncPolicy::Never,
    }
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
            "\"{}\" is not a number of seconds from 1 to 86400",
            seconds.escape_debug()
        )),
    }
}
