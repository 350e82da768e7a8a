//! Arguments of the commands that vary parameters: sensitivity, fit.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args as ClapArgs, ValueEnum};

use crate::fit::ResidualModel;

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

impl ValueEnum for ResidualModel {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Log => {
                "Least squares of logarithms: errors are a share of the value. Values that are not positive are left out"
            }
            Self::Absolute => "Least squares of differences",
            Self::Additive => "Likelihood: normal errors, one standard deviation for each output",
            Self::Proportional => "Likelihood: normal errors, a share of the value of the model",
            Self::Combined => "Likelihood: both, variances added",
            Self::LogNormal => {
                "Likelihood: log-normal errors. Values that are not positive are left out"
            }
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

/// How intervals of estimates by likelihood are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IntervalChoice {
    /// Ends at which the profile of the likelihood falls below its bound
    Profile,
    /// From the curvature at the optimum: fewer runs
    Hessian,
}

/// Arguments of `fit`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim fit model.pkml observed.csv --vary 'R1|k1=0.001..1'
  durward sim fit model.pkml observed.csv --vary 'Organism|Liver|Volume' --vary 'R1|k1' --error absolute
  durward sim fit model.pkml observed.csv --vary 'R1|k1' --csv fitted.csv --svg fit.svg
  durward sim fit model.pkml observed.csv --vary 'R1|k1=0.001..1' --error combined --starts 20

The data have a column `Time [unit]` and one column `path [unit]` for each output; empty cells are left out. A column
SD after an output weights its values; <0.2, or a column LLOQ, marks values below the limit of quantification: with
least squares such a value counts only where the model is above the limit, with a likelihood it has the probability
that the true value is below it (M3). A table with TIME and DV is read like one of NONMEM; --dv names
the output. Masses are taken for amounts by molecular weight.
Parameters start at the model's values (--param changes them); those that are positive are fitted by their
logarithms. Intervals hold the true value with 95 % where the model is right and the errors are independent.
With --error additive, proportional, combined or log-normal the standard deviations are estimated too, and -2 log
likelihood, AIC and BIC are printed.")]
pub struct FitArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Observed data: CSV, or a sheet of a workbook (xlsx, xls, ods)
    pub data: PathBuf,
    /// Parameter to fit, perhaps with bounds in base units; repeatable
    #[arg(long, value_name = "PATH[=MIN..MAX]", required = true)]
    pub vary: Vec<String>,
    /// How errors are measured
    #[arg(long, value_enum, default_value_t = ResidualModel::Log)]
    pub error: ResidualModel,
    /// With a likelihood, number of starts: the first at the model's values, the others between the bounds
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub starts: u16,
    /// Seed of the further starts
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
    /// With a likelihood, how the intervals are found
    #[arg(long, value_enum, default_value_t = IntervalChoice::Profile)]
    pub interval: IntervalChoice,
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
