//! `durward policy replay`: what would another policy have said of the calls that came?

mod outcomes;
mod record;
mod report;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gate::journal::audit::{self, Filter, Kind};
use gate::policy::{Effect, Policy};

use super::source::{self, PolicyFile, Protected};
use super::{Context, EXIT_DIFFERENT, EXIT_FINE, Failure};
use outcomes::Outlook;
use record::{Judged, Recorded};
use report::Report;

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

/// What the policy says of a recorded decision.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Result {
    /// The same. Where that is known, by which rule.
    Same { rule: Option<String> },
    /// Something else.
    Changed { now: Effect, rule: Option<String> },
    /// What would decide was not recorded: it is one of these.
    Undecidable {
        possible: Vec<Effect>,
        missing: &'static str,
    },
    /// No policy was asked.
    NotJudged,
}

pub fn run(
    args: &ReplayArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> std::result::Result<u8, Failure> {
    let file = args.policy.policy.as_deref();
    let policy = source::load(file, None, Protected::Nothing, context, err)?;
    let default = context.places.journal();
    let journal = args.journal.as_deref().unwrap_or(&default);
    let filter = Filter {
        kind: Some(Kind::Decision),
        ..Filter::default()
    };
    let mut report = Report::new(args.json, out);
    let mut written = Ok(());
    let skipped = audit::each(journal, &filter, &mut |body| {
        if written.is_ok() {
            written = match Recorded::parse(body) {
                Some(recorded) => {
                    let result = replay(&recorded, &policy);
                    report.add(&recorded, &result, policy.digest())
                }
                None => {
                    report.unreadable();
                    Ok(())
                }
            };
        }
    })
    .map_err(|error| Failure::Cannot(error.to_string()))?;
    written?;
    if skipped > 0 {
        writeln!(
            err,
            "warning: {skipped} lines cannot be read as records; run durward audit verify"
        )?;
    }
    let different = report.finish(policy.digest())?;
    Ok(if args.check && different {
        EXIT_DIFFERENT
    } else {
        EXIT_FINE
    })
}

/// Holds the policy against one decision.
fn replay(recorded: &Recorded<'_>, policy: &Policy) -> Result {
    let (was, facts) = match recorded.judged() {
        Judged::NotByPolicy => return Result::NotJudged,
        Judged::Protected => return Result::Same { rule: None },
        Judged::Incomplete { missing } => {
            return Result::Undecidable {
                possible: vec![Effect::Allow, Effect::Hitl, Effect::Deny],
                missing,
            };
        }
        Judged::Facts { was, facts } => (was, facts),
    };
    let outlook = Outlook::of(policy, &facts);
    match outlook.possible.as_slice() {
        [now] if *now == was => Result::Same { rule: outlook.rule },
        [now] => Result::Changed {
            now: *now,
            rule: outlook.rule,
        },
        // The same text said this of the same call, and it is among what it can say.
        several if recorded.by_policy(policy.digest()) && several.contains(&was) => {
            Result::Same { rule: None }
        }
        several => Result::Undecidable {
            possible: several.to_vec(),
            missing: facts.missing,
        },
    }
}
