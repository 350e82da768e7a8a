//! Every call as a line of `ops/wN.jsonl`.

use super::RunDirectory;
use crate::error::LabError;
use crate::wall_clock;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallStatus {
    /// Answered with what was asked for.
    Ok,
    /// Refused as requested.
    Refused,
    /// A JSON-RPC error, or an HTTP status that says so.
    Error,
    /// A result that says it is an error (`isError`).
    ToolError,
    /// An answer that is not the expected one.
    WrongContent,
    /// HTTP 429, or an answer that asks to come again later.
    Throttled,
    /// No answer in time.
    Timeout,
    /// The connection or the process ended, or what came is no message.
    Broken,
}

impl CallStatus {
    /// Returns its name in records.
    pub(crate) fn name(self) -> String {
        let name = match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Error => "error",
            Self::ToolError => "tool_error",
            Self::WrongContent => "wrong_content",
            Self::Throttled => "throttled",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
        };
        name.to_owned()
    }
}

/// One call. Times in microseconds count from the beginning of the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OpRecord {
    /// When it began, ISO 8601 in UTC.
    pub(crate) ts: String,
    pub(crate) worker: u32,
    pub(crate) op: String,
    /// From the write of the request to the read of the answer.
    pub(crate) latency_ms: f64,
    pub(crate) status: CallStatus,
    pub(crate) arm: String,
    /// Number of the variant's fresh start; 1 for the only one.
    pub(crate) launch: u32,
    /// The call's number in its launch and variant, which pairs it with the baseline's.
    pub(crate) pair: u32,
    /// When it was due: the origin of response times. The same as `start_us` where calls follow each other.
    pub(crate) intended_us: f64,
    pub(crate) start_us: f64,
    /// The size of the answer.
    pub(crate) bytes: u64,
    /// From the request to the first part of a streamed answer; nothing for answers in one piece.
    pub(crate) ttft_us: Option<f64>,
}

/// Writes the lines of one worker.
#[derive(Debug)]
pub(crate) struct OpsWriter {
    out: BufWriter<File>,
    path: PathBuf,
    started_ms: u64,
}

impl OpsWriter {
    /// Begins `ops/w<worker>.jsonl` of a run that began at `started_ms` (Unix time).
    pub(crate) fn create(
        run: &RunDirectory,
        worker: u32,
        started_ms: u64,
    ) -> Result<Self, LabError> {
        let path = run.file(&format!("ops/w{worker}.jsonl"));
        let file = File::create_new(&path).map_err(|source| LabError::path(&path, source))?;
        Ok(Self {
            out: BufWriter::new(file),
            path,
            started_ms,
        })
    }

    /// Returns the wall-clock text of an offset into the run, in microseconds.
    pub(crate) fn stamp(&self, start_us: f64) -> String {
        wall_clock::iso(self.started_ms + (start_us / 1_000.0) as u64)
    }

    /// Adds a line.
    pub(crate) fn write(&mut self, record: &OpRecord) -> Result<(), LabError> {
        let written = serde_json::to_writer(&mut self.out, record)
            .map_err(std::io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"));
        written.map_err(|source| LabError::path(&self.path, source))
    }

    /// Flushes the written lines to the file.
    pub(crate) fn flush(&mut self) -> Result<(), LabError> {
        let flushed = self.out.flush();
        flushed.map_err(|source| LabError::path(&self.path, source))
    }

    /// Ends the file.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        self.flush()
    }
}
