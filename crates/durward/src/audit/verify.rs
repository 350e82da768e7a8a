//! `durward audit verify`

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use admin::AdminError;
use clap::Args;
use gate::journal::audit::{Anchors, Unproven, Verdict, VerifyReport, is_head_of, verify_against};
use gate::journal::{CHECKPOINT_PUBLIC_FILE, HEAD_FILE, PublicKey};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use super::{Context, Failure, OPEN, SOUND, TAMPERED};
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

#[derive(Serialize)]
struct Report<'a> {
    status: Verdict,
    #[serde(flatten)]
    report: &'a VerifyReport,
}

pub(super) fn run(
    args: &VerifyArgs,
    context: &Context,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let default = [context.keys.join(CHECKPOINT_PUBLIC_FILE)];
    let files = if args.key.is_empty() {
        default.as_slice()
    } else {
        args.key.as_slice()
    };
    let mut trusted = Vec::with_capacity(files.len());
    for file in files {
        match PublicKey::read(file) {
            Ok(key) => trusted.push(key),
            // Where there is a key or a head and no journal, the journal was taken away.
            Err(_) if args.key.is_empty() && args.dir.is_none() && !context.journal.exists() => {
                return Err(AdminError::NoJournal(context.journal.clone()).into());
            }
            Err(error) => return Err(Failure::Keys(error)),
        }
    }
    let dir = args.dir.as_ref().unwrap_or(&context.journal);
    // The head of this installation says nothing of another journal.
    let own = dir.starts_with(&context.journal);
    let head = context.keys.join(HEAD_FILE);
    let anchors = Anchors {
        head: args.head.as_deref().or(own.then_some(head.as_path())),
        witness: (args.witness.as_deref()).or(context.witness.as_deref().filter(|_| own)),
    };
    if let Some(file) = &args.head {
        is_head_of(file, dir, &trusted)?;
    }
    let report = verify_against(dir, &trusted, &anchors)?;
    let running = args.running.then_some(dir.as_path());
    self::report(&report, args.json, running, out)
}

/// Prints the report of a verification; returns the exit code. With the directory of a journal, segments that a running
/// instance is writing there leave nothing open.
pub(super) fn report(
    report: &VerifyReport,
    json: bool,
    running: Option<&Path>,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let is_written = |open: &Unproven| running.is_some_and(|dir| is_being_written(open, dir));
    let status = match report.verdict() {
        Verdict::Open if report.unproven.iter().all(is_written) => Verdict::Sound,
        verdict => verdict,
    };
    let code = match status {
        Verdict::Sound => SOUND,
        Verdict::Open => OPEN,
        Verdict::Tampered => TAMPERED,
    };
    if json {
        serde_json::to_writer(&mut *out, &Report { status, report })
            .map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        print(report, status, out)?;
    }
    out.flush()?;
    Ok(code)
}

/// Whether an instance holds the lock of the segment that is open: it writes there.
fn is_being_written(open: &Unproven, directory: &Path) -> bool {
    let Unproven::Tail {
        file,
        abandoned: false,
        ..
    } = open
    else {
        return false;
    };
    let path = match directory.is_dir() {
        true => directory.join(file),
        false => directory.to_path_buf(),
    };
    // Only its writer locks a segment exclusively, and for as long as it runs.
    File::open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}

fn print(report: &VerifyReport, status: Verdict, out: &mut dyn Write) -> Result<(), Failure> {
    let status = match status {
        Verdict::Sound => "sound",
        Verdict::Open => "open",
        Verdict::Tampered => "tampered",
    };
    let VerifyReport {
        segments,
        records,
        signatures,
        ..
    } = report;
    writeln!(
        out,
        "{status}: {}, {}, {}",
        count(*segments, "segment"),
        count(*records, "record"),
        count(*signatures, "signature")
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
