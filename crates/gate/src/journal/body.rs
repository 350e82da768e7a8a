//! Bodies: the JSON object of a record, beginning with its time and kind.

use serde::{Deserialize, Serialize};

use super::chain::{BODY_BYTES_MAX, EntryHash, SegmentId};
use super::record::{JournalEvent, Record};
use super::{JournalError, Keys, hex, instant};

/// The records that the journal writes about itself, all of kind `system`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Own<'a> {
    SegmentOpened {
        format: &'a str,
        segment: SegmentId,
        instance: String,
        version: &'a str,
        public_key: String,
        checkpoint_records_max: u64,
        checkpoint_wait_ms_max: u64,
        checkpoint_refusal_wait_ms_max: Option<u64>,
        /// Serial of the head that names this segment, where one is kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        head: Option<u64>,
        continues: Option<Continues>,
    },
    Checkpoint {
        signature: String,
        /// Serial of the latest head that this writer has put in place, where one is kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        head: Option<u64>,
    },
    SegmentClosed {
        reason: &'a str,
        signature: String,
    },
    SegmentRetired {
        segment: SegmentId,
        sequence: Option<u64>,
        hash: Option<EntryHash>,
        size_bytes: u64,
    },
    SegmentAbandoned {
        segment: SegmentId,
        sequence: Option<u64>,
        hash: Option<EntryHash>,
        size_bytes: u64,
        uncovered_records: u64,
    },
    SegmentSetAside {
        segment: SegmentId,
        /// Its last record; absent where the file has no whole line, or is missing.
        sequence: Option<u64>,
        hash: Option<EntryHash>,
        size_bytes: u64,
        problem: &'a str,
        /// Directory that holds the file; absent where it was missing.
        moved_to: Option<&'a str>,
    },
    WitnessFailed {
        witness: &'a str,
        error: String,
    },
    WitnessReturned {
        witness: &'a str,
    },
}

/// The end of a closed segment that another one continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Continues {
    /// The closed segment.
    pub(super) segment: SegmentId,
    /// Sequence of its last record.
    pub(super) sequence: u64,
    /// Hash of its last record.
    pub(super) hash: EntryHash,
}

impl Own<'_> {
    /// The name that the record is found by.
    fn event(&self) -> JournalEvent {
        match self {
            Self::SegmentOpened { .. } => JournalEvent::SegmentOpened,
            Self::Checkpoint { .. } => JournalEvent::Checkpoint,
            Self::SegmentClosed { .. } => JournalEvent::SegmentClosed,
            Self::SegmentRetired { .. } => JournalEvent::SegmentRetired,
            Self::SegmentAbandoned { .. } => JournalEvent::SegmentAbandoned,
            Self::SegmentSetAside { .. } => JournalEvent::SegmentSetAside,
            Self::WitnessFailed { .. } => JournalEvent::WitnessFailed,
            Self::WitnessReturned { .. } => JournalEvent::WitnessReturned,
        }
    }
}

/// Writes `{"time":…,"kind":…` and the members of `record`.
pub(super) fn write(
    out: &mut Vec<u8>,
    now_ms: i64,
    record: &Record<'_>,
    keys: &Keys,
) -> Result<(), JournalError> {
    if let Record::System(system) = record {
        let event = system.event.as_str();
        if JournalEvent::ALL.iter().any(|own| own.label() == event) {
            return Err(JournalError::ReservedEvent);
        }
    }
    begin(out, now_ms, record.kind());
    record.write(out, keys);
    out.push(b'}');
    if out.len() > BODY_BYTES_MAX {
        return Err(JournalError::TooLarge {
            body_bytes: out.len(),
            body_bytes_max: BODY_BYTES_MAX,
        });
    }
    Ok(())
}

/// Writes a record of the journal's own.
pub(super) fn write_own(now_ms: i64, own: &Own<'_>) -> Result<Vec<u8>, JournalError> {
    let mut out = Vec::with_capacity(512);
    begin(&mut out, now_ms, "system");
    out.extend_from_slice(b",\"event\":\"");
    out.extend_from_slice(own.event().label().as_bytes());
    out.push(b'"');
    let brace = out.len();
    serde_json::to_writer(&mut out, own).map_err(|_| JournalError::Unwritable)?;
    join(&mut out, brace);
    Ok(out)
}

fn begin(out: &mut Vec<u8>, now_ms: i64, kind: &str) {
    out.extend_from_slice(b"{\"time\":\"");
    instant::push(out, now_ms);
    out.extend_from_slice(b"\",\"kind\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.push(b'"');
}

/// Turns the record's own opening brace into the comma behind the kind.
fn join(out: &mut [u8], brace: usize) {
    if let Some(byte) = out.get_mut(brace) {
        *byte = b',';
    }
}

/// The header of a segment, as read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// The segment's id.
    pub(super) segment: SegmentId,
    /// The instance that wrote it, as it stands there.
    pub(super) instance: String,
    /// The version of the program that wrote it.
    pub(super) version: String,
    /// The public key that its checkpoints claim.
    pub(super) public_key: super::PublicKey,
    /// When it was begun, in milliseconds since 1970.
    pub(super) time_ms: i64,
    /// When its checkpoints are due.
    pub(super) checkpoints: super::Cadence,
    /// Serial of the head that named it first, where one was kept.
    pub(super) head: Option<u64>,
    /// What it continues.
    pub(super) continues: Option<Continues>,
}

#[derive(Deserialize)]
struct RawHeader {
    time: String,
    event: String,
    format: String,
    segment: String,
    instance: String,
    version: String,
    public_key: String,
    checkpoint_records_max: u64,
    checkpoint_wait_ms_max: u64,
    #[serde(default)]
    checkpoint_refusal_wait_ms_max: Option<u64>,
    #[serde(default)]
    head: Option<u64>,
    continues: Option<RawContinues>,
}

#[derive(Deserialize)]
struct RawContinues {
    segment: String,
    sequence: u64,
    hash: String,
}

impl Header {
    /// Reads a header's body; `None` when it is not one.
    pub(super) fn parse(body: &[u8]) -> Option<Header> {
        let raw: RawHeader = serde_json::from_slice(body).ok()?;
        let right = raw.event == "segment_opened" && raw.format == super::FORMAT;
        let continues = match raw.continues {
            None => None,
            Some(raw) => Some(Continues {
                segment: SegmentId::parse(&raw.segment)?,
                sequence: raw.sequence,
                hash: EntryHash::parse(&raw.hash)?,
            }),
        };
        right.then_some(Header {
            segment: SegmentId::parse(&raw.segment)?,
            instance: raw.instance,
            version: raw.version,
            public_key: super::PublicKey::parse(&raw.public_key)?,
            time_ms: super::parse_utc(&raw.time)?,
            checkpoints: super::Cadence {
                records_max: raw.checkpoint_records_max,
                wait_ms_max: raw.checkpoint_wait_ms_max,
                refusal_wait_ms_max: raw.checkpoint_refusal_wait_ms_max,
            },
            head: raw.head,
            continues,
        })
    }
}

/// The signature in a checkpoint or closing record.
pub(super) fn signature(text: &str) -> Option<[u8; 64]> {
    hex::parse(text.as_bytes())
}
