//! Answers that wait for their readers, over all connections: where they are many, who takes too little of one is cut off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As much a reader has to take in a while where too much waits, in bytes.
const TAKEN_BYTES_MIN: usize = 64 * 1024;

/// The bytes that wait, of all connections.
#[derive(Debug, Clone, Default)]
pub(super) struct Unsent(Arc<AtomicUsize>);

/// What one connection has of them.
#[derive(Debug)]
pub(super) struct Held {
    all: Unsent,
    /// The most that waited since nothing did, in bytes.
    own: usize,
    /// Taken since `slow_since_ms`, in bytes.
    taken: usize,
    /// Since when the peer has not taken as much as it has to, in milliseconds; absent where nothing waits.
    slow_since_ms: Option<u64>,
}

impl Unsent {
    /// The part of a connection, which has none yet.
    pub fn held(&self) -> Held {
        Held {
            all: self.clone(),
            own: 0,
            taken: 0,
            slow_since_ms: None,
        }
    }
}

impl Held {
    /// So much was to be sent, and so much of it was taken.
    pub fn note(&mut self, wanted: usize, taken: usize, now_ms: impl FnOnce() -> u64) {
        let left = wanted.saturating_sub(taken);
        if left == 0 && self.own == 0 {
            // Nearly always.
            return;
        }
        let all = &self.all.0;
        if left == 0 {
            all.fetch_sub(std::mem::take(&mut self.own), Ordering::Relaxed);
            self.slow_since_ms = None;
            return;
        }
        // What was taken of a piece is in memory until all of it is.
        let more = wanted.saturating_sub(self.own);
        all.fetch_add(more, Ordering::Relaxed);
        self.own += more;
        self.taken = self.taken.saturating_add(taken);
        if self.slow_since_ms.is_none() || self.taken >= TAKEN_BYTES_MIN {
            self.slow_since_ms = Some(now_ms());
            self.taken = 0;
        }
    }

    /// Since when its peer takes too little, where more than so many bytes wait in all.
    pub fn is_too_slow_since_ms(&self, bytes_max: usize) -> Option<u64> {
        let is_much = self.all.0.load(Ordering::Relaxed) > bytes_max;
        self.slow_since_ms.filter(|_| is_much)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.own, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_counted_over_all_and_who_takes_enough_is_not_slow() {
        let unsent = Unsent::default();
        let (mut one, mut other) = (unsent.held(), unsent.held());
        one.note(700_000, 0, || 1);
        other.note(300_000, 100_000, || 2);
        assert_eq!(unsent.0.load(Ordering::Relaxed), 1_000_000);
        assert_eq!(one.is_too_slow_since_ms(1_000_000), None);
        assert_eq!(one.is_too_slow_since_ms(999_999), Some(1));
        // A little now and then is too little.
        for now_ms in [100, 200] {
            one.note(700_000, 10, || now_ms);
            assert_eq!(one.is_too_slow_since_ms(0), Some(1));
        }
        one.note(699_980, TAKEN_BYTES_MIN, || 300);
        assert_eq!(one.is_too_slow_since_ms(0), Some(300));
        other.note(200_000, 200_000, || 400);
        assert_eq!(other.is_too_slow_since_ms(0), None);
        drop(other);
        drop(one);
        assert_eq!(unsent.0.load(Ordering::Relaxed), 0);
    }
}
