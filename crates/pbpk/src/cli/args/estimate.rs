//! Arguments of the commands that vary parameters: sensitivity, fit.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::common::number;
use super::{ModelArgs, ObservedArgs, OutputArgs, SolverArgs};

/// Arguments of `sensitivity`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim sensitivity model.pkml --parameter 'R1|k1' --output 'Organism|B'
  durward sim sensitivity model.pkml --parameter 'Organism|**|Volume' --exact --csv derivatives.csv

Without --exact: for each pharmacokinetic parameter its relative change per relative change of a model parameter,
the mean over small changes up and down, as the suite computes it. With --exact: derivatives of the outputs over
time, computed with the run; the table holds the largest, times the parameter and over the peak of the output.")]
pub struct SensitivityArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Parameter path or pattern; repeatable. By default all that the file lets vary
    #[arg(long = "parameter", value_name = "PATH")]
    pub parameters: Vec<String>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub solver: SolverArgs,
    /// Exact derivatives of the outputs instead of changes of pharmacokinetic parameters
    #[arg(long)]
    pub exact: bool,
    /// Largest relative change
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0.1,
        value_parser = number,
        allow_negative_numbers = true,
        conflicts_with = "exact"
    )]
    pub range: f64,
    /// Changes up, and as many down
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 2,
        conflicts_with = "exact"
    )]
    pub steps: u32,
    /// Write a table to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// How far data may lie from a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ErrorModel {
    /// Differences of logarithms: errors are a share of the value. Values that are not positive are left out
    Log,
    /// Differences
    Absolute,
}

/// Arguments of `fit`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim fit model.pkml observed.csv --vary 'R1|k1=0.001..1'
  durward sim fit model.pkml observed.csv --vary 'Organism|Liver|Volume' --vary 'R1|k1' --error absolute
  durward sim fit model.pkml observed.csv --vary 'R1|k1' --csv fitted.csv --svg fit.svg

The data have a column `Time [unit]` and one column `path [unit]` for each output; empty cells are left out. A column
SD after an output weights its values; <0.2, or a column LLOQ, marks values below the limit of quantification: such a
value counts only where the model is above the limit. A table with TIME and DV is read like one of NONMEM; --dv names
the output. Masses are taken for amounts by molecular weight.
Parameters start at the model's values (--param changes them); those that are positive are fitted by their
logarithms. Intervals hold the true value with 95 % where the model is right and the errors are independent.")]
pub struct FitArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Observed data (CSV)
    pub data: PathBuf,
    /// Parameter to fit, perhaps with bounds in base units; repeatable
    #[arg(long, value_name = "PATH[=MIN..MAX]", required = true)]
    pub vary: Vec<String>,
    /// How errors are measured
    #[arg(long, value_enum, default_value_t = ErrorModel::Log)]
    pub error: ErrorModel,
    /// Weight of an output's data, by default 1; repeatable
    #[arg(long, value_name = "PATH=NUMBER")]
    pub weight: Vec<String>,
    #[command(flatten)]
    pub of: ObservedArgs,
    #[command(flatten)]
    pub solver: SolverArgs,
    /// Write observed and fitted values to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw how well the curves fit, as SVG: observed against fitted values, and what is left over over time
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
