//! The command line of `lab overhead`.

use super::OverheadPlan;
use crate::driver::{AnswerEquality, ProtocolRevision, TimedOperation};
use crate::error::LabError;
use crate::output::ProgressFlags;
use crate::person::PersonRole;
use crate::policies::RuleEffect;
use crate::profile::ProfileMethod;
use crate::variant::{Variant, VariantTransport};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Measure what a variant adds to a direct call, with an interval.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: what a bare relay costs, everything on core 1
  durward-lab overhead --pin 1 --direct 'durward-lab mock echo' \\
    --proxied 'durward-lab mock relay -- durward-lab mock echo'

The same over HTTP; {port} is a free port, and a command without prints its address first
  durward-lab overhead --transport http --direct 'durward-lab mock echo --http 127.0.0.1:0' \\
    --proxied 'durward-lab mock relay --http 127.0.0.1:{port} --url {direct}'

A client over stdio before a server over HTTP, beside that server itself and a bare bridge
  durward-lab overhead --topology bridge --rules 1 \\
    --direct 'durward-lab mock echo --http 127.0.0.1:0'

A person asked before each call, 8 of them open at once
  durward-lab overhead --direct 'durward-lab mock echo' --rules 4 --path hitl \\
    --concurrency 8 --approver-delay-ms 5

Exit codes: 0 measured; 1 a variant failed, was silent or is invalid, or the run could not be stored; 2 wrong usage; 97
stopped by Ctrl-C. What whole launches gave is kept below --out in each case.")]
pub struct OverheadArgs {
    /// The command of the baseline variant, named direct; over HTTP an address, URL -- CMD, or a command
    #[arg(long, value_name = "CMD")]
    direct: Option<String>,
    /// The command of a variant in the middle, named proxied (proxied2, ...), in which {direct} stands for the address
    /// of the first variant; repeatable
    #[arg(long, value_name = "CMD")]
    proxied: Vec<String>,
    /// A further variant; the first of all variants is the baseline; repeatable
    #[arg(long = "variant", alias = "arm", value_name = "NAME=CMD")]
    arm: Vec<String>,
    /// The transport of all variants
    #[arg(long, value_enum, default_value_t = VariantTransport::Stdio)]
    transport: VariantTransport,
    /// Whether the variants in the middle use the transport of the first one
    #[arg(long, value_enum, default_value_t = Topology::Same)]
    topology: Topology,
    /// The request that is timed
    #[arg(long, value_enum, default_value_t = OperationChoice::Call)]
    op: OperationChoice,
    /// The tool that is called
    #[arg(long, value_name = "NAME", default_value = "echo")]
    tool: String,
    /// Its arguments
    #[arg(long, value_name = "JSON", default_value = r#"{"text":"hello"}"#)]
    tool_args: String,
    /// Fresh starts of every variant
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    launches: u32,
    /// Timed calls per variant and launch
    #[arg(long, value_name = "N", alias = "pairs", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,
    /// Calls per variant and launch that are made first and not counted
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    warmup: u32,
    /// Calls in a row before the next variant has its turn [default: a quarter of the runs; 1 with --delay-us]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    turn: Option<u32>,
    /// Pause before every call of every variant, not measured, in microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=DELAY_US_MAX))]
    delay_us: u64,
    /// The same in seconds, as the access proxy's script takes it
    #[arg(long, value_name = "SECONDS", value_parser = delay, conflicts_with = "delay_us")]
    delay: Option<u64>,
    /// Calls under way at once, on one connection
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    concurrency: u32,
    /// Add launches until half of every interval is below 5 % of the overhead or --half-width-us, up to --launches-max
    #[arg(long)]
    adaptive: bool,
    /// The most launches of an adaptive measurement
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    launches_max: u32,
    /// Half an interval that is always narrow enough for an adaptive measurement, in microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 50.0, value_parser = half_width)]
    half_width_us: f64,
    /// Add a variant of `durward run` with this many rules before the direct command; a list
    #[arg(long, value_name = "N,...", value_delimiter = ',', requires = "direct", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) rules: Vec<u32>,
    /// A variant writes a journal to this directory: compare its stages with the measured times; repeatable
    #[arg(long, value_name = "NAME=DIR")]
    journal: Vec<String>,
    /// Keep client, variants and servers on this core
    #[arg(long, value_name = "CORE")]
    pin: Option<usize>,
    /// Seed of the random order of the turns
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How long an answer may take, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout_ms: u64,
    /// Confidence of the intervals
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = confidence)]
    confidence: f64,
    /// What the variants' answers must share
    #[arg(long, value_enum, default_value_t = AnswerEquality::Same)]
    answers: AnswerEquality,
    /// What happens to the call on its way; with deny every variant but the baseline must refuse it, with hitl ask a
    /// person first, whom the lab plays
    #[arg(long, value_enum, default_value_t = DecisionPath::Allow)]
    path: DecisionPath,
    /// How long the person of --path hitl takes over each question, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    approver_delay_ms: u64,
    /// Where a variant makes its control socket, for --path hitl; repeatable
    #[arg(long, value_name = "NAME=DIR")]
    control: Vec<String>,
    /// The protocol revision
    #[arg(long, value_enum, default_value_t = ProtocolRevision::Legacy)]
    protocol: ProtocolRevision,
    /// A named set of --warmup and --runs of the access proxy's paper
    #[arg(long, value_enum, conflicts_with_all = ["runs", "warmup"])]
    preset: Option<CallPreset>,
    /// Three launches of 30 calls with any preset: indicative
    #[arg(long, conflicts_with_all = ["runs", "launches"])]
    quick: bool,
    /// Keep manifest, summary and every single time in a new directory below this one
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Call each variant for two seconds more, under a profile that is kept with the run
    #[arg(long, value_name = "WAY", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "auto", requires = "out")]
    pub(super) profile: Option<ProfileMethod>,
    /// Write the JSON document to this file as well
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// How progress is told
    #[command(flatten)]
    pub(super) progress: ProgressFlags,
}

/// How the variant that only moves frames is called.
pub(super) const BARE_BRIDGE: &str = "bare bridge";
/// The longest pause between two calls, in microseconds.
const DELAY_US_MAX: u64 = 60_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Topology {
    /// All variants over one transport.
    Same,
    /// The first variant over HTTP, the others over stdio; a bare bridge is added.
    Bridge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OperationChoice {
    /// tools/call
    Call,
    /// tools/list
    List,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DecisionPath {
    /// Every variant answers it.
    Allow,
    /// The variants in the middle refuse it.
    Deny,
    /// The variants in the middle ask a person first, and an automatic approver says yes.
    Hitl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CallPreset {
    /// 10 warm-up calls, 100 runs.
    Seed,
    /// 5 warm-up calls, 50 runs.
    SeedRules,
}

fn confidence(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.5..=0.9999).contains(&share) => Ok(share),
        _ => Err("a confidence is a number from 0.5 to 0.9999".into()),
    }
}

fn delay(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=DELAY_US_MAX as f64 / 1e6).contains(&seconds) => {
            Ok((seconds * 1e6).round() as u64)
        }
        _ => Err("a pause is a number of seconds from 0 to 60".into()),
    }
}

fn half_width(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(us) if us > 0.0 && us.is_finite() => Ok(us),
        _ => Err("half a width is a number of microseconds above 0".into()),
    }
}

impl OverheadArgs {
    /// Returns the plan. `made` are the variants that the lab makes itself.
    pub(super) fn plan(&self, made: Vec<Variant>) -> Result<OverheadPlan, LabError> {
        let person = self.person()?;
        let delay_us = self.delay.unwrap_or(self.delay_us);
        if self.concurrency > 1 && delay_us > 0 {
            return Err(LabError::Usage(
                "a pause between calls and --concurrency above 1 contradict each other".into(),
            ));
        }
        let (launches, warmup, runs) = match (self.quick, self.preset) {
            (true, _) => (3, 10, 30),
            (_, Some(CallPreset::Seed)) => (self.launches, 10, 100),
            (_, Some(CallPreset::SeedRules)) => (self.launches, 5, 50),
            (false, None) => (self.launches, self.warmup, self.runs),
        };
        let turn = match self.turn {
            Some(turn) => turn,
            None if delay_us > 0 => 1,
            None => runs.div_ceil(4),
        };
        Ok(OverheadPlan {
            arms: self.arms(made)?,
            operation: self.operation()?,
            protocol: self.protocol,
            launches,
            launches_max: if self.adaptive {
                self.launches_max.max(launches)
            } else {
                launches
            },
            half_width_us: self.half_width_us,
            runs,
            warmup,
            turn,
            concurrency: self.concurrency,
            delay_us,
            pin: self.pin,
            seed: self.seed,
            timeout_ms: self.timeout_ms,
            confidence: self.confidence,
            answers: self.answers,
            deny: self.path == DecisionPath::Deny,
            references: self.references(),
            person,
        })
    }

    /// Who answers the questions of the variants in the middle.
    fn person(&self) -> Result<Option<PersonRole>, LabError> {
        if self.path != DecisionPath::Hitl {
            return Ok(None);
        }
        if self.approver_delay_ms >= self.timeout_ms {
            return Err(LabError::Usage(format!(
                "an approver who takes {} ms is slower than --timeout-ms {} allows",
                self.approver_delay_ms, self.timeout_ms
            )));
        }
        Ok(Some(PersonRole::Approves {
            delay: Duration::from_millis(self.approver_delay_ms),
            at_once: self.concurrency as usize,
        }))
    }

    /// Returns the effect of the rule about the measured tool, in the variants that the lab makes.
    pub(super) fn effect(&self) -> RuleEffect {
        match self.path {
            DecisionPath::Allow => RuleEffect::Allow,
            DecisionPath::Deny => RuleEffect::Deny,
            DecisionPath::Hitl => RuleEffect::Hitl,
        }
    }

    /// Returns the direct command, if there is one.
    pub(super) fn direct(&self) -> Result<Option<Variant>, LabError> {
        let line = self.direct.as_deref();
        line.map(|line| Variant::parse("direct", line, self.first_transport()))
            .transpose()
    }

    /// Returns whether a client over stdio is measured before a server over HTTP.
    pub(super) fn is_bridge(&self) -> bool {
        self.topology == Topology::Bridge
    }

    /// Returns how many of the first variants the others are compared with: over a bridge, the bare one too.
    fn references(&self) -> usize {
        match self.topology {
            Topology::Same => 1,
            Topology::Bridge => 2,
        }
    }

    fn first_transport(&self) -> VariantTransport {
        match self.topology {
            Topology::Same => self.transport,
            Topology::Bridge => VariantTransport::Http,
        }
    }

    /// Returns the transport of the variants behind the first one.
    fn further_transport(&self) -> VariantTransport {
        match self.topology {
            Topology::Same => self.transport,
            Topology::Bridge => VariantTransport::Stdio,
        }
    }

    /// Returns the tool that rule sets have to let through: the one that is called, or every one for a list.
    pub(super) fn tool_of_rules(&self) -> &str {
        match self.op {
            OperationChoice::Call => &self.tool,
            OperationChoice::List => "*",
        }
    }

    fn arms(&self, made: Vec<Variant>) -> Result<Vec<Variant>, LabError> {
        let mut arms: Vec<Variant> = self.direct()?.into_iter().collect();
        let transport = self.further_transport();
        if self.is_bridge() && (arms.is_empty() || !self.arm.is_empty()) {
            return Err(LabError::Usage(
                "--topology bridge takes the server over HTTP as --direct and the proxy as --proxied"
                    .into(),
            ));
        }
        let (bridge, made): (Vec<Variant>, Vec<Variant>) =
            made.into_iter().partition(|arm| arm.name == BARE_BRIDGE);
        arms.extend(bridge);
        for (number, line) in (1..).zip(&self.proxied) {
            let name = match number {
                1 => "proxied".to_owned(),
                more => format!("proxied{more}"),
            };
            arms.push(Variant::parse(&name, line, transport)?);
        }
        for text in &self.arm {
            let (name, line) = text
                .split_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| LabError::Usage(format!("--variant takes NAME=CMD, not {text}")))?;
            arms.push(Variant::parse(name, line, transport)?);
        }
        arms.extend(made);
        if self.is_bridge() && arms.len() < 3 {
            return Err(LabError::Usage(
                "--topology bridge compares with something: give --proxied or --rules".into(),
            ));
        }
        if arms.first().is_some_and(Variant::wants_direct) {
            return Err(LabError::Usage(
                "the first variant cannot stand before itself; {direct} is for the others".into(),
            ));
        }
        if arms.len() < 2 {
            return Err(LabError::Usage(
                "a comparison needs two commands: give --direct and --proxied, or --variant NAME=CMD twice"
                    .into(),
            ));
        }
        place(&mut arms, "--journal", &self.journal, Variant::with_journal)?;
        place(&mut arms, "--control", &self.control, Variant::with_control)?;
        let seatless = |arm: &&Variant| self.path == DecisionPath::Hitl && arm.control().is_none();
        if let Some(arm) = arms.iter().skip(self.references()).find(seatless) {
            return Err(LabError::Usage(format!(
                "--path hitl needs the control socket of variant {}: give --control {}=DIR, or let --rules make the variant",
                arm.name, arm.name
            )));
        }
        for (at, arm) in arms.iter().enumerate() {
            if arms.iter().take(at).any(|other| other.name == arm.name) {
                return Err(LabError::Usage(format!(
                    "two variants are named {}",
                    arm.name
                )));
            }
        }
        Ok(arms)
    }

    fn operation(&self) -> Result<TimedOperation, LabError> {
        if self.op == OperationChoice::List {
            return Ok(TimedOperation::List);
        }
        let arguments: Value = serde_json::from_str(&self.tool_args)
            .map_err(|error| LabError::Usage(format!("--tool-args is not JSON: {error}")))?;
        TimedOperation::call(&self.tool, arguments)
    }
}

/// Gives the variants that are named the directory that is named.
fn place(
    arms: &mut [Variant],
    flag: &str,
    texts: &[String],
    with: fn(Variant, PathBuf) -> Variant,
) -> Result<(), LabError> {
    for text in texts {
        let (name, directory) = text
            .split_once('=')
            .ok_or_else(|| LabError::Usage(format!("{flag} takes NAME=DIR, not {text}")))?;
        let arm = arms.iter_mut().find(|arm| arm.name == name);
        let arm = arm.ok_or_else(|| LabError::Usage(format!("no variant is named {name}")))?;
        *arm = with(arm.clone(), directory.into());
    }
    Ok(())
}
