//! `durward audit repair`

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use admin::AdminError;
use clap::Args;
use gate::journal::audit::{Anchors, verify_against};
use gate::journal::{
    CHECKPOINT_PUBLIC_FILE, FileWitness, HEAD_FILE, JournalOptions, Keys, RepairError, RepairPaths,
    Surroundings, Witness, format_utc, repair,
};
use state::directory;

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

/// File of the report in the directory of the evidence.
const REPORT_FILE: &str = "report.json";

pub(super) fn run(
    args: &RepairArgs,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    if !context.keys.join(CHECKPOINT_PUBLIC_FILE).exists() {
        return Err(AdminError::NoJournal(context.journal.clone()).into());
    }
    let mut failed = None;
    let mut random = |bytes: &mut [u8]| {
        if let Err(error) = local::random(bytes) {
            failed = Some(error);
        }
    };
    let keys = Keys::open(&context.keys, &mut random).map_err(Failure::Keys)?;
    let mut instance = [0; 16];
    random(&mut instance);
    let evidence = evidence(context);
    let head = context.keys.join(HEAD_FILE);
    // Before it is changed; where there is none, there is none to keep.
    let head_before = std::fs::read(&head).ok();
    let witness = context.witness.as_deref().map(FileWitness::new);
    let surroundings = Surroundings {
        random: &mut random,
        waiting: &mut |held| tracing::warn!("{held}"),
        witness: witness.map(|witness| Arc::new(witness) as Arc<dyn Witness>),
        steps: None,
    };
    let paths = RepairPaths {
        journal: &context.journal,
        keys: &context.keys,
        witness: context.witness.as_deref(),
        evidence: &evidence,
    };
    let own = (instance, context.now_ms);
    // Nothing is retired: what is old may be evidence.
    let repaired = repair(paths, &keys, JournalOptions::default(), own, surroundings);
    if let Some(error) = failed {
        return Err(Failure::Write(error));
    }
    let repaired = repaired.map_err(|error| match error {
        RepairError::Audit(error) => error.into(),
        other => Failure::Repair(other),
    })?;
    match &repaired {
        None => writeln!(err, "nothing to repair")?,
        Some(done) => {
            let keep = |name: &str, bytes: &[u8]| {
                directory::create_private(&evidence)
                    .and_then(|()| directory::write_private(&evidence.join(name), bytes))
                    .map_err(|error| Failure::Write(std::io::Error::other(error)))
            };
            let report = serde_json::to_vec(&done.before).map_err(std::io::Error::from)?;
            keep(REPORT_FILE, &report)?;
            if let Some(head) = head_before.filter(|_| !evidence.join(HEAD_FILE).exists()) {
                keep(HEAD_FILE, &head)?;
            }
            writeln!(
                err,
                "{} set aside in {}",
                count(done.moved.len(), "file"),
                evidence.display()
            )?;
            for segment in &done.missing {
                writeln!(err, "missing: segment {segment}")?;
            }
        }
    }
    let anchors = Anchors {
        head: Some(&head),
        witness: context.witness.as_deref(),
    };
    let report = verify_against(&context.journal, &[keys.public()], &anchors)?;
    verify::report(&report, args.json, None, out)
}

/// Returns the directory for the evidence of this repair.
fn evidence(context: &Context) -> PathBuf {
    let time = format_utc(context.now_ms).replace([':', '.'], "-");
    let state = context.journal.parent().unwrap_or(&context.journal);
    state.join("set-aside").join(time)
}
