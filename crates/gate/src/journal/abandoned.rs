//! Segments whose writers died: how each ended, so that a later segment can state it under its own signature.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use state::{FileLog, LogError, SyncPolicy};

use super::audit::lines::{Ended, Lines};
use super::body::{Continues, Header, Own};
use super::chain::{self, EntryHash, Line, SegmentId};
use super::head::End;
use super::{PublicKey, body, segment_files};

const READ_BYTES: usize = 1 << 18;

/// Abandoned segments that one start takes care of.
pub(super) const ADOPTED_MAX: usize = 64;

/// What became of an end that the head names.
pub(super) enum Found {
    /// It is being written, or it is not what the head says: it stays as it is.
    Left,
    /// It was never begun.
    Nothing,
    /// It was closed behind the head's back.
    Closed(Continues, u64),
    /// Its writer is gone.
    Abandoned(Abandoned),
}

/// How an abandoned segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abandoned {
    segment: SegmentId,
    last: Option<(u64, EntryHash)>,
    size_bytes: u64,
    /// Records behind the last one that a signature covered.
    uncovered_records: u64,
}

impl Abandoned {
    pub(super) fn segment(&self) -> SegmentId {
        self.segment
    }

    /// The record that states this end.
    pub(super) fn record(&self) -> Own<'static> {
        Own::SegmentAbandoned {
            segment: self.segment,
            sequence: self.last.map(|(sequence, _)| sequence),
            hash: self.last.map(|(_, hash)| hash),
            size_bytes: self.size_bytes,
            uncovered_records: self.uncovered_records,
        }
    }
}

/// The files of a directory by the segment that their names state.
pub(super) fn by_segment(directory: &Path) -> io::Result<HashMap<SegmentId, PathBuf>> {
    let paths = segment_files::segments(directory)?.into_iter();
    Ok(paths
        .filter_map(|path| segment_files::id_of(&path).map(|id| (id, path)))
        .collect())
}

/// Looks at the file of an end. The caller holds the journal directory's lock, so nobody is just beginning it.
pub(super) fn look(path: Option<&Path>, end: &End, key: PublicKey) -> io::Result<Found> {
    let Some(path) = path else {
        // A segment that held records is missing: the head goes on naming it.
        return Ok(match end.sequence {
            None => Found::Nothing,
            Some(_) => Found::Left,
        });
    };
    match FileLog::open(path, SyncPolicy::Never) {
        Err(LogError::Locked) => return Ok(Found::Left),
        Err(error) => return Err(io::Error::other(error)),
        Ok(unlocked) => drop(unlocked),
    }
    let Some(read) = Read::of(path, end, key)? else {
        return Ok(Found::Left);
    };
    Ok(match read.closed.then_some(read.last).flatten() {
        Some((sequence, hash)) => {
            let continues = Continues {
                segment: end.segment,
                sequence,
                hash,
            };
            Found::Closed(continues, read.whole_bytes)
        }
        None => Found::Abandoned(Abandoned {
            segment: end.segment,
            last: read.last,
            size_bytes: read.whole_bytes,
            uncovered_records: read.uncovered,
        }),
    })
}

#[derive(Deserialize)]
struct Signed {
    event: Option<String>,
    kind: String,
    signature: Option<String>,
}

/// A whole segment, read from its start.
struct Read {
    last: Option<(u64, EntryHash)>,
    whole_bytes: u64,
    uncovered: u64,
    closed: bool,
}

impl Read {
    /// `None` where the file is not one chain, or not the one whose end the head states.
    fn of(path: &Path, end: &End, key: PublicKey) -> io::Result<Option<Read>> {
        let mut lines = Lines::new(BufReader::with_capacity(READ_BYTES, File::open(path)?));
        let mut read = Read {
            last: None,
            whole_bytes: 0,
            uncovered: 0,
            closed: false,
        };
        let (mut bytes, mut previous, mut reached) = (Vec::new(), None, end.sequence.is_none());
        while let Some(ended) = lines.next(&mut bytes)? {
            if ended == Ended::Torn {
                break;
            }
            let Some(line) = Line::parse(&bytes) else {
                return Ok(None);
            };
            let expected = read
                .last
                .map_or(0, |(sequence, _)| sequence.saturating_add(1));
            let start = || {
                let header = Header::parse(line.body)?;
                Some(
                    header
                        .continues
                        .map_or(EntryHash::ZERO, |before| before.hash),
                )
            };
            let follows = previous.or_else(start) == Some(line.previous);
            if read.closed || !follows || line.sequence != expected || !line.holds(end.segment) {
                return Ok(None);
            }
            previous = Some(line.entry);
            read.last = Some((line.sequence, line.entry));
            read.whole_bytes = lines.taken_bytes;
            read.judge(&line, end.segment, key);
            if end.sequence == Some(line.sequence) {
                if end.hash != Some(line.entry) {
                    return Ok(None);
                }
                reached = true;
                read.uncovered = 0;
            }
        }
        Ok(reached.then_some(read))
    }

    /// Counts what no signature covers.
    fn judge(&mut self, line: &Line<'_>, segment: SegmentId, key: PublicKey) {
        let signed = serde_json::from_slice::<Signed>(line.body).ok();
        let signed = signed.filter(|signed| signed.kind == "system");
        let event = signed.as_ref().and_then(|signed| signed.event.as_deref());
        let closing = match event {
            Some("checkpoint") => false,
            Some("segment_closed") => true,
            Some("segment_opened") => return,
            _ => {
                self.uncovered = self.uncovered.saturating_add(1);
                return;
            }
        };
        let message = chain::signed(closing, segment, line.sequence, line.previous);
        let signature = signed.and_then(|signed| body::signature(signed.signature.as_deref()?));
        if signature.is_some_and(|signature| key.verifies(&message, &signature)) {
            self.uncovered = 0;
            self.closed = closing;
        }
    }
}
