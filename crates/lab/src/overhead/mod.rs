//! What a process in the middle costs: the same calls to the same server, direct and through each arm.
//!
//! Design: a launch starts every arm afresh. Within it the arms take turns; the order of the turns is
//! random for each launch and reversed in every second round (ABBA), so that drift and warmth fall on
//! all arms alike. Call i of an arm is paired with call i of the baseline in the same launch; the launch's
//! estimate is the median of these differences; the interval is Student's t over launches.

mod analysis;
mod args;
mod measure;
mod report;
mod store;

#[cfg(test)]
mod proofs;

pub(crate) use analysis::{Analysis, ArmFigures, Comparison, FORMAT, LaunchFigures};
pub use args::OverheadArgs;
pub(crate) use measure::{Plan, measure};
pub(crate) use report::{loads, point, whole};

use crate::error::LabError;
use crate::{Context, host};
use std::io::Write;

/// Runs `lab overhead`.
pub(crate) fn run(
    args: &OverheadArgs,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, LabError> {
    let plan = args.plan()?;
    let load_before = host::load_average();
    let samples = measure(&plan, err)?;
    let analysis = Analysis::of(&plan, &samples, load_before, context);
    if let Some(place) = &args.out {
        let directory = store::write(place, &plan, &analysis, &samples)?;
        // Progress that nobody reads is not missed.
        let _ = writeln!(err, "stored in {}", directory.display());
    }
    let written = if args.json {
        report::json(&analysis, out)
    } else {
        report::text(&analysis, out)
    };
    written.map_err(|source| LabError::System {
        what: "write the result",
        source,
    })?;
    Ok(0)
}
