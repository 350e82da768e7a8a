//! What a verification finds, in closed sets.

use std::fmt;

use serde::Serialize;

use super::anchors::By;
use crate::journal::{EntryHash, OpId, PublicKey, SegmentId};

/// Something that the journal's writer does not do. One is enough: the journal was changed, or is not this installation's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the file.
    pub file: String,
    /// Line in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What is wrong.
    #[serde(flatten)]
    pub problem: Problem,
}

/// The ways in which a journal can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// The first line is not a header.
    HeaderUnreadable,
    /// The header states another segment than the file's name.
    Misnamed {
        /// What the header states.
        segment: SegmentId,
    },
    /// The file's name states another time than the one that the segment was given.
    Redated,
    /// Another file states the same segment.
    Duplicate {
        /// The segment.
        segment: SegmentId,
    },
    /// A line is not in the format.
    Malformed,
    /// A line is longer than any that is written.
    LineTooLong,
    /// A record does not have the hash that it states.
    Changed {
        /// Where the record stands.
        sequence: u64,
    },
    /// A record does not follow the one before it.
    BrokenLink {
        /// The record.
        sequence: u64,
    },
    /// Records are missing.
    Deleted {
        /// The first that is missing.
        first: u64,
        /// The last.
        last: u64,
    },
    /// A record stands where its sequence had already been.
    Inserted {
        /// The sequence that is there twice.
        sequence: u64,
    },
    /// A record stands behind a later one.
    Reordered {
        /// The record.
        sequence: u64,
    },
    /// A record's body lacks its time or kind, or is not JSON.
    BodyUnreadable {
        /// The record.
        sequence: u64,
    },
    /// The segment claims a key that is not trusted.
    KeyUntrusted {
        /// That key.
        public_key: String,
    },
    /// A signature is not that of the trusted key over what stands before it.
    SignatureBad {
        /// The signed record.
        sequence: u64,
    },
    /// A checkpoint should stand before this record.
    CheckpointMissing {
        /// The record.
        sequence: u64,
    },
    /// Something stands behind the closing record.
    AfterClose,
    /// The segment that this one continues is not there, and no signed record says that it was let go.
    ContinuedMissing {
        /// The missing segment.
        segment: SegmentId,
    },
    /// The segment that this one continues does not end as this one states.
    ContinuedDiffers {
        /// The continued segment.
        segment: SegmentId,
        /// Where it should end.
        sequence: u64,
        /// With which hash.
        hash: EntryHash,
    },
    /// The segment that this one continues is not closed.
    ContinuedOpen {
        /// The continued segment.
        segment: SegmentId,
    },
    /// Two segments continue the same one.
    Fork {
        /// The continued segment.
        segment: SegmentId,
        /// The other file that continues it.
        other: String,
    },
    /// Segments continue one another in a circle.
    Circle,
    /// The journal names heads, and none is there.
    HeadMissing,
    /// What is in the head's place is none.
    HeadDamaged,
    /// The head is not signed with a trusted key.
    HeadUnsigned,
    /// The head is older than one that the journal or the witness knows.
    HeadRolledBack {
        /// Serial of the head that is there.
        serial: u64,
        /// Serial of the latest head that was once there.
        known: u64,
    },
    /// A line of the witness is no head of a trusted key.
    WitnessForged,
    /// A segment is not there, and no signed record says that it was let go.
    SegmentMissing {
        /// The segment.
        segment: SegmentId,
        /// The last record that it is known to have held.
        sequence: u64,
        /// Who states that.
        by: By,
    },
    /// A segment ends before a record that it is known to have held.
    Cut {
        /// The segment.
        segment: SegmentId,
        /// The record that is known to have been there.
        sequence: u64,
        /// Who states that.
        by: By,
    },
    /// A segment holds another record than it is known to have held.
    Rewritten {
        /// The record.
        sequence: u64,
        /// Who states that.
        by: By,
    },
    /// A segment is there that the head does not name and nothing continues.
    SegmentUnknown {
        /// The segment.
        segment: SegmentId,
    },
    /// An operation was recorded for which nothing was decided before.
    OperationWithoutDecision {
        /// The operation.
        op: OpId,
        /// Its record.
        sequence: u64,
    },
}

impl Problem {
    pub(super) fn untrusted(key: PublicKey) -> Problem {
        Problem::KeyUntrusted {
            public_key: key.to_string(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::HeaderUnreadable => f.write_str("the first line is not a segment header"),
            Problem::Misnamed { segment } => write!(
                f,
                "the header states segment {segment}, the file's name another"
            ),
            Problem::Redated => f.write_str("the file's name states another time than its header"),
            Problem::Duplicate { segment } => write!(f, "segment {segment} is there twice"),
            Problem::Malformed => f.write_str("the line is not a journal record"),
            Problem::LineTooLong => f.write_str("the line is longer than any that is written"),
            Problem::Changed { sequence } => {
                write!(f, "record {sequence} was changed: its hash does not match")
            }
            Problem::BrokenLink { sequence } => {
                write!(f, "record {sequence} does not follow the record before it")
            }
            Problem::Deleted { first, last } if first == last => {
                write!(f, "record {first} was deleted")
            }
            Problem::Deleted { first, last } => write!(f, "records {first} to {last} were deleted"),
            Problem::Inserted { sequence } => write!(
                f,
                "a record was inserted: sequence {sequence} is there twice"
            ),
            Problem::Reordered { sequence } => {
                write!(f, "record {sequence} was moved behind a later one")
            }
            Problem::BodyUnreadable { sequence } => {
                write!(f, "record {sequence} has no readable body")
            }
            Problem::KeyUntrusted { public_key } => {
                write!(f, "signed with the key {public_key}, which is not trusted")
            }
            Problem::SignatureBad { sequence } => {
                write!(f, "the signature of record {sequence} is wrong")
            }
            Problem::CheckpointMissing { sequence } => {
                write!(f, "a checkpoint is missing before record {sequence}")
            }
            Problem::AfterClose => f.write_str("something was added behind the closing record"),
            Problem::ContinuedMissing { segment } => {
                write!(f, "the continued segment {segment} is missing")
            }
            Problem::ContinuedDiffers {
                segment, sequence, ..
            } => {
                write!(
                    f,
                    "the continued segment {segment} was replaced or cut: it does not end with record {sequence}"
                )
            }
            Problem::ContinuedOpen { segment } => {
                write!(f, "the continued segment {segment} is not closed")
            }
            Problem::Fork { segment, other } => {
                write!(f, "fork: {other} continues segment {segment} too")
            }
            Problem::Circle => f.write_str("segments continue one another in a circle"),
            Problem::HeadMissing => {
                f.write_str("the head was removed: the journal was written with one")
            }
            Problem::HeadDamaged => f.write_str("the file is no head of a journal"),
            Problem::HeadUnsigned => {
                f.write_str("the head was changed: it is not signed with a trusted key")
            }
            Problem::HeadRolledBack { serial, known } => write!(
                f,
                "the head was put back to number {serial}: number {known} was there already"
            ),
            Problem::WitnessForged => {
                f.write_str("the line of the witness is not a head signed with a trusted key")
            }
            Problem::SegmentMissing {
                segment,
                sequence,
                by,
            } => write!(
                f,
                "segment {segment} is missing: {} names its record {sequence}",
                by.words()
            ),
            Problem::Cut {
                segment,
                sequence,
                by,
            } => write!(
                f,
                "segment {segment} was cut: {} names its record {sequence}, which is not there",
                by.words()
            ),
            Problem::Rewritten { sequence, by } => write!(
                f,
                "record {sequence} was written anew: {} names another in its place",
                by.words()
            ),
            Problem::SegmentUnknown { segment } => write!(
                f,
                "segment {segment} is not known: the head does not name it and nothing continues it"
            ),
            Problem::OperationWithoutDecision { op, sequence } => {
                write!(
                    f,
                    "record {sequence} is the outcome of {op}, for which no decision was recorded"
                )
            }
        }
    }
}

/// Something worth knowing that is no sign of a change: a crash leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "note", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Note {
    /// The last line is cut off; all before it stands.
    TornTail {
        /// The file.
        file: String,
        /// The last whole record.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_good_sequence: Option<u64>,
        /// Bytes behind it.
        torn_bytes: u64,
    },
    /// The segment has no closing record: it is being written, or its writer died.
    NotClosed {
        /// The file.
        file: String,
        /// The last whole record.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_sequence: Option<u64>,
        /// Records behind the last checkpoint, which no signature covers.
        uncovered_records: u64,
    },
    /// The writer of a segment died, and a signed record states how the segment ended.
    Abandoned {
        /// The file.
        file: String,
        /// Records that no signature covered when the writer died.
        uncovered_records: u64,
    },
    /// The head names a segment that was announced and never begun: its writer died in between.
    NeverBegun {
        /// The segment.
        segment: SegmentId,
    },
    /// The witness has been given fewer heads than there were: it was out of reach, or is on its way.
    WitnessBehind {
        /// Serial of the latest head that it has.
        serial: u64,
        /// Serial of the head that is in place.
        head: u64,
    },
    /// Segments that the head or the witness names were let go by retention.
    LetGo {
        /// How many.
        count: u64,
    },
    /// The continued segment was let go; a signed record says so.
    Retired {
        /// The file that continues it.
        file: String,
        /// The segment that is gone.
        segment: SegmentId,
    },
    /// The continued segment is not part of what was verified.
    ContinuedElsewhere {
        /// The file that continues it.
        file: String,
        /// The segment that was not looked at.
        segment: SegmentId,
    },
    /// Calls were let through and no outcome is recorded: under way, or the program died before they ended.
    MissingOutcome {
        /// How many.
        count: u64,
        /// The first of them.
        ops: Vec<OpId>,
    },
    /// Outcomes whose decisions lie in a segment that was not looked at, or among what is missing or could not be read.
    DecisionElsewhere {
        /// How many.
        count: u64,
    },
    /// More calls are open at once than are tracked, so decisions and outcomes could not all be joined.
    JoinIncomplete {
        /// Calls no longer tracked.
        dropped: u64,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::TornTail {
                file,
                last_good_sequence: Some(last),
                torn_bytes,
            } => {
                write!(
                    f,
                    "{file}: torn tail: {torn_bytes} bytes behind record {last}, the last good one"
                )
            }
            Note::TornTail {
                file,
                last_good_sequence: None,
                torn_bytes,
            } => {
                write!(
                    f,
                    "{file}: torn tail: {torn_bytes} bytes and no whole record"
                )
            }
            Note::NotClosed {
                file,
                last_sequence: Some(last),
                uncovered_records,
            } => {
                write!(
                    f,
                    "{file}: not closed: ends with record {last}, the last {uncovered_records} under no signature"
                )
            }
            Note::NotClosed {
                file,
                last_sequence: None,
                ..
            } => write!(f, "{file}: not closed, no whole record"),
            Note::Abandoned {
                file,
                uncovered_records,
            } => write!(
                f,
                "{file}: not closed: its writer died; a signed record states its end, the last {uncovered_records} records were under no signature until then"
            ),
            Note::NeverBegun { segment } => {
                write!(f, "segment {segment} was announced and never begun")
            }
            Note::WitnessBehind { serial, head } => write!(
                f,
                "the witness was last given head {serial}, and head {head} is in place"
            ),
            Note::LetGo { count } => {
                write!(
                    f,
                    "{count} segments that are named were let go by retention"
                )
            }
            Note::Retired { file, segment } => write!(
                f,
                "{file}: continues {segment}, which was let go by a signed record"
            ),
            Note::ContinuedElsewhere { file, segment } => {
                write!(f, "{file}: continues {segment}, which was not looked at")
            }
            Note::MissingOutcome { count, ops } => {
                write!(
                    f,
                    "missing outcome: {count} permitted calls have no outcome"
                )?;
                ops.iter()
                    .take(8)
                    .enumerate()
                    .try_for_each(|(at, op)| write!(f, "{}{op}", if at == 0 { ": " } else { ", " }))
            }
            Note::DecisionElsewhere { count } => write!(
                f,
                "{count} outcomes belong to decisions that were not looked at or could not be read"
            ),
            Note::JoinIncomplete { dropped } => {
                write!(f, "{dropped} open calls were too many to track")
            }
        }
    }
}

/// Something of which it cannot be said whether it is whole. It is no sign of a change, and no sign of the lack of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "open", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unproven {
    /// A segment has no closing record: it is being written, or its writer died.
    Tail {
        /// The file.
        file: String,
        /// The segment.
        segment: SegmentId,
        /// Time of the latest signature that covers records of it.
        since: String,
        /// Records behind that signature.
        uncovered_records: u64,
        /// Its writer died, and a later segment states how it ended.
        abandoned: bool,
    },
    /// No head was compared, so a last segment that was taken away would not be missed.
    NoHead,
    /// The head was begun beside a key that was there before.
    HeadLate {
        /// When.
        since: String,
    },
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unproven::Tail {
                segment,
                since,
                uncovered_records: 0,
                ..
            } => write!(
                f,
                "open since {since}: segment {segment} has no closing record; a signature covers all that is there, and what came later could be missing"
            ),
            Unproven::Tail {
                segment,
                since,
                uncovered_records: count,
                abandoned: true,
                ..
            } => write!(
                f,
                "open since {since}: the last {count} records of segment {segment} were not covered by a signature when its writer died"
            ),
            Unproven::Tail {
                segment,
                since,
                uncovered_records: count,
                abandoned: false,
                ..
            } => write!(
                f,
                "open since {since}: the last {count} records of segment {segment} are not yet covered by a signature"
            ),
            Unproven::NoHead => f.write_str(
                "open: no head was compared, so a last segment that was taken away would not be missed",
            ),
            Unproven::HeadLate { since } => write!(
                f,
                "open since {since}: the head was begun then beside a key that was there before; what the journal held until then is not covered"
            ),
        }
    }
}

/// What a verification comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is wrong, and nothing is left open.
    Sound,
    /// Nothing is wrong with what is there; whether that is all cannot be said.
    Open,
    /// Something is wrong.
    Tampered,
}

/// The outcome of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Files looked at.
    pub segments: u64,
    /// Whole records read.
    pub records: u64,
    /// Signatures that are right.
    pub signatures: u64,
    /// Serial of the head that was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<u64>,
    /// Heads of the witness that were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness_heads: Option<u64>,
    /// What is wrong, up to [`super::FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// Findings beyond that bound.
    pub findings_omitted: u64,
    /// What cannot be said.
    pub unproven: Vec<Unproven>,
    /// What is worth knowing.
    pub notes: Vec<Note>,
}

impl VerifyReport {
    /// Whether nothing is wrong with what is there. Notes are no findings, and neither is an open end.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }

    /// What the verification comes to.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.findings.is_empty(), self.unproven.is_empty()) {
            (false, _) => Verdict::Tampered,
            (true, false) => Verdict::Open,
            (true, true) => Verdict::Sound,
        }
    }

    pub(super) fn find(&mut self, file: &str, line: Option<u64>, problem: Problem) {
        if self.findings.len() < super::FINDINGS_MAX {
            self.findings.push(Finding {
                file: file.to_owned(),
                line,
                problem,
            });
        } else {
            self.findings_omitted = self.findings_omitted.saturating_add(1);
        }
    }
}
