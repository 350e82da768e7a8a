//! `durward policy replay`

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use admin::OperationWatch;
use admin::policy::{ReplayDifference, ReplaySummary, replay};
use clap::Args;

use super::source::{self, PolicyFile, Protected};
use super::text::Plain;
use super::{Context, EXIT_DIFFERENT, EXIT_FINE, Failure};
use crate::layout;

pub const HELP: &str = "\
Examples:
  durward policy replay --policy new.json              over this installation's journal
  durward policy replay --journal DIR --policy new.json --json
  durward policy replay --policy new.json --check      exit code 1 if anything would change

Each recorded decision is compared with what the policy would decide: the same, changed, or undecidable if the journal
lacks a fact that decides (contents are never recorded). Refusals that no policy decided are left out; calls that
touched a protected path are refused under any policy. Links in the policy's patterns are resolved as they are now.
The journal is read but not verified; see `durward audit verify`.";

/// Arguments of `durward policy replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Directory of the journal, or one segment file [default: this installation's]
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyFile,
    /// Print one JSON object per decision that is not the same, then one with the counts
    #[arg(long)]
    json: bool,
    /// Exit with 1 if a decision is changed or undecidable
    #[arg(long)]
    check: bool,
}

pub fn run(
    args: &ReplayArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let file = args.policy.policy.as_deref();
    let policy = source::load(file, None, Protected::Nothing, context, err)?;
    let default = context.places.journal();
    let journal = args.journal.as_deref().unwrap_or(&default);
    let mut written: io::Result<()> = Ok(());
    let mut each = |difference: &ReplayDifference| {
        written = match args.json {
            true => layout::json_line(difference, out),
            false => print(difference, out),
        };
        match written.is_ok() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    let replayed = replay(journal, &policy, &mut each, &mut OperationWatch::default());
    written?;
    let summary = replayed?;
    if summary.skipped > 0 {
        writeln!(
            err,
            "warning: {} lines cannot be read as records; run durward audit verify",
            summary.skipped
        )?;
    }
    match args.json {
        true => layout::json_line(&summary, out)?,
        false => print_summary(&summary, out)?,
    }
    Ok(match args.check && summary.is_different() {
        true => EXIT_DIFFERENT,
        false => EXIT_FINE,
    })
}

fn print(difference: &ReplayDifference, out: &mut dyn Write) -> io::Result<()> {
    let tool = difference.tool_name.as_ref();
    let what = tool.or(difference.mcp_method.as_ref());
    let by = |rule: &Option<String>| {
        let rule = rule.as_deref();
        rule.map_or_else(String::new, |rule| format!(" ({})", Plain(rule)))
    };
    let path = difference.path.as_deref();
    let path = path.map(|path| format!(" {}", Plain(path)));
    write!(
        out,
        "{}  {}  {}  {}{}  {}{} -> {}{}",
        difference.result.label(),
        Plain(&difference.time),
        Plain(&difference.op),
        Plain(what.map_or("-", String::as_str)),
        path.unwrap_or_default(),
        difference.was,
        by(&difference.was_rule),
        difference.now.join(" or "),
        by(&difference.now_rule)
    )?;
    match difference.missing {
        Some(missing) => writeln!(out, "  not recorded: {missing}"),
        None => writeln!(out),
    }
}

fn print_summary(summary: &ReplaySummary, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{} decisions: {} the same, {} changed, {} undecidable",
        summary.decisions, summary.same, summary.changed, summary.undecidable
    )?;
    for (change, count) in &summary.changes {
        let (was, now) = change.split_once(" -> ").unwrap_or((change, ""));
        writeln!(out, "  {count} from {was} to {now}")?;
    }
    let same = summary.same_by_another_rule;
    for (count, what) in [
        (same, "the same, by a rule of another name"),
        (summary.not_judged, "refused before any policy was asked"),
        (summary.unreadable, "not readable as decisions"),
    ] {
        if count > 0 {
            writeln!(out, "  {count} {what}")?;
        }
    }
    let digest = &summary.policy_digest;
    let own = summary.recorded_policies.get(digest).copied();
    writeln!(
        out,
        "policy {digest}: {} of the decisions were taken under it",
        own.unwrap_or_default()
    )
}
