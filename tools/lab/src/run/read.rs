//! A run directory read back, with a clear word about what is missing, broken or of another version.

use super::{OpRecord, ResourceSample};
use crate::error::LabError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The largest document that is read, in bytes.
const DOCUMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The longest line of a file of lines, in bytes.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// How many calls of one run are read.
const OPERATIONS_MAX: usize = 20_000_000;
/// How many files of calls one run may have.
const WORKERS_MAX: usize = 4_096;

/// Returns a run's summary, or the document itself if the path is a file. A run that was killed has none.
pub(crate) fn summary_file(path: &Path) -> Result<PathBuf, LabError> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let file = path.join("summary.json");
    let what = match (file.exists(), path.join("manifest.json").exists()) {
        (true, _) => return Ok(file),
        (false, true) => {
            "the run was not finished: it has a manifest, and the calls that were kept in ops, but no summary.json; measure again"
        }
        (false, false) => "no run directory: it has neither manifest.json nor summary.json",
    };
    Err(LabError::path(path, io::Error::other(what)))
}

/// Returns the bytes of a file that may not be larger than a document.
fn bytes_of(file: &Path) -> Result<Vec<u8>, LabError> {
    let failed = |source| LabError::path(file, source);
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(failed)?;
    let read = opened
        .take(DOCUMENT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if read as u64 > DOCUMENT_BYTES_MAX {
        return Err(failed(io::Error::other("longer than 64 MiB")));
    }
    Ok(bytes)
}

/// Returns a document, as far as it can be read as this.
pub(crate) fn parsed<T: DeserializeOwned>(file: &Path) -> Result<T, LabError> {
    serde_json::from_slice(&bytes_of(file)?).map_err(|error| unread(file, &error))
}

/// Returns the format that a document says it has.
pub(crate) fn format_of(file: &Path) -> Result<String, LabError> {
    #[derive(Deserialize)]
    struct ManifestHead {
        format: String,
    }
    let bytes = bytes_of(file)?;
    let head: ManifestHead =
        serde_json::from_slice(&bytes).map_err(|error| unread(file, &error))?;
    Ok(head.format)
}

/// Returns a document of this format.
pub(crate) fn document_of<T: DeserializeOwned>(file: &Path, format: &str) -> Result<T, LabError> {
    let found = format_of(file)?;
    if found != format {
        let what = format!("it has the format {found}, this version reads {format} here");
        return Err(LabError::path(file, io::Error::other(what)));
    }
    serde_json::from_slice(&bytes_of(file)?).map_err(|error| unread(file, &error))
}

fn unread(file: &Path, error: &serde_json::Error) -> LabError {
    let what = format!("no whole document of a measurement: {error}");
    LabError::path(file, io::Error::other(what))
}

/// Hands every call of a run to `each`, worker by worker; gives their number. A run without calls is none.
pub(crate) fn operations(run: &Path, mut each: impl FnMut(OpRecord)) -> Result<usize, LabError> {
    let ops = run.join("ops");
    let entries = fs::read_dir(&ops).map_err(|source| LabError::path(&ops, source))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .take(WORKERS_MAX)
        .collect();
    files.sort();
    let mut count = 0;
    for file in files {
        lines(&file, |record: OpRecord| {
            count += 1;
            each(record);
            count < OPERATIONS_MAX
        })?;
    }
    Ok(count)
}

/// Returns the resource samples of a run; none if the run has no such file.
pub(crate) fn samples(run: &Path) -> Result<Vec<ResourceSample>, LabError> {
    let file = run.join("resources.jsonl");
    let mut found = Vec::new();
    if file.exists() {
        lines(&file, |sample: ResourceSample| {
            found.push(sample);
            found.len() < OPERATIONS_MAX
        })?;
    }
    Ok(found)
}

/// Reads a file of JSON lines as long as `each` wants more. A line that is no record, the cut last one of a
/// killed run included, is an error with its number.
fn lines<T: DeserializeOwned>(
    file: &Path,
    mut each: impl FnMut(T) -> bool,
) -> Result<(), LabError> {
    let failed = |source| LabError::path(file, source);
    let mut reader = BufReader::new(File::open(file).map_err(failed)?);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let mut limited = (&mut reader).take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            break;
        }
        let whole = line.last() == Some(&b'\n');
        let record = serde_json::from_slice(&line).map_err(|error| {
            let what = if whole {
                format!("line {number} is not a record: {error}")
            } else {
                format!(
                    "line {number} is cut off; the run was not finished, remove the line to read the rest"
                )
            };
            failed(io::Error::other(what))
        })?;
        if !each(record) {
            break;
        }
    }
    Ok(())
}
