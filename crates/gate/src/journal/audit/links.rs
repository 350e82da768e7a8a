//! Whether the lines of one segment are a chain, line by line, until the first that is not.

use super::finding::Problem;
use crate::journal::body::Header;
use crate::journal::{EntryHash, Line, SegmentId};

/// A crash leaves the beginning of a line. A whole line with something else where its end should be is no crash's work.
pub(super) fn is_overwritten(bytes: &[u8], id: SegmentId) -> bool {
    bytes
        .split_last()
        .and_then(|(_, line)| Line::parse(line))
        .is_some_and(|line| line.holds(id))
}

/// A segment's chain, as far as it was read.
pub(super) struct Chain {
    id: SegmentId,
    /// What stands first is no header, because the reading began behind it.
    is_begun: bool,
    /// Sequence and predecessor that the next record has to state.
    next: Option<(u64, EntryHash)>,
}

impl Chain {
    /// The chain of this segment from its header on, or from somewhere behind it.
    pub(super) fn of(id: SegmentId, is_begun: bool) -> Self {
        Self {
            id,
            is_begun,
            next: None,
        }
    }

    /// Takes a line apart that follows the one before it.
    pub(super) fn follow<'l>(&mut self, bytes: &'l [u8]) -> Result<Line<'l>, Problem> {
        let line = Line::parse(bytes).ok_or(match (self.is_begun, self.next) {
            (false, None) => Problem::HeaderUnreadable,
            _ => Problem::Malformed,
        })?;
        let sequence = line.sequence;
        if !line.holds(self.id) {
            return Err(Problem::Changed { sequence });
        }
        let (expected, previous) = match self.next {
            Some(next) => next,
            None if self.is_begun => (sequence, line.previous),
            None => {
                let header = Header::parse(line.body).ok_or(Problem::HeaderUnreadable)?;
                let continued = header.continues.map(|continued| continued.hash);
                (0, continued.unwrap_or(EntryHash::ZERO))
            }
        };
        if sequence < expected {
            return Err(Problem::Inserted { sequence });
        }
        if sequence > expected {
            return Err(Problem::Deleted {
                first: expected,
                last: sequence.saturating_sub(1),
            });
        }
        if line.previous != previous {
            return Err(Problem::BrokenLink { sequence });
        }
        self.next = Some((sequence.saturating_add(1), line.entry));
        Ok(line)
    }
}
