//! One segment being written: a file and the end of its chain.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use state::{FileLog, Log as _, LogError};

use super::body::{self, Continues, Own};
use super::chain::{self, EntryHash, SegmentId, body_hash, entry_hash, push_line};
use super::contents::Written;
use super::options::{JournalOptions, Uncovered};
use super::{FORMAT, JournalError, Keys, hex, instant};

/// Room kept for the last checkpoint and the closing record, in bytes.
const END_BYTES: u64 = 2_048;

pub(super) struct Segment {
    pub(super) id: SegmentId,
    pub(super) named_ms: i64,
    pub(super) log: FileLog,
    options: JournalOptions,
    chain: Arc<Mutex<Chain>>,
}

/// The end of a segment's chain, records included that are composed and not yet written.
#[derive(Debug)]
pub(super) struct Chain {
    /// Sequence of the next record.
    sequence: u64,
    pub(super) previous: EntryHash,
    uncovered: Uncovered,
    pub(super) size_bytes: u64,
    sealed: bool,
}

/// Why a segment did not take a record.
pub(super) enum Declined {
    /// It has reached its size, or was closed meanwhile: another one takes its place.
    Ended,
    /// The journal refuses.
    Refused(JournalError),
}

impl From<LogError> for Declined {
    fn from(error: LogError) -> Self {
        Declined::Refused(error.into())
    }
}

impl From<JournalError> for Declined {
    fn from(error: JournalError) -> Self {
        Declined::Refused(error)
    }
}

/// What a new segment's header says, besides what the options and keys say.
pub(super) struct Opening {
    pub(super) id: SegmentId,
    pub(super) instance: [u8; 16],
    pub(super) continues: Option<Continues>,
    /// Time in the name of the continued segment.
    pub(super) after_ms: Option<i64>,
}

/// `<utc>-<segment id>.jsonl`
fn file_name(now_ms: i64, id: SegmentId) -> String {
    format!("{}-{id}.jsonl", instant::compact(now_ms))
}

impl Segment {
    /// Creates the segment's file with its header and a first checkpoint, in one write. The caller holds the directory's lock.
    pub(super) fn create(
        directory: &Path,
        keys: &Keys,
        options: JournalOptions,
        opening: &Opening,
        now_ms: i64,
    ) -> Result<Segment, JournalError> {
        // Names sort in the order of the chain, also when segments are short or the clock was set back.
        let named_ms = opening
            .after_ms
            .map_or(now_ms, |after_ms| now_ms.max(after_ms.saturating_add(1)));
        let path: PathBuf = directory.join(file_name(named_ms, opening.id));
        let header = body::write_own(
            now_ms,
            &Own::SegmentOpened {
                format: FORMAT,
                segment: opening.id,
                instance: hex::text(&opening.instance),
                version: env!("CARGO_PKG_VERSION"),
                public_key: keys.public().to_string(),
                checkpoint_records_max: options.checkpoints.records_max,
                checkpoint_wait_ms_max: options.checkpoints.wait_ms_max,
                continues: opening.continues,
            },
        )?;
        let mut chain = Chain {
            sequence: 0,
            previous: opening
                .continues
                .map_or(EntryHash::ZERO, |continued| continued.hash),
            uncovered: Uncovered::default(),
            size_bytes: 0,
            sealed: false,
        };
        let mut first = Vec::new();
        chain.push(&mut first, opening.id, &header, &body_hash(&header));
        chain.checkpoint(&mut first, opening.id, keys, now_ms)?;
        let start = opening
            .continues
            .map_or(EntryHash::ZERO, |continued| continued.hash);
        let chain = Arc::new(Mutex::new(chain));
        let written = Written {
            path: path.clone(),
            id: opening.id,
            start,
            chain: Arc::clone(&chain),
        };
        let log = FileLog::create(&path, options.sync)?.knowing(Box::new(written));
        log.append(&first)?;
        Ok(Segment {
            id: opening.id,
            named_ms,
            log,
            options,
            chain,
        })
    }

    /// Appends one body, with a checkpoint before it where one is due. Returns the record's sequence. `afterwards`: it tells
    /// what has happened already.
    pub(super) fn append(
        &self,
        keys: &Keys,
        now_ms: i64,
        (body, hash): (&[u8], &[u8; 32]),
        afterwards: bool,
    ) -> Result<u64, Declined> {
        let compose = |batch: &mut Vec<u8>| {
            let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
            let after_bytes = chain
                .size_bytes
                .saturating_add(body.len() as u64)
                .saturating_add(END_BYTES);
            // A segment takes at least one record, however small its size was set.
            if chain.sealed || (chain.sequence > 2 && after_bytes > self.options.segment_bytes_max)
            {
                return Err(Declined::Ended);
            }
            if chain.uncovered.due(self.options.checkpoints, now_ms) {
                chain.checkpoint(batch, self.id, keys, now_ms)?;
            }
            let sequence = chain.sequence;
            chain.push(batch, self.id, body, hash);
            chain.uncovered.add(now_ms);
            Ok(sequence)
        };
        if afterwards {
            self.log.append_after_with(compose)
        } else {
            self.log.append_with(compose)
        }
    }

    /// Writes a checkpoint: where records wait for one and it is due, or at once when `now` is asked for.
    pub(super) fn checkpoint(&self, keys: &Keys, now_ms: i64, now: bool) -> Result<(), Declined> {
        let due = {
            let chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
            !chain.sealed && (now || chain.uncovered.due(self.options.checkpoints, now_ms))
        };
        if !due {
            return Ok(());
        }
        self.log.append_with(|batch| {
            let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
            if chain.sealed {
                return Err(Declined::Ended);
            }
            Ok(chain.checkpoint(batch, self.id, keys, now_ms)?)
        })
    }

    /// Writes the closing record, after which the segment takes nothing, and returns what a successor continues.
    pub(super) fn close(
        &self,
        keys: &Keys,
        now_ms: i64,
        reason: &str,
    ) -> Result<Continues, JournalError> {
        let closed = self.log.append_with(|batch| {
            let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
            if chain.sealed {
                return Err(Declined::Ended);
            }
            let sequence = chain.sequence;
            let message = chain::signed(true, self.id, sequence, chain.previous);
            let signature = hex::text(&keys.sign(&message));
            let body = body::write_own(now_ms, &Own::SegmentClosed { reason, signature })?;
            chain.push(batch, self.id, &body, &body_hash(&body));
            chain.sealed = true;
            Ok::<_, Declined>(Continues {
                segment: self.id,
                sequence,
                hash: chain.previous,
            })
        });
        closed.map_err(|declined| match declined {
            Declined::Ended => JournalError::Closed,
            Declined::Refused(error) => error,
        })
    }
}

impl Chain {
    fn push(&mut self, out: &mut Vec<u8>, segment: SegmentId, body: &[u8], hash: &[u8; 32]) {
        let entry = entry_hash(segment, self.previous, self.sequence, hash);
        let before = out.len();
        push_line(out, self.sequence, self.previous, entry, body);
        self.size_bytes = self
            .size_bytes
            .saturating_add(out.len().saturating_sub(before) as u64);
        self.previous = entry;
        self.sequence = self.sequence.saturating_add(1);
    }

    fn checkpoint(
        &mut self,
        out: &mut Vec<u8>,
        segment: SegmentId,
        keys: &Keys,
        now_ms: i64,
    ) -> Result<(), JournalError> {
        let message = chain::signed(false, segment, self.sequence, self.previous);
        let signature = hex::text(&keys.sign(&message));
        let body = body::write_own(now_ms, &Own::Checkpoint { signature })?;
        self.push(out, segment, &body, &body_hash(&body));
        self.uncovered = Uncovered::default();
        Ok(())
    }
}
