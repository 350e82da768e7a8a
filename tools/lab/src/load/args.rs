//! The command line of `lab load`.

use super::pace::Pace;
use super::target::LoadTarget;
use crate::driver::{AnswerEquality, ProtocolRevision, TimedOperation};
use crate::error::LabError;
use crate::judge::{GateRule, parse};
use crate::output::ProgressFlags;
use crate::profile::ProfileMethod;
use crate::ssh::SshLoadArgs;
use crate::variant::{Variant, VariantTransport, check_name};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// The longest phase.
const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// The highest rate, in calls a second.
const RATE_MAX: f64 = 10_000_000.0;
/// How many workers serve a rate when none are asked for.
const WORKERS_OF_A_RATE: u32 = 32;

/// Put a target under load, at a rate or with a number of clients
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  durward-lab load tool --target 'durward-lab mock echo' --workers 4 --duration 5s
  durward-lab load tool --target 'durward run -- my-server' --rate 50/s --threshold 'response.p95 < 150ms'
  durward-lab load http --target http://127.0.0.1:8080/health --rate 500 --duration 30s

Exit codes: 0 measured, thresholds kept; 1 failed, or no call was answered; 2 wrong usage; 97 stopped by Ctrl-C,
what there was is written; 99 a threshold is broken.")]
pub struct LoadArgs {
    #[command(subcommand)]
    pub(crate) scenarios: Option<LoadCommand>,
    /// What is called
    #[arg(value_enum, required = true)]
    scenario: Option<LoadScenario>,
    /// A command (each worker starts its own) or an http:// address (each worker has its own connection)
    #[arg(long, value_name = "CMD|URL", required = true)]
    target: Option<String>,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// Clients that call again as soon as they are answered; with --rate, the most calls under way at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    workers: Option<u32>,
    /// Calls started per second, however long earlier ones take
    #[arg(long, value_name = "N[/s]", value_parser = rate)]
    rate: Option<f64>,
    /// One phase after the other instead of --duration, --workers and --rate; repeatable
    #[arg(long, value_name = "NAME=TIME@N[/s|w]", value_parser = phase, conflicts_with_all = ["rate", "duration"])]
    phase: Vec<LoadPhase>,
    /// How long after its end a phase at a rate may go on with calls that were due; those that still have not left
    /// then count as failed (`unsent`)
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    overtime: Duration,
    /// Calls of each worker that come first and are not counted
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    warm: u32,
    /// Pause of a worker between answer and next call, without --rate, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    think_ms: u64,
    /// By how much each pause of --think-ms is longer or shorter, drawn evenly, in per cent: workers that all pause for
    /// the same time come to call together
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    think_spread: u32,
    /// The tool that is called
    #[arg(long, value_name = "NAME", default_value = "echo")]
    tool: String,
    /// Its arguments
    #[arg(long, value_name = "JSON", default_value = r#"{"text":"hello"}"#)]
    tool_args: String,
    /// List the tools instead of calling one
    #[arg(long)]
    list: bool,
    /// What must be the same in every answer
    #[arg(long, value_enum, default_value_t = AnswerEquality::Same)]
    answers: AnswerEquality,
    /// The protocol revision
    #[arg(long, value_enum, default_value_t = ProtocolRevision::Legacy)]
    protocol: ProtocolRevision,
    /// The body of HTTP requests, which are then POST
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
    /// A header of HTTP requests; repeatable
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// How long an answer may take, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout_ms: u64,
    /// A rule that the last phase must keep, as `lab gate` has them; repeatable
    #[arg(long, value_name = "RULE", value_parser = parse)]
    pub(super) threshold: Vec<GateRule>,
    /// What the pauses of --think-ms are drawn by; recorded with the run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keep everything in a new directory below this one
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// A process to look at beside the target, such as a server that runs already, for `lab soak`; repeatable
    #[arg(long, value_name = "NAME=PID", value_parser = parse_watched, requires = "out")]
    watch: Vec<(String, u32)>,
    /// Profile the target while it is under load, ten seconds at most, and keep the page with the run
    #[arg(long, value_name = "WAY", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "auto", requires = "out")]
    pub(super) profile: Option<ProfileMethod>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// How progress is told
    #[command(flatten)]
    pub(super) progress: ProgressFlags,
}

/// Scenarios with steps of their own.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum LoadCommand {
    Ssh(Box<SshLoadArgs>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LoadScenario {
    /// A tool of an MCP server, over stdio or HTTP
    Tool,
    /// Plain HTTP requests
    Http,
}

/// A stretch of the run with one pace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoadPhase {
    pub(crate) name: String,
    pub(crate) duration: Duration,
    pub(crate) pace: Pace,
}

/// Plan of a load run.
#[derive(Debug, Clone)]
pub(crate) struct LoadPlan {
    pub(crate) aim: LoadTarget,
    /// As it was given.
    pub(crate) target: String,
    pub(crate) phases: Vec<LoadPhase>,
    pub(crate) workers: u32,
    pub(crate) warm: u32,
    pub(crate) think: Duration,
    /// By how much a pause is longer or shorter, of 1.
    pub(crate) think_spread: f64,
    /// How long after its end a phase at a rate may go on.
    pub(crate) overtime: Duration,
    pub(crate) timeout_ms: u64,
    pub(crate) seed: u64,
    /// Processes that are looked at beside the target.
    pub(crate) watched: Vec<(String, u32)>,
}

/// Reads 250ms, 10s, 5m, 2h.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is not a time; it is like 500ms, 10s, 5m or 2h");
    let (digits, seconds) = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        .ok_or_else(wrong)?;
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let span = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
    if span.is_zero() || span > DURATION_MAX {
        return Err(format!("{text} is not between 1ms and 168h"));
    }
    Ok(span)
}

/// Reads 50, 50/s.
fn rate(text: &str) -> Result<f64, String> {
    match text.trim_end_matches("/s").parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= RATE_MAX => Ok(rate),
        _ => Err(format!(
            "{text} is not a rate; it is calls per second above 0, like 50/s"
        )),
    }
}

/// Reads `serve=4711`.
fn parse_watched(text: &str) -> Result<(String, u32), String> {
    let wrong = || format!("{text} is not a process with a name; it is like serve=4711");
    let (name, pid) = text.split_once('=').ok_or_else(wrong)?;
    check_name(name)?;
    let pid = pid.parse().map_err(|_| wrong())?;
    match crate::processes::member(pid) {
        Some(_) => Ok((name.to_owned(), pid)),
        None => Err(format!("there is no process {pid}")),
    }
}

/// Reads `peak=10s@500/s` and `steady=1m@8w`.
fn phase(text: &str) -> Result<LoadPhase, String> {
    let wrong = || format!("{text} is not a phase; it is like peak=10s@500/s or steady=1m@8w");
    let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
    let (time, pace) = rest.split_once('@').ok_or_else(wrong)?;
    check_name(name)?;
    let pace = match pace.strip_suffix('w') {
        Some(workers) => match workers.parse() {
            Ok(workers @ 1..=1_024) => Pace::Closed { workers },
            _ => return Err(wrong()),
        },
        None => Pace::Open { rate: rate(pace)? },
    };
    Ok(LoadPhase {
        name: name.into(),
        duration: duration(time)?,
        pace,
    })
}

impl LoadArgs {
    /// Returns the plan.
    pub(super) fn plan(&self) -> Result<LoadPlan, LabError> {
        if let Some(rule) = self.threshold.iter().find(|rule| rule.is_relative()) {
            return Err(LabError::Usage(format!(
                "the threshold {rule} compares with a baseline; store the run and use lab gate"
            )));
        }
        if let Some(rule) = self.threshold.iter().find(|rule| !rule.fits_load()) {
            return Err(LabError::Usage(format!(
                "the threshold {rule} is about a quantity that a load run does not have"
            )));
        }
        let phases = self.phases();
        let busiest = phases.iter().map(|phase| match phase.pace {
            Pace::Closed { workers } => workers,
            Pace::Open { .. } => self.workers.unwrap_or(WORKERS_OF_A_RATE),
        });
        Ok(LoadPlan {
            aim: self.aim()?,
            target: self.target()?.to_owned(),
            workers: busiest.max().unwrap_or(1),
            phases,
            warm: self.warm,
            think: Duration::from_millis(self.think_ms),
            think_spread: f64::from(self.think_spread) / 100.0,
            overtime: self.overtime,
            timeout_ms: self.timeout_ms,
            seed: self.seed,
            watched: self.watch.clone(),
        })
    }

    fn phases(&self) -> Vec<LoadPhase> {
        if !self.phase.is_empty() {
            return self.phase.clone();
        }
        let pace = match self.rate {
            Some(rate) => Pace::Open { rate },
            None => Pace::Closed {
                workers: self.workers.unwrap_or(1),
            },
        };
        vec![LoadPhase {
            name: "steady".into(),
            duration: self.duration,
            pace,
        }]
    }

    fn target(&self) -> Result<&str, LabError> {
        let missing = || LabError::Usage("name what is called with --target".into());
        self.target.as_deref().ok_or_else(missing)
    }

    fn aim(&self) -> Result<LoadTarget, LabError> {
        let (target, scenario) = (self.target()?, self.scenario.unwrap_or(LoadScenario::Tool));
        let web = target.starts_with("http://") || target.starts_with("https://");
        Ok(match (scenario, web) {
            (LoadScenario::Http, false) => {
                return Err(LabError::Usage(format!(
                    "the scenario http needs an http:// address, not {target}"
                )));
            }
            (LoadScenario::Http, true) => LoadTarget::Http {
                url: target.parse()?,
                headers: self.headers()?,
                body: self.body.clone(),
                answers: self.answers,
            },
            (LoadScenario::Tool, true) => LoadTarget::McpHttp {
                url: target.parse()?,
                headers: self.headers()?,
                operation: self.operation()?,
                protocol: self.protocol,
                answers: self.answers,
            },
            (LoadScenario::Tool, false) => LoadTarget::Stdio {
                arm: Variant::parse("target", target, VariantTransport::Stdio)?,
                operation: self.operation()?,
                protocol: self.protocol,
                answers: self.answers,
            },
        })
    }

    fn headers(&self) -> Result<Vec<String>, LabError> {
        for header in &self.header {
            let name = header.split_once(':').map(|(name, _)| name);
            let plain = name
                .is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic()));
            if !plain || header.chars().any(char::is_control) {
                return Err(LabError::Usage(format!(
                    "--header takes NAME: VALUE, not {header:?}"
                )));
            }
        }
        Ok(self.header.clone())
    }

    fn operation(&self) -> Result<TimedOperation, LabError> {
        if self.list {
            return Ok(TimedOperation::List);
        }
        let arguments: Value = serde_json::from_str(&self.tool_args)
            .map_err(|error| LabError::Usage(format!("--tool-args is not JSON: {error}")))?;
        TimedOperation::call(&self.tool, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_rates_and_phases() {
        for (text, ms) in [("250ms", 250), ("10s", 10_000), ("1.5m", 90_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)));
        }
        for text in ["", "10", "0s", "-1s", "1d", "9999h", "NaNs", "infs"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(rate("50/s"), Ok(50.0));
        assert_eq!(rate("0.5"), Ok(0.5));
        for text in ["0", "0/s", "-1", "x", "NaN", "inf", "1e12"] {
            assert!(rate(text).is_err(), "{text}");
        }
        let peak = phase("peak=10s@500/s").unwrap();
        assert_eq!(peak.pace, Pace::Open { rate: 500.0 });
        assert_eq!(phase("a=1m@8w").unwrap().pace, Pace::Closed { workers: 8 });
        for text in ["", "a", "a=1s", "=1s@5", "a=1s@0w", "a=@5", "a=1s@5x"] {
            assert!(phase(text).is_err(), "{text}");
        }
    }
}
