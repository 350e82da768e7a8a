//! `durward policy check`

use std::io::Write;
use std::path::PathBuf;

use admin::policy::{self, PolicyCheck};
use clap::Args;

use super::source::{self, PolicySource, Protected};
use super::text::Plain;
use super::{Context, EXIT_FINE, Failure, listed_servers};
use crate::layout;
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
    let every = args.file.is_some();
    let listed = listed_servers(&source, every, context.settings);
    let pins = context.places.pins();
    let checked = policy::check(source.to_string(), &policy, &listed, &pins);
    match args.json {
        true => layout::json(&checked, out)?,
        false => print(&checked, out)?,
    }
    let found = checked.warnings.len();
    if args.strict && found > 0 {
        return Err(Failure::Configuration(format!(
            "{}: {}, and --strict was given",
            checked.file,
            count(found, "warning")
        )));
    }
    Ok(EXIT_FINE)
}

fn print(checked: &PolicyCheck, out: &mut dyn Write) -> std::io::Result<()> {
    for warning in &checked.warnings {
        let id = Plain(&warning.id).to_string();
        let message = Plain(&warning.message).to_string();
        writeln!(out, "warning: rule {} \"{id}\": {message}", warning.rule)?;
        writeln!(out, "  hint: {}", warning.hint)?;
    }
    writeln!(
        out,
        "{}: {}, {}, digest {}",
        checked.file,
        count(checked.rules, "rule"),
        count(checked.warnings.len(), "warning"),
        checked.digest
    )?;
    if checked.rules == 0 {
        writeln!(out, "note: a policy without rules refuses every call")?;
    }
    Ok(())
}
