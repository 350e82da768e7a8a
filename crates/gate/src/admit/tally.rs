//! How often what was decided and how it ended, since the start. For metrics: labels are closed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::effect::Effect;
use crate::journal::{Record, Status};
use crate::reason::Reason;

/// Upper ends of the classes that a call's whole time is counted in, in microseconds.
pub const TIME_CLASSES_US: [u64; 12] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000,
];

const STATUSES: [Status; 4] = Status::ALL;
/// One more than there are reasons: decisions without one.
const REASONS: usize = Reason::ALL.len() + 1;

#[derive(Debug)]
pub(super) struct Tally {
    decisions: [[AtomicU64; REASONS]; Effect::ALL.len()],
    outcomes: [AtomicU64; STATUSES.len()],
    times: [AtomicU64; TIME_CLASSES_US.len() + 1],
    time_us: AtomicU64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            decisions: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::default())),
            outcomes: Default::default(),
            times: Default::default(),
            time_us: AtomicU64::default(),
        }
    }
}

/// The counts at one moment.
#[derive(Debug, Clone, Default)]
pub struct Tallied {
    /// Decisions by effect and reason (empty where the call may pass).
    pub decisions: Vec<(&'static str, &'static str, u64)>,
    /// Calls by how they ended.
    pub outcomes: Vec<(&'static str, u64)>,
    /// Calls by the class of [`TIME_CLASSES_US`] that their time fell in; the last is beyond all.
    pub times: [u64; TIME_CLASSES_US.len() + 1],
    /// All calls' time together, in microseconds.
    pub time_us: u64,
}

impl Tally {
    /// Counts a record that was written.
    pub fn count(&self, record: &Record<'_>) {
        match record {
            Record::Decision(decision) => self.count_decision(decision.decision, decision.reason),
            Record::Operation(operation) => {
                let at = STATUSES.iter().position(|s| *s == operation.status);
                add(at.and_then(|at| self.outcomes.get(at)), 1);
                let us = operation.duration_us.nanos() / 1_000;
                let class = TIME_CLASSES_US.partition_point(|end| *end < us);
                add(self.times.get(class), 1);
                self.time_us.fetch_add(us, Ordering::Relaxed);
            }
            Record::Auth(_) | Record::System(_) | Record::Config(_) => {}
        }
    }

    /// Counts a decision that was written.
    pub fn count_decision(&self, decision: Effect, reason: Option<Reason>) {
        let reason = reason.map_or(0, |reason| {
            let known = Reason::ALL.iter().position(|r| *r == reason);
            known.map_or(0, |at| at + 1)
        });
        for (effect, counts) in Effect::ALL.iter().zip(&self.decisions) {
            if *effect == decision {
                add(counts.get(reason), 1);
            }
        }
    }

    pub fn read(&self) -> Tallied {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let reasons = || std::iter::once("").chain(Reason::ALL.iter().map(|r| r.label()));
        let mut out = Tallied {
            time_us: read(&self.time_us),
            ..Tallied::default()
        };
        for (effect, counts) in Effect::ALL.iter().zip(&self.decisions) {
            for (reason, count) in reasons().zip(counts) {
                let count = read(count);
                if count > 0 {
                    out.decisions.push((effect.label(), reason, count));
                }
            }
        }
        let outcomes = STATUSES.iter().zip(&self.outcomes);
        out.outcomes = outcomes.map(|(s, count)| (s.name(), read(count))).collect();
        for (to, from) in out.times.iter_mut().zip(&self.times) {
            *to = read(from);
        }
        out
    }
}

fn add(counter: Option<&AtomicU64>, number: u64) {
    if let Some(counter) = counter {
        counter.fetch_add(number, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Decision, Micros, Operation};

    #[test]
    fn each_record_is_counted_once_in_its_class() {
        let tally = Tally::default();
        for reason in [None, Some(Reason::DenyRule), Some(Reason::DenyRule)] {
            let decision = Decision {
                decision: if reason.is_some() {
                    Effect::Deny
                } else {
                    Effect::Allow
                },
                reason,
                ..Decision::default()
            };
            tally.count(&Record::Decision(&decision));
        }
        for (status, us) in [
            (Status::Success, 50),
            (Status::Failure, 51),
            (Status::Success, u64::MAX / 1_000),
        ] {
            let operation = Operation {
                status,
                duration_us: Micros::from_nanos(us.saturating_mul(1_000)),
                ..Operation::default()
            };
            tally.count(&Record::Operation(&operation));
        }
        let read = tally.read();
        assert_eq!(
            read.decisions,
            [("allow", "", 1), ("deny", "denied_by_rule", 2)]
        );
        assert_eq!(read.outcomes[..2], [("Success", 2), ("Failure", 1)]);
        assert_eq!((read.times[0], read.times[1], read.times[12]), (1, 1, 1));
    }
}
