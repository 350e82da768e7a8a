//! Whether a piece of work is to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pbpk::watch::Interrupt;
use toolkit::Cancel;

/// Whoever can end a piece of work.
pub struct Stop<'a> {
    cancel: &'a Cancel,
    is_over: &'a AtomicBool,
    began: Instant,
    allowed: Option<Duration>,
}

impl<'a> Stop<'a> {
    /// Work that ends when it is cancelled, when the process ends, or when its time is over.
    #[must_use]
    pub fn new(cancel: &'a Cancel, is_over: &'a AtomicBool, allowed: Option<Duration>) -> Self {
        Self {
            cancel,
            is_over,
            began: Instant::now(),
            allowed,
        }
    }

    /// Why the work is to stop, where it is.
    #[must_use]
    pub fn ask(&self) -> Option<Interrupt> {
        if self.cancel.is_cancelled() || self.is_over.load(Ordering::Relaxed) {
            return Some(Interrupt::Cancelled);
        }
        let late = self
            .allowed
            .is_some_and(|allowed| self.began.elapsed() >= allowed);
        late.then_some(Interrupt::Deadline)
    }
}
