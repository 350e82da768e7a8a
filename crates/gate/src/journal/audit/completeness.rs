//! A journal that was read, held against the head and the witness: is all there that has to be, and where is the end open?

use std::collections::{HashMap, HashSet};

use super::anchors::{By, Seen, Testimony};
use super::finding::{Note, Problem, Unproven, VerifyReport};
use super::scan::Abandoned;
use super::verify::{Entry, Shelf};
use crate::journal::head::{Head, NotAHead};
use crate::journal::{SegmentId, format_utc, segment_files};

pub(super) struct Held<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) shelf: &'a Shelf,
    /// The head before the journal was read: all that it names has to be there.
    pub(super) before: &'a Seen,
    /// The head after that: all that is there has to be named.
    pub(super) after: &'a Seen,
    pub(super) head_file: String,
    pub(super) testimony: Option<&'a Testimony>,
    /// One file is looked at, not a directory.
    pub(super) single: bool,
}

/// What signed records of the journal say of other segments.
struct Said<'a> {
    /// Let go by retention, or set aside by a repair.
    retired: HashSet<SegmentId>,
    abandoned: HashMap<SegmentId, &'a Abandoned>,
}

impl Held<'_> {
    pub(super) fn compare(&self, report: &mut VerifyReport) {
        let mentioned = self.entries.iter().map(|entry| entry.scanned.head).max();
        self.head(mentioned.unwrap_or(0), report);
        let said = self.said();
        if !self.single {
            self.missing(&said, report);
            self.unknown(&said, report);
        }
        self.tails(&said, report);
    }

    fn said(&self) -> Said<'_> {
        let scanned = || self.entries.iter().map(|entry| &entry.scanned);
        Said {
            retired: scanned()
                .flat_map(|of| &of.retired)
                .map(|retired| retired.segment)
                .chain(scanned().flat_map(|of| of.set_aside.iter().copied()))
                .collect(),
            abandoned: scanned()
                .flat_map(|of| &of.abandoned)
                .map(|abandoned| (abandoned.segment, abandoned))
                .collect(),
        }
    }

    /// Is the head one, and no older than the journal and the witness know?
    fn head(&self, mentioned: u64, report: &mut VerifyReport) {
        let file = &self.head_file;
        match self.after {
            Seen::Unasked if self.single => {}
            Seen::Missing if mentioned > 0 => report.find(file, None, Problem::HeadMissing),
            Seen::Unasked | Seen::Missing => report.unproven.push(Unproven::NoHead),
            Seen::Bad(NotAHead::Malformed) => report.find(file, None, Problem::HeadDamaged),
            Seen::Bad(NotAHead::Unsigned) => report.find(file, None, Problem::HeadUnsigned),
            Seen::Here(head) => {
                let testified = self.testimony.map_or(0, |of| of.serial);
                let (serial, known) = (head.serial, mentioned.max(testified));
                report.head = Some(serial);
                if known > serial {
                    report.find(file, None, Problem::HeadRolledBack { serial, known });
                }
                if head.late && !self.single {
                    report.unproven.push(Unproven::HeadLate {
                        since: format_utc(head.begun_ms),
                    });
                }
            }
        }
        let Some(testimony) = self.testimony else {
            return;
        };
        report.witness_heads = Some(testimony.heads);
        // The witness was read before the head.
        let head = self.before.serial();
        if testimony.serial < head {
            report.notes.push(Note::WitnessBehind {
                serial: testimony.serial,
                head,
            });
        }
    }

    /// Whether retention let a segment go whose name states this time.
    fn let_go(&self, segment: SegmentId, named_ms: i64, said: &Said<'_>) -> bool {
        let heads = [self.before.head(), self.after.head()];
        let by_head = |head: &Head| {
            head.end(segment).is_none() && head.retired_ms.is_some_and(|ms| named_ms <= ms)
        };
        said.retired.contains(&segment) || heads.into_iter().flatten().any(by_head)
    }

    /// Is every segment there that is known to have held records?
    fn missing(&self, said: &Said<'_>, report: &mut VerifyReport) {
        let mut gone = 0_u64;
        let is_there = |segment: &SegmentId| self.shelf.by_id.contains_key(segment);
        for end in self.before.head().into_iter().flat_map(|head| &head.ends) {
            if is_there(&end.segment) {
                continue;
            }
            let (segment, by) = (end.segment, By::Head);
            match end.sequence {
                _ if self.let_go(segment, end.named_ms, said) => gone += 1,
                None => report.notes.push(Note::NeverBegun { segment }),
                Some(sequence) => {
                    let problem = Problem::SegmentMissing {
                        segment,
                        sequence,
                        by,
                    };
                    report.find(&self.head_file, None, problem);
                }
            }
        }
        for (testimony, (end, line)) in self
            .testimony
            .into_iter()
            .flat_map(|of| of.ends.values().map(move |end| (of, end)))
        {
            if is_there(&end.segment) {
                continue;
            }
            if self.let_go(end.segment, end.named_ms, said) {
                gone += 1;
                continue;
            }
            let problem = Problem::SegmentMissing {
                segment: end.segment,
                sequence: end.sequence.unwrap_or(0),
                by: By::Witness,
            };
            report.find(&testimony.file, Some(*line), problem);
        }
        for entry in self.entries {
            for abandoned in &entry.scanned.abandoned {
                self.abandoned(entry, abandoned, said, report);
            }
        }
        if gone > 0 {
            report.notes.push(Note::LetGo { count: gone });
        }
    }

    /// Does an abandoned segment end as a signed record says?
    fn abandoned(
        &self,
        by: &Entry,
        abandoned: &Abandoned,
        said: &Said<'_>,
        report: &mut VerifyReport,
    ) {
        let segment = abandoned.segment;
        let sequence = abandoned.last.map_or(0, |(sequence, _)| sequence);
        let at = self.shelf.by_id.get(&segment);
        match at.and_then(|at| self.entries.get(*at)) {
            None if said.retired.contains(&segment) => {}
            None if self.retired_before(by) => {}
            None => {
                let problem = Problem::SegmentMissing {
                    segment,
                    sequence,
                    by: By::Journal,
                };
                report.find(&by.name, None, problem);
            }
            Some(found) if found.scanned.last != abandoned.last => {
                let held = found.scanned.last.map(|(sequence, _)| sequence);
                let problem = if held < abandoned.last.map(|(sequence, _)| sequence) {
                    Problem::Cut {
                        segment,
                        sequence,
                        by: By::Journal,
                    }
                } else {
                    Problem::Rewritten {
                        sequence,
                        by: By::Journal,
                    }
                };
                report.find(&found.name, None, problem);
            }
            Some(_) => {}
        }
    }

    /// Whether retention has come as far as this segment, so that what it names may be gone, and the record of it too.
    fn retired_before(&self, entry: &Entry) -> bool {
        let named_ms = segment_files::named_ms(&entry.path);
        let retired_ms = self.after.head().and_then(|head| head.retired_ms);
        named_ms.is_some() && retired_ms >= named_ms
    }

    /// Is every segment that is there known to have been begun?
    fn unknown(&self, said: &Said<'_>, report: &mut VerifyReport) {
        let (Some(before), Some(after)) = (self.before.head(), self.after.head()) else {
            return;
        };
        for entry in self.entries {
            let Some(header) = &entry.header else {
                continue;
            };
            let id = entry.id;
            let named = before.end(id).or(after.end(id)).is_some();
            let kept = self.shelf.successor.contains_key(&id)
                || said.abandoned.contains_key(&id)
                || said.retired.contains(&id);
            let known = match header.head {
                // It was begun before there was a head.
                None => after.late,
                // It was begun while the journal was being read, or the head was put back, which is told of.
                Some(serial) => serial > before.serial,
            };
            if !named && !kept && !known {
                report.find(&entry.name, None, Problem::SegmentUnknown { segment: id });
            }
        }
    }

    /// Where is the end open?
    fn tails(&self, said: &Said<'_>, report: &mut VerifyReport) {
        for entry in self.entries.iter().filter(|entry| !entry.scanned.closed) {
            let file = entry.name.clone();
            let abandoned = said.abandoned.get(&entry.id);
            let uncovered_records =
                abandoned.map_or(entry.scanned.tail, |found| found.uncovered_records);
            if abandoned.is_some() {
                report.notes.push(Note::Abandoned {
                    file: file.clone(),
                    uncovered_records,
                });
            }
            if abandoned.is_none() || uncovered_records > 0 {
                report.unproven.push(Unproven::Tail {
                    file,
                    segment: entry.id,
                    since: format_utc(entry.scanned.covered_ms.unwrap_or(0)),
                    uncovered_records,
                    abandoned: abandoned.is_some(),
                });
            }
        }
    }
}
