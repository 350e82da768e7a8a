//! Measures any of this from outside, as a stranger would: what a process in the middle adds to a call,
//! with an interval, beside the same call without it.
//!
//! Invariants, as absences:
//! - the lab links neither the gate nor a face: it knows a measured program by its pipes alone;
//! - it reads no environment and never exits by itself;
//! - no time counts without a check of its answer: a wrong or failed answer is an error, never a fast call;
//! - no percentile is interpolated (but those that `ssh` prints, which are defined so), and no interval pools the calls
//!   of several launches.

mod affinity;
mod audit;
mod compare;
mod driver;
mod error;
mod farm;
mod guarded;
mod host;
mod interrupt;
mod journal;
mod judge;
mod load;
mod output;
mod overhead;
mod person;
mod policies;
mod processes;
mod profile;
mod progress;
mod report;
mod run;
mod scale;
mod soak;
mod ssh;
mod standard;
mod stats;
mod summary;
mod url;
mod users;
mod variant;
mod wall_clock;

pub use audit::AuditArgs;
pub use compare::{CompareArgs, GateArgs};
pub use error::LabError;
pub use farm::FarmArgs;
pub use load::LoadArgs;
pub use overhead::OverheadArgs;
pub use report::ReportArgs;
pub use scale::ScaleArgs;
pub use soak::SoakArgs;
pub use standard::StandardArgs;
pub use users::UsersArgs;

use std::io::Write;
use std::path::PathBuf;

/// Examples of `durward lab`.
pub const HELP: &str = "\
Examples:
  durward-lab overhead --quick --direct 'durward-lab mock echo' --proxied 'durward run -- durward-lab mock echo'
  durward-lab load tool --target 'durward-lab mock echo' --workers 4 --duration 5s
  durward-lab report RUN --format html

`durward lab COMMAND --help` has the options and exit codes of each command.";

/// Commands of the lab.
#[derive(Debug, clap::Subcommand)]
pub enum LabCommand {
    /// Measure what a variant adds to a direct call
    Overhead(Box<OverheadArgs>),
    /// Put a target under load: a tool, a URL, or SSH hosts behind a tool server
    Load(Box<LoadArgs>),
    /// Fit a scaling law to stored load runs
    Scale(ScaleArgs),
    /// Tell whether memory, descriptors or times grow over a stored load run
    Soak(SoakArgs),
    /// Have users talk to models, and check every reply
    Users(Box<UsersArgs>),
    /// Measure the standard set and compare it with the budgets
    Standard(StandardArgs),
    /// Show the latencies in a journal: policy, approval, end to end, upstream
    AuditLatency(AuditArgs),
    /// Put two stored measurements side by side
    Compare(CompareArgs),
    /// Compare a measurement with a baseline and rules; exit 99 for a regression
    Gate(GateArgs),
    /// Show a stored measurement as a page: Markdown, HTML or JUnit
    Report(ReportArgs),
    /// Make the three hosts of the SSH load-testing guide, as network namespaces
    Farm(FarmArgs),
    /// Run a process to test and to measure against
    #[command(subcommand)]
    Mock(mocks::MockCommand),
}

/// Surroundings of the lab, which the binary reads.
#[derive(Debug, Clone)]
pub struct LabContext {
    /// The program of the lab, to start mocks from.
    pub lab_binary: PathBuf,
    /// The `durward` that is measured.
    pub guard_binary: PathBuf,
    /// The version of the lab.
    pub version: &'static str,
    /// The command line as given, for the record of a run.
    pub argv: Vec<String>,
    /// Whether standard error is a terminal, on which progress is written in place.
    pub terminal: bool,
    /// The measurement that `gate` and `compare` judge when none is named.
    pub benchmark_result: Option<PathBuf>,
    /// What they hold it against when nothing is named.
    pub benchmark_baseline: Option<PathBuf>,
}

impl LabCommand {
    /// Returns whether one JSON document is expected on standard output.
    fn is_json(&self) -> bool {
        match self {
            Self::Overhead(args) => args.json,
            Self::Load(args) => match &args.scenarios {
                Some(load::LoadCommand::Ssh(scenario)) => scenario.json,
                None => args.json,
            },
            Self::Scale(args) => args.json,
            Self::Soak(args) => args.json,
            Self::Users(args) => args.json,
            Self::Standard(args) => args.json,
            Self::AuditLatency(args) => args.json,
            Self::Compare(args) => args.json,
            Self::Gate(args) => args.json,
            Self::Report(_) | Self::Farm(_) | Self::Mock(_) => false,
        }
    }
}

/// Runs a command of the lab; gives its exit code: 0 done, 1 failed, 2 wrong usage, 97 stopped, 98 and 99
/// as [`GateArgs`] says. With `--json` a failure is one document on `out` too, beside its line on `err`.
pub fn run(args: LabCommand, context: &LabContext, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let json = args.is_json();
    let done = match args {
        LabCommand::Overhead(args) => overhead::run(&args, context, out, err),
        LabCommand::Load(args) => match &args.scenarios {
            Some(load::LoadCommand::Ssh(scenario)) => ssh::run(scenario, context, out, err),
            None => load::run(&args, context, out, err),
        },
        LabCommand::Scale(args) => scale::run(&args, out),
        LabCommand::Soak(args) => soak::run(&args, out),
        LabCommand::Users(args) => users::run(&args, out, err),
        LabCommand::Standard(args) => standard::run(&args, context, out, err),
        LabCommand::AuditLatency(args) => audit::run(&args, out),
        LabCommand::Compare(args) => compare::run(&args, context, out),
        LabCommand::Gate(args) => compare::gate(&args, context, out),
        LabCommand::Report(args) => report::run(&args, out),
        LabCommand::Farm(args) => farm::run(&args, out),
        LabCommand::Mock(mock) => {
            return mocks::run(mock).unwrap_or_else(|error| {
                let _ = writeln!(err, "error: {error}");
                1
            });
        }
    };
    done.unwrap_or_else(|error| {
        // A closed standard error is the caller's choice.
        let _ = writeln!(err, "error: {}", output::plain(&error.to_string()));
        if json {
            let _ = error.document(out);
        }
        error.exit_code()
    })
}
