//! `durward audit verify`

use std::io::Write;
use std::path::PathBuf;

use admin::OperationWatch;
use admin::journal::{self, JournalVerification, VerificationStatus, VerifyRequest};
use clap::Args;

use super::{Context, Failure, OPEN, SOUND, TAMPERED};
use crate::layout;
use crate::plural::count;

/// What the exit code says.
pub(super) const EXIT_CODES: &str = "\
Exit codes: 0 sound; 1 tampered: each finding is printed with its file and line; 2 the journal could not be verified
(nothing to read, no key, --head names no head of this journal); 3 open: no sign of tampering, but the end of the journal cannot be proven, because an
instance is running or was killed, or no head was compared. With --running, 0 also if only running instances leave the end open.";

/// Arguments of `durward audit verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Directory of the journal, or one segment file
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Public key file to trust; may be given several times
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Head to compare with [default: the one beside the keys, unless --dir names another journal]
    #[arg(long, value_name = "FILE")]
    head: Option<PathBuf>,
    /// File of a witness to compare with [default: the configured one, unless --dir names another journal]
    #[arg(long, value_name = "FILE")]
    witness: Option<PathBuf>,
    /// Count a segment that a running instance is writing as sound up to its latest signature
    #[arg(long)]
    running: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(
    args: &VerifyArgs,
    context: &Context,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let request = VerifyRequest {
        journal: args.dir.clone(),
        keys: args.key.clone(),
        head: args.head.clone(),
        witness: args.witness.clone(),
        running: args.running,
    };
    let verified = journal::verify(&request, &context.paths, &mut OperationWatch::default())?;
    report(&verified, args.json, out)
}

/// Prints the report of a verification; returns the exit code.
pub(super) fn report(
    verified: &JournalVerification,
    json: bool,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    match json {
        true => layout::json_as_written(verified, out)?,
        false => print(verified, out)?,
    }
    out.flush()?;
    Ok(match verified.status {
        VerificationStatus::Sound => SOUND,
        VerificationStatus::Open => OPEN,
        VerificationStatus::Tampered => TAMPERED,
    })
}

fn print(verified: &JournalVerification, out: &mut dyn Write) -> Result<(), Failure> {
    let report = &verified.report;
    let status = match verified.status {
        VerificationStatus::Sound => "sound",
        VerificationStatus::Open => "open",
        VerificationStatus::Tampered => "tampered",
    };
    writeln!(
        out,
        "{status}: {}, {}, {}",
        count(report.segments, "segment"),
        count(report.records, "record"),
        count(report.signatures, "signature")
    )?;
    for finding in &report.findings {
        match finding.line {
            Some(line) => writeln!(out, "finding: {}:{line}: {}", finding.file, finding.problem)?,
            None => writeln!(out, "finding: {}: {}", finding.file, finding.problem)?,
        }
    }
    if report.findings_omitted > 0 {
        writeln!(out, "finding: and {} more", report.findings_omitted)?;
    }
    for open in &report.unproven {
        writeln!(out, "{open}")?;
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}
