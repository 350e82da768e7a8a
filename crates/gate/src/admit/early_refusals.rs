//! Calls that are refused before any rule is asked. A flood of them must not fill the journal: the
//! first of a caller and reason is a record, those that follow within the second add to a count that
//! is written when the second ends.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::facts::{Direction, Facts};
use crate::journal;

use super::call::Origin;
use crate::effect::Effect;
use crate::reason::Reason;

/// How long refusals are counted before the count is written, in milliseconds.
pub const TALLY_MS: u64 = 1_000;
/// Most callers (with a reason each) that are counted at once; beyond it all counts are written early.
pub const TALLIES_MAX: usize = 256;

/// Refusals that are counted and not yet written.
#[derive(Debug, Default)]
pub(super) struct TurnedAway {
    tallies: Mutex<HashMap<(String, Reason), Tally>>,
}

/// Refusals of one caller for one reason behind the one that was written.
#[derive(Debug)]
pub(super) struct Tally {
    pub subject_id: String,
    pub reason: Reason,
    pub backend_id: String,
    pub session_id: String,
    pub direction: Direction,
    pub count: u64,
    since_ns: u64,
}

/// What has to be written for a refusal.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// The refusal itself: it is the first of its second.
    pub first: bool,
    /// Counts whose second is over.
    pub tallies: Vec<Tally>,
}

impl TurnedAway {
    /// Counts a refusal and says what has to be written.
    pub fn add(&self, facts: &Facts, origin: &Origin, reason: Reason, now_ns: u64) -> Due {
        let mut tallies = self.lock();
        let mut due = Due::default();
        if tallies.len() >= TALLIES_MAX {
            due.tallies = tallies.drain().map(|(_, tally)| tally).collect();
        }
        let fresh = || Tally {
            subject_id: facts.subject_id.clone(),
            reason,
            backend_id: facts.backend_id.clone(),
            session_id: origin.session_id.to_string(),
            direction: facts.direction,
            count: 0,
            since_ns: now_ns,
        };
        match tallies.entry((facts.subject_id.clone(), reason)) {
            Entry::Vacant(entry) => {
                entry.insert(fresh());
                due.first = true;
            }
            Entry::Occupied(mut entry) if entry.get().is_over(now_ns) => {
                due.tallies.push(entry.insert(fresh()));
                due.first = true;
            }
            Entry::Occupied(mut entry) => entry.get_mut().count += 1,
        }
        due.tallies.retain(|tally| tally.count > 0);
        due
    }

    /// Takes the counts whose second is over.
    pub fn over(&self, now_ns: u64) -> Vec<Tally> {
        self.take(|tally| tally.is_over(now_ns))
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Takes every count.
    pub fn all(&self) -> Vec<Tally> {
        self.take(|_| true)
    }

    fn take(&self, which: impl Fn(&Tally) -> bool) -> Vec<Tally> {
        let mut tallies = self.lock();
        if tallies.is_empty() {
            return Vec::new();
        }
        tallies
            .extract_if(|_, tally| which(tally))
            .map(|(_, tally)| tally)
            .filter(|tally| tally.count > 0)
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Reason), Tally>> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    /// A clock that was set back ends the second early.
    fn is_over(&self, now_ns: u64) -> bool {
        now_ns
            .checked_sub(self.since_ns)
            .is_none_or(|passed| passed >= TALLY_MS * 1_000_000)
    }

    /// The record that stands for the refusals.
    pub fn record(&self, op: journal::OpId) -> journal::Decision<'_> {
        journal::Decision {
            op,
            decision: Effect::Deny,
            reason: Some(self.reason),
            final_rule: Some(self.reason.label()),
            subject_id: Some(&self.subject_id),
            backend_id: Some(&self.backend_id),
            session_id: Some(&self.session_id),
            direction: Some(self.direction.label()),
            refusals: self.count,
            ..journal::Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(turned: &TurnedAway, subject: &str, now_ms: u64) -> (bool, Vec<u64>) {
        let facts = Facts {
            subject_id: subject.into(),
            ..Facts::default()
        };
        let due = turned.add(
            &facts,
            &Origin::default(),
            Reason::RateLimit,
            now_ms * 1_000_000,
        );
        (due.first, due.tallies.iter().map(|t| t.count).collect())
    }

    #[test]
    fn the_first_of_a_second_is_written_and_the_rest_counted() {
        let turned = TurnedAway::default();
        assert_eq!(add(&turned, "a", 5_000), (true, vec![]));
        for _ in 0..10 {
            assert_eq!(add(&turned, "a", 5_999), (false, vec![]));
        }
        assert_eq!(add(&turned, "b", 5_999), (true, vec![]));
        assert!(turned.over(5_999_999_999).is_empty());
        assert_eq!(add(&turned, "a", 6_000), (true, vec![10]));
        assert_eq!(add(&turned, "a", 6_001), (false, vec![]));
        // A clock set back ends the second.
        assert_eq!(add(&turned, "a", 10), (true, vec![1]));
        add(&turned, "a", 11);
        let counts: Vec<u64> = turned.over(2_000_000_000).iter().map(|t| t.count).collect();
        assert_eq!(counts, [1]);
        add(&turned, "a", 20);
        add(&turned, "a", 21);
        assert_eq!(turned.all().iter().map(|t| t.count).sum::<u64>(), 1);
        assert!(turned.lock().is_empty());
    }

    #[test]
    fn callers_are_bounded_and_no_count_is_lost() {
        let (turned, mut added, mut written) = (TurnedAway::default(), 0, 0);
        for round in 0..3 {
            for caller in (0..2 * TALLIES_MAX).chain(0..TALLIES_MAX).chain([0; 9]) {
                let (first, counts) = add(&turned, &caller.to_string(), round);
                added += 1;
                written += u64::from(first) + counts.iter().sum::<u64>();
                assert!(turned.lock().len() <= TALLIES_MAX);
            }
        }
        written += turned.all().iter().map(|t| t.count).sum::<u64>();
        assert_eq!(written, added);
    }
}
