//! The chain: what is hashed, what is signed, and how a line is spelt.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::hex;

/// Name and version of the format; it stands in every segment's header and in every hash.
pub const FORMAT: &str = "dwj1";

/// What a checkpoint's signature begins with.
const CHECKPOINT_DOMAIN: &[u8] = b"dwj1-checkpoint";

/// What a closing signature begins with: another domain, so that no checkpoint can be passed off as an end.
const CLOSED_DOMAIN: &[u8] = b"dwj1-closed";

/// Largest body of a record, in bytes.
pub const BODY_BYTES_MAX: usize = 256 * 1024;

/// Longest line that a reader takes, in bytes; longer ones are a finding.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// A SHA-256 value: the hash of an entry or of the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryHash(pub [u8; 32]);

impl EntryHash {
    /// What a chain of its own starts with.
    pub const ZERO: EntryHash = EntryHash([0; 32]);
}

/// The 128 bits that name a segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentId(pub [u8; 16]);

macro_rules! hexadecimal {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::text(&self.0))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::text(&self.0))
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&hex::text(&self.0))
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                $name::parse(&text)
                    .ok_or_else(|| serde::de::Error::custom("not lower-case hexadecimal"))
            }
        }
        impl $name {
            /// Reads the lower-case hexadecimal form.
            #[must_use]
            pub fn parse(text: &str) -> Option<$name> {
                hex::parse(text.as_bytes()).map($name)
            }
        }
    };
}
hexadecimal!(EntryHash);
hexadecimal!(SegmentId);

/// SHA-256 of a body as it is written.
#[must_use]
pub fn body_hash(body: &[u8]) -> [u8; 32] {
    Sha256::digest(body).into()
}

/// `SHA-256("dwj1" ‖ segment id (16) ‖ previous hash (32) ‖ sequence (8, big-endian) ‖ SHA-256(body))`.
#[must_use]
pub fn entry_hash(
    segment: SegmentId,
    previous: EntryHash,
    sequence: u64,
    body: &[u8; 32],
) -> EntryHash {
    let mut hasher = Sha256::new();
    hasher.update(FORMAT.as_bytes());
    hasher.update(segment.0);
    hasher.update(previous.0);
    hasher.update(sequence.to_be_bytes());
    hasher.update(body);
    EntryHash(hasher.finalize().into())
}

/// What is signed at `sequence`: everything before it, through `previous`.
pub(super) fn signed(
    closing: bool,
    segment: SegmentId,
    sequence: u64,
    previous: EntryHash,
) -> Vec<u8> {
    let domain = if closing {
        CLOSED_DOMAIN
    } else {
        CHECKPOINT_DOMAIN
    };
    let mut out = Vec::with_capacity(domain.len().saturating_add(56));
    out.extend_from_slice(domain);
    out.extend_from_slice(&segment.0);
    out.extend_from_slice(&sequence.to_be_bytes());
    out.extend_from_slice(&previous.0);
    out
}

const SEQUENCE: &[u8] = b"{\"sequence\":";
const PREVIOUS: &[u8] = b",\"prev_hash\":\"";
const ENTRY: &[u8] = b"\",\"entry_hash\":\"";
const BODY: &[u8] = b"\",\"body\":";

/// Bytes that a line has besides its body, at most.
pub(super) const FRAME_BYTES_MAX: usize =
    SEQUENCE.len() + 20 + PREVIOUS.len() + 64 + ENTRY.len() + 64 + BODY.len() + 2;

/// Appends one line, with its end.
pub(super) fn push_line(
    out: &mut Vec<u8>,
    sequence: u64,
    previous: EntryHash,
    entry: EntryHash,
    body: &[u8],
) {
    out.reserve(body.len().saturating_add(FRAME_BYTES_MAX));
    out.extend_from_slice(SEQUENCE);
    hex::push_decimal(out, sequence);
    out.extend_from_slice(PREVIOUS);
    hex::push(out, &previous.0);
    out.extend_from_slice(ENTRY);
    hex::push(out, &entry.0);
    out.extend_from_slice(BODY);
    out.extend_from_slice(body);
    out.extend_from_slice(b"}\n");
}

/// One line, taken apart but not yet believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Position in the segment, from 0.
    pub sequence: u64,
    /// Hash of the entry before.
    pub previous: EntryHash,
    /// Hash of this entry.
    pub entry: EntryHash,
    /// The body's bytes as written.
    pub body: &'a [u8],
}

impl<'a> Line<'a> {
    /// Takes a line apart, given without its end. Only the exact spelling of the format is taken, so that no byte of a line
    /// can change unnoticed.
    #[must_use]
    pub fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let rest = line.strip_prefix(SEQUENCE)?;
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = rest.split_at_checked(length)?;
        let sequence: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        if number.len() > 1 && number.starts_with(b"0") {
            return None;
        }
        let (previous, rest) = rest.strip_prefix(PREVIOUS)?.split_at_checked(64)?;
        let (entry, rest) = rest.strip_prefix(ENTRY)?.split_at_checked(64)?;
        let body = rest.strip_prefix(BODY)?.strip_suffix(b"}")?;
        let shaped = body.starts_with(b"{") && body.ends_with(b"}");
        shaped.then_some(Line {
            sequence,
            previous: EntryHash(hex::parse(previous)?),
            entry: EntryHash(hex::parse(entry)?),
            body,
        })
    }

    /// Whether the entry's hash is the hash of what the line says.
    #[must_use]
    pub fn holds(&self, segment: SegmentId) -> bool {
        entry_hash(segment, self.previous, self.sequence, &body_hash(self.body)) == self.entry
    }
}
