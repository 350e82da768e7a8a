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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// The first line is not a header.
    #[error("the first line is not a segment header")]
    HeaderUnreadable,
    /// The header states another segment than the file's name.
    #[error("the header states segment {segment}, the file's name another")]
    Misnamed {
        /// What the header states.
        segment: SegmentId,
    },
    /// The file's name states another time than the one that the segment was given.
    #[error("the file's name states another time than its header")]
    Redated,
    /// Another file states the same segment.
    #[error("segment {segment} is there twice")]
    Duplicate {
        /// The segment.
        segment: SegmentId,
    },
    /// A line is not in the format.
    #[error("the line is not a journal record")]
    Malformed,
    /// A line is longer than any that is written.
    #[error("the line is longer than any that is written")]
    LineTooLong,
    /// A record does not have the hash that it states.
    #[error("record {sequence} was changed: its hash does not match")]
    Changed {
        /// Where the record stands.
        sequence: u64,
    },
    /// A record does not follow the one before it.
    #[error("record {sequence} does not follow the record before it")]
    BrokenLink {
        /// The record.
        sequence: u64,
    },
    /// Records are missing.
    #[error("{}", deleted(*first, *last))]
    Deleted {
        /// The first that is missing.
        first: u64,
        /// The last.
        last: u64,
    },
    /// A record stands where its sequence had already been.
    #[error("a record was inserted: sequence {sequence} is there twice")]
    Inserted {
        /// The sequence that is there twice.
        sequence: u64,
    },
    /// A record stands behind a later one.
    #[error("record {sequence} was moved behind a later one")]
    Reordered {
        /// The record.
        sequence: u64,
    },
    /// A record's body lacks its time or kind, or is not JSON.
    #[error("record {sequence} has no readable body")]
    BodyUnreadable {
        /// The record.
        sequence: u64,
    },
    /// The segment claims a key that is not trusted.
    #[error("signed with the key {public_key}, which is not trusted")]
    KeyUntrusted {
        /// That key.
        public_key: String,
    },
    /// A signature is not that of the trusted key over what stands before it.
    #[error("the signature of record {sequence} is wrong")]
    SignatureBad {
        /// The signed record.
        sequence: u64,
    },
    /// A checkpoint should stand before this record.
    #[error("a checkpoint is missing before record {sequence}")]
    CheckpointMissing {
        /// The record.
        sequence: u64,
    },
    /// Something stands behind the closing record.
    #[error("something was added behind the closing record")]
    AfterClose,
    /// The segment that this one continues is not there, and no signed record says that it was let go.
    #[error("the continued segment {segment} is missing")]
    ContinuedMissing {
        /// The missing segment.
        segment: SegmentId,
    },
    /// The segment that this one continues does not end as this one states.
    #[error(
        "the continued segment {segment} was replaced or cut: it does not end with record {sequence}"
    )]
    ContinuedDiffers {
        /// The continued segment.
        segment: SegmentId,
        /// Where it should end.
        sequence: u64,
        /// With which hash.
        hash: EntryHash,
    },
    /// The segment that this one continues is not closed.
    #[error("the continued segment {segment} is not closed")]
    ContinuedOpen {
        /// The continued segment.
        segment: SegmentId,
    },
    /// Two segments continue the same one.
    #[error("fork: {other} continues segment {segment} too")]
    Fork {
        /// The continued segment.
        segment: SegmentId,
        /// The other file that continues it.
        other: String,
    },
    /// Segments continue one another in a circle.
    #[error("segments continue one another in a circle")]
    Circle,
    /// The journal names heads, and none is there.
    #[error("the head was removed: the journal was written with one")]
    HeadMissing,
    /// What is in the head's place is none.
    #[error("the file is not a head of a journal")]
    HeadDamaged,
    /// The head is not signed with a trusted key.
    #[error("the head was changed: it is not signed with a trusted key")]
    HeadUnsigned,
    /// The head is older than one that the journal or the witness knows.
    #[error("the head was put back to number {serial}: number {known} was there already")]
    HeadRolledBack {
        /// Serial of the head that is there.
        serial: u64,
        /// Serial of the latest head that was once there.
        known: u64,
    },
    /// A line of the witness is no head of a trusted key.
    #[error("the line of the witness is not a head signed with a trusted key")]
    WitnessForged,
    /// A segment is not there, and no signed record says that it was let go.
    #[error("segment {segment} is missing: {} names its record {sequence}", .by.words())]
    SegmentMissing {
        /// The segment.
        segment: SegmentId,
        /// The last record that it is known to have held.
        sequence: u64,
        /// Who states that.
        by: By,
    },
    /// A segment ends before a record that it is known to have held.
    #[error("segment {segment} was cut: {} names its record {sequence}, which is not there", .by.words())]
    Cut {
        /// The segment.
        segment: SegmentId,
        /// The record that is known to have been there.
        sequence: u64,
        /// Who states that.
        by: By,
    },
    /// A segment holds another record than it is known to have held.
    #[error("record {sequence} was rewritten: {} names another in its place", .by.words())]
    Rewritten {
        /// The record.
        sequence: u64,
        /// Who states that.
        by: By,
    },
    /// A segment is there that the head does not name and nothing continues.
    #[error("segment {segment} is not known: the head does not name it and nothing continues it")]
    SegmentUnknown {
        /// The segment.
        segment: SegmentId,
    },
    /// An operation was recorded for which nothing was decided before.
    #[error("record {sequence} is the outcome of {op}, for which no decision was recorded")]
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

fn deleted(first: u64, last: u64) -> String {
    match first == last {
        true => format!("record {first} was deleted"),
        false => format!("records {first} to {last} were deleted"),
    }
}

fn torn(last: Option<u64>, bytes: u64) -> String {
    match last {
        Some(last) => format!("{bytes} bytes behind record {last}, the last good one"),
        None => format!("{bytes} bytes and no whole record"),
    }
}

fn unclosed(last: Option<u64>, uncovered: u64) -> String {
    match last {
        Some(last) => {
            format!(": ends with record {last}, the last {uncovered} under no signature")
        }
        None => ", no whole record".to_owned(),
    }
}

/// Calls that were let through, with their verb.
fn permitted(count: u64) -> String {
    match count {
        1 => "1 permitted call has".to_owned(),
        _ => format!("{count} permitted calls have"),
    }
}

/// The first of the calls, as a list behind a colon.
fn first(ops: &[OpId]) -> String {
    let shown: Vec<_> = ops.iter().take(8).map(OpId::to_string).collect();
    match shown.is_empty() {
        true => String::new(),
        false => format!(": {}", shown.join(", ")),
    }
}

/// Something worth knowing that is no sign of a change: a crash leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "note", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Note {
    /// The last line is cut off; all before it stands.
    #[error("{file}: torn tail: {}", torn(*last_good_sequence, *torn_bytes))]
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
    #[error("{file}: not closed{}", unclosed(*last_sequence, *uncovered_records))]
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
    #[error(
        "{file}: not closed: its writer died; a signed record states its end, the last {uncovered_records} records were under no signature until then"
    )]
    Abandoned {
        /// The file.
        file: String,
        /// Records that no signature covered when the writer died.
        uncovered_records: u64,
    },
    /// The head names a segment that was announced and never begun: its writer died in between.
    #[error("segment {segment} was announced and never begun")]
    NeverBegun {
        /// The segment.
        segment: SegmentId,
    },
    /// The witness has been given fewer heads than there were: it was out of reach, or is on its way.
    #[error("the witness was last given head {serial}, and head {head} is in place")]
    WitnessBehind {
        /// Serial of the latest head that it has.
        serial: u64,
        /// Serial of the head that is in place.
        head: u64,
    },
    /// Segments that the head or the witness names were let go by retention.
    #[error("{count} segments that are named were let go by retention")]
    LetGo {
        /// How many.
        count: u64,
    },
    /// The continued segment was let go; a signed record says so.
    #[error("{file}: continues {segment}, which was let go by a signed record")]
    Retired {
        /// The file that continues it.
        file: String,
        /// The segment that is gone.
        segment: SegmentId,
    },
    /// The continued segment was set aside by a repair; a signed record says so.
    #[error("{file}: continues {segment}, which a repair set aside by a signed record")]
    SetAside {
        /// The file that continues it.
        file: String,
        /// The segment that is gone.
        segment: SegmentId,
    },
    /// The continued segment is not part of what was verified.
    #[error("{file}: continues {segment}, which was not looked at")]
    ContinuedElsewhere {
        /// The file that continues it.
        file: String,
        /// The segment that was not looked at.
        segment: SegmentId,
    },
    /// Calls were let through and no outcome is recorded: under way, or the program died before they ended.
    #[error(
        "missing outcome: {} no outcome{}",
        permitted(*count),
        first(ops)
    )]
    MissingOutcome {
        /// How many.
        count: u64,
        /// The first of them.
        ops: Vec<OpId>,
    },
    /// Outcomes whose decisions lie in a segment that was not looked at, or among what is missing or could not be read.
    #[error("outcomes of decisions that were not looked at or could not be read: {count}")]
    DecisionElsewhere {
        /// How many.
        count: u64,
    },
    /// More calls are open at once than are tracked, so decisions and outcomes could not all be joined.
    #[error("{dropped} open calls were too many to track")]
    JoinIncomplete {
        /// Calls no longer tracked.
        dropped: u64,
    },
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
                "open since {since}: the last {count} records of segment {segment} were not covered by a signature when its writer died; whether one of them was changed, or more were cut off behind them, cannot be told"
            ),
            Unproven::Tail {
                segment,
                since,
                uncovered_records: count,
                abandoned: false,
                ..
            } => write!(
                f,
                "open since {since}: the last {count} records of segment {segment} are not yet covered by a signature; whether one of them was changed, or more were cut off behind them, cannot be told"
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
