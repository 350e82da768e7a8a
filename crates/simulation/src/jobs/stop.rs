//! Whether a piece of work is to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pbpk::watch::Interrupt;
use toolkit::Cancel;

use crate::fault::{Fault, Kind};

/// Signals that can end a piece of work.
pub struct StopSignal<'a> {
    cancel: &'a Cancel,
    is_over: &'a AtomicBool,
    began: Instant,
    allowed: Option<Duration>,
}

impl<'a> StopSignal<'a> {
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

    /// Returns why the work is to stop, as a fault.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.ask().map(|cause| match cause {
            Interrupt::Cancelled => Fault::new(Kind::Cancelled, "the run was cancelled"),
            Interrupt::Deadline => Fault::new(Kind::Timeout, "the run took longer than it may"),
        })
    }

    /// Returns why the work is to stop, if it is.
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
