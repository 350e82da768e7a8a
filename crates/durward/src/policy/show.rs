//! `durward policy show`

use std::io::Write;
use std::path::{Path, PathBuf};

use admin::policy::list_rules;
use clap::Args;
use gate::policy::{ANCESTOR_RULE, DEFAULT_RULE, Effect, PROTECTED_RULE};

use super::history;
use super::source::{self, Protected};
use super::text::{Plain, list};
use super::{Context, EXIT_FINE, Failure};
use crate::layout;
use crate::layout::table::{Column, Long, Table};

pub const HELP: &str = "\
Examples:
  durward policy show                  the configuration's policy, else the starter policy
  durward policy show policy.json
  durward policy show v3               a version that was in force; see durward policy history
  durward policy show policy.json --json | jq '.rules[].id'

All matching rules count: deny outranks hitl, hitl outranks allow, and a call that no rule allows is refused. If
several rules with the deciding effect match, the most specific one is named in the decision.";

/// Arguments of `durward policy show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The rules, as JSON, or a version such as v3 [default: the configuration's, else the starter policy]
    #[arg(value_name = "FILE", env = "DURWARD_POLICY", hide_env_values = true)]
    file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const COLUMNS: [Column; 4] = [
    Column::new("  #", 0, Long::Whole),
    Column::new("effect", 0, Long::Whole),
    Column::new("rule", 16, Long::Wrap),
    Column::new("conditions", 20, Long::Wrap),
];

pub fn run(
    args: &ShowArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let version = args.file.as_deref().and_then(version_of);
    let policy = match version {
        Some(number) => history::load(number, context, err)?,
        None => source::load(args.file.as_deref(), None, Protected::AsRun, context, err)?,
    };
    let listed = list_rules(&policy);
    if args.json {
        layout::json(&listed, out)?;
        return Ok(EXIT_FINE);
    }
    let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
    let protected = "the state, the keys, the configuration, the policy, this program";
    let above = "a directory above these, in a call of a tool that may move it";
    let mut rows = vec![row(["  -", "deny", PROTECTED_RULE, protected])];
    let mut ancestor = Some(row(["  -", "hitl", ANCESTOR_RULE, above]));
    for rule in &listed.rules {
        let conditions = rule.conditions.iter();
        let conditions: Vec<String> = conditions
            .map(|(name, texts)| format!("{name}={}", list(texts)))
            .collect();
        if rule.effect != Effect::Deny.label() {
            rows.extend(ancestor.take());
        }
        let number = format!("{:3}", rule.number);
        let id = Plain(&rule.id).to_string();
        let conditions = conditions.join(" and ");
        rows.push(row([&number, rule.effect, &id, &conditions]));
    }
    rows.extend(ancestor);
    let rest = "whatever no rule allows";
    rows.push(row(["  -", "deny", DEFAULT_RULE, rest]));
    let table = Table::of(&COLUMNS, &rows, layout::screen_width(), 0);
    table.heading(out)?;
    for row in &rows {
        table.row(row, out)?;
    }
    Ok(EXIT_FINE)
}

/// Returns the version that is named instead of a file.
fn version_of(file: &Path) -> Option<u64> {
    let name = file.to_str()?.strip_prefix('v')?;
    name.parse().ok().filter(|_| !file.exists())
}
