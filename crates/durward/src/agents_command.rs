//! `durward agents`: check, list, run.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::config::agents::{AgentConfig, AgentToolset};
use crate::config::values::{self, Span};
use crate::config::{self, Settings};
use crate::failure::{EXIT_CONFIGURATION, Failure};
use crate::flags::Given;
use crate::places::Places;
use crate::providers;
use crate::serve::{AgentQuestion, ask_agent};

use crate::agents::AgentProvider;

pub const HELP: &str = "\
Examples:
  durward agents check      check agents and patterns, and name the mistakes
  durward agents list       the models that agents are, with tools and limits
  durward agents run standard_agent 'What is in /tmp?'

An agent is a model: clients call it at /v1/chat/completions of `durward serve` by its name. It is written in
durward.yaml:

  models: { providers: { local: { kind: mock } } }
  servers: { echo: { builtin: echo } }
  agents:
    standard_agent:
      model: local/plain
      instruction: Answer with the tools.
      toolsets: [{ server: echo, tools: [echo] }]

Exit codes: 0 done; 1 the agent has no answer; 16 wrong configuration.";

const RUN_HELP: &str = "\
Examples:
  durward agents run standard_agent 'What is in /tmp?'
  durward agents run standard_agent 'What is in /tmp?' --json
  durward agents run standard_agent - < question.txt

The run is judged and recorded like a client's: calls of its model and its tools may be refused, and they wait if the
policy asks a person (run `durward approvals watch` in another terminal). Thoughts and tool calls are printed on
standard error, the answer on standard output.

Exit codes: 0 answered; 1 no answer; 16 wrong configuration or arguments.";

const CHECK_HELP: &str = "\
Examples:
  durward agents check
  durward agents check --config durward.yaml

Exit codes: 0 agents can be served; 16 what is wrong, with its line and the nearest name.";

const LIST_HELP: &str = "\
Examples:
  durward agents list
  durward agents list --json

Exit codes: 0 listed; 16 wrong configuration.";

/// Longest question on standard input, in bytes.
const QUESTION_BYTES_MAX: u64 = 1024 * 1024;

/// Arguments of `durward agents`.
#[derive(Debug, Args)]
pub struct AgentsArgs {
    #[command(subcommand)]
    command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// Check agents and patterns of the configuration
    #[command(after_help = CHECK_HELP)]
    Check,
    /// List agents: names, models, tools, limits
    #[command(after_help = LIST_HELP)]
    List(AgentListArgs),
    /// Ask an agent, and print its steps and its answer
    #[command(after_help = RUN_HELP)]
    Run(AgentRunArgs),
}

#[derive(Debug, Args)]
struct AgentListArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct AgentRunArgs {
    /// The agent, by one of its names
    #[arg(value_name = "NAME")]
    name: String,
    /// The question; `-` reads it from standard input
    #[arg(value_name = "TEXT")]
    text: String,
    /// The rules, as JSON [default: the configuration's, else the starter policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Print the whole completion as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command and gives its exit code.
pub fn run(
    args: &AgentsArgs,
    (given, source): (&Given, config::Source),
    settings: Settings,
    places: &Places,
    (out, err): (&mut dyn Write, &mut dyn Write),
) -> u8 {
    let done = match &args.command {
        AgentsCommand::Check => {
            check(&settings).and_then(|()| check_written(summary(&settings, out)))
        }
        AgentsCommand::List(own) => {
            check(&settings).and_then(|()| check_written(list(&settings, own.json, out)))
        }
        AgentsCommand::Run(own) => {
            let question = check(&settings).and_then(|()| question(own, &settings));
            match question {
                Ok(question) => {
                    let policy = own.policy.clone();
                    return ask_agent(
                        question,
                        policy,
                        (given, source),
                        settings,
                        places,
                        (out, err),
                    );
                }
                Err(failure) => Err(failure),
            }
        }
    };
    match done {
        Ok(()) => 0,
        Err(failure) => {
            let _ = writeln!(err, "error: {}", failure.message);
            failure.code
        }
    }
}

fn check_written(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::other(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}

fn check(settings: &Settings) -> Result<(), Failure> {
    if settings.agents.all.is_empty() {
        return Err(Failure::configuration(
            "no agent is configured\n  hint: write agents: { NAME: { model: …, instruction: … } } in durward.yaml; `durward agents --help` has an example",
        ));
    }
    let agents = AgentProvider::new(&settings.agents);
    providers::catalogue(settings, agents.as_ref(), true).map(drop)
}

fn question(args: &AgentRunArgs, settings: &Settings) -> Result<AgentQuestion, Failure> {
    let bare = args.name.strip_prefix("agent/").unwrap_or(&args.name);
    let names: Vec<String> = settings
        .agents
        .all
        .iter()
        .flat_map(AgentConfig::models)
        .map(|(name, _)| name)
        .collect();
    if !names.iter().any(|name| name == bare) {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let hint = gate::policy::document::nearest(bare, &known).map_or_else(
            || format!("known here: {}", known.join(", ")),
            |near| format!("did you mean \"{near}\"?"),
        );
        return Err(Failure {
            code: EXIT_CONFIGURATION,
            message: format!(
                "there is no agent \"{}\"\n  hint: {hint}",
                bare.escape_debug()
            ),
        });
    }
    let text = match args.text.as_str() {
        "-" => {
            let mut text = String::new();
            let input = io::Read::take(io::stdin(), QUESTION_BYTES_MAX);
            let read = io::Read::read_to_string(&mut { input }, &mut text);
            read.map_err(|error| Failure::other(format!("the question cannot be read: {error}")))?;
            text
        }
        text => text.to_owned(),
    };
    Ok(AgentQuestion {
        model: bare.to_owned(),
        text,
        is_json: args.json,
    })
}

fn summary(settings: &Settings, out: &mut dyn Write) -> io::Result<()> {
    let agents = &settings.agents;
    let models: usize = agents.all.iter().map(|agent| agent.models().len()).sum();
    writeln!(
        out,
        "{} and {} are valid; clients see {}",
        count(agents.all.len(), "agent"),
        count(agents.patterns.len(), "pattern"),
        count(models, "model"),
    )
}

fn count(number: usize, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {word}{plural}")
}

fn list(settings: &Settings, is_json: bool, out: &mut dyn Write) -> io::Result<()> {
    let agents = &settings.agents.all;
    if is_json {
        let agents: Vec<Value> = agents.iter().map(agent_json).collect();
        return writeln!(out, "{:#}", json!({ "agents": agents }));
    }
    for agent in agents {
        let heading = format!("{}  {}", agent.name, agent.description);
        writeln!(out, "{}", heading.trim_end())?;
        let names: Vec<String> = agent.models().into_iter().map(|(name, _)| name).collect();
        writeln!(out, "  called as  {}", names.join(", "))?;
        writeln!(out, "  model      {}, {}", agent.model, agent.pattern)?;
        let tools: Vec<String> = agent.toolsets.iter().map(toolset_text).collect();
        let tools = if tools.is_empty() {
            "none".to_owned()
        } else {
            tools.join(", ")
        };
        writeln!(out, "  tools      {tools}")?;
        let limits = agent.limits;
        let cost = limits
            .cost_micros
            .map(|micros| format!(", ${}.{:06}", micros / 1_000_000, micros % 1_000_000));
        writeln!(
            out,
            "  limits     {} model calls, {} tool calls, {}, {} tokens{}; then {}",
            limits.iterations,
            limits.tool_calls,
            Span(limits.time_ms),
            limits.tokens,
            cost.unwrap_or_default(),
            values::word(agent.on_limit),
        )?;
    }
    Ok(())
}

fn toolset_text(toolset: &AgentToolset) -> String {
    match toolset {
        AgentToolset::Agent(name) => format!("agent {name}"),
        AgentToolset::Server { name, tools } if tools.is_empty() => format!("{name}/*"),
        AgentToolset::Server { name, tools } => {
            let tools: Vec<String> = tools.iter().map(|tool| format!("{name}/{tool}")).collect();
            tools.join(", ")
        }
    }
}

fn agent_json(agent: &AgentConfig) -> Value {
    let names: Vec<String> = agent.models().into_iter().map(|(name, _)| name).collect();
    let tools: Vec<String> = agent.toolsets.iter().map(toolset_text).collect();
    let limits = agent.limits;
    json!({
        "name": agent.name, "description": agent.description, "line": agent.at.line,
        "called_as": names, "model": agent.model, "pattern": agent.pattern, "tools": tools,
        "limits": {
            "max_iterations": limits.iterations, "tool_calls": limits.tool_calls, "time_ms": limits.time_ms,
            "tokens": limits.tokens, "cost_micros": limits.cost_micros, "parallel": limits.parallel,
            "tool_result_bytes": limits.tool_result_bytes,
        },
        "on_limit": values::word(agent.on_limit),
    })
}
