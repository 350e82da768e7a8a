//! Approving what waits, and forgetting.

use std::io::{self, BufRead as _, IsTerminal as _, Write};

use admin::pins::{self, PinOutcome, PinSelection};
use mcp::descriptions::hidden::spelled_out;
use serde_json::{Value, json};

use super::{ApproveArgs, DONE, Failure, ForgetArgs, TROUBLE, short};
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
    let selection = PinSelection {
        tools: args.tools.clone(),
        all: args.all,
        digest: args.digest.clone(),
    };
    let approvals = pins::approve(&places.pins(), &args.server, &selection, local::now_ms())?;
    let wrong = approvals.iter().any(|own| own.outcome.is_failure());
    if args.json {
        let accepted = match args.accept_classes {
            true => Some(declare(args, settings, places, out)?),
            false => None,
        };
        let printed = json!({"server": args.server, "tools": approvals, "classes": accepted});
        writeln!(out, "{printed:#}")?;
    } else {
        if approvals.is_empty() {
            writeln!(out, "nothing waits at {}", args.server)?;
        }
        for approval in &approvals {
            let tool = spelled_out(&approval.tool);
            match &approval.outcome {
                PinOutcome::Approved { digest } => {
                    writeln!(out, "{tool}: approved {}", short(digest))?;
                }
                PinOutcome::NothingWaits => writeln!(out, "{tool}: nothing waits")?,
                PinOutcome::Unknown => writeln!(
                    out,
                    "{tool}: {} never listed such a tool; see durward pins list {}",
                    args.server, args.server
                )?,
                PinOutcome::AnotherWaits { digest } => writeln!(
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
            true => Err(Failure::Declaration(
                "the definitions were approved, but no class was declared: --no-config leaves no file to declare it in".into(),
            )),
            false => Ok(Value::Null),
        };
    };
    let book = pins::read_book(&places.pins(), &args.server)?;
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
        if !accepted.map_err(Failure::Declaration)? {
            writeln!(out, "no class was declared")?;
            return Ok(Value::Null);
        }
    }
    let declared = classes
        .declare(file, places)
        .map_err(Failure::Declaration)?;
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
    let forgotten = pins::forget(&places.pins(), &args.server)?;
    if args.json {
        let printed = json!({"server": args.server, "forgotten": forgotten});
        writeln!(out, "{printed:#}")?;
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
