//! Arguments of the commands that look at a model without running it: info, params, explain, diff, export.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{ModelArgs, TimeoutArgs};

/// Arguments of `info`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  durward sim info model.pkml --json")]
pub struct InfoArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `params`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim params model.pkml
  durward sim params model.pkml 'Organism|**|Volume'
  durward sim params model.pkml --used-by 'Organism|VenousBlood|Plasma|C1'")]
pub struct ParamsArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Only paths that match
    pub pattern: Option<String>,
    /// Only parameters that the model's outputs, rates and events use
    #[arg(long)]
    pub used: bool,
    /// Only parameters that this output depends on
    #[arg(long, value_name = "PATH", conflicts_with = "used")]
    pub used_by: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `explain`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:
  durward sim explain model.pkml 'Organism|Liver|Volume' --depth 3")]
pub struct ExplainArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Path of the quantity
    pub path: String,
    /// Levels of quantities below it
    #[arg(long, value_name = "LEVELS", default_value_t = 1)]
    pub depth: usize,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `diff`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:
  durward sim diff before.pkml after.pkml

Quantities are matched by their paths without the name of the simulation.")]
pub struct DiffArgs {
    /// First model
    pub first: PathBuf,
    /// Second model
    pub second: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Formats that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Systems Biology Markup Language
    Sbml,
    /// SimModel xml, version 4
    Simmodel,
}

/// Arguments of `export`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Example:\n  durward sim export model.pkml --format simmodel --file model.xml\n\nWhat a format cannot say is refused by name."
)]
pub struct ExportArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Format to write
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    #[command(flatten)]
    pub timeout: TimeoutArgs,
    /// In sbml, write what never changes as numbers instead of formulas: other tools load it faster
    #[arg(long)]
    pub numbers: bool,
    /// Write to this file; - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
}
