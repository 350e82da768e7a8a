//! The command line of `lab users`.

use std::time::Duration;

use super::kind::UserKind;
use crate::error::LabError;
use crate::url::HttpUrl;

/// Longest run.
const RUN_TIME_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Have users talk to models, as the load tests of an AI gateway do
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  durward-lab users --host http://127.0.0.1:8765 -u 20 -r 5 --run-time 20s
  durward-lab users --host http://127.0.0.1:8765 -u 10 -r 2 --run-time 15s --tags agent_reasoning
  durward-lab users --host http://127.0.0.1:8765 -u 64 -r 64 --run-time 10s --tags stress --no-pause --json

Users (tags): StressUser (stress) asks mock_agent every 0.5 s; ReActUser (agent_reasoning) offers standard_agent a
tool, runs it and asks again, every 2 to 5 s; SwitchoverUser (rotation) asks coding_agent every 1 to 3 s;
AuthenticatedUser (auth) registers and then does what StressUser does. Each reply is checked word by word; one that
is wrong, cut or late is a failure and never a time. docs/examples/ai-gateway.yaml has the models that they ask.

Exit codes: 0 no failure; 1 a failure, or nothing was answered; 2 wrong usage; 97 stopped by Ctrl-C.")]
pub struct UsersArgs {
    /// Where the gateway is
    #[arg(long, value_name = "URL")]
    host: String,
    /// How many users
    #[arg(short, long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    users: u32,
    /// How many of them begin in a second
    #[arg(short = 'r', long, value_name = "N", default_value_t = 5.0, value_parser = rate)]
    spawn_rate: f64,
    /// How long they go on
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = crate::load::duration)]
    run_time: Duration,
    /// Only users with one of these tags [default: stress, agent_reasoning, rotation]
    #[arg(long, value_delimiter = ',', value_enum)]
    tags: Vec<UserKind>,
    /// The key that all show
    #[arg(long, value_name = "KEY", conflicts_with = "register")]
    key: Option<String>,
    /// Have every user register first, as AuthenticatedUser does
    #[arg(long)]
    register: bool,
    /// No pause between two requests
    #[arg(long)]
    no_pause: bool,
    /// The time that the scripted model takes for a token, in milliseconds; it is taken off for the net times
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    token_ms: u64,
    /// After each request SwitchoverUser sends the same one to this model, for comparison
    #[arg(long, value_name = "MODEL")]
    beside: Option<String>,
    /// How long an answer may take, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout_ms: u64,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Plan of a run of users.
#[derive(Debug, Clone)]
pub(super) struct UsersPlan {
    pub host: HttpUrl,
    pub kinds: Vec<UserKind>,
    pub users: u32,
    /// Between the beginnings of two users.
    pub spawn_every: Duration,
    pub run_time: Duration,
    pub key: Option<String>,
    pub register: bool,
    pub pauses: bool,
    pub token_ms: u64,
    pub beside: Option<String>,
    pub timeout_ms: u64,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.01..=1_000.0).contains(&rate) => Ok(rate),
        _ => Err("is not a number of users in a second from 0.01 to 1000".to_owned()),
    }
}

impl UsersArgs {
    pub(super) fn plan(&self) -> Result<UsersPlan, LabError> {
        let host: HttpUrl = self.host.trim_end_matches('/').parse()?;
        if self.run_time > RUN_TIME_MAX {
            return Err(LabError::Usage("--run-time is at most 24h".to_owned()));
        }
        let is_key = |key: &String| key.bytes().all(|b| (0x21..=0x7e).contains(&b));
        if !self.key.iter().all(is_key) {
            return Err(LabError::Usage(
                "--key has a character that no key has".to_owned(),
            ));
        }
        let plain = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
        if !self.beside.iter().all(|model| model.chars().all(plain)) {
            return Err(LabError::Usage(
                "--beside is not a name of a model".to_owned(),
            ));
        }
        let kinds = match self.tags.as_slice() {
            [] => vec![
                UserKind::Stress,
                UserKind::AgentReasoning,
                UserKind::Rotation,
            ],
            tags => tags.to_vec(),
        };
        Ok(UsersPlan {
            host,
            kinds,
            users: self.users,
            spawn_every: Duration::from_secs_f64(1.0 / self.spawn_rate),
            run_time: self.run_time,
            key: self.key.clone(),
            register: self.register,
            pauses: !self.no_pause,
            token_ms: self.token_ms,
            beside: self.beside.clone(),
            timeout_ms: self.timeout_ms,
        })
    }
}
