//! `durward audit repair`

use std::io::Write;

use admin::OperationWatch;
use admin::journal::{self, RepairRequest};
use clap::Args;

use super::{Context, Failure, verify};
use crate::local;
use crate::plural::count;

pub(super) const HELP: &str = "\
Segments that were changed are moved to set-aside/TIME in the state directory, with the head and a report of what was
wrong. A signed record in a new chain names each of them, so that `durward audit verify` no longer finds them missing;
what is not broken stays. Stop every instance of the state directory first.

Exit codes: as of `durward audit verify`, which is run at the end; 2 also where an instance is running.";

/// Arguments of `durward audit repair`.
#[derive(Debug, Args)]
pub(super) struct RepairArgs {
    /// Print the report of the verification at the end as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(
    args: &RepairArgs,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let request = RepairRequest {
        now_ms: context.now_ms,
        random: &local::random,
        waiting: &mut |held| tracing::warn!("{held}"),
    };
    let repaired = journal::repair(request, &context.paths, &mut OperationWatch::default())?;
    match &repaired.repair {
        None => writeln!(err, "nothing to repair")?,
        Some(done) => {
            writeln!(
                err,
                "{} set aside in {}",
                count(done.moved, "file"),
                done.evidence.display()
            )?;
            for segment in &done.missing {
                writeln!(err, "missing: segment {segment}")?;
            }
        }
    }
    verify::report(&repaired.verification, args.json, out)
}
