//! Arguments of every command, and their help.

mod common;
mod estimate;
mod look;
mod population;
mod single;
mod study;

use clap::{Args as ClapArgs, Subcommand};

pub use common::{
    CacheArgs, ModelArgs, ObservedArgs, OutputArgs, SolverArgs, TimeoutArgs, UnitArgs,
};
pub use estimate::{FitArgs, IntervalChoice, SensitivityArgs};
pub use look::{DiffArgs, ExplainArgs, ExportArgs, ExportFormat, InfoArgs, ParamsArgs};
pub use population::{BatchArgs, IndividualArgs, MergeArgs, PopulationArgs};
pub use single::{PkArgs, PlotArgs, RunArgs, SteadyArgs};
pub use study::{ReportArgs, StudyArgs, StudyCommand, StudyRunArgs};

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
    /// Write the model with the values of one person of a population
    Individual(IndividualArgs),
    /// Run many commands, several at a time: runs, populations and others
    Batch(BatchArgs),
    /// Carry out a study: what one file describes of models, doses, people, data and fits
    Study(StudyArgs),
    /// Write the results of a study as one HTML file
    Report(ReportArgs),
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
