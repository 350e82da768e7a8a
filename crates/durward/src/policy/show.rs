//! `durward policy show`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gate::policy::{ANCESTOR_RULE, DEFAULT_RULE, Effect, PROTECTED_RULE, Rule};
use serde_json::{Map, Value, json};

use super::source::{self, Protected};
use super::text::{Plain, by_precedence, list};
use super::{Context, EXIT_FINE, Failure};
use crate::layout;
use crate::layout::table::{Column, Long, Table};

pub const HELP: &str = "\
Examples:
  durward policy show                  the configuration's policy, else the starter policy
  durward policy show policy.json
  durward policy show policy.json --json | jq '.rules[].id'

All matching rules count: deny outranks hitl, hitl outranks allow, and a call that no rule allows is refused. If
several rules with the deciding effect match, the most specific one is named in the decision.";

/// Arguments of `durward policy show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The rules, as JSON [default: the configuration's, else the starter policy]
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
    let policy = source::load(args.file.as_deref(), None, Protected::AsRun, context, err)?;
    let numbered: Vec<(usize, &Rule)> = policy.rules().iter().enumerate().collect();
    let rules = by_precedence(numbered, |(_, rule)| rule);
    if args.json {
        let rules: Vec<Value> = rules.iter().map(|(at, rule)| object(*at, rule)).collect();
        let all = json!({ "digest": policy.digest(), "rules": rules });
        writeln!(out, "{all:#}")?;
        return Ok(EXIT_FINE);
    }
    let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
    let protected = "the state, the keys, the configuration, the policy, this program";
    let above = "a directory above these, in a call of a tool that may move it";
    let mut rows = vec![row(["  -", "deny", PROTECTED_RULE, protected])];
    let mut ancestor = Some(row(["  -", "hitl", ANCESTOR_RULE, above]));
    for (at, rule) in &rules {
        let conditions: Vec<String> = asked(rule)
            .map(|(name, texts)| format!("{name}={}", list(texts)))
            .collect();
        if rule.effect != Effect::Deny {
            rows.extend(ancestor.take());
        }
        let number = format!("{:3}", at + 1);
        let id = Plain(&rule.id).to_string();
        let conditions = conditions.join(" and ");
        rows.push(row([&number, rule.effect.label(), &id, &conditions]));
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

fn asked(rule: &Rule) -> impl Iterator<Item = (&'static str, &[String])> {
    let asked = rule.conditions.all().iter();
    asked.map(|asked| (asked.row.key, asked.texts.as_slice()))
}

fn object(at: usize, rule: &Rule) -> Value {
    let conditions: Map<String, Value> = asked(rule)
        .map(|(name, texts)| (name.to_owned(), json!(texts)))
        .collect();
    json!({
        "number": at + 1,
        "id": rule.id,
        "description": rule.description,
        "effect": rule.effect.label(),
        "specificity": rule.conditions.specificity(),
        "conditions": conditions,
        "cache_side_effects": rule.cache_side_effects,
        "approvers": rule.approvers,
    })
}
