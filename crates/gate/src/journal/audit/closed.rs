//! Closed segments one at a time, newest first: what a start verifies before it goes on, and the rest of it beside the calls.
//!
//! A closed segment never changes, so this is free of races with whoever writes the journal. Segments that are being written,
//! and those of other keys, are passed over; what is missing altogether is found by [`verify_against`](super::verify_against).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::anchors;
use super::finding::{Finding, Problem, VerifyReport};
use super::join::Join;
use super::scan::Scan;
use super::verify::{AuditError, failed};
use crate::journal::head::State;
use crate::journal::{EntryHash, PublicKey, SegmentId, segment_files};

/// Closed segments that are still to be verified, newest first.
#[derive(Debug)]
pub struct ClosedSegments {
    trusted: Vec<PublicKey>,
    /// The newest last.
    paths: Vec<PathBuf>,
    /// Last records of segments, as the head or a later segment states them.
    stated: HashMap<SegmentId, (u64, EntryHash)>,
}

/// One segment that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedSegment {
    /// The time in its name, in milliseconds since 1970.
    pub named_ms: Option<i64>,
    /// Its size.
    pub bytes: u64,
    /// What is wrong with it; empty where it is as it was written.
    pub findings: Vec<Finding>,
}

impl ClosedSegments {
    /// Lists the segments of a journal and reads the head beside its keys; a directory that is not there has none.
    ///
    /// # Errors
    /// [`AuditError`] where the directory or the head cannot be read.
    pub fn open(
        directory: &Path,
        head: &Path,
        trusted: Vec<PublicKey>,
    ) -> Result<Self, AuditError> {
        let paths = match segment_files::segments(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(failed(directory))?,
        };
        let mut stated = HashMap::new();
        let head = anchors::head(Some(head), &trusted)?;
        for end in head.head().into_iter().flat_map(|head| &head.ends) {
            if let (State::Closed, Some(sequence), Some(hash)) = (end.state, end.sequence, end.hash)
            {
                stated.insert(end.segment, (sequence, hash));
            }
        }
        Ok(Self {
            trusted,
            paths,
            stated,
        })
    }

    /// Returns the size of the next segment in bytes; `None` once there is none.
    #[must_use]
    pub fn next_bytes(&self) -> Option<u64> {
        let path = self.paths.last()?;
        Some(fs::metadata(path).map_or(0, |found| found.len()))
    }

    /// Verifies the next segment; `None` where it is not closed, of another key, or gone since.
    ///
    /// # Errors
    /// [`AuditError`] where it cannot be read.
    pub fn verify_next(&mut self) -> Result<Option<VerifiedSegment>, AuditError> {
        let Some(path) = self.paths.pop() else {
            return Ok(None);
        };
        match self.verify(&path) {
            // Retention of another instance may delete it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            verified => verified.map_err(failed(&path)),
        }
    }

    fn verify(&mut self, path: &Path) -> io::Result<Option<VerifiedSegment>> {
        let Some(id) = segment_files::id_of(path) else {
            return Ok(None);
        };
        let header = segment_files::header(path)?;
        let stated = self.stated.remove(&id);
        if let Some(header) = &header
            && !self.trusted.contains(&header.public_key)
        {
            return Ok(None);
        }
        if let Some(before) = header.as_ref().and_then(|header| header.continues) {
            self.stated
                .insert(before.segment, (before.sequence, before.hash));
        }
        if stated.is_none() && !self.is_closed(path, id)? {
            return Ok(None);
        }
        let mut report = VerifyReport::default();
        // Decisions may lie in segments that continue or precede this one.
        let mut join = Join::new(true);
        let name = anchors::name(path);
        let scan = Scan::new(
            &name,
            id,
            header.as_ref(),
            (&self.trusted, None),
            &mut join,
            &mut report,
        );
        let scanned = scan.run(path)?;
        if let Some((sequence, hash)) = stated.filter(|stated| scanned.last != Some(*stated)) {
            let problem = Problem::ContinuedDiffers {
                segment: id,
                sequence,
                hash,
            };
            report.find(&name, None, problem);
        }
        for abandoned in &scanned.abandoned {
            if let Some(last) = abandoned.last {
                self.stated.insert(abandoned.segment, last);
            }
        }
        Ok(Some(VerifiedSegment {
            named_ms: segment_files::named_ms(path),
            bytes: fs::metadata(path)?.len(),
            findings: report.findings,
        }))
    }

    /// Whether a segment ends with a closing record of a trusted key.
    fn is_closed(&self, path: &Path, id: SegmentId) -> io::Result<bool> {
        for key in &self.trusted {
            if segment_files::end(path, id, *key)?.is_some_and(|end| end.closed) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
