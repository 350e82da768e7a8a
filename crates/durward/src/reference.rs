//! Reference pages, printed from the code they describe; `cargo xtask docs` writes them.

use std::io::{self, Write};

use gate::facts::{FACTS, ResourceType};
use gate::policy::{CONDITIONS, Operation, effects, when};
use gate::{ControlKind, Reason};
use mcp::http::refused::Refused;
use mcp::message::frames::{UPSTREAM_CODE, UpstreamFault};
use net::http::server::BodyFault;
use toolkit::mcp::META_REFUSAL;

use crate::cli::Cli;

mod events;
pub mod lookup;

/// A page that the binary prints.
pub struct Topic {
    pub name: &'static str,
    write: fn(&mut dyn Write) -> io::Result<()>,
}

/// The pages of `durward help`.
pub const TOPICS: [Topic; 6] = [
    topic("policy", policy),
    topic("config", crate::config::keys::page),
    topic("reasons", reasons),
    topic("events", events::page),
    topic("glossary", |out| {
        out.write_all(include_bytes!("../../../docs/glossary.md"))
    }),
    topic("cookbook", |out| {
        out.write_all(include_bytes!("../../../docs/cookbook.md"))
    }),
];

/// Pages of docs/reference that `durward help` does not list, or lists under another name.
const OTHERS: [Topic; 2] = [
    topic("commands", commands),
    topic("keys", crate::config::keys::page),
];

const fn topic(name: &'static str, write: fn(&mut dyn Write) -> io::Result<()>) -> Topic {
    Topic { name, write }
}

/// The page of `durward help` with this name.
pub fn page_of(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

/// Prints a page; gives the exit code.
pub fn print(page: &str, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let other = || OTHERS.iter().find(|topic| topic.name == page);
    let Some(topic) = page_of(page).or_else(other) else {
        let names: Vec<&str> = TOPICS
            .iter()
            .chain(&OTHERS)
            .map(|topic| topic.name)
            .collect();
        let _ = writeln!(
            err,
            "error: no page \"{page}\"; there are: {}",
            names.join(", ")
        );
        return 2;
    };
    match (topic.write)(out) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => 1,
        Ok(()) | Err(_) => 0,
    }
}

fn commands(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# Commands\n\nGenerated from the code (`cargo xtask docs`)."
    )?;
    let mut root = crate::help::fitted(Cli::line(), None);
    root.build();
    describe(&mut root, out)
}

fn describe(command: &mut clap::Command, out: &mut dyn Write) -> io::Result<()> {
    let name = command
        .get_bin_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned();
    writeln!(
        out,
        "\n## `{name}`\n\n```text\n{}\n```",
        tidy(&command.render_long_help().to_string())
    )?;
    for sub in command
        .get_subcommands_mut()
        .filter(|sub| !sub.is_hide_set())
        // Those that the parser adds say nothing of their own.
        .filter(|sub| sub.get_name() != "help" || sub.get_after_help().is_some())
    {
        describe(sub, out)?;
    }
    Ok(())
}

/// Lines without trailing blanks.
fn tidy(text: &str) -> String {
    text.trim_end()
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}

fn reasons(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# Reasons\n\nGenerated from the code (`cargo xtask docs`). Each label is closed: no other can appear.\n"
    )?;
    refusals(out)?;
    writeln!(
        out,
        "\n## Faults of the server\n\nJSON-RPC code {UPSTREAM_CODE}, label in `data.reason`.\n"
    )?;
    writeln!(out, "| reason | retry can help | message |\n|---|---|---|")?;
    for fault in UpstreamFault::ALL {
        writeln!(
            out,
            "| `{}` | {} | {} |",
            fault.label(),
            yes(fault.is_retryable()),
            fault.sentence()
        )?;
    }
    writeln!(
        out,
        "\n## Frames that cannot be taken\n\n| reason | JSON-RPC code |\n|---|---|"
    )?;
    for kind in wire::WireErrorKind::ALL {
        writeln!(out, "| `{}` | {} |", kind.label(), kind.code())?;
    }
    requests(out)?;
    writeln!(
        out,
        "\n## The protocol's own traffic\n\nCounted per session, in its last record.\n\n| kind |\n|---|"
    )?;
    for kind in ControlKind::ALL {
        writeln!(out, "| `{}` |", kind.label())?;
    }
    writeln!(
        out,
        "\n## Exit codes of `durward run`\n\n| code | meaning |\n|---|---|"
    )?;
    let journal = crate::failure::EXIT_JOURNAL;
    let configuration = crate::failure::EXIT_CONFIGURATION;
    writeln!(
        out,
        "| 0 | the client closed its side, or a signal asked for the end |\n| 1 | the server ended by itself |"
    )?;
    let unreachable = crate::failure::EXIT_ISSUER_UNREACHABLE;
    let not_signed_in = crate::failure::EXIT_NOT_SIGNED_IN;
    let changed = crate::failure::EXIT_IDENTITY_CHANGED;
    writeln!(
        out,
        "| {journal} | the journal failed, or the state directory cannot be used |"
    )?;
    writeln!(
        out,
        "| {unreachable} | the issuer of the sign-in cannot be reached |\n| {not_signed_in} | nobody is signed in, or the sign-in has ended |\n| {changed} | another person has signed in |"
    )?;
    writeln!(out, "| {configuration} | wrong configuration |")
}

/// Requests over HTTP that never become a call.
fn requests(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\n## Requests over HTTP that are refused before they are a call\n"
    )?;
    writeln!(
        out,
        "Label in `data.reason`; where a retry can help, `Retry-After` says when.\n"
    )?;
    writeln!(
        out,
        "| reason | HTTP status | retry can help | message |\n|---|---|---|---|"
    )?;
    for refused in Refused::ALL {
        writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            refused.label(),
            refused.status().as_u16(),
            yes(refused.is_retryable()),
            refused.sentence()
        )?;
    }
    for fault in BodyFault::ALL {
        let (status, sentence) = (fault.status(), fault.sentence());
        let again = yes(fault == BodyFault::BudgetExhausted);
        writeln!(
            out,
            "| `{}` | {} | {again} | {sentence} |",
            fault.label(),
            status.as_u16()
        )?;
    }
    Ok(())
}

/// The gate's refusals, with a column for each dialect.
fn refusals(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "## Refusals by the gate\n\nA refused `tools/call` is answered with a tool result that has `isError`: a text for the model (message and advice), and"
    )?;
    writeln!(
        out,
        "`structuredContent` with the label as `reason`, `final_rule`, `retryable` and, where it is known, `retry_after_ms`. Where the tool"
    )?;
    writeln!(
        out,
        "declares an output schema the same members are in `_meta`, under `{META_REFUSAL}`, because clients validate `structuredContent` with"
    )?;
    writeln!(
        out,
        "that schema. With `refusals: error`, and for every other method, the answer is a JSON-RPC error with the same members in `data`."
    )?;
    writeln!(
        out,
        "A built-in tool that is refused inside its call has the label as `code` of its failure; a client over plain HTTP sees the status.\n"
    )?;
    writeln!(
        out,
        "| reason | retry can help | MCP error | HTTP status | message | advice |\n|---|---|---|---|---|---|"
    )?;
    for reason in Reason::ALL {
        writeln!(
            out,
            "| `{label}` | {} | {} | {} | {} | {} |",
            yes(reason.is_retryable()),
            toolkit::reasons::mcp_error(reason),
            toolkit::reasons::http_status(reason).as_u16(),
            reason.sentence("RULE"),
            reason.advice(),
            label = reason.label(),
        )?;
    }
    Ok(())
}

fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

fn policy(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# Policy\n\nGenerated from the code (`cargo xtask docs`).\n"
    )?;
    writeln!(
        out,
        "Precedence: protected path, deny, hitl, allow; what no rule allows is refused. Conditions of a rule are joined by"
    )?;
    writeln!(
        out,
        "AND, members of a list by OR; an empty list never matches.\n\n## Conditions\n"
    )?;
    for row in CONDITIONS {
        let also = row
            .also
            .map_or_else(String::new, |also| format!(" (or `{also}`)"));
        writeln!(out, "- `{}`{also}: {}", row.key, row.about)?;
    }
    when_page(out)?;
    let list = |labels: Vec<&str>| {
        labels
            .iter()
            .map(|l| format!("`{l}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    writeln!(
        out,
        "\n`operations`: {}.",
        list(Operation::ALL.iter().map(|o| o.label()).collect())
    )?;
    writeln!(
        out,
        "\n`resource_type`: {}.",
        list(ResourceType::ALL.iter().map(|t| t.label()).collect())
    )?;
    writeln!(
        out,
        "\n## The starter policy\n\nApplies where no policy is given.\n\n```json\n{}```",
        gate::policy::starter::STARTER_POLICY
    )?;
    writeln!(
        out,
        "\n## Tools that are known by name\n\nA tool that is not listed and that you have not declared under `servers.NAME.tools` is unknown: it may do anything, so deny and hitl\nrules on operations and side effects match it, and allow rules do not. A listed tool counts as listed while its schema and its\nannotations do not contradict.\n"
    )?;
    writeln!(out, "| tool | operations | side effects |\n|---|---|---|")?;
    for (tool, operations, effects) in effects::table() {
        writeln!(
            out,
            "| `{tool}` | {} | {} |",
            match operations {
                Some(operations) => list(operations.iter().map(Operation::label).collect()),
                None => "by its arguments".to_owned(),
            },
            if effects.is_empty() {
                "none".to_owned()
            } else {
                list(effects.to_vec())
            }
        )?;
    }
    Ok(())
}

/// The condition that is an expression: its facts, functions and bounds.
fn when_page(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\n`when` is an expression in CEL over the facts below, at most {} bytes. Where it touches an unknown fact, fails, or gives no",
        when::WHEN_BYTES_MAX
    )?;
    writeln!(
        out,
        "truth value, it is unknown, which counts against the call: deny and hitl rules match, allow rules do not.\n"
    )?;
    writeln!(
        out,
        "```json\n{{ \"effect\": \"hitl\", \"conditions\": {{ \"when\": \"operation == 'write' && !paths.all(p, p.startsWith('/tmp/'))\" }} }}\n```\n"
    )?;
    writeln!(out, "| fact | what it is |\n|---|---|")?;
    for row in FACTS {
        let also = row
            .also
            .map_or_else(String::new, |also| format!(" (or `{also}`)"));
        writeln!(out, "| `{}`{also} | {} |", row.name, row.about)?;
    }
    let words = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        words.join(", ")
    };
    writeln!(
        out,
        "\nFunctions: {}. Over lists: {}.",
        words(&when::FUNCTIONS),
        words(&when::MACROS)
    )?;
    writeln!(
        out,
        "Bounds: {} brackets, {} steps of all loops together, lists of {} (a call with more paths has unknown ones), {} patterns of `matches`, {} bytes each.",
        when::BRACKETS_MAX,
        when::STEPS_MAX,
        when::LIST_MAX,
        when::PATTERNS_MAX,
        when::PATTERN_BYTES_MAX
    )
}
