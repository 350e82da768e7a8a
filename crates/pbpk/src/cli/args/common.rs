//! What several commands take: model, outputs, units, solver.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::run::OspVersion;

/// Which model, and how it is read and changed.
#[derive(Debug, ClapArgs)]
pub struct ModelArgs {
    /// Model file: .pkml or SimModel .xml
    pub model: PathBuf,
    /// Change a parameter or start value; repeatable, and PATH may hold * and **
    #[arg(long = "param", value_name = "PATH=VALUE[unit]")]
    pub params: Vec<String>,
    /// Give these doses instead of the file's: DOSE[,interval=TIME][,number=N][,start=TIME][,infusion=TIME][,loading=DOSE]
    /// [,container=PATH][,steady], such as '250 mg,interval=12 h,number=6'; repeatable
    #[arg(long = "dose", value_name = "REGIMEN")]
    pub doses: Vec<String>,
    /// Refuse what the schema forbids but the genuine solver tolerates
    #[arg(long)]
    pub strict: bool,
}

/// Which outputs.
#[derive(Debug, ClapArgs)]
pub struct OutputArgs {
    /// Output path or pattern instead of the file's selection; repeatable
    #[arg(long = "output", value_name = "PATH")]
    pub outputs: Vec<String>,
    /// All persistable quantities instead of the file's selection
    #[arg(long, conflicts_with = "outputs")]
    pub all: bool,
}

/// In which units values are shown.
#[derive(Debug, Default, ClapArgs)]
pub struct UnitArgs {
    /// Show outputs in this unit where it fits; `display` is the unit that the file shows. Masses of amounts too, by
    /// molecular weight; repeatable
    #[arg(long = "unit", value_name = "UNIT")]
    pub units: Vec<String>,
    /// Show times in this unit: min, h, day(s) ...
    #[arg(long, value_name = "UNIT", default_value = "min")]
    pub time_unit: String,
}

/// Which outputs the observations of a NONMEM-like table are of.
#[derive(Debug, Default, ClapArgs)]
pub struct ObservedArgs {
    /// Output that the column DV of a NONMEM-like table is of; with several compartments CMT=OUTPUT, repeatable
    #[arg(long = "dv", value_name = "[CMT=]OUTPUT")]
    pub dv: Vec<String>,
    /// Sheet of a workbook with observed data (xlsx, xls, ods), by default the first
    #[arg(long, value_name = "NAME")]
    pub sheet: Option<String>,
}

/// Where results are kept for the next time.
#[derive(Debug, Default, ClapArgs)]
pub struct CacheArgs {
    /// Keep results in this folder, and take them from there where model, inputs, tolerances and engine are the same
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// Most that this folder holds, in MiB; the oldest results go first
    #[arg(long, value_name = "MIB", default_value_t = 1024, requires = "cache")]
    pub cache_size: u64,
}

/// Returns a number, or why the text is none.
pub(super) fn number(text: &str) -> Result<f64, String> {
    let parsed = text.trim().parse();
    parsed.map_err(|_| "write a number, with a point and without a unit".to_owned())
}

/// Returns a number of things of which there is at least one.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let parsed = text.trim().parse().ok().filter(|n| *n > 0);
    parsed.ok_or_else(|| "write a whole number above 0".to_owned())
}

/// How long a command may take.
#[derive(Debug, Default, ClapArgs)]
pub struct TimeoutArgs {
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = number, allow_negative_numbers = true)]
    pub timeout: Option<f64>,
}

/// How to run.
#[derive(Debug, ClapArgs)]
pub struct SolverArgs {
    /// Relative tolerance instead of the file's
    #[arg(long, value_name = "NUMBER", value_parser = number, allow_negative_numbers = true)]
    pub rtol: Option<f64>,
    /// Absolute tolerance instead of the file's
    #[arg(long, value_name = "NUMBER", value_parser = number, allow_negative_numbers = true)]
    pub atol: Option<f64>,
    /// Internal steps per output interval instead of the file's
    #[arg(long, value_name = "STEPS", value_parser = count, allow_negative_numbers = true)]
    pub max_steps: Option<u64>,
    /// Output times in minutes instead of the file's grid: 0,10,20
    #[arg(
        long,
        value_name = "TIMES",
        value_delimiter = ',',
        value_parser = number,
        allow_hyphen_values = true
    )]
    pub times: Vec<f64>,
    #[command(flatten)]
    pub timeout: TimeoutArgs,
    /// Fire state-dependent events at their true time, not at the next output time
    #[arg(long)]
    pub locate_events: bool,
    /// Release of OSP whose rules hold at the start of a run. 12.4.3 tests events once at 0, always stores the row at 0
    /// of the file's output times and ignores switch times before 0; 13-dev (July 2026) tests them twice where 0 is a
    /// switch time, stores that row only where 0 is an output time, and starts at the earliest switch time
    #[arg(long, value_name = "RELEASE", value_enum, default_value_t)]
    pub osp_version: OspVersion,
    /// With --osp-version 13-dev, test events once at the start all the same
    #[arg(long)]
    pub once_at_start: bool,
    /// Recognise equal output times in double precision (default: single)
    #[arg(long)]
    pub double_times: bool,
}

impl clap::ValueEnum for OspVersion {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()))
    }
}
