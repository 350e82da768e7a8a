//! What is known of a target from the calls that it has answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How much one call counts in the average of latencies: one in so many.
const SHARE: u64 = 8;

/// The calls of one target.
#[derive(Debug, Default)]
pub(crate) struct Load {
    busy: AtomicU64,
    latency_us: AtomicU64,
}

/// A call that a target is answering. Dropped, it is over.
#[derive(Debug)]
pub(crate) struct Answering(Arc<Load>);

impl Load {
    /// A call begins.
    pub fn begin(self: &Arc<Self>) -> Answering {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Answering(Arc::clone(self))
    }

    /// The calls that are being answered.
    pub fn busy(&self) -> u64 {
        self.busy.load(Ordering::Relaxed)
    }

    /// How long the target takes to begin to answer, in microseconds; 0 where nobody knows.
    pub fn latency_us(&self) -> u64 {
        self.latency_us.load(Ordering::Relaxed)
    }

    /// It took so long this time. Of two calls that end at once, one may not be counted.
    pub fn took(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
        let before = self.latency_us();
        let now = if before == 0 {
            us
        } else {
            before - before / SHARE + us / SHARE
        };
        self.latency_us.store(now.max(1), Ordering::Relaxed);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_while_they_last_and_latencies_settle() {
        let load = Arc::new(Load::default());
        let (first, second) = (load.begin(), load.begin());
        assert_eq!(load.busy(), 2);
        drop(first);
        assert_eq!(load.busy(), 1);
        drop(second);
        assert_eq!((load.busy(), load.latency_us()), (0, 0));
        load.took(Duration::from_millis(100));
        assert_eq!(load.latency_us(), 100_000);
        for _ in 0..100 {
            load.took(Duration::from_millis(10));
        }
        let now = load.latency_us();
        assert!((9_000..11_000).contains(&now), "{now}");
        load.took(Duration::ZERO);
        assert!(load.latency_us() > 0, "it is known");
    }
}
