//! Buckets of bytes that are counted after they were written.

use std::collections::HashMap;

use state::rate::RateKey;

use super::JOURNAL_WINDOW_MS;
use crate::facts::Direction;

/// Most callers whose bytes are kept. Beyond it, those that owe nothing are dropped, then the quarter that was used longest ago.
const BUCKETS_MAX: usize = 4_096;

const WINDOW_NS: u128 = JOURNAL_WINDOW_MS as u128 * 1_000_000;

/// Bytes that were written and are not yet earned again.
#[derive(Debug, Default, Clone, Copy)]
struct ByteBucket {
    /// In byte-windows: bytes times [`WINDOW_NS`], so that no fraction is lost however often it is asked.
    owed: u128,
    at_ns: u64,
}

impl ByteBucket {
    /// Adds bytes that were written.
    pub fn charge(&mut self, bytes: u64) {
        self.owed = self
            .owed
            .saturating_add(u128::from(bytes).saturating_mul(WINDOW_NS));
    }

    /// Returns in how many nanoseconds less than `per_window` bytes are owed; `None`: that is so now. In any time *t* no more is
    /// written than `per_window · (1 + t / window)`, and what was begun before that was reached. `now_ns` never decreases.
    pub fn wait_ns(&mut self, now_ns: u64, per_window: u64) -> Option<u64> {
        self.owed = self.owed_at(now_ns, per_window);
        self.at_ns = now_ns;
        let most = u128::from(per_window).saturating_mul(WINDOW_NS);
        let short = self.owed.checked_sub(most)?;
        let wait = short / u128::from(per_window.max(1)) + 1;
        Some(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// Whether it owes nothing by now: a new one would do as well.
    pub fn is_settled(&self, now_ns: u64, per_window: u64) -> bool {
        self.owed_at(now_ns, per_window) == 0
    }

    fn owed_at(&self, now_ns: u64, per_window: u64) -> u128 {
        let since = u128::from(now_ns.saturating_sub(self.at_ns));
        self.owed
            .saturating_sub(since.saturating_mul(u128::from(per_window)))
    }
}

/// Bytes of journal records by caller. Calls of a client and requests of servers to it have a bucket each: neither uses up the other's.
#[derive(Debug, Default)]
pub(super) struct JournalBytes {
    callers: HashMap<RateKey, [ByteBucket; 2], ahash::RandomState>,
    /// Latest time seen: a clock that is set back gives nothing back.
    now_ns: u64,
}

impl JournalBytes {
    /// Adds bytes to those of a caller. A caller that was dropped owes nothing.
    pub fn charge(&mut self, caller: RateKey, direction: Direction, bytes: u64) {
        if let Some(buckets) = self.callers.get_mut(&caller) {
            bucket_of(buckets, direction).charge(bytes);
        }
    }

    /// Returns the nanoseconds until the caller owes less than `per_window` bytes; `None` if it does now.
    pub fn wait_ns(
        &mut self,
        caller: RateKey,
        direction: Direction,
        now_ns: u64,
        per_window: u64,
    ) -> Option<u64> {
        self.now_ns = self.now_ns.max(now_ns);
        let now_ns = self.now_ns;
        if self.callers.len() >= BUCKETS_MAX && !self.callers.contains_key(&caller) {
            self.drop_callers(now_ns, per_window);
        }
        let buckets = self.callers.entry(caller).or_default();
        bucket_of(buckets, direction).wait_ns(now_ns, per_window)
    }

    fn drop_callers(&mut self, now_ns: u64, per_window: u64) {
        self.callers.retain(|_, buckets| {
            !buckets
                .iter()
                .all(|bucket| bucket.is_settled(now_ns, per_window))
        });
        let used_ns = |buckets: &[ByteBucket; 2]| buckets.iter().map(|bucket| bucket.at_ns).max();
        let mut by_age: Vec<_> = self
            .callers
            .iter()
            .map(|(caller, buckets)| (used_ns(buckets), *caller))
            .collect();
        if by_age.len() < BUCKETS_MAX {
            return;
        }
        by_age.sort_unstable_by_key(|(used_ns, _)| *used_ns);
        for (_, caller) in by_age.into_iter().take(BUCKETS_MAX / 4) {
            self.callers.remove(&caller);
        }
    }
}

fn bucket_of(buckets: &mut [ByteBucket; 2], direction: Direction) -> &mut ByteBucket {
    let [to_server, to_client] = buckets;
    match direction {
        Direction::ToServer => to_server,
        Direction::ToClient => to_client,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn bytes_are_earned_again_over_a_window_without_loss() {
        let mut bucket = ByteBucket::default();
        assert_eq!(bucket.wait_ns(0, 600), None);
        bucket.charge(599);
        assert_eq!(bucket.wait_ns(0, 600), None);
        bucket.charge(1);
        assert_eq!(bucket.wait_ns(0, 600), Some(1));
        // A minute's worth beyond: a minute to wait, however often it is asked within.
        bucket.charge(600);
        for ms in 0..60_000 {
            assert!(bucket.wait_ns(ms * SECOND / 1_000, 600).is_some(), "{ms}");
        }
        assert_eq!(bucket.wait_ns(60 * SECOND, 600), Some(1));
        assert_eq!(bucket.wait_ns(60 * SECOND + 1, 600), None);
        assert!(!bucket.is_settled(119 * SECOND, 600));
        assert!(bucket.is_settled(120 * SECOND, 600));
    }

    #[test]
    fn more_than_can_be_counted_is_owed_for_good() {
        let mut bucket = ByteBucket::default();
        (0..4).for_each(|_| bucket.charge(u64::MAX));
        assert_eq!(bucket.wait_ns(0, 1), Some(u64::MAX));
    }
}
