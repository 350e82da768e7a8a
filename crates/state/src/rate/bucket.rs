//! Token bucket, exact in whole numbers.

use super::CallRate;

/// One call, in the unit of the bucket: the amount that a rate of one an hour earns in an hour.
const CALL: u64 = 3_600_000_000_000;

/// Token bucket, as the amount that is spent and not yet earned again. A full bucket owes nothing.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TokenBucket {
    owed: u64,
    at_ns: u64,
}

impl TokenBucket {
    /// Takes one call, or returns the nanoseconds until one is available. In any interval of length *t* at most
    /// `burst + rate · t` calls are taken. `now_ns` never decreases.
    pub fn take(&mut self, now_ns: u64, rate: CallRate, burst: u32) -> Result<(), u64> {
        let per_hour = rate.calls_per_hour();
        let earned = now_ns.saturating_sub(self.at_ns).saturating_mul(per_hour);
        self.at_ns = now_ns;
        let most = u64::from(burst).saturating_mul(CALL);
        // After a reload with a smaller burst, the debt of the larger one is cut.
        self.owed = self.owed.saturating_sub(earned).min(most);
        let owed = self.owed.saturating_add(CALL);
        match owed.checked_sub(most) {
            None | Some(0) => {
                self.owed = owed;
                Ok(())
            }
            Some(short) => Err(short.div_ceil(per_hour)),
        }
    }

    /// Returns whether the bucket is full by now: a new one would do as well.
    pub fn is_settled(&self, now_ns: u64, rate: CallRate) -> bool {
        let since = now_ns.saturating_sub(self.at_ns);
        self.owed <= since.saturating_mul(rate.calls_per_hour())
    }

    /// Returns the time of the last call.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_burst_then_the_rate() {
        let (rate, mut bucket) = (CallRate::per_second(10), TokenBucket::default());
        let taken = (0..60).filter(|_| bucket.take(0, rate, 50).is_ok()).count();
        assert_eq!(taken, 50);
        assert_eq!(bucket.take(0, rate, 50), Err(SECOND / 10));
        assert_eq!(bucket.take(SECOND / 10 - 1, rate, 50), Err(1));
        assert_eq!(bucket.take(SECOND / 10, rate, 50), Ok(()));
        assert!(bucket.take(SECOND / 10, rate, 50).is_err());
        let later = (0..60)
            .filter(|_| bucket.take(3_600 * SECOND, rate, 50).is_ok())
            .count();
        assert_eq!(later, 50);
    }

    #[test]
    fn a_reload_changes_the_rate_and_keeps_the_debt() {
        let mut bucket = TokenBucket::default();
        for _ in 0..50 {
            assert_eq!(bucket.take(0, CallRate::per_second(10), 50), Ok(()));
        }
        // Ten more may come at once, the fifty stay spent.
        let more = (0..60)
            .filter(|_| bucket.take(0, CallRate::per_minute(1), 60).is_ok())
            .count();
        assert_eq!(more, 10);
        // A burst cut to five waits for five at most.
        assert_eq!(bucket.take(0, CallRate::per_second(1), 5), Err(SECOND));
    }

    #[test]
    fn a_bucket_is_settled_when_all_is_earned_again() {
        let (rate, mut bucket) = (CallRate::per_second(10), TokenBucket::default());
        assert!(bucket.is_settled(0, rate));
        for _ in 0..5 {
            assert_eq!(bucket.take(SECOND, rate, 50), Ok(()));
        }
        assert!(!bucket.is_settled(SECOND + SECOND / 2 - 1, rate));
        assert!(bucket.is_settled(SECOND + SECOND / 2, rate));
    }

    proptest! {
        #[test]
        fn never_more_than_burst_and_rate_in_any_interval(
            per_minute in 1_u64..100_000,
            burst in 1_u32..200,
            steps in prop::collection::vec(0_u64..2 * SECOND, 1..400),
        ) {
            let (rate, mut bucket, mut now) = (CallRate::per_minute(per_minute), TokenBucket::default(), 0);
            let mut taken: Vec<u64> = Vec::new();
            for step in steps {
                // Half of the calls come at once.
                now += if step % 2 == 0 { 0 } else { step };
                if bucket.take(now, rate, burst).is_ok() {
                    taken.push(now);
                }
            }
            for (first, from) in taken.iter().enumerate() {
                for (last, to) in taken.iter().enumerate().skip(first) {
                    let calls = u128::try_from(last - first + 1).unwrap();
                    let allowed = u128::from(burst) * u128::from(CALL)
                        + u128::from(to - from) * u128::from(per_minute) * 60;
                    prop_assert!(calls * u128::from(CALL) <= allowed);
                }
            }
        }

        #[test]
        fn the_wait_is_exact(
            per_minute in 1_u64..1_000_000,
            burst in 1_u32..20,
        ) {
            let (rate, mut bucket) = (CallRate::per_minute(per_minute), TokenBucket::default());
            for _ in 0..burst {
                prop_assert_eq!(bucket.take(5, rate, burst), Ok(()));
            }
            let wait = bucket.take(5, rate, burst).unwrap_err();
            let mut early = bucket;
            prop_assert!(early.take(5 + wait - 1, rate, burst).is_err());
            prop_assert_eq!(bucket.take(5 + wait, rate, burst), Ok(()));
        }
    }
}
