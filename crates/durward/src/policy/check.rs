//! `durward policy check`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gate::policy::Policy;
use gate::policy::lint::Warning;
use serde_json::{Value, json};

use super::source::{self, PolicySource, Protected};
use super::text::Plain;
use super::{Context, EXIT_FINE, Failure, unknown_tools};
use crate::plural::count;

pub const HELP: &str = "\
Examples:
  durward policy check                 the configuration's policy
  durward policy check policy.json
  durward policy check policy.json --json | jq '.warnings[].message'

An invalid policy is refused with line, column and a hint (exit code 16). Rules that are valid but have no effect are
warnings: a path pattern that no path can match, conditions that contradict each other, a rule that another rule
always overrides, a rule on operations that allows no call of tools which have been listed, because nothing says what
they do.";

/// Arguments of `durward policy check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The rules, as JSON [default: the configuration's]
    #[arg(value_name = "FILE", env = "DURWARD_POLICY", hide_env_values = true)]
    file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Exit with 16 on a warning too
    #[arg(long)]
    strict: bool,
}

pub fn run(
    args: &CheckArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let source = match &args.file {
        Some(file) => PolicySource::File(file.clone()),
        None => source::configured(None, context, err),
    };
    let policy = source.load(Protected::AsRun, context.places);
    let policy = policy.map_err(Failure::Configuration)?;
    let mut warnings = super::warnings(&policy);
    warnings.extend(unknown_tools::warnings(
        &policy,
        (&source, args.file.is_some()),
        context.settings,
        context.places,
    ));
    let found = warnings.len();
    let file = source.to_string();
    match args.json {
        true => writeln!(out, "{:#}", object(&file, &policy, &warnings))?,
        false => print(&file, &policy, &warnings, out)?,
    }
    if args.strict && found > 0 {
        return Err(Failure::Configuration(format!(
            "{file}: {}, and --strict was given",
            count(found, "warning")
        )));
    }
    Ok(EXIT_FINE)
}

fn print(
    file: &str,
    policy: &Policy,
    warnings: &[Warning],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    for warning in warnings {
        let id = Plain(&warning.id).to_string();
        let message = Plain(&warning.message).to_string();
        writeln!(out, "warning: rule {} \"{id}\": {message}", warning.number)?;
        writeln!(out, "  hint: {}", warning.hint)?;
    }
    let rules = policy.rules().len();
    writeln!(
        out,
        "{file}: {}, {}, digest {}",
        count(rules, "rule"),
        count(warnings.len(), "warning"),
        policy.digest()
    )?;
    if rules == 0 {
        writeln!(out, "note: a policy without rules refuses every call")?;
    }
    Ok(())
}

fn object(file: &str, policy: &Policy, warnings: &[Warning]) -> Value {
    let warnings = warnings.iter().map(|warning| {
        json!({
            "rule": warning.number,
            "id": warning.id,
            "message": warning.message,
            "hint": warning.hint,
        })
    });
    json!({
        "file": file,
        "rules": policy.rules().len(),
        "digest": policy.digest(),
        "warnings": warnings.collect::<Vec<_>>(),
    })
}
