//! `durward audit verify`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gate::journal::audit::{VerifyReport, verify};
use gate::journal::{CHECKPOINT_PUBLIC_FILE, PublicKey};
use serde::Serialize;

use super::{Context, Failure, SOUND, TAMPERED};

/// Arguments of `durward audit verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Directory of the journal, or one segment file
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Public key file to trust; may be given several times
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    status: &'a str,
    #[serde(flatten)]
    report: &'a VerifyReport,
}

pub(super) fn run(
    args: &VerifyArgs,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
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
            Err(error) => {
                writeln!(
                    err,
                    "hint: name the public key of the journal with --key FILE"
                )?;
                return Err(Failure::Keys(error));
            }
        }
    }
    let report = verify(args.dir.as_ref().unwrap_or(&context.journal), &trusted)?;
    let (status, code) = if report.is_sound() {
        ("sound", SOUND)
    } else {
        ("tampered", TAMPERED)
    };
    if args.json {
        serde_json::to_writer(
            &mut *out,
            &Report {
                status,
                report: &report,
            },
        )
        .map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        print(&report, status, out)?;
    }
    out.flush()?;
    Ok(code)
}

fn print(report: &VerifyReport, status: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let VerifyReport {
        segments,
        records,
        signatures,
        ..
    } = report;
    writeln!(
        out,
        "{status}: {segments} segments, {records} records, {signatures} signatures"
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
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}
