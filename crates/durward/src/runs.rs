//! `durward runs show`: the calls of one run as a tree, as the journal has them.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use admin::calls::{self, CallQuery, RecordConditions};
use clap::{Args, Subcommand};
use gate::journal::audit::Filter;
use serde_json::{Map, Value, json};

use crate::audit::Context;
use crate::config::agents::PROVIDER;

pub const HELP: &str = "\
Examples:
  durward runs show nightly-7            the calls of a run as a tree, with times, tokens and cost
  durward runs show nightly-7 --json

A run is named by the header x-durward-run of its requests, or by the trace id of traceparent; the answer of an agent
names it too. Each call is below the call on whose behalf it was made.

Exit codes: 0 shown; 1 the journal has no such run, or cannot be read.";

/// Most calls of a run that are shown.
const CALLS_MAX: usize = 10_000;
/// Deepest level that is shown.
const DEPTH_MAX: usize = 32;

/// Arguments of `durward runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    #[command(subcommand)]
    command: RunsCommand,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// Show the calls of a run as a tree
    #[command(after_help = HELP)]
    Show(RunShowArgs),
}

#[derive(Debug, Args)]
struct RunShowArgs {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A call of a run.
#[derive(Debug, Default)]
struct RunCall {
    label: String,
    parent: Option<String>,
    decision: String,
    reason: String,
    status: String,
    duration_us: Option<f64>,
    tokens: Option<u64>,
    cost_micros: Option<u64>,
}

/// Runs the command and gives its exit code.
pub fn run(args: &RunsArgs, context: &Context, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let RunsCommand::Show(args) = &args.command;
    let shown = read(&args.run, context).and_then(|calls| {
        if calls.is_empty() {
            return Err(format!(
                "the journal has no run \"{}\"\n  hint: durward logs shows the latest calls",
                args.run.escape_debug()
            ));
        }
        let written = match args.json {
            true => writeln!(out, "{:#}", tree_json(&args.run, &calls)),
            false => write_tree(&args.run, &calls, out),
        };
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(format!("cannot write: {error}"))
            }
            _ => Ok(()),
        }
    });
    match shown {
        Ok(()) => 0,
        Err(message) => {
            let _ = writeln!(err, "error: {message}");
            1
        }
    }
}

/// Reads the calls of a run by their operations, which are in the order of time.
fn read(run: &str, context: &Context) -> Result<BTreeMap<String, RunCall>, String> {
    let conditions = RecordConditions {
        run: Some(run.to_owned()),
        ..RecordConditions::default()
    };
    let query = CallQuery {
        filter: conditions.tighten(Filter::default()),
        limit: CALLS_MAX,
        ..CallQuery::default()
    };
    let page = calls::list(&context.journal, &query).map_err(|error| error.to_string())?;
    let mut calls: BTreeMap<String, RunCall> = BTreeMap::new();
    for record in page.records {
        let Some(members) = record.members() else {
            continue;
        };
        let Some(op) = text(&members, "op") else {
            continue;
        };
        let call = calls.entry(op).or_default();
        match members.get("kind").and_then(Value::as_str) {
            Some("decision") => read_decision(&members, call),
            Some("operation") => read_operation(&members, call),
            _ => {}
        }
    }
    Ok(calls)
}

/// Returns a member: a text, or the first text of a list.
fn text(members: &Map<String, Value>, name: &str) -> Option<String> {
    let value = members.get(name)?;
    let value = value.get(0).unwrap_or(value);
    value.as_str().map(str::to_owned)
}

fn read_decision(members: &Map<String, Value>, call: &mut RunCall) {
    let server = text(members, "backend_id").unwrap_or_default();
    let model = text(members, "model");
    let tool = text(members, "tool_name");
    let method = text(members, "mcp_method").or_else(|| text(members, "method"));
    call.label = match (model, tool) {
        (Some(model), _) if server == PROVIDER => format!("agent {model}"),
        (Some(model), _) => format!("model {model}"),
        (None, Some(tool)) => format!("tool {server}/{tool}"),
        (None, None) => format!("{server} {}", method.unwrap_or_default()),
    };
    call.parent = text(members, "parent_op");
    call.decision = text(members, "decision").unwrap_or_default();
    call.reason = text(members, "reason").unwrap_or_default();
}

fn read_operation(members: &Map<String, Value>, call: &mut RunCall) {
    call.status = text(members, "status").unwrap_or_default();
    if let Some(reason) = text(members, "reason") {
        call.reason = reason;
    }
    call.duration_us = members.get("duration_us").and_then(Value::as_f64);
    let usage = members.get("usage");
    let count = |name: &str| usage.and_then(|usage| usage.get(name)?.as_u64());
    let tokens = [count("input_tokens"), count("output_tokens")];
    if tokens.iter().any(Option::is_some) {
        let sum = tokens.into_iter().flatten().fold(0, u64::saturating_add);
        call.tokens = Some(sum);
    }
    call.cost_micros = count("cost_micros");
}

/// Returns the operations below this one, in the order of time; those without a known parent are at the top.
fn children<'c>(calls: &'c BTreeMap<String, RunCall>, parent: Option<&str>) -> Vec<&'c String> {
    let is_child = |call: &RunCall| match (&call.parent, parent) {
        (Some(own), Some(parent)) => own == parent,
        (Some(own), None) => !calls.contains_key(own),
        (None, parent) => parent.is_none(),
    };
    let found = calls.iter().filter(|(_, call)| is_child(call));
    found.map(|(op, _)| op).collect()
}

fn write_tree(run: &str, calls: &BTreeMap<String, RunCall>, out: &mut dyn Write) -> io::Result<()> {
    let tokens = calls.values().filter_map(|call| call.tokens);
    let cost = calls.values().filter_map(|call| call.cost_micros);
    writeln!(
        out,
        "run {}: {} calls, {} tokens, ${}",
        run.escape_debug(),
        calls.len(),
        tokens.fold(0, u64::saturating_add),
        dollars(cost.fold(0, u64::saturating_add))
    )?;
    let mut seen = HashSet::new();
    let mut stack: Vec<(usize, &String)> = Vec::new();
    stack.extend(children(calls, None).into_iter().rev().map(|op| (1, op)));
    while let Some((depth, op)) = stack.pop() {
        let Some(call) = calls.get(op).filter(|_| seen.insert(op)) else {
            continue;
        };
        writeln!(out, "{}{}", "  ".repeat(depth), line(call))?;
        if depth < DEPTH_MAX {
            let below = children(calls, Some(op.as_str())).into_iter().rev();
            stack.extend(below.map(|op| (depth + 1, op)));
        }
    }
    Ok(())
}

fn line(call: &RunCall) -> String {
    let state = match call.status.as_str() {
        "" => call.decision.as_str(),
        status => status,
    };
    let mut line = format!("{}  {state}", call.label.escape_debug());
    if !call.reason.is_empty() {
        line.push_str(&format!(" ({})", call.reason));
    }
    if let Some(us) = call.duration_us {
        line.push_str(&format!("  {:.1} ms", us / 1_000.0));
    }
    if let Some(tokens) = call.tokens {
        line.push_str(&format!("  {tokens} tokens"));
    }
    if let Some(cost) = call.cost_micros {
        line.push_str(&format!("  ${}", dollars(cost)));
    }
    line
}

fn dollars(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn tree_json(run: &str, calls: &BTreeMap<String, RunCall>) -> Value {
    let calls = calls.iter().map(|(op, call)| {
        json!({
            "op": op, "parent_op": call.parent, "call": call.label, "decision": call.decision,
            "status": call.status, "reason": call.reason, "duration_us": call.duration_us,
            "tokens": call.tokens, "cost_micros": call.cost_micros,
        })
    });
    json!({ "run": run, "calls": calls.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_below_the_one_that_made_it() {
        let call = |label: &str, parent: Option<&str>, tokens| RunCall {
            label: label.into(),
            parent: parent.map(str::to_owned),
            decision: "allow".into(),
            status: "Success".into(),
            duration_us: Some(1_500.0),
            tokens,
            ..RunCall::default()
        };
        let calls = BTreeMap::from([
            ("01".into(), call("agent a", None, None)),
            ("02".into(), call("model m", Some("01"), Some(7))),
            ("03".into(), call("tool s/t", Some("01"), None)),
            ("04".into(), call("model far", Some("00"), Some(5))),
        ]);
        let mut out = Vec::new();
        write_tree("r", &calls, &mut out).unwrap();
        let expect = "run r: 4 calls, 12 tokens, $0.000000
  agent a  Success  1.5 ms
    model m  Success  1.5 ms  7 tokens
    tool s/t  Success  1.5 ms
  model far  Success  1.5 ms  5 tokens
";
        assert_eq!(String::from_utf8(out).unwrap(), expect);
    }
}
