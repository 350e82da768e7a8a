//! Arguments of the commands on studies: study run, report.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

/// Arguments of `study`.
#[derive(Debug, ClapArgs)]
pub struct StudyArgs {
    /// What to do
    #[command(subcommand)]
    pub command: StudyCommand,
}

/// Commands on a study.
#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// Do everything that a study file describes: fits, runs, kinetics, plots, populations
    Run(StudyRunArgs),
}

/// Arguments of `study run`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example, with a file study.yaml:
  name: Twice a day
  arms:
    - name: fitted
      model: model.pkml
      regimen: [{dose: 250 mg, interval: 12 h, number: 6}]
      outputs: ['**|Plasma (Peripheral Venous Blood)']
      data: observed.csv
      population: people.csv
      estimates: clearance
  fits:
    - {name: clearance, arm: fitted, vary: ['Drug|Clearance=0.01..1'], error: combined, starts: 20}

  durward sim study run study.yaml

Paths are those of the file's folder. Results go to a folder beside the file, named like it. A step whose inputs have the
same content as the last time is not repeated, so that a study that was interrupted goes on where it stopped.")]
pub struct StudyRunArgs {
    /// Study file (YAML)
    pub study: PathBuf,
    /// Folder for the results; by default that of the file's name without its extension
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

/// Arguments of `report`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:
  durward sim report study.yaml --file report.html

Runs what is not done yet, as 'study run' does. The report is one HTML file with all pictures in it.")]
pub struct ReportArgs {
    #[command(flatten)]
    pub study: StudyRunArgs,
    /// Write to this file; by default report.html in the folder of the results
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}
