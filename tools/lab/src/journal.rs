//! A journal of `durward` as a stranger reads it: files of JSON lines, of which this knows the names of some
//! members. Nothing is verified here; `durward audit verify` does that.

use crate::error::LabError;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line that the journal's own readers accept, in bytes.
const LINE_BYTES_MAX: u64 = 1024 * 1024;
/// How many segments of one journal are read.
const SEGMENTS_MAX: usize = 100_000;

/// What this knows of a record's body. Absent members are absent facts.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct RecordBody {
    #[serde(default)]
    pub(crate) time: String,
    #[serde(default)]
    pub(crate) kind: String,
    pub(crate) op: Option<String>,
    /// The tool that a decision is about.
    pub(crate) tool_name: Option<String>,
    /// `allow`, `deny` or `hitl`, of a decision.
    pub(crate) decision: Option<String>,
    pub(crate) hitl_outcome: Option<String>,
    pub(crate) policy_eval_us: Option<f64>,
    /// The client's id of the request, of an operation.
    pub(crate) request_id: Option<String>,
    pub(crate) duration_us: Option<f64>,
    #[serde(flatten)]
    pub(crate) stages: StageTimes,
}

/// The stages of a call, in microseconds, as the operation record has them.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct StageTimes {
    #[serde(default)]
    pub(crate) edge_us: f64,
    #[serde(default)]
    pub(crate) identity_us: f64,
    #[serde(default)]
    pub(crate) limits_us: f64,
    #[serde(default)]
    pub(crate) policy_us: f64,
    #[serde(default)]
    pub(crate) approval_us: f64,
    #[serde(default)]
    pub(crate) journal_us: f64,
    #[serde(default)]
    pub(crate) upstream_us: f64,
}

impl StageTimes {
    /// Their names, in the order in which a call goes through them.
    pub(crate) const NAMES: [&'static str; 7] = [
        "edge_us",
        "identity_us",
        "limits_us",
        "policy_us",
        "approval_us",
        "journal_us",
        "upstream_us",
    ];

    /// Their times in the same order.
    pub(crate) fn times(&self) -> [f64; 7] {
        [
            self.edge_us,
            self.identity_us,
            self.limits_us,
            self.policy_us,
            self.approval_us,
            self.journal_us,
            self.upstream_us,
        ]
    }
}

/// Returns the segments of a journal in the order in which they were begun; their names begin with the time.
pub(crate) fn segments(directory: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = fs::read_dir(directory).map_err(|source| LabError::path(directory, source))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .take(SEGMENTS_MAX)
        .collect();
    found.sort();
    Ok(found)
}

/// Hands the body of every record of a segment to `each`. A last line that is cut off belongs to a writer
/// that is at work or was killed, and ends the reading.
pub(crate) fn bodies(segment: &Path, mut each: impl FnMut(RecordBody)) -> Result<(), LabError> {
    #[derive(Deserialize)]
    struct JournalRecord {
        body: RecordBody,
    }
    lines(segment, |number, line| {
        let record: JournalRecord = serde_json::from_slice(line)
            .map_err(|error| format!("line {number} is not a journal record: {error}"))?;
        each(record.body);
        Ok(())
    })
}

/// Hands every whole line of a file, with its number, to `each`.
pub(crate) fn lines(
    file: &Path,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<(), LabError> {
    let failed = |source| LabError::path(file, source);
    let mut reader = BufReader::new(File::open(file).map_err(failed)?);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let mut limited = (&mut reader).take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut line).map_err(failed)?;
        if line.last() != Some(&b'\n') {
            if read as u64 == LINE_BYTES_MAX {
                let what = format!("line {number} is longer than 1 MiB");
                return Err(failed(io::Error::other(what)));
            }
            break;
        }
        each(number, &line).map_err(|what| failed(io::Error::other(what)))?;
    }
    Ok(())
}
