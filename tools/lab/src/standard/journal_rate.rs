//! How many records a second the journal takes from writers that write at once. Over any front the calls
//! would be the bound and not the journal, so a program beside the lab's writes one by itself.

use super::workspace::StandardWorkspace;
use crate::LabContext;
use crate::error::LabError;
use crate::stats::Interval;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::time::Instant;

/// The program that writes a journal, in the directory of the lab's.
const PROGRAM: &str = "durward-journal-rate";
/// Threads that write at once.
pub(super) const WRITERS: u32 = 16;
/// What they must come to, a second.
pub(super) const PER_SECOND_MIN: f64 = 200_000.0;
/// Records of a round, and of one where each waits for the disk.
const RECORDS: u32 = 100_000;
const RECORDS_EVERY: u32 = 4_000;
/// Rounds where each record waits for the disk.
const ROUNDS_EVERY: u32 = 3;
/// How often the disk itself is asked to keep what was written.
const DISK_WRITES: u32 = 200;
/// Size of a write: about a record.
const DISK_WRITE_BYTES: usize = 700;

/// Records a second.
#[derive(Debug, Serialize)]
pub(super) struct JournalRate {
    pub(super) writers: u32,
    /// Records of a round.
    pub(super) records: u32,
    /// With `--sync interval`, the default.
    pub(super) per_second: Interval,
    /// With `--sync every`: each record is on the disk before its call goes out.
    pub(super) every_per_second: Interval,
    /// Writes of the size of a record that the disk by itself keeps, one after the other.
    pub(super) disk_per_second: f64,
}

#[derive(Deserialize)]
struct RateDocument {
    per_second: f64,
}

/// Measures so many rounds.
pub(super) fn measure(
    workspace: &StandardWorkspace,
    context: &LabContext,
    rounds: u32,
    confidence: f64,
) -> Result<JournalRate, LabError> {
    let rates = |sync: &str, records: u32, rounds: u32| -> Result<Interval, LabError> {
        let found: Result<Vec<f64>, LabError> = (0..rounds)
            .map(|_| round(workspace, context, sync, records))
            .collect();
        Ok(Interval::over_launches(&found?, confidence))
    };
    Ok(JournalRate {
        writers: WRITERS,
        records: RECORDS,
        per_second: rates("interval", RECORDS, rounds)?,
        every_per_second: rates("every", RECORDS_EVERY, ROUNDS_EVERY)?,
        disk_per_second: disk(workspace)?,
    })
}

/// One round: a fresh journal, gone afterwards.
fn round(
    workspace: &StandardWorkspace,
    context: &LabContext,
    sync: &str,
    records: u32,
) -> Result<f64, LabError> {
    let directory = workspace.file("journal-rate");
    let program = context.lab_binary.with_file_name(PROGRAM);
    let output = std::process::Command::new(&program)
        .arg(&directory)
        .args(["--sync", sync, "--writers", &WRITERS.to_string()])
        .args(["--records", &records.to_string()])
        .output()
        .map_err(|source| LabError::path(&program, source))?;
    let told = serde_json::from_slice::<RateDocument>(&output.stdout);
    // Leftovers of a failed round are removed with the workspace.
    let _ = std::fs::remove_dir_all(&directory);
    told.map(|told| told.per_second)
        .map_err(|_| LabError::Invalid {
            arm: "journal".into(),
            what: format!(
                "it could not be written: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ),
        })
}

/// Returns the rate of the disk by itself.
fn disk(workspace: &StandardWorkspace) -> Result<f64, LabError> {
    let path = workspace.file("disk-rate");
    let write = || {
        let mut file = std::fs::File::create(&path)?;
        let start = Instant::now();
        for _ in 0..DISK_WRITES {
            file.write_all(&[b'x'; DISK_WRITE_BYTES])?;
            file.sync_data()?;
        }
        Ok(f64::from(DISK_WRITES) / start.elapsed().as_secs_f64().max(1e-9))
    };
    write().map_err(|source| LabError::path(&path, source))
}

impl JournalRate {
    /// Returns whether the lower end of the interval keeps the budget.
    pub(super) fn is_kept(&self) -> bool {
        self.per_second.ci_low.unwrap_or(self.per_second.point) >= PER_SECOND_MIN
    }

    /// Returns the rate with its interval.
    pub(super) fn format_rate(&self) -> String {
        rate(&self.per_second)
    }

    /// The section of the page.
    pub(super) fn write(&self, page: &mut String) -> fmt::Result {
        writeln!(page, "\n## The journal\n")?;
        writeln!(
            page,
            "{} threads of one process write records of calls into one journal, {} a round. Over a front the calls would be the bound, \
so a program of its own (`durward-journal-rate`) writes with the journal of `durward run`, and nothing else.\n",
            self.writers, self.records
        )?;
        writeln!(
            page,
            "| what | records a second | budget | |\n|---|--:|--:|---|"
        )?;
        writeln!(
            page,
            "| `--sync interval`, the default | {} | ≥ {PER_SECOND_MIN:.0} | {} |",
            self.format_rate(),
            super::budget::word(self.is_kept())
        )?;
        writeln!(
            page,
            "| `--sync every`, on the disk before the call goes out | {} | - | |",
            rate(&self.every_per_second)
        )?;
        writeln!(
            page,
            "| the disk itself: `fdatasync` after each write, one after the other | {:.0} | - | |",
            self.disk_per_second
        )
    }
}

fn rate(interval: &Interval) -> String {
    match (interval.ci_low, interval.ci_high) {
        (Some(low), Some(high)) => format!("{:.0} [{low:.0}, {high:.0}]", interval.point),
        _ => format!("{:.0} [one round, no interval]", interval.point),
    }
}
