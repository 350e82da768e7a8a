//! Arguments of the commands on populations: population, merge, individual, batch.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::common::number;
use super::{CacheArgs, ModelArgs, OutputArgs, SolverArgs, TimeoutArgs};

/// Arguments of `population`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim population model.pkml people.csv --out results
  durward sim population model.pkml --size 1000 --seed 7 --vary 'Organism|Weight [kg]=normal(73;10)' --out results

A population file has the column IndividualId and one column `path [unit]` for each parameter, as the suite
writes it. A column is a parameter if its name without the unit holds a |; all others are covariates, which no model uses.
An empty cell leaves the individual the model's value. Separators are comma, semicolon (then also decimal commas) and tab.
The folder then holds results.csv (IndividualId, Time [min], one column per output), failures.csv and
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
    #[command(flatten)]
    pub cache: CacheArgs,
    /// Parameters of individuals that follow the time: the suite's table of IndividualId, ParameterPath, Time and Value
    /// (CSV)
    #[arg(long, alias = "aging", value_name = "FILE")]
    pub ageing: Option<PathBuf>,
    /// Folder for the results
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Draw this many individuals instead of reading a file
    #[arg(long, value_name = "NUMBER")]
    pub size: Option<usize>,
    /// Start of the random numbers; the same seed draws the same individuals
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Parameter that differs between drawn individuals: normal(MEAN;SD), lognormal(MEAN;SD) with geometric mean and
    /// deviation, uniform(MIN;MAX), discrete(VALUE:WEIGHT;...); repeatable
    #[arg(long, value_name = "PATH [unit]=DISTRIBUTION", requires = "size")]
    pub vary: Vec<String>,
    /// Correlation of two drawn parameters, by their normal scores; repeatable
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
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', value_parser = number, allow_hyphen_values = true)]
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
    #[command(flatten)]
    pub timeout: TimeoutArgs,
}

/// Arguments of `individual`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  durward sim individual model.pkml people.csv 17 --file person17.pkml
  durward sim run person17.pkml --csv person17.csv

The file is the model as it was, with the values of that person fixed; a .pkml stays a .pkml that PK-Sim and MoBi open, a
SimModel xml a SimModel xml.")]
pub struct IndividualArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Population file (CSV)
    #[arg(value_name = "POPULATION")]
    pub population: PathBuf,
    /// IndividualId of the person
    #[arg(value_name = "ID", allow_negative_numbers = true)]
    pub id: i64,
    /// Write to this file; - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
}

/// Arguments of `batch`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example, with a file runs.txt:
  # one person, then all
  run model.pkml --csv one.csv --param 'Organism|Weight=70 kg'
  population model.pkml people.csv --out results --percentiles 5,50,95

  durward sim batch runs.txt

Each line is a command as after 'durward sim'; paths are those of the folder in which the batch is started. All lines are
read before the first is carried out. What they print comes in the order of the file.")]
pub struct BatchArgs {
    /// File with one command a line
    pub file: PathBuf,
    /// Commands at a time; as many as the machine has processors by default. A population has threads of its own
    #[arg(long, value_name = "NUMBER")]
    pub threads: Option<usize>,
}
