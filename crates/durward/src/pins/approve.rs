//! Approving what waits, and forgetting.

use std::io::Write;

use gate::pins::{Approval, PinFile};
use mcp::descriptions::hidden::spelled_out;
use serde_json::json;

use super::{ApproveArgs, DONE, Failure, ForgetArgs, TROUBLE, chosen, file, short};
use crate::local;
use crate::places::Places;

pub(super) fn approve(
    args: &ApproveArgs,
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
        writeln!(out, "{:#}", json!({"server": args.server, "tools": tools}))?;
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
    }
    Ok(if wrong { TROUBLE } else { DONE })
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
