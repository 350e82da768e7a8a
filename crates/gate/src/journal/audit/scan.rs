//! One segment, line by line.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use serde::Deserialize;

use super::anchors::Claim;
use super::finding::{Note, Problem, VerifyReport};
use super::join::{Join, Step};
use super::lines::{Ended, Lines};
use super::links::is_overwritten;
use crate::journal::body::{self, Continues, Header};
use crate::journal::chain::{self, EntryHash, Line, SegmentId};
use crate::journal::options::Uncovered;
use crate::journal::{OpId, PublicKey, Recovery, parse_utc};

/// Missing sequences remembered at once; a longer gap is told but not searched for.
const MISSING_MAX: usize = 4_096;

const READ_BYTES: usize = 1 << 18;

/// The few members of a body that a verification needs.
#[derive(Deserialize)]
struct Facts<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    event: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    op: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    decision: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    hitl_outcome: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    segment: Option<Cow<'a, str>>,
    #[serde(default)]
    sequence: Option<u64>,
    #[serde(borrow, default)]
    hash: Option<Cow<'a, str>>,
    #[serde(default)]
    head: Option<u64>,
    #[serde(default)]
    uncovered_records: Option<u64>,
}

/// How a signed record states that an abandoned segment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abandoned {
    pub(super) segment: SegmentId,
    pub(super) last: Option<(u64, EntryHash)>,
    pub(super) uncovered_records: u64,
}

/// How a segment ended, for whoever continues it.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub(super) last: Option<(u64, EntryHash)>,
    pub(super) closed: bool,
    /// Segments that signed records of this one let go.
    pub(super) retired: Vec<Continues>,
    /// Segments that signed records of this one state to be set aside.
    pub(super) set_aside: Vec<SegmentId>,
    /// Segments whose ends signed records of this one state.
    pub(super) abandoned: Vec<Abandoned>,
    /// The largest serial of a head that this segment mentions.
    pub(super) head: u64,
    /// Records behind the last one that a signature or a claim covers, and the time of that one.
    pub(super) tail: u64,
    pub(super) covered_ms: Option<i64>,
}

pub(super) struct Scan<'a> {
    file: &'a str,
    id: SegmentId,
    header: Option<&'a Header>,
    trusted: &'a [PublicKey],
    join: &'a mut Join,
    report: &'a mut VerifyReport,
    line: u64,
    expected: u64,
    /// Hash that the next record must follow; `None` when what stood before could not be believed.
    anchor: Option<EntryHash>,
    missing: BTreeSet<u64>,
    gaps: Vec<(u64, u64, u64)>,
    uncovered: Uncovered,
    /// The first checkpoint stands right behind the header.
    fresh: bool,
    unsigned_retired: Vec<Continues>,
    unsigned_set_aside: Vec<SegmentId>,
    unsigned_abandoned: Vec<Abandoned>,
    /// Records that have to be there.
    claims: Option<&'a BTreeMap<u64, Claim>>,
    scanned: Scanned,
}

impl<'a> Scan<'a> {
    pub(super) fn new(
        file: &'a str,
        id: SegmentId,
        header: Option<&'a Header>,
        (trusted, claims): (&'a [PublicKey], Option<&'a BTreeMap<u64, Claim>>),
        join: &'a mut Join,
        report: &'a mut VerifyReport,
    ) -> Self {
        let anchor = header.map(|header| {
            header
                .continues
                .map_or(EntryHash::ZERO, |continued| continued.hash)
        });
        Scan {
            file,
            id,
            header,
            trusted,
            join,
            report,
            line: 0,
            expected: 0,
            anchor,
            missing: BTreeSet::new(),
            gaps: Vec::new(),
            uncovered: Uncovered::default(),
            fresh: false,
            unsigned_retired: Vec::new(),
            unsigned_set_aside: Vec::new(),
            unsigned_abandoned: Vec::new(),
            claims,
            scanned: Scanned {
                head: header.and_then(|header| header.head).unwrap_or(0),
                ..Scanned::default()
            },
        }
    }

    pub(super) fn run(mut self, path: &Path) -> io::Result<Scanned> {
        if let Some(header) = self.header
            && !self.trusted.contains(&header.public_key)
        {
            self.find(Problem::untrusted(header.public_key));
        }
        let mut lines = Lines::new(BufReader::with_capacity(READ_BYTES, File::open(path)?));
        let mut bytes = Vec::new();
        let mut torn_bytes = None;
        while let Some(ended) = lines.next(&mut bytes)? {
            self.line = self.line.saturating_add(1);
            if self.scanned.closed {
                self.find(Problem::AfterClose);
                self.scanned.closed = false;
            }
            match ended {
                Ended::Whole => self.whole(&bytes),
                Ended::TooLong => self.unreadable(Problem::LineTooLong),
                Ended::Torn if is_overwritten(&bytes, self.id) => {
                    self.unreadable(Problem::Malformed)
                }
                Ended::Torn => torn_bytes = Some(bytes.len() as u64),
            }
        }
        self.finish(torn_bytes);
        Ok(self.scanned)
    }

    fn find(&mut self, problem: Problem) {
        let line = (self.line > 0).then_some(self.line);
        self.report.find(self.file, line, problem);
    }

    fn unreadable(&mut self, problem: Problem) {
        self.find(if self.line == 1 {
            Problem::HeaderUnreadable
        } else {
            problem
        });
        self.lost();
    }

    /// A record stands here that cannot be believed.
    fn lost(&mut self) {
        self.expected = self.expected.saturating_add(1);
        self.anchor = None;
        self.join.damaged();
    }

    fn whole(&mut self, bytes: &[u8]) {
        let Some(line) = Line::parse(bytes) else {
            return self.unreadable(Problem::Malformed);
        };
        self.report.records = self.report.records.saturating_add(1);
        if !line.holds(self.id) {
            // Neither its place nor its hash can be believed.
            self.find(Problem::Changed {
                sequence: self.expected,
            });
            return self.lost();
        }
        if line.sequence < self.expected {
            let moved = self.missing.remove(&line.sequence);
            let sequence = line.sequence;
            self.find(if moved {
                Problem::Reordered { sequence }
            } else {
                Problem::Inserted { sequence }
            });
            self.judge(&line);
            return;
        }
        if line.sequence > self.expected {
            self.gap(line.sequence.saturating_sub(1));
        } else if self.anchor.is_some_and(|anchor| anchor != line.previous) {
            self.find(Problem::BrokenLink {
                sequence: line.sequence,
            });
        }
        self.expected = line.sequence.saturating_add(1);
        self.anchor = Some(line.entry);
        self.scanned.last = Some((line.sequence, line.entry));
        self.judge(&line);
        self.claimed(&line);
    }

    /// Holds a record against what is known to have stood in its place.
    fn claimed(&mut self, line: &Line<'_>) {
        let claims = self.claims;
        let Some(claim) = claims.and_then(|claims| claims.get(&line.sequence)) else {
            return;
        };
        if claim.hash == line.entry {
            self.scanned.tail = 0;
            self.scanned.covered_ms = self.scanned.covered_ms.max(Some(claim.time_ms));
        } else {
            self.find(Problem::Rewritten {
                sequence: line.sequence,
                by: claim.by,
            });
        }
    }

    fn gap(&mut self, last: u64) {
        self.join.damaged();
        let room = MISSING_MAX.saturating_sub(self.missing.len()) as u64;
        if last.saturating_sub(self.expected) < room {
            self.missing.extend(self.expected..=last);
            self.gaps.push((self.line, self.expected, last));
        } else {
            self.find(Problem::Deleted {
                first: self.expected,
                last,
            });
        }
    }

    /// What the record says: checkpoints where they are due, signatures, decisions and outcomes.
    fn judge(&mut self, line: &Line<'_>) {
        let sequence = line.sequence;
        let facts = serde_json::from_slice::<Facts<'_>>(line.body).ok();
        let Some((facts, now_ms)) =
            facts.and_then(|facts| parse_utc(&facts.time).map(|ms| (facts, ms)))
        else {
            return self.find(Problem::BodyUnreadable { sequence });
        };
        let event = if facts.kind == "system" {
            facts.event.as_deref().unwrap_or_default()
        } else {
            ""
        };
        match event {
            "checkpoint" => return self.signed(line, &facts, now_ms, false),
            "segment_closed" => {
                self.signed(line, &facts, now_ms, true);
                self.scanned.closed = true;
                return;
            }
            "segment_opened" if sequence == 0 => {
                self.fresh = true;
                return;
            }
            "segment_opened" => self.find(Problem::BodyUnreadable { sequence }),
            "segment_retired" => self.retired(&facts),
            "segment_set_aside" => {
                let segment = facts.segment.as_deref().and_then(SegmentId::parse);
                self.unsigned_set_aside.extend(segment);
            }
            "segment_abandoned" => self.abandoned(&facts),
            _ => {}
        }
        let due = self
            .header
            .is_some_and(|header| self.uncovered.due(header.checkpoints, now_ms));
        if self.fresh || due {
            self.find(Problem::CheckpointMissing { sequence });
            self.fresh = false;
            self.uncovered = Uncovered::default();
        }
        let refusal = facts.kind == "decision" && facts.decision.as_deref() != Some("allow");
        self.uncovered.add(now_ms, refusal);
        self.scanned.tail = self.scanned.tail.saturating_add(1);
        self.joined(&facts, sequence);
    }

    fn signed(&mut self, line: &Line<'_>, facts: &Facts<'_>, now_ms: i64, closing: bool) {
        self.scanned.head = self.scanned.head.max(facts.head.unwrap_or(0));
        self.fresh = false;
        self.uncovered = Uncovered::default();
        let message = chain::signed(closing, self.id, line.sequence, line.previous);
        let signature = facts.signature.as_deref().and_then(body::signature);
        let right = signature.is_some_and(|signature| {
            self.trusted
                .iter()
                .any(|key| key.verifies(&message, &signature))
        });
        if right {
            self.report.signatures = self.report.signatures.saturating_add(1);
            self.scanned.retired.append(&mut self.unsigned_retired);
            self.scanned.set_aside.append(&mut self.unsigned_set_aside);
            self.scanned.abandoned.append(&mut self.unsigned_abandoned);
            self.scanned.tail = 0;
            self.scanned.covered_ms = self.scanned.covered_ms.max(Some(now_ms));
        } else if self
            .header
            .is_none_or(|header| self.trusted.contains(&header.public_key))
        {
            self.find(Problem::SignatureBad {
                sequence: line.sequence,
            });
        }
    }

    fn retired(&mut self, facts: &Facts<'_>) {
        let segment = facts.segment.as_deref().and_then(SegmentId::parse);
        let hash = facts.hash.as_deref().and_then(EntryHash::parse);
        if let (Some(segment), Some(sequence), Some(hash)) = (segment, facts.sequence, hash) {
            self.unsigned_retired.push(Continues {
                segment,
                sequence,
                hash,
            });
        }
    }

    fn abandoned(&mut self, facts: &Facts<'_>) {
        let segment = facts.segment.as_deref().and_then(SegmentId::parse);
        let hash = facts.hash.as_deref().and_then(EntryHash::parse);
        if let Some(segment) = segment {
            self.unsigned_abandoned.push(Abandoned {
                segment,
                last: facts.sequence.zip(hash),
                uncovered_records: facts.uncovered_records.unwrap_or(0),
            });
        }
    }

    fn joined(&mut self, facts: &Facts<'_>, sequence: u64) {
        let op = facts.op.as_deref().and_then(OpId::parse);
        let step = match (&*facts.kind, op) {
            ("decision", Some(op)) => {
                let goes = match facts.decision.as_deref() {
                    Some("allow") => true,
                    Some("hitl") => facts.hitl_outcome.as_deref() == Some("user_allowed"),
                    _ => false,
                };
                Step::Decided { op, goes }
            }
            ("operation", Some(op)) => match facts.reason.as_deref() {
                Some(reason) if reason == Recovery::Settled.label() => Step::Settled { op },
                _ => Step::Ended { op },
            },
            ("decision" | "operation", None) => {
                return self.find(Problem::BodyUnreadable { sequence });
            }
            _ => return,
        };
        self.join
            .step(step, self.file, self.line, sequence, self.report);
    }

    /// Tells of gaps that nothing filled and of how the file ends.
    fn finish(&mut self, torn_bytes: Option<u64>) {
        for (line, first, last) in std::mem::take(&mut self.gaps) {
            let mut run: Option<(u64, u64)> = None;
            for sequence in first..=last {
                if self.missing.contains(&sequence) {
                    run = Some((run.map_or(sequence, |(start, _)| start), sequence));
                } else if let Some((first, last)) = run.take() {
                    self.report
                        .find(self.file, Some(line), Problem::Deleted { first, last });
                }
            }
            if let Some((first, last)) = run {
                self.report
                    .find(self.file, Some(line), Problem::Deleted { first, last });
            }
        }
        let last = self.scanned.last.map(|(sequence, _)| sequence);
        let claims = self.claims.and_then(BTreeMap::last_key_value);
        if let Some((sequence, claim)) = claims
            && last.is_none_or(|last| last < *sequence)
        {
            let problem = Problem::Cut {
                segment: self.id,
                sequence: *sequence,
                by: claim.by,
            };
            self.report.find(self.file, None, problem);
        }
        let file = || self.file.to_owned();
        if let Some(torn_bytes) = torn_bytes {
            self.report.notes.push(Note::TornTail {
                file: file(),
                last_good_sequence: last,
                torn_bytes,
            });
        } else if !self.scanned.closed {
            let uncovered_records = self.scanned.tail;
            self.report.notes.push(Note::NotClosed {
                file: file(),
                last_sequence: last,
                uncovered_records,
            });
        }
    }
}
