//! Ids of requests that have none of their own.

use std::sync::atomic::{AtomicU64, Ordering};

/// Makes ids that no other instance makes.
#[derive(Debug)]
pub(super) struct Ids {
    /// Distinguishes this instance.
    salt: u64,
    made: AtomicU64,
}

impl Ids {
    pub fn new(salt: u64) -> Self {
        Self {
            salt,
            made: AtomicU64::new(0),
        }
    }

    pub fn next(&self) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        format!("req_{:016x}{number:08x}", self.salt)
    }
}
