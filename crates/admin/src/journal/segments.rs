//! Segments of the journal, and which of them running instances write. Only reads, and takes no lock that a starting
//! instance needs.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gate::journal::{LINE_BYTES_MAX, Line, SegmentId};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde_json::Value;

use crate::error::AdminError;

/// Most segments that are read for running instances, the newest.
pub const SEGMENTS_READ_MAX: usize = 1_000;
/// How many first lines of a segment are read for what they say of its instance.
const FIRST_LINES: usize = 8;
/// A segment that was written to within this time counts as in use without a try at its lock, in
/// seconds, if the kernel does not list locks: its instance may be about to take that lock.
const FRESH_S: u64 = 5;

/// One segment that has not been closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SegmentFile {
    /// File in the directory of the journal.
    #[serde(rename = "segment")]
    pub file: String,
    /// Whether a running instance writes it.
    pub running: bool,
    /// When it was begun, UTC.
    pub since: Option<String>,
    /// Id of the instance.
    pub instance: Option<String>,
    /// The guarded server, or `serve (SERVERS)`.
    pub server: Option<String>,
    /// When its latest record was written, UTC.
    #[serde(rename = "last_record")]
    pub last: Option<String>,
}

/// Extent of a journal, and its open segments.
#[derive(Debug, Default)]
pub struct JournalSummary {
    /// Number of segments.
    pub segments: usize,
    /// Their size, in bytes.
    pub size_bytes: u64,
    /// Segments that are not closed, newest first, of the newest [`SEGMENTS_READ_MAX`].
    pub open: Vec<SegmentFile>,
    /// The latest record.
    pub last_record: Option<Value>,
}

impl JournalSummary {
    /// Returns the number of segments that running instances write.
    #[must_use]
    pub fn running(&self) -> usize {
        self.open.iter().filter(|open| open.running).count()
    }
}

/// Segments of a journal, newest first.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SegmentPage {
    /// The segments of the page.
    pub segments: Vec<SegmentEntry>,
    /// Number of all segments.
    pub total: usize,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SegmentEntry {
    /// Size, in bytes.
    pub size_bytes: u64,
    /// Whether its writer has closed it.
    pub closed: bool,
    /// The file, and the instance that writes or wrote it.
    #[serde(flatten)]
    pub file: SegmentFile,
}

/// Returns the newest segments, at most `limit` and [`SEGMENTS_READ_MAX`].
///
/// # Errors
/// A directory that cannot be read. A directory that does not exist has no segments.
pub fn list_segments(directory: &Path, limit: usize) -> Result<SegmentPage, AdminError> {
    let files = segment_files(directory)?;
    let newest = files.iter().rev().take(limit.min(SEGMENTS_READ_MAX));
    // A segment that retention removes meanwhile is left out.
    let segments = newest.filter_map(|(path, size_bytes)| {
        let last = last_record(path).ok()?;
        Some(SegmentEntry {
            size_bytes: *size_bytes,
            closed: is_closed(last.as_ref()),
            file: read_segment(path, last.as_ref()).ok()?,
        })
    });
    Ok(SegmentPage {
        segments: segments.collect(),
        total: files.len(),
    })
}

/// Returns the extent of the journal and its open segments.
///
/// # Errors
/// A directory that cannot be read. A directory that does not exist is an empty journal.
pub fn summarize(directory: &Path) -> Result<JournalSummary, AdminError> {
    let files = segment_files(directory)?;
    let mut summary = JournalSummary {
        segments: files.len(),
        size_bytes: files.iter().map(|(_, size_bytes)| size_bytes).sum(),
        ..JournalSummary::default()
    };
    for (path, _) in files.iter().rev().take(SEGMENTS_READ_MAX) {
        let Ok(last) = last_record(path) else {
            continue;
        };
        if summary.last_record.is_none() {
            summary.last_record.clone_from(&last);
        }
        if !is_closed(last.as_ref()) {
            summary.open.extend(read_segment(path, last.as_ref()).ok());
        }
    }
    Ok(summary)
}

/// Returns the segments with their sizes in bytes, oldest first.
fn segment_files(directory: &Path) -> Result<Vec<(PathBuf, u64)>, AdminError> {
    let failed = |error| AdminError::Directory {
        path: directory.to_path_buf(),
        error,
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut files: Vec<(PathBuf, u64)> = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if is_segment(&path) {
            // Retention may remove a segment meanwhile.
            let size_bytes = fs::metadata(&path).map_or(0, |found| found.len());
            files.push((path, size_bytes));
        }
    }
    files.sort();
    Ok(files)
}

/// Returns whether a file is named as the journal names its segments.
fn is_segment(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_suffix(".jsonl")?.rsplit_once('-'))
        .is_some_and(|(_, id)| SegmentId::parse(id).is_some())
}

fn is_closed(last: Option<&Value>) -> bool {
    last.is_some_and(|record| {
        text(record, "kind") == Some("system") && text(record, "event") == Some("segment_closed")
    })
}

/// Returns the record of the last whole line.
fn last_record(path: &Path) -> io::Result<Option<Value>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    // One byte more than a line, so that the end of the line before is included.
    let block = LINE_BYTES_MAX as u64 + 1;
    file.seek(SeekFrom::Start(size.saturating_sub(block)))?;
    let mut tail = Vec::new();
    file.take(block).read_to_end(&mut tail)?;
    let mut lines = tail.rsplit(|byte| *byte == b'\n');
    // Behind the last line feed is nothing, or a line that is being written.
    lines.next();
    Ok(lines.next().and_then(record))
}

fn text<'v>(record: &'v Value, name: &str) -> Option<&'v str> {
    record.get(name)?.as_str()
}

fn record(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(Line::parse(line)?.body).ok()
}

/// Returns the instance of a segment by its first lines, and whether that runs.
fn read_segment(path: &Path, last: Option<&Value>) -> io::Result<SegmentFile> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    let age = found.modified()?.elapsed().unwrap_or_default();
    // Only its writer locks a segment exclusively, and for as long as it runs.
    let running = match age < Duration::from_secs(FRESH_S) {
        true => is_locked(&found).unwrap_or(true),
        false => is_written(&file),
    };
    let owned = |record: &Value, name: &str| text(record, name).map(str::to_owned);
    let name = path.file_name().unwrap_or_default();
    let mut segment = SegmentFile {
        file: name.to_string_lossy().into_owned(),
        running,
        since: None,
        instance: None,
        server: None,
        last: last.and_then(|record| owned(record, "time")),
    };
    let first = BufReader::new(file.take((FIRST_LINES * LINE_BYTES_MAX) as u64));
    for line in first.split(b'\n').take(FIRST_LINES) {
        let Some(record) = record(&line?) else {
            break;
        };
        match text(&record, "event") {
            Some("segment_opened") => {
                segment.since = owned(&record, "time");
                segment.instance = owned(&record, "instance");
            }
            Some("session_started") if text(&record, "kind") == Some("system") => {
                segment.server = owned(&record, "backend_id");
            }
            Some("serve_started") => {
                let servers = match text(&record, "backend_id").unwrap_or("?") {
                    "" => "models",
                    servers => servers,
                };
                segment.server = Some(format!("serve ({servers})"));
            }
            _ => {}
        }
    }
    Ok(segment)
}

/// Returns whether a process holds the exclusive lock of a segment, which only its writer does.
pub(super) fn is_written(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockShared).is_err()
}

/// Returns whether the kernel lists a writer's lock on this file; `None` if it lists no locks. The look disturbs no writer.
fn is_locked(found: &fs::Metadata) -> Option<bool> {
    let listed = fs::read_to_string("/proc/locks").ok()?;
    let file = format!(":{}", found.ino());
    // `1: FLOCK  ADVISORY  WRITE 3339 fd:00:1234 0 EOF`
    Some(listed.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("FLOCK")
            && words.nth(1) == Some("WRITE")
            && words.nth(1).is_some_and(|inode| inode.ends_with(&file))
    }))
}
