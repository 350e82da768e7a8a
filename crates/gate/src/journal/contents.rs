//! What a segment being written should hold, for the moment when its file was touched by somebody else.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use state::log::Contents;

use super::audit::lines::{Ended, Lines};
use super::chain::{EntryHash, Line, SegmentId};
use super::segment::Chain;

const READ_BYTES: usize = 1 << 18;

/// Reads the segment's file back and compares the end of its chain with the one in memory.
pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) id: SegmentId,
    /// Hash that the first record follows.
    pub(super) start: EntryHash,
    pub(super) chain: Arc<Mutex<Chain>>,
}

impl Contents for Written {
    fn hold(&self, len_bytes: u64, next: &[u8]) -> Option<bool> {
        let first = next.split(|byte| *byte == b'\n').next();
        let expected = match first.and_then(Line::parse) {
            Some(line) => line.previous,
            None => {
                let chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
                // Records that are composed and not yet written stand between the file and the chain in memory.
                (chain.size_bytes == len_bytes).then_some(chain.previous)?
            }
        };
        Some(self.end(len_bytes) == Some(expected))
    }
}

impl Written {
    /// The hash of the last of the first `len_bytes` bytes' records; `None` unless they are one whole chain.
    fn end(&self, len_bytes: u64) -> Option<EntryHash> {
        let file = File::open(&self.path).ok()?.take(len_bytes);
        let mut lines = Lines::new(BufReader::with_capacity(READ_BYTES, file));
        let (mut bytes, mut sequence, mut previous) = (Vec::new(), 0_u64, self.start);
        while let Some(ended) = lines.next(&mut bytes).ok()? {
            let line = (ended == Ended::Whole).then(|| Line::parse(&bytes))??;
            let follows = line.sequence == sequence && line.previous == previous;
            if !follows || !line.holds(self.id) {
                return None;
            }
            sequence = sequence.saturating_add(1);
            previous = line.entry;
        }
        Some(previous)
    }
}
