//! Looking back over a bounded part of a journal, the newest segments first, with each line held against the chain.
//!
//! Signatures, the head and what a segment continues are the business of a verification; here a record that was changed,
//! moved, put in or taken out within a segment is an error.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::finding::Problem;
use super::lines::{Ended, Lines};
use super::links::{Chain, is_overwritten};
use super::newest::{Newest, Segment};
use super::verify::{AuditError, failed};
use crate::journal::{Line, segment_files};

const READ_BYTES: usize = 1 << 18;

/// How much is looked at, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Bytes of all segments together.
    pub bytes_max: u64,
    /// Segments.
    pub segments_max: usize,
}

/// Who looks.
pub trait Look {
    /// Segments whose last record is older are passed over, in milliseconds since 1970. `None`: none is.
    fn not_before_ms(&self) -> Option<i64>;

    /// A record. Those of one segment come in the order in which they were written; `segment` is larger for a later one.
    /// Gives `None` where its body cannot be read.
    fn record(&mut self, segment: usize, line: &Line<'_>) -> Option<()>;

    /// All records of a segment were told.
    fn segment_over(&mut self);
}

/// Tells of the records of a journal, the newest segment first. Gives whether the journal had nothing more that was wanted;
/// where it had, the reach was the reason.
///
/// # Errors
/// [`AuditError::Read`], [`AuditError::NotASegment`], and [`AuditError::Altered`] at the first line that is not as it was
/// written.
pub fn back(path: &Path, reach: Reach, look: &mut dyn Look) -> Result<bool, AuditError> {
    let mut left = reach;
    let mut newest = Newest::of(path)?;
    while let Some(segment) = newest.next(look.not_before_ms())? {
        if left.bytes_max == 0 || left.segments_max == 0 {
            return Ok(false);
        }
        // What is written from now on is not looked at.
        let length = segment.file.metadata().map_err(failed(&segment.path))?;
        let length = length.len();
        let from = length.saturating_sub(left.bytes_max);
        let part = (from, length.saturating_sub(from));
        told(&segment, part, look)?;
        look.segment_over();
        if from > 0 {
            return Ok(false);
        }
        left.bytes_max = left.bytes_max.saturating_sub(length);
        left.segments_max = left.segments_max.saturating_sub(1);
    }
    Ok(true)
}

/// Tells of the records in a part of a segment.
fn told(
    segment: &Segment,
    (from, bytes): (u64, u64),
    look: &mut dyn Look,
) -> Result<(), AuditError> {
    let path = &segment.path;
    let altered = |problem| AuditError::Altered {
        path: path.clone(),
        problem,
    };
    let Some(id) = segment_files::id_of(path) else {
        return Err(AuditError::NotASegment { path: path.clone() });
    };
    let mut file: &File = &segment.file;
    file.seek(SeekFrom::Start(from)).map_err(failed(path))?;
    let mut lines = Lines::new(BufReader::with_capacity(READ_BYTES, file.take(bytes)));
    let mut line = Vec::new();
    if from > 0 {
        // What was begun before.
        lines.next(&mut line).map_err(failed(path))?;
    }
    let mut chain = Chain::of(id, from > 0);
    while let Some(ended) = lines.next(&mut line).map_err(failed(path))? {
        let record = match ended {
            Ended::Whole => chain.follow(&line).map_err(altered)?,
            // The beginning of a line that is being written, or that a crash has left.
            Ended::Torn if !is_overwritten(&line, id) => break,
            Ended::Torn => return Err(altered(Problem::Malformed)),
            Ended::TooLong => return Err(altered(Problem::LineTooLong)),
        };
        let sequence = record.sequence;
        look.record(segment.number, &record)
            .ok_or_else(|| altered(Problem::BodyUnreadable { sequence }))?;
    }
    Ok(())
}
