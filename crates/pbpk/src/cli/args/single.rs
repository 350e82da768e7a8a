//! Arguments of the commands that run one individual: run, steady, pk, plot.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::common::number;
use super::{CacheArgs, ModelArgs, ObservedArgs, OutputArgs, SolverArgs, UnitArgs};

/// Arguments of `run`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim run model.pkml --csv results.csv
  durward sim run model.pkml --csv - --all --stats
  durward sim run model.pkml --csv out.csv --param 'Applications|**|Dose=250 mg' --rtol 1e-6 --atol 1e-9
  durward sim run model.pkml --csv out.csv --output '**|Plasma' --unit mg/l --time-unit h
  durward sim run model.pkml --csv out.csv --dose '250 mg,interval=12 h,number=6,loading=500 mg'

The CSV starts with `Time [min]`, then one column `path [unit]` for each output; base units unless --unit says
otherwise, full double precision, nan inf -inf. Without --csv a summary is printed: of the outputs named, else of
the 30 largest of the file's.

With --cache a run is not repeated where model file, values, outputs, times, tolerances and this
program are those of a run that is kept: the numbers are the same, bit by bit.")]
pub struct RunArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub solver: SolverArgs,
    #[command(flatten)]
    pub unit: UnitArgs,
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Write results to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Report steps, evaluations and tolerances on standard error
    #[arg(long)]
    pub stats: bool,
    /// Print the summary as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `steady`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim steady model.pkml
  durward sim steady model.pkml --ignore '**|Urine|**' --csv steady.csv

The model runs to a time and to twice that time, longer and longer, until no state differs between the two. The
values can be given to a run with --param PATH=VALUE.")]
pub struct SteadyArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// State that may go on changing, or a pattern of such; repeatable
    #[arg(long, value_name = "PATH")]
    pub ignore: Vec<String>,
    /// Largest change relative to the value that counts as none
    #[arg(long, value_name = "NUMBER", default_value_t = 1e-6, value_parser = number, allow_negative_numbers = true)]
    pub change: f64,
    /// Longest time to run to
    #[arg(long, value_name = "MINUTES", default_value_t = 1e8, value_parser = number, allow_negative_numbers = true)]
    pub until: f64,
    #[command(flatten)]
    pub solver: SolverArgs,
    /// Write a table to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `pk`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim pk model.pkml --output '**|Plasma (Peripheral Venous Blood)'
  durward sim pk model.pkml --output 'Organism|A' --norm-dose 2.5 --user 'AUC_24h=AUC_tEnd,0,1440'
  durward sim pk model.pkml --csv kinetics.csv --xlsx kinetics.xlsx
  durward sim pk model.pkml --dose '250 mg,interval=12 h,number=6'
  durward sim pk model.pkml --observed measured.csv

Doses and application times are read from the model; for the normalisation, --norm-dose (µmol/kg) and
--infusion (min) replace them by one application at the first time. To give other doses, use --dose. With several
doses the parameters of dosing intervals follow: AUC_tau_ss, R_ac, PTF, Swing and others. With --observed, the
parameters are those of the observed values: missing ones are left out, and values below the limit of quantification
are 0 before the first quantified one and left out after it.")]
pub struct PkArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub solver: SolverArgs,
    /// Dose per body weight in µmol/kg by which parameters are normalised; does not change what is given in the model
    #[arg(long, value_name = "NUMBER", value_parser = number, allow_negative_numbers = true)]
    pub norm_dose: Option<f64>,
    /// Infusion time of that application in minutes
    #[arg(long, value_name = "MINUTES", requires = "norm_dose", value_parser = number, allow_negative_numbers = true)]
    pub infusion: Option<f64>,
    /// Parameters of these observed values instead of those of the model's curves
    #[arg(long, value_name = "FILE")]
    pub observed: Option<PathBuf>,
    #[command(flatten)]
    pub of: ObservedArgs,
    /// A parameter of your own: NAME=MEASURE,START,END in minutes, an end may be left empty; repeatable
    #[arg(long = "user", value_name = "DEFINITION")]
    pub user: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the table to this file (CSV); - for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the table as a workbook
    #[arg(long, value_name = "FILE")]
    pub xlsx: Option<PathBuf>,
}

/// Arguments of `plot`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim plot model.pkml --output 'Organism|A' --output 'Organism|B'
  durward sim plot model.pkml --output '**|Plasma|C1' --log --svg curves.svg
  durward sim plot model.pkml --observed measured.csv --unit mg/l --svg curves.svg

With --observed and no --output, the observed outputs are drawn.")]
pub struct PlotArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub solver: SolverArgs,
    #[command(flatten)]
    pub unit: UnitArgs,
    /// Draw these observed data as circles, values below the limit of quantification as triangles: a column `Time
    /// [unit]` and one column `path [unit]` for each output, perhaps followed by SD and LLOQ, or a NONMEM-like table
    #[arg(long, value_name = "FILE", requires = "svg")]
    pub observed: Option<PathBuf>,
    #[command(flatten)]
    pub of: ObservedArgs,
    /// Write an SVG file instead of drawing here; - for standard output
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Logarithmic values
    #[arg(long)]
    pub log: bool,
    /// Heading; the simulation's name by default
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Width in characters
    #[arg(long, value_name = "COLUMNS", default_value_t = 80)]
    pub width: usize,
    /// Plain ASCII only
    #[arg(long)]
    pub ascii: bool,
}
