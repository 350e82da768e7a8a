//! A run kept as the guide has it: a directory for each run, a line for each call.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::figures::{RunReport, SshRun};
use crate::error::LabError;
use crate::run::{write_document, write_whole};
use crate::summary::SummaryDocument;
use crate::wall_clock;

/// How many runs may begin in one second at one place.
const SAME_SECOND_MAX: u32 = 100;

/// Directory of a run's results.
pub(super) struct ResultsDirectory {
    /// `loadtest_YYYYMMDD_HHMMSS`.
    pub id: String,
    pub path: PathBuf,
}

pub(super) fn create(results: &Path) -> Result<ResultsDirectory, LabError> {
    fs::create_dir_all(results).map_err(|source| LabError::path(results, source))?;
    let moment = wall_clock::compact().replace('T', "_").replace('Z', "");
    for number in 1..=SAME_SECOND_MAX {
        let id = match number {
            1 => format!("loadtest_{moment}"),
            more => format!("loadtest_{moment}_{more}"),
        };
        let path = results.join(&id);
        match fs::create_dir(&path) {
            Ok(()) => return Ok(ResultsDirectory { id, path }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(LabError::path(&path, source)),
        }
    }
    let wrong = io::Error::other("too many runs of this second");
    Err(LabError::path(results, wrong))
}

pub(super) fn write(
    place: &ResultsDirectory,
    run: &SshRun,
    told: &RunReport,
) -> Result<(), LabError> {
    let most = run.phases.iter().map(|phase| phase.workers.len()).max();
    for worker in 0..most.unwrap_or(0) {
        let mut lines = Vec::new();
        for phase in &run.phases {
            for op in phase.workers.get(worker).into_iter().flat_map(|of| &of.ops) {
                let status = if op.error.is_none() {
                    "success"
                } else {
                    "error"
                };
                let mut line = Map::new();
                let mut add = |name: &str, value: Value| line.insert(name.into(), value);
                add("ts", op.ts_ms.into());
                add("worker", format!("w{worker}").into());
                add("op", op.name.into());
                add("latency_ms", json!((op.latency_ms * 1e3).round() / 1e3));
                add("status", status.into());
                add("phase", phase.name.as_str().into());
                if let Some(wrong) = &op.error {
                    add("error", format!("{}: {}", wrong.code, wrong.text).into());
                }
                // Writing to a vector does not fail.
                let _ = writeln!(lines, "{}", Value::Object(line));
            }
        }
        write_whole(&place.path.join(format!("w{worker}.jsonl")), &lines)?;
    }
    // The summary comes last: a directory that has one is whole.
    write_document(&place.path.join("summary.json"), &SummaryDocument::of(told))
}
