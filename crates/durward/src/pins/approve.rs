//! Approving what waits, and forgetting.

use std::io::{self, BufRead as _, IsTerminal as _, Write};

use gate::pins::{Approval, PinFile};
use mcp::descriptions::hidden::spelled_out;
use serde_json::{Value, json};

use super::{ApproveArgs, DONE, Failure, ForgetArgs, TROUBLE, book, chosen, file, short};
use crate::classes::ToolClasses;
use crate::config::Settings;
use crate::local;
use crate::places::Places;

pub(super) fn approve(
    args: &ApproveArgs,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let file = file(places, &args.server)?;
    let now_ms = local::now_ms();
    let outcomes = file.change(|book| {
        let tools: Vec<String> = if args.all {
            book.unapproved().map(str::to_owned).collect()
        } else {
            args.tools.clone()
        };
        let mut approved = |tool: String| {
            let outcome = book.approve(&tool, args.digest.as_deref(), now_ms);
            (tool, outcome)
        };
        tools.into_iter().map(&mut approved).collect::<Vec<_>>()
    })?;
    let wrong = outcomes
        .iter()
        .any(|(_, o)| matches!(o, Approval::Unknown | Approval::Another { .. }));
    if args.json {
        let tools: Vec<_> = outcomes
            .iter()
            .map(|(tool, outcome)| match outcome {
                Approval::Approved { digest } => {
                    json!({"tool": tool, "outcome": "approved", "digest": digest})
                }
                Approval::Nothing => json!({"tool": tool, "outcome": "nothing_waits"}),
                Approval::Unknown => json!({"tool": tool, "outcome": "unknown"}),
                Approval::Another { digest } => {
                    json!({"tool": tool, "outcome": "another_waits", "digest": digest})
                }
            })
            .collect();
        let accepted = match args.accept_classes {
            true => Some(declare(args, settings, places, out)?),
            false => None,
        };
        let printed = json!({"server": args.server, "tools": tools, "classes": accepted});
        writeln!(out, "{printed:#}")?;
    } else {
        if outcomes.is_empty() {
            writeln!(out, "nothing waits at {}", args.server)?;
        }
        for (tool, outcome) in &outcomes {
            let tool = spelled_out(tool);
            match outcome {
                Approval::Approved { digest } => {
                    writeln!(out, "{tool}: approved {}", short(digest))?;
                }
                Approval::Nothing => writeln!(out, "{tool}: nothing waits")?,
                Approval::Unknown => writeln!(
                    out,
                    "{tool}: {} never listed such a tool; see durward pins list {}",
                    args.server, args.server
                )?,
                Approval::Another { digest } => writeln!(
                    out,
                    "{tool}: not approved, another definition waits now ({}); look at it again",
                    short(digest)
                )?,
            }
        }
        declare(args, settings, places, out)?;
    }
    Ok(if wrong { TROUBLE } else { DONE })
}

/// Declares what the approved tools do, as far as that is accepted, and returns the classes that were declared.
fn declare(
    args: &ApproveArgs,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
) -> Result<Value, Failure> {
    let Some(file) = &settings.writable else {
        return match args.accept_classes {
            true => Err(Failure::Said(
                "the definitions were approved, but no class was declared: --no-config leaves no file to declare it in".into(),
            )),
            false => Ok(Value::Null),
        };
    };
    let book = book(places, &args.server)?;
    let is_chosen = |name: &String| args.all || args.tools.contains(name);
    let approved = book.tools.iter().filter(|(name, _)| is_chosen(name));
    let definitions = approved.filter_map(|(name, tool)| {
        let definition = tool.approved.as_ref().filter(|own| own.by_person)?;
        Some((name.as_str(), definition.text.as_str().into()))
    });
    let mut classes = ToolClasses::propose(
        &args.server,
        settings.declared_of(&args.server),
        definitions,
    );
    if classes.is_empty() {
        return Ok(classes.to_json());
    }
    if !args.accept_classes {
        let input = io::stdin();
        if !input.is_terminal() || !io::stdout().is_terminal() {
            return Ok(Value::Null);
        }
        let mut lines = input.lock().lines();
        let accepted = classes.review(&mut || lines.next(), out);
        if !accepted.map_err(Failure::Said)? {
            writeln!(out, "no class was declared")?;
            return Ok(Value::Null);
        }
    }
    let declared = classes.declare(file, places).map_err(Failure::Said)?;
    if !args.json {
        declared.print(file, &args.server, out)?;
    }
    Ok(classes.to_json())
}

pub(super) fn forget(
    args: &ForgetArgs,
    places: &Places,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    chosen(places, Some(&args.server))?;
    let forgotten = PinFile::new(&places.pins(), &args.server)?.forget()?;
    if args.json {
        let told = json!({"server": args.server, "forgotten": forgotten});
        writeln!(out, "{told:#}")?;
    } else if forgotten {
        writeln!(
            out,
            "forgotten; the next complete list of {} will be trusted",
            args.server
        )?;
    } else {
        writeln!(out, "there was nothing to forget")?;
    }
    Ok(DONE)
}
