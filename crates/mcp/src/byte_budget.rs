//! Byte budgets that several share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bounded byte count.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    reserved: AtomicUsize,
    max: usize,
}

impl ByteBudget {
    /// Returns a budget of `max` bytes.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            reserved: AtomicUsize::new(0),
            max,
        })
    }

    /// Reserves `bytes`; returns false if the budget is exhausted.
    pub fn reserve(&self, bytes: usize) -> bool {
        let more = |all: usize| all.checked_add(bytes).filter(|all| *all <= self.max);
        let reserved = self
            .reserved
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        reserved.is_ok()
    }

    /// Releases bytes that were reserved.
    pub fn release(&self, bytes: usize) {
        self.reserved.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Returns a permit of `bytes`, which releases them when it is dropped; `None` if the budget is exhausted.
    pub fn permit(self: &Arc<Self>, bytes: usize) -> Option<BytePermit> {
        self.reserve(bytes).then(|| BytePermit {
            budget: Arc::clone(self),
            bytes,
        })
    }

    /// Returns how many bytes are reserved.
    #[cfg(test)]
    pub fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Acquire)
    }
}

/// Reserved bytes, until this is dropped.
#[derive(Debug)]
pub(crate) struct BytePermit {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

impl Drop for BytePermit {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_stay_within_the_budget_and_a_dropped_permit_is_released() {
        let budget = ByteBudget::new(10);
        let held = budget.permit(6).unwrap();
        assert!(budget.permit(5).is_none() && budget.reserve(4) && !budget.reserve(1));
        drop(held);
        assert_eq!(budget.reserved(), 4);
        assert!(!budget.reserve(usize::MAX));
        budget.release(4);
        assert!(budget.permit(10).is_some());
        assert_eq!(budget.reserved(), 0);
    }
}
