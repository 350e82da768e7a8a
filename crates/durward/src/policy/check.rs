//! `durward policy check`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::source::{self, Protected};
use super::text::Plain;
use super::{Context, EXIT_FINE, Failure};
use crate::plural::count;

pub const HELP: &str = "\
Examples:
  durward policy check                 the configuration's policy
  durward policy check policy.json

An invalid policy is refused with line, column and a hint (exit code 16). Rules that are valid but have no effect are
warnings: a path pattern that no path can match, conditions that contradict each other, a rule that another rule
always overrides.";

/// Arguments of `durward policy check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The rules, as JSON [default: the configuration's]
    #[arg(value_name = "FILE", env = "DURWARD_POLICY", hide_env_values = true)]
    file: Option<PathBuf>,
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
    let file = args
        .file
        .as_deref()
        .or_else(|| source::configured(None, context, err));
    let policy =
        source::of_file(file, Protected::AsRun, context.places).map_err(Failure::Configuration)?;
    let warnings = super::warnings(&policy);
    for warning in &warnings {
        let id = Plain(&warning.id).to_string();
        let message = Plain(&warning.message).to_string();
        writeln!(out, "warning: rule {} \"{id}\": {message}", warning.number)?;
        writeln!(out, "  hint: {}", warning.hint)?;
    }
    let (rules, found) = (policy.rules().len(), warnings.len());
    let file = file.map_or_else(|| "starter policy".to_owned(), |f| f.display().to_string());
    writeln!(
        out,
        "{file}: {}, {}, digest {}",
        count(rules, "rule"),
        count(found, "warning"),
        policy.digest()
    )?;
    if rules == 0 {
        writeln!(out, "note: a policy without rules refuses every call")?;
    }
    if args.strict && found > 0 {
        return Err(Failure::Configuration(format!(
            "{file}: {}, and --strict was given",
            count(found, "warning")
        )));
    }
    Ok(EXIT_FINE)
}
