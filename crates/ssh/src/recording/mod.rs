//! Recorded terminals: asciicast version 2, with a hash behind every line, chained as the journal's records are.
//!
//! Players show the file as it is: the lines with hashes have a code of their own, which they pass over. Only
//! output is recorded, not what is typed. What cannot be recorded does not go on.

mod replay;
mod write;

use gate::journal::{EntryHash, SegmentId, body_hash, entry_hash};

pub use replay::{Event, Finding, Recording, read};
pub(crate) use write::{OpenRecordings, Recorder};

/// The version of asciicast.
const VERSION: u64 = 2;
/// Codes of lines: output, a hash, and how the program ended.
const OUTPUT: &str = "o";
const HASH: &str = "h";
const END: &str = "e";

/// The line with the hash of an event's line: it has the event's time.
fn hash_line(line: &str, hash: EntryHash) -> String {
    let time = line.split(',').next().unwrap_or_default();
    format!("{time}, \"{HASH}\", \"{hash}\"]")
}

/// The hashes of a recording, one after the other.
#[derive(Debug, Clone, Copy)]
struct Chain {
    segment: SegmentId,
    last: EntryHash,
    sequence: u64,
}

impl Chain {
    fn new(segment: SegmentId, header: &str) -> Self {
        let mut chain = Self {
            segment,
            last: EntryHash::ZERO,
            sequence: 0,
        };
        chain.push(header);
        chain
    }

    /// Takes a line in, without its line end; gives its hash.
    fn push(&mut self, line: &str) -> EntryHash {
        let body = body_hash(line.as_bytes());
        self.last = entry_hash(self.segment, self.last, self.sequence, &body);
        self.sequence += 1;
        self.last
    }
}
