//! The head: a signed statement of where every chain of the journal ends, kept beside the keys and not in the journal.
//!
//! Without it a journal can only be checked against itself: a last segment that was taken away leaves no trace, and records
//! behind the last checkpoint are under no signature. With it, what it names has to be there.
//!
//! Invariants, stated as absences:
//! - it never names a record that is not yet in its file (nor, but for `sync: never`, on the disk);
//! - no segment is begun that it does not name before;
//! - no end is dropped from it that no other signed record keeps: the header of a successor, or a record of the journal that
//!   names an abandoned or a retired segment;
//! - its serial never falls.

mod publisher;
mod store;
mod witness;

use serde::{Deserialize, Serialize};

use super::chain::{EntryHash, SegmentId};
use super::{PublicKey, hex};

pub(super) use publisher::Courier;
pub(super) use store::{Keeper, Kept, first};
pub use store::{Step, Steps};
pub use witness::{FileWitness, WITNESS_BYTES_MAX, Witness};

/// File of the head, in the key directory.
pub const HEAD_FILE: &str = "head.json";

/// What a head's signature begins with.
const DOMAIN: &[u8] = b"dwj1-head";

/// Most ends that one head names.
pub const ENDS_MAX: usize = 4_096;

/// Largest head that is read, in bytes.
pub const HEAD_BYTES_MAX: usize = 2 << 20;

const OPENING: &[u8] = b"{\"head\":";
const SIGNATURE: &[u8] = b",\"signature\":\"";
const CLOSING: &[u8] = b"\"}";

/// How far a segment had come when the head was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was about to be begun; there may be no file yet.
    Opening,
    /// It was being written.
    Open,
    /// It has its closing record, and nothing continues it.
    Closed,
}

/// The end of one chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The chain's last segment.
    pub segment: SegmentId,
    /// The time in the name of its file, in milliseconds since 1970.
    pub named_ms: i64,
    /// How far it had come.
    pub state: State,
    /// Sequence of the last record that this head covers; absent while the segment is opening.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sequence: Option<u64>,
    /// Its hash.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hash: Option<EntryHash>,
    /// Offset behind that record in the file, in bytes.
    pub end_bytes: u64,
    /// When this end was stated, in milliseconds since 1970.
    pub time_ms: i64,
}

/// Where every chain ends, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Name and version of the journal's format.
    pub format: String,
    /// Counts the heads of this installation from 1.
    pub serial: u64,
    /// When it was written, in milliseconds since 1970.
    pub time_ms: i64,
    /// When the first head of this series was written, in milliseconds since 1970.
    pub begun_ms: i64,
    /// Whether the series was begun beside a key that was there before: what the journal held until then is not covered.
    pub late: bool,
    /// Segments whose names state this time or an earlier one may have been let go by retention.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retired_ms: Option<i64>,
    /// The ends, in no particular order.
    pub ends: Vec<End>,
}

/// Why bytes are no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAHead {
    /// They are not in the format.
    Malformed,
    /// No trusted key has signed them.
    Unsigned,
}

impl Head {
    /// The first head of a series.
    #[must_use]
    pub fn first(now_ms: i64, late: bool) -> Head {
        Head {
            format: super::FORMAT.to_owned(),
            serial: 1,
            time_ms: now_ms,
            begun_ms: now_ms,
            late,
            retired_ms: None,
            ends: Vec::new(),
        }
    }

    /// The end that a segment has.
    #[must_use]
    pub fn end(&self, segment: SegmentId) -> Option<&End> {
        self.ends.iter().find(|end| end.segment == segment)
    }

    /// Puts an end in the place of the one that the segment had, or beside the others.
    pub(super) fn put(&mut self, end: End) {
        match self
            .ends
            .iter_mut()
            .find(|known| known.segment == end.segment)
        {
            Some(known) => *known = end,
            None => self.ends.push(end),
        }
    }

    /// Drops the ends of these segments.
    pub(super) fn drop_ends(&mut self, segments: &[SegmentId]) {
        self.ends.retain(|end| !segments.contains(&end.segment));
    }

    /// One line, signed: `{"head":…,"signature":"…128 hex…"}`. `None` where it cannot be written as JSON.
    pub(super) fn write(&self, sign: impl FnOnce(&[u8]) -> [u8; 64]) -> Option<Vec<u8>> {
        let body = serde_json::to_vec(self).ok()?;
        let signature = sign(&message(&body));
        let mut out = Vec::with_capacity(body.len().saturating_add(256));
        out.extend_from_slice(OPENING);
        out.extend_from_slice(&body);
        out.extend_from_slice(SIGNATURE);
        hex::push(&mut out, &signature);
        out.extend_from_slice(CLOSING);
        out.push(b'\n');
        Some(out)
    }

    /// Reads one line, with or without its end, and checks its signature against the keys that are trusted.
    ///
    /// # Errors
    /// [`NotAHead`].
    pub fn read(line: &[u8], trusted: &[PublicKey]) -> Result<Head, NotAHead> {
        let (body, signature) = parts(line).ok_or(NotAHead::Malformed)?;
        let message = message(body);
        if !trusted.iter().any(|key| key.verifies(&message, &signature)) {
            return Err(NotAHead::Unsigned);
        }
        let head: Head = serde_json::from_slice(body).map_err(|_| NotAHead::Malformed)?;
        let right = head.format == super::FORMAT && head.ends.len() <= ENDS_MAX;
        right.then_some(head).ok_or(NotAHead::Malformed)
    }
}

fn message(body: &[u8]) -> Vec<u8> {
    [DOMAIN, body].concat()
}

/// The signed part and the signature. Only the exact spelling is taken.
fn parts(line: &[u8]) -> Option<(&[u8], [u8; 64])> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let rest = line.strip_prefix(OPENING)?.strip_suffix(CLOSING)?;
    let (rest, signature) = rest.split_at_checked(rest.len().checked_sub(128)?)?;
    Some((rest.strip_suffix(SIGNATURE)?, hex::parse(signature)?))
}

#[cfg(test)]
mod tests {
    use super::super::Keys;
    use super::*;

    #[test]
    fn a_head_is_read_back_and_any_changed_byte_is_noticed() {
        let keys = Keys::ephemeral(&mut |bytes| bytes.fill(1));
        let mut head = Head::first(1_795_232_289_123, false);
        for (at, state) in [State::Opening, State::Open, State::Closed]
            .into_iter()
            .enumerate()
        {
            head.put(End {
                segment: SegmentId([at as u8; 16]),
                named_ms: 1_795_232_289_123,
                state,
                sequence: (state != State::Opening).then_some(7),
                hash: (state != State::Opening).then_some(EntryHash([9; 32])),
                end_bytes: 4_711,
                time_ms: 1_795_232_289_124,
            });
        }
        let line = head.write(|message| keys.sign(message)).unwrap();
        let trusted = [keys.public()];
        assert_eq!(Head::read(&line, &trusted), Ok(head.clone()));
        for at in 0..line.len() - 1 {
            let mut changed = line.clone();
            changed[at] ^= 1;
            assert!(Head::read(&changed, &trusted).is_err(), "byte {at}");
        }
        for length in 0..line.len() - 1 {
            assert!(Head::read(&line[..length], &trusted).is_err());
        }
        let other = Keys::ephemeral(&mut |bytes| bytes.fill(2));
        assert_eq!(
            Head::read(&line, &[other.public()]),
            Err(NotAHead::Unsigned)
        );
        head.drop_ends(&[SegmentId([0; 16]), SegmentId([2; 16])]);
        assert_eq!(head.ends.len(), 1);
    }
}
