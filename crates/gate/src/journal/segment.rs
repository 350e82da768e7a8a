//! One segment being written: a file and the end of its chain.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use state::{Composed, FileLog, Log as _, LogError, SyncPolicy};

use super::body::{self, Continues, Own};
use super::chain::{self, EntryHash, SegmentId, body_hash, entry_hash, push_line};
use super::contents::Written;
use super::head::{End, Head, Keeper, Kept, State};
use super::options::{JournalOptions, Uncovered, waited_ms};
use super::{FORMAT, JournalError, Keys, hex, instant};

/// Time from the first record that the head does not cover to the tick that has it brought up to date, in milliseconds.
const HEAD_WAIT_MS: u64 = 500;

/// Looks at whether composed records are written by now, and the pause between two, in milliseconds.
const WRITTEN_LOOKS_MAX: usize = 200;
const WRITTEN_PAUSE_MS: u64 = 1;

/// Room kept for the last checkpoint and the closing record, in bytes.
const END_BYTES: u64 = 2_048;

pub(super) struct Segment {
    pub(super) id: SegmentId,
    pub(super) named_ms: i64,
    pub(super) log: FileLog,
    options: JournalOptions,
    chain: Arc<Mutex<Chain>>,
    /// Serial of the latest head that names this segment; 0 where none is kept.
    head: AtomicU64,
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
    /// Time of the first record that the head does not cover yet.
    unheaded_ms: Option<i64>,
}

/// What a record asks for besides being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// Nothing.
    Usual,
    /// It tells what has happened already, so it is written with the next one, which also finds out whether the file is still
    /// ours.
    Afterwards,
    /// It is a refusal or a person's decision, which a signature covers soon.
    Refusal,
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
    /// Serial of the head that names the segment, where one is kept.
    pub(super) head: Option<u64>,
}

impl Opening {
    /// The time in the segment's name. Names sort in the order of the chain, also when segments are short or the clock was
    /// set back.
    pub(super) fn named_ms(&self, now_ms: i64) -> i64 {
        self.after_ms
            .map_or(now_ms, |after_ms| now_ms.max(after_ms.saturating_add(1)))
    }
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
        let named_ms = opening.named_ms(now_ms);
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
                checkpoint_refusal_wait_ms_max: options.checkpoints.refusal_wait_ms_max,
                head: opening.head,
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
            unheaded_ms: None,
        };
        let mut first = Vec::new();
        chain.push(&mut first, opening.id, &header, &body_hash(&header));
        chain.checkpoint(&mut first, opening.id, keys, (now_ms, opening.head))?;
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
        let log = FileLog::create(&path, options.sync)?.with_contents(Box::new(written));
        log.append(&first)?;
        Ok(Segment {
            id: opening.id,
            named_ms,
            log,
            options,
            chain,
            head: AtomicU64::new(opening.head.unwrap_or(0)),
        })
    }

    /// Begins to append one body, with a checkpoint before it where one is due. Returns the record's sequence, the length
    /// of its line, and what is to be finished unless it tells what has happened already.
    pub(super) fn begin(
        &self,
        keys: &Keys,
        now_ms: i64,
        (body, hash): (&[u8], &[u8; 32]),
        weight: Weight,
    ) -> Result<((u64, u64), Option<Composed>), Declined> {
        let compose = |batch: &mut Vec<u8>| {
            let mut chain = self.chain();
            let after_bytes = chain
                .size_bytes
                .saturating_add(body.len() as u64)
                .saturating_add(END_BYTES);
            // A segment takes at least one record, however small its size was set.
            if chain.sealed || (chain.sequence > 2 && after_bytes > self.options.segment_bytes_max)
            {
                return Err(Declined::Ended);
            }
            if chain.uncovered.wanted(self.options.checkpoints, now_ms) {
                chain.checkpoint(batch, self.id, keys, (now_ms, self.head()))?;
            }
            let (sequence, before_bytes) = (chain.sequence, chain.size_bytes);
            chain.push(batch, self.id, body, hash);
            let bytes = chain.size_bytes.saturating_sub(before_bytes);
            chain.uncovered.add(now_ms, weight == Weight::Refusal);
            chain.unheaded_ms.get_or_insert(now_ms);
            Ok((sequence, bytes))
        };
        if weight == Weight::Afterwards {
            let written = self.log.append_later_with(compose)?;
            return Ok((written, None));
        }
        let (written, composed) = self.log.begin_with(compose)?;
        Ok((written, Some(composed)))
    }

    /// Writes a checkpoint: where records wait for one and it is due, or at once when `now` is asked for.
    pub(super) fn checkpoint(&self, keys: &Keys, now_ms: i64, now: bool) -> Result<(), Declined> {
        let due = {
            let chain = self.chain();
            let cadence = self.options.checkpoints.on_tick();
            !chain.sealed && (now || chain.uncovered.wanted(cadence, now_ms))
        };
        if !due {
            return Ok(());
        }
        self.log.append_with(|batch| {
            let mut chain = self.chain();
            if chain.sealed {
                return Err(Declined::Ended);
            }
            Ok(chain.checkpoint(batch, self.id, keys, (now_ms, self.head()))?)
        })
    }

    fn chain(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn head(&self) -> Option<u64> {
        Some(self.head.load(Ordering::Relaxed)).filter(|serial| *serial > 0)
    }

    /// Takes note of a head that was put in place.
    pub(super) fn headed(&self, head: &Head) {
        self.head.fetch_max(head.serial, Ordering::Relaxed);
    }

    /// Whether records have waited for the head long enough.
    pub(super) fn wants_head(&self, now_ms: i64) -> bool {
        let since_ms = self.chain().unheaded_ms;
        since_ms.is_some_and(|since_ms| waited_ms(since_ms, now_ms) >= HEAD_WAIT_MS)
    }

    /// The end as it is composed at this moment.
    pub(super) fn end(&self, now_ms: i64) -> End {
        self.end_of(&self.chain(), now_ms)
    }

    fn end_of(&self, chain: &Chain, now_ms: i64) -> End {
        End {
            segment: self.id,
            named_ms: self.named_ms,
            state: if chain.sealed {
                State::Closed
            } else {
                State::Open
            },
            sequence: chain.sequence.checked_sub(1),
            hash: Some(chain.previous),
            end_bytes: chain.size_bytes,
            time_ms: now_ms,
        }
    }

    /// Has the head state how far this segment has come, once that is in the file and, where the policy says so, on the disk.
    /// `None`: not now; the next tick asks again.
    pub(super) fn tell(&self, keeper: &Keeper, now_ms: i64) -> Result<Option<Kept>, JournalError> {
        let end = {
            let mut chain = self.chain();
            if chain.sealed {
                return Ok(None);
            }
            chain.unheaded_ms = None;
            self.end_of(&chain, now_ms)
        };
        let kept = self.tell_of(&end, keeper, now_ms);
        match &kept {
            Ok(Some(kept)) => self.headed(&kept.head),
            _ => drop(self.chain().unheaded_ms.get_or_insert(now_ms)),
        }
        kept
    }

    fn tell_of(
        &self,
        end: &End,
        keeper: &Keeper,
        now_ms: i64,
    ) -> Result<Option<Kept>, JournalError> {
        if !self.is_kept(end.end_bytes)? {
            return Ok(None);
        }
        let told = keeper.change(now_ms, false, &mut |head| {
            // Whoever has closed it meanwhile states its end.
            if self.chain().sealed {
                return Err(JournalError::Closed);
            }
            if head.end(self.id).is_none() {
                return Err(keeper.dropped(self.id));
            }
            head.put(*end);
            Ok(())
        });
        match told {
            Err(JournalError::Closed) => Ok(None),
            other => other,
        }
    }

    /// Whether this many bytes are where the policy wants them, waiting for a write under way and syncing where it must.
    pub(super) fn is_kept(&self, end_bytes: u64) -> Result<bool, JournalError> {
        for _ in 0..WRITTEN_LOOKS_MAX {
            let (written_bytes, synced_bytes) = self.log.progress();
            // A log that has failed says so itself.
            if self.log.failure().is_some() {
                return Ok(false);
            }
            if written_bytes >= end_bytes {
                if self.options.sync != SyncPolicy::Never && synced_bytes < end_bytes {
                    self.log.sync()?;
                }
                return Ok(true);
            }
            std::thread::park_timeout(Duration::from_millis(WRITTEN_PAUSE_MS));
        }
        Ok(false)
    }

    /// Writes down that the witness failed, or that it is back.
    pub(super) fn witnessed(
        &self,
        keys: &Keys,
        now_ms: i64,
        witness: &str,
        result: io::Result<()>,
    ) -> Result<(), JournalError> {
        let own = match result {
            Ok(()) => Own::WitnessReturned { witness },
            Err(error) => Own::WitnessFailed {
                witness,
                error: error.to_string(),
            },
        };
        match self.append_own(keys, now_ms, &own) {
            // The segment has reached its size; the next change of the witness is told of again.
            Err(Declined::Ended) => Ok(()),
            Err(Declined::Refused(error)) => Err(error),
            Ok(()) => Ok(()),
        }
    }

    /// Appends a record of the journal's own.
    pub(super) fn append_own(
        &self,
        keys: &Keys,
        now_ms: i64,
        own: &Own<'_>,
    ) -> Result<(), Declined> {
        let body = body::write_own(now_ms, own)?;
        let hash = body_hash(&body);
        let (_, composed) = self.begin(keys, now_ms, (&body, &hash), Weight::Usual)?;
        Ok(composed.map_or(Ok(()), |composed| self.log.finish(composed))?)
    }

    /// Writes the closing record, after which the segment takes nothing, and returns what a successor continues.
    pub(super) fn close(
        &self,
        keys: &Keys,
        now_ms: i64,
        reason: &str,
    ) -> Result<Continues, JournalError> {
        let closed = self.log.append_with(|batch| {
            let mut chain = self.chain();
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
        (now_ms, head): (i64, Option<u64>),
    ) -> Result<(), JournalError> {
        let message = chain::signed(false, segment, self.sequence, self.previous);
        let signature = hex::text(&keys.sign(&message));
        let body = body::write_own(now_ms, &Own::Checkpoint { signature, head })?;
        self.push(out, segment, &body, &body_hash(&body));
        self.uncovered = Uncovered::default();
        Ok(())
    }
}
