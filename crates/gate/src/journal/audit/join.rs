//! Decisions joined with their outcomes, along one chain, in bounded memory.

use std::collections::{HashMap, HashSet, VecDeque};

use super::finding::{Note, Problem, VerifyReport};
use crate::journal::OpId;

/// Calls tracked at once.
const TRACKED_MAX: usize = 1_000_000;

/// Open calls named in a report.
const NAMED_MAX: usize = 100;

/// What the join needs to know of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Decided {
        op: OpId,
        goes: bool,
    },
    Ended {
        op: OpId,
    },
    /// It was recorded by a later process than the one that decided.
    Settled {
        op: OpId,
    },
}

/// What whole chains leave to be joined with each other.
#[derive(Default)]
pub(super) struct Loose {
    /// Calls that were decided, and whose end their own chain does not have.
    missing: Vec<OpId>,
    /// Calls that ended in another chain than the one that decided.
    settled: Vec<OpId>,
}

#[derive(Default)]
pub(super) struct Join {
    /// Decided and not ended: whether an outcome is due.
    open: HashMap<OpId, bool>,
    /// Refused calls in the order of their decision: the first to be forgotten.
    refused: VecDeque<OpId>,
    dropped: u64,
    /// Outcomes may belong to decisions before what is looked at.
    partial: bool,
    elsewhere: u64,
    settled: Vec<OpId>,
}

impl Join {
    pub(super) fn new(partial: bool) -> Self {
        Join {
            partial,
            ..Join::default()
        }
    }

    /// Records are missing or could not be read: an outcome's decision may have been among them.
    pub(super) fn damaged(&mut self) {
        self.partial = true;
    }

    pub(super) fn step(
        &mut self,
        step: Step,
        file: &str,
        line: u64,
        sequence: u64,
        report: &mut VerifyReport,
    ) {
        match step {
            Step::Decided { op, goes } => {
                self.open.insert(op, goes);
                if !goes {
                    self.refused.push_back(op);
                }
                self.forget();
            }
            Step::Settled { op } => {
                if self.open.remove(&op).is_none() && self.settled.len() < TRACKED_MAX {
                    self.settled.push(op);
                }
            }
            Step::Ended { op } => {
                if self.open.remove(&op).is_some() {
                    return;
                }
                if self.partial || self.dropped > 0 {
                    self.elsewhere = self.elsewhere.saturating_add(1);
                } else {
                    report.find(
                        file,
                        Some(line),
                        Problem::OperationWithoutDecision { op, sequence },
                    );
                }
            }
        }
    }

    /// Keeps within the bound: first refused calls go, which need no outcome, then new ones.
    fn forget(&mut self) {
        if self.refused.len() > TRACKED_MAX
            && let Some(op) = self.refused.pop_front()
            && self.open.get(&op) == Some(&false)
        {
            self.open.remove(&op);
            self.dropped = self.dropped.saturating_add(1);
        }
        while self.open.len() > TRACKED_MAX {
            let oldest = self
                .refused
                .pop_front()
                .or_else(|| self.open.keys().next().copied());
            let Some(op) = oldest else { return };
            if self.open.remove(&op).is_some() {
                self.dropped = self.dropped.saturating_add(1);
            }
        }
    }

    pub(super) fn finish(self, loose: &mut Loose, report: &mut VerifyReport) {
        loose.settled.extend(self.settled);
        loose.missing.extend(
            self.open
                .iter()
                .filter(|(_, goes)| **goes)
                .map(|(op, _)| *op),
        );
        if self.elsewhere > 0 {
            report.notes.push(Note::DecisionElsewhere {
                count: self.elsewhere,
            });
        }
        if self.dropped > 0 {
            report.notes.push(Note::JoinIncomplete {
                dropped: self.dropped,
            });
        }
    }
}

/// Tells of the calls without an outcome, in the order of their ids, which is that of time.
pub(super) fn tell(loose: Loose, report: &mut VerifyReport) {
    let Loose {
        mut missing,
        settled,
    } = loose;
    if !settled.is_empty() {
        let mut settled: HashSet<OpId> = settled.into_iter().collect();
        missing.retain(|op| !settled.remove(op));
        if !settled.is_empty() {
            report.notes.push(Note::DecisionElsewhere {
                count: settled.len() as u64,
            });
        }
    }
    if missing.is_empty() {
        return;
    }
    missing.sort_unstable();
    let count = missing.len() as u64;
    missing.truncate(NAMED_MAX);
    report.notes.push(Note::MissingOutcome {
        count,
        ops: missing,
    });
}
