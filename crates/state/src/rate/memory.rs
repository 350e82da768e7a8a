//! Rate limits in memory.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::bucket::TokenBucket;
use super::monotonic::MonotonicTime;
use super::window::{CallWindow, MarkChange};
use super::{BucketLimit, RateDecision, RateKey, RateRequest, RateStore, WindowLimit};
use crate::store::{BoxFuture, StoreUnavailable};

/// Maximum number of buckets. Above it, full ones are removed, then the quarter that was used longest ago.
pub const BUCKETS_MAX: usize = 3 * 4_096;
/// Maximum number of windows. Above it, idle ones are removed, then the quarter that was used longest ago.
pub const WINDOWS_MAX: usize = 16_384;
/// Maximum number of marks of all windows together.
pub const MARKS_MAX: usize = 1 << 20;

/// Rate limits of one process. Each decision is one short critical section.
#[derive(Debug, Default)]
pub struct MemoryRates {
    hasher: RandomState,
    state: Mutex<RateTables>,
}

#[derive(Debug, Default)]
struct RateTables {
    time: MonotonicTime,
    buckets: KeyMap<TokenBucket>,
    windows: KeyMap<CallWindow>,
    marks: usize,
}

type KeyMap<V> = HashMap<u64, V, BuildHasherDefault<KeyHasher>>;

impl MemoryRates {
    fn lock(&self) -> MutexGuard<'_, RateTables> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decide(&self, request: &RateRequest) -> RateDecision {
        let mut tables = self.lock();
        let now_ns = tables.time.at(request.now_ns);
        let (RateKey(key), limit) = request.bucket;
        let bucket = tables.bucket(key, limit, now_ns);
        if let Err(wait_ns) = bucket.take(now_ns, limit.rate, limit.burst) {
            return RateDecision::BucketEmpty { wait_ns };
        }
        let Some((RateKey(key), limit)) = request.window else {
            return RateDecision::Allowed;
        };
        match tables.take(key, limit, now_ns) {
            Ok(()) => RateDecision::Allowed,
            Err(wait_ns) => RateDecision::WindowFull { wait_ns },
        }
    }
}

impl RateStore for MemoryRates {
    fn key(&self, parts: &[&str]) -> RateKey {
        RateKey(self.hasher.hash_one(parts))
    }

    fn try_local(&self, request: &RateRequest) -> Option<RateDecision> {
        Some(self.decide(request))
    }

    fn take(&self, request: RateRequest) -> BoxFuture<'_, Result<RateDecision, StoreUnavailable>> {
        Box::pin(async move { Ok(self.decide(&request)) })
    }

    fn restart_window(&self, RateKey(key): RateKey, limit: WindowLimit, now_ns: u64) {
        let mut tables = self.lock();
        let now_ns = tables.time.at(now_ns);
        tables.remove_window(key);
        // An empty window takes its first call.
        let _ = tables.take(key, limit, now_ns);
    }
}

impl RateTables {
    fn bucket(&mut self, key: u64, limit: BucketLimit, now_ns: u64) -> &mut TokenBucket {
        if self.buckets.len() >= BUCKETS_MAX && !self.buckets.contains_key(&key) {
            self.evict_buckets(limit, now_ns);
        }
        self.buckets.entry(key).or_default()
    }

    /// Removes full buckets, then the oldest until a quarter is free. Callers are known by their keys, so a caller
    /// cannot make up thousands of them.
    fn evict_buckets(&mut self, limit: BucketLimit, now_ns: u64) {
        self.buckets
            .retain(|_, bucket| !bucket.is_settled(now_ns, limit.rate));
        let by_age = self.buckets.iter();
        let mut by_age: Vec<(u64, u64)> =
            by_age.map(|(key, bucket)| (bucket.at_ns(), *key)).collect();
        by_age.sort_unstable();
        let excess = by_age.len().saturating_sub(BUCKETS_MAX / 4 * 3);
        for (_, key) in by_age.into_iter().take(excess) {
            self.buckets.remove(&key);
        }
    }

    fn take(&mut self, key: u64, limit: WindowLimit, now_ns: u64) -> Result<(), u64> {
        let window_ns = limit.window_ms.saturating_mul(1_000_000);
        if self.marks >= MARKS_MAX
            || (self.windows.len() >= WINDOWS_MAX && !self.windows.contains_key(&key))
        {
            self.evict_windows(now_ns, window_ns);
        }
        let window = self.windows.entry(key).or_default();
        let (result, MarkChange { added, dropped }) =
            window.take(now_ns, limit.calls_max, window_ns);
        self.marks = (self.marks + added).saturating_sub(dropped);
        result
    }

    /// Removes idle windows, then the oldest until a quarter is free. To have a window removed that counts, a caller
    /// has to make thousands of calls within it, which the limit over all calls prevents.
    fn evict_windows(&mut self, now_ns: u64, window_ns: u64) {
        self.windows.retain(|_, window| {
            window.remove_expired(now_ns, window_ns);
            window.marks() > 0
        });
        self.marks = self.windows.values().map(CallWindow::marks).sum();
        let (windows_left, marks_left) = (WINDOWS_MAX / 4 * 3, MARKS_MAX / 4 * 3);
        let by_age = self.windows.iter();
        let mut by_age: Vec<(u64, u64)> = by_age
            .map(|(key, window)| (window.last_ns(), *key))
            .collect();
        by_age.sort_unstable();
        for (_, key) in by_age {
            if self.windows.len() <= windows_left && self.marks <= marks_left {
                return;
            }
            self.remove_window(key);
        }
    }

    fn remove_window(&mut self, key: u64) {
        if let Some(window) = self.windows.remove(&key) {
            self.marks = self.marks.saturating_sub(window.marks());
        }
    }
}

/// Hasher of keys that are hashes already.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only `u64` keys are used; anything else still has a hash.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::super::CallRate;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn bucket() -> BucketLimit {
        BucketLimit {
            rate: CallRate::per_second(10),
            burst: 50,
        }
    }

    fn wide() -> BucketLimit {
        BucketLimit {
            rate: CallRate::per_second(1_000_000),
            burst: 1_000_000,
        }
    }

    fn window() -> WindowLimit {
        WindowLimit {
            calls_max: 30,
            window_ms: 60_000,
        }
    }

    fn call(rates: &MemoryRates, name: &str, now_ns: u64) -> bool {
        let request = RateRequest {
            bucket: (rates.key(&[name]), bucket()),
            window: None,
            now_ns,
        };
        rates.decide(&request) == RateDecision::Allowed
    }

    #[test]
    fn buckets_are_bounded_and_those_that_owe_are_kept() {
        let rates = MemoryRates::default();
        for caller in 0..3 * BUCKETS_MAX {
            assert!(call(&rates, &caller.to_string(), 0));
            assert!(rates.lock().buckets.len() <= BUCKETS_MAX);
        }
        // Full buckets are removed first, and an empty one stays empty.
        let spent = (0..60).filter(|_| call(&rates, "flood", SECOND)).count();
        assert_eq!(spent, 50);
        for caller in 0..BUCKETS_MAX - 2 {
            call(&rates, &format!("late-{caller}"), SECOND);
        }
        assert!(!call(&rates, "flood", SECOND));
        assert!(rates.lock().buckets.len() <= BUCKETS_MAX);
    }

    #[test]
    fn windows_and_marks_are_bounded_for_any_number_of_names() {
        let rates = MemoryRates::default();
        let take = |tool: &str, now_ns| {
            rates.decide(&RateRequest {
                bucket: (rates.key(&["s"]), wide()),
                window: Some((rates.key(&["s", tool]), window())),
                now_ns,
            })
        };
        for call in 0..3 * WINDOWS_MAX {
            take(&format!("tool-{call}"), call as u64);
            assert!(rates.lock().windows.len() <= WINDOWS_MAX);
        }
        // The youngest is still known.
        let youngest = format!("tool-{}", 3 * WINDOWS_MAX - 1);
        for _ in 0..29 {
            assert_eq!(take(&youngest, 1_000_000), RateDecision::Allowed);
        }
        let full = take(&youngest, 1_000_000);
        assert!(matches!(full, RateDecision::WindowFull { .. }), "{full:?}");
    }

    #[test]
    fn marks_of_all_windows_together_are_bounded() {
        let rates = MemoryRates::default();
        let limit = WindowLimit {
            calls_max: 1_000_000,
            ..window()
        };
        let mut tables = rates.lock();
        for call in 0..2 * MARKS_MAX as u64 {
            tables.take(call % 2_000, limit, call * 1_000).unwrap();
            assert!(tables.marks <= MARKS_MAX);
        }
        let counted: usize = tables.windows.values().map(CallWindow::marks).sum();
        assert_eq!(tables.marks, counted);
        // Idle windows are removed first.
        tables.evict_windows(u64::MAX, 60 * SECOND);
        assert_eq!((tables.windows.len(), tables.marks), (0, 0));
    }

    #[test]
    fn the_rates_in_memory_keep_the_contract() {
        use crate::contract::{block_on, rate::check_rate_store};
        let make = || std::sync::Arc::new(MemoryRates::default()) as std::sync::Arc<dyn RateStore>;
        for seed in 0..8 {
            let report = block_on(check_rate_store(make, seed)).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(report.skipped, []);
        }
    }
}
