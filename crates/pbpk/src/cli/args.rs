//! Arguments of every command, and their help.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

/// Read, run and analyse PBPK simulations (.pkml of PK-Sim and MoBi, SimModel xml)
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  durward sim info model.pkml
  durward sim params model.pkml 'Organism|*|Volume'
  durward sim run model.pkml --csv results.csv --param 'Organism|Weight=70 kg'
  durward sim pk model.pkml --output '**|Plasma (Peripheral Venous Blood)'
  durward sim plot model.pkml --output '**|VenousBlood|Plasma|*' --log

Values are in base units unless a unit is given: minutes, litres, kilograms, µmol, dm.")]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What a file holds: name, quantities, events, output times, solver settings
    Info(InfoArgs),
    /// List parameters with values and units
    Params(ParamsArgs),
    /// Run and write the outputs
    Run(RunArgs),
    /// Run many individuals: a population of the suite, or one drawn from distributions
    Population(PopulationArgs),
    /// Join what the shards of a population run left in their folders
    Merge(MergeArgs),
    /// What outputs and their pharmacokinetic parameters depend on
    Sensitivity(SensitivityArgs),
    /// Fit parameters to observed data
    Fit(FitArgs),
    /// Find the steady state: where all states end up
    Steady(SteadyArgs),
    /// Pharmacokinetic parameters of outputs
    Pk(PkArgs),
    /// Draw outputs, in the terminal or as SVG
    Plot(PlotArgs),
    /// Where a value comes from: its formula, and what that uses
    Explain(ExplainArgs),
    /// In what two models differ: quantities, formulas, values, events, settings
    Diff(DiffArgs),
    /// Write the model in another format
    Export(ExportArgs),
}

/// Which model, and how it is read and changed.
#[derive(Debug, ClapArgs)]
pub struct ModelArgs {
    /// Model file: .pkml or SimModel .xml
    pub model: PathBuf,
    /// Change a parameter or start value; may be repeated, and PATH may hold * and **
    #[arg(long = "param", value_name = "PATH=VALUE[unit]")]
    pub params: Vec<String>,
    /// Refuse what the schema forbids but the genuine solver tolerates
    #[arg(long)]
    pub strict: bool,
}

/// Which outputs.
#[derive(Debug, ClapArgs)]
pub struct OutputArgs {
    /// Output path or pattern instead of the file's selection; may be repeated
    #[arg(long = "output", value_name = "PATH")]
    pub outputs: Vec<String>,
    /// All persistable quantities instead of the file's selection
    #[arg(long, conflicts_with = "outputs")]
    pub all: bool,
}

/// In which units values are shown.
#[derive(Debug, Default, ClapArgs)]
pub struct UnitArgs {
    /// Show outputs in this unit where it fits; `display` is the unit that the file shows. Masses of amounts too, by molecular weight; may be repeated
    #[arg(long = "unit", value_name = "UNIT")]
    pub units: Vec<String>,
    /// Show times in this unit: min, h, day(s) ...
    #[arg(long, value_name = "UNIT", default_value = "min")]
    pub time_unit: String,
}

/// How to run.
#[derive(Debug, ClapArgs)]
pub struct SolverArgs {
    /// Relative tolerance instead of the file's
    #[arg(long, value_name = "NUMBER")]
    pub rtol: Option<f64>,
    /// Absolute tolerance instead of the file's
    #[arg(long, value_name = "NUMBER")]
    pub atol: Option<f64>,
    /// Internal steps per output interval instead of the file's
    #[arg(long, value_name = "STEPS")]
    pub max_steps: Option<u64>,
    /// Output times in minutes instead of the file's grid: 0,10,20
    #[arg(long, value_name = "TIMES", value_delimiter = ',')]
    pub times: Vec<f64>,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<f64>,
    /// Fire state-dependent events at their true time, not at the next output time
    #[arg(long)]
    pub locate_events: bool,
    /// Test events once at the start; by default twice where 0 is a switch time, as the genuine solver does
    #[arg(long)]
    pub once_at_start: bool,
    /// Recognise equal output times in double precision (default: single)
    #[arg(long)]
    pub double_times: bool,
}

/// Arguments of `info`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  durward sim info model.pkml --json")]
pub struct InfoArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// As JSON
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
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `run`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim run model.pkml --csv results.csv
  durward sim run model.pkml --csv - --all --stats
  durward sim run model.pkml --csv out.csv --param 'Applications|**|Dose=250 mg' --rtol 1e-6 --atol 1e-9
  durward sim run model.pkml --csv out.csv --output '**|Plasma' --unit mg/l --time-unit h

The CSV starts with `Time [min]`, then one column `path [unit]` for each output; base units unless --unit says
otherwise, full double precision, nan inf -inf. Without --csv a summary is printed: of the outputs named, else of
the 30 largest of the file's.")]
pub struct RunArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub solver: SolverArgs,
    #[command(flatten)]
    pub unit: UnitArgs,
    /// Write results to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Report steps, evaluations and tolerances on standard error
    #[arg(long)]
    pub stats: bool,
    /// Summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `population`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim population model.pkml people.csv --out results
  durward sim population model.pkml --size 1000 --seed 7 --vary 'Organism|Weight [kg]=normal(73;10)' --out results

A population file has the column IndividualId and one column `path [unit]` for each parameter, as the suite
writes it. The folder then holds results.csv (IndividualId, Time [min], one column per output), failures.csv and
population.csv. An interrupted run keeps its finished parts; the same command goes on from there.")]
pub struct PopulationArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Population file (CSV)
    #[arg(value_name = "POPULATION", conflicts_with_all = ["size", "vary", "latin", "correlate"])]
    pub population: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub solver: SolverArgs,
    /// Folder for the results
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Draw this many individuals instead of reading a file
    #[arg(long, value_name = "NUMBER")]
    pub size: Option<usize>,
    /// Start of the random numbers; the same seed draws the same individuals
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Parameter that differs between drawn individuals: normal(MEAN;SD), lognormal(MEAN;SD) with geometric mean and deviation, uniform(MIN;MAX), discrete(VALUE:WEIGHT;...); may be repeated
    #[arg(long, value_name = "PATH [unit]=DISTRIBUTION", requires = "size")]
    pub vary: Vec<String>,
    /// Correlation of two drawn parameters, by their normal scores; may be repeated
    #[arg(
        long,
        value_name = "PATH~PATH=NUMBER",
        requires = "vary",
        conflicts_with = "latin"
    )]
    pub correlate: Vec<String>,
    /// Draw a Latin hypercube: each parameter once from each of NUMBER equally likely parts
    #[arg(long, requires = "size")]
    pub latin: bool,
    /// Threads; as many as the machine has by default. The results do not depend on it
    #[arg(long, value_name = "NUMBER")]
    pub threads: Option<usize>,
    /// Individuals in one part of the run
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub chunk: usize,
    /// Run only this share of the parts, as one of N processes: 1/N to N/N; `sim merge` joins their folders
    #[arg(long, value_name = "I/N", conflicts_with_all = ["percentiles", "pk", "arrow"])]
    pub shard: Option<String>,
    /// Refuse a population with parameters that the model does not have
    #[arg(long)]
    pub strict_paths: bool,
    /// Write percentiles.csv: these percentiles over all individuals, for each output and time, for example 5,50,95
    #[arg(long, value_name = "PERCENT", value_delimiter = ',')]
    pub percentiles: Vec<f64>,
    /// Write pk.csv: pharmacokinetic parameters of every individual and output
    #[arg(long)]
    pub pk: bool,
    /// Write an SVG of the percentiles for each output: the middle one as a line, pairs around it as bands
    #[arg(long, requires = "percentiles")]
    pub bands: bool,
    /// Write the results as Arrow IPC files too, one for each part, and chunks.csv with their ranges and checksums
    #[arg(long)]
    pub arrow: bool,
}

/// Arguments of `merge`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Example, as four jobs of a cluster and one that waits for them:
  durward sim population model.pkml people.csv --out part1 --shard 1/4
  ...
  durward sim merge results part1 part2 part3 part4

The joined tables hold the same bytes as those of one run. Shards may also share one folder; then name it alone. The
command `population` with the joined folder as --out goes on from there, for example with --percentiles."
)]
pub struct MergeArgs {
    /// Folder for the joined results
    pub out: PathBuf,
    /// Folders of the shards
    pub folders: Vec<PathBuf>,
}

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
    /// Parameter path or pattern; may be repeated. By default all that the file lets vary
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
    /// As JSON
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

The data have a column `Time [unit]` and one column `path [unit]` for each output; empty cells are left out.
Parameters start at the model's values (--param changes them); those that are positive are fitted by their
logarithms. Intervals hold the true value with 95 % where the model is right and the errors are independent.")]
pub struct FitArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Observed data (CSV)
    pub data: PathBuf,
    /// Parameter to fit, perhaps with bounds in base units; may be repeated
    #[arg(long, value_name = "PATH[=MIN..MAX]", required = true)]
    pub vary: Vec<String>,
    /// How errors are measured
    #[arg(long, value_enum, default_value_t = ErrorModel::Log)]
    pub error: ErrorModel,
    /// Weight of an output's data, by default 1; may be repeated
    #[arg(long, value_name = "PATH=NUMBER")]
    pub weight: Vec<String>,
    #[command(flatten)]
    pub solver: SolverArgs,
    /// Write observed and fitted values to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// As JSON
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
    /// State that may go on changing, or a pattern of such; may be repeated
    #[arg(long, value_name = "PATH")]
    pub ignore: Vec<String>,
    /// Largest change relative to the value that counts as none
    #[arg(long, value_name = "NUMBER", default_value_t = 1e-6)]
    pub change: f64,
    /// Longest time to run to
    #[arg(long, value_name = "MINUTES", default_value_t = 1e8)]
    pub until: f64,
    #[command(flatten)]
    pub solver: SolverArgs,
    /// Write a table to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Arguments of `pk`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim pk model.pkml --output '**|Plasma (Peripheral Venous Blood)'
  durward sim pk model.pkml --output 'Organism|A' --norm-dose 2.5 --user 'AUC_24h=AUC_tEnd,0,1440'

Doses and application times are read from the model; for the normalisation, --norm-dose (µmol/kg) and
--infusion (min) replace them by one application at the first time. To give another dose, use --param.")]
pub struct PkArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub solver: SolverArgs,
    /// Dose per body weight in µmol/kg by which parameters are normalised; does not change what is given in the model
    #[arg(long, alias = "dose", value_name = "NUMBER")]
    pub norm_dose: Option<f64>,
    /// Infusion time of that application in minutes
    #[arg(long, value_name = "MINUTES", requires = "norm_dose")]
    pub infusion: Option<f64>,
    /// A parameter of your own: NAME=MEASURE,START,END in minutes, an end may be left empty; may be repeated
    #[arg(long = "user", value_name = "DEFINITION")]
    pub user: Vec<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
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
    /// Draw these observed data as circles: a column `Time [unit]` and one column `path [unit]` for each output
    #[arg(long, value_name = "FILE", requires = "svg")]
    pub observed: Option<PathBuf>,
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
    /// In sbml, write what never changes as numbers instead of formulas: other tools load it faster
    #[arg(long)]
    pub numbers: bool,
    /// Write to this file; - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
}
