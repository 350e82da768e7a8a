//! Cancellation and deadlines of everything that may take long: reading, compiling, running.
//!
//! There is no clock in here: the caller is asked.

use std::cell::Cell;
use std::fmt;

/// What asked the work to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// The caller no longer wants the result.
    Cancelled,
    /// The time allowed is over.
    Deadline,
}

impl fmt::Display for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline exceeded",
        })
    }
}

impl std::error::Error for Interrupt {}

/// So that what reads and writes can be ended in between.
impl From<Interrupt> for std::io::Error {
    fn from(cause: Interrupt) -> Self {
        Self::other(cause)
    }
}

/// Question to the caller: whether to go on. It may be asked on any thread.
pub type Question<'a> = &'a (dyn Fn() -> Option<Interrupt> + Sync);

/// Units of work between two questions; a unit takes microseconds.
const UNITS: u32 = 64;

/// Asks the question now and then.
#[derive(Clone, Default)]
pub struct Watch<'a> {
    ask: Option<Question<'a>>,
    units: Cell<u32>,
}

impl<'a> Watch<'a> {
    /// Returns a watch that asks this question, or none.
    #[must_use]
    pub fn new(ask: Option<Question<'a>>) -> Self {
        Self {
            ask,
            units: Cell::new(0),
        }
    }

    /// Returns its question.
    #[must_use]
    pub fn question(&self) -> Option<Question<'a>> {
        self.ask
    }

    /// Counts a unit of work.
    ///
    /// # Errors
    /// The caller's answer, when it was time to ask and the work is to stop.
    pub fn check(&self) -> Result<(), Interrupt> {
        self.work(1)
    }

    /// Counts so many units of work that were done at once.
    ///
    /// # Errors
    /// As [`Watch::check`].
    pub fn work(&self, units: usize) -> Result<(), Interrupt> {
        let units = u32::try_from(units).unwrap_or(UNITS);
        let units = self.units.get().saturating_add(units);
        if units < UNITS {
            self.units.set(units);
            return Ok(());
        }
        self.ask()
    }

    /// Asks at once.
    ///
    /// # Errors
    /// The caller's answer, when the work is to stop.
    pub fn ask(&self) -> Result<(), Interrupt> {
        self.units.set(0);
        match self.ask.and_then(|ask| ask()) {
            None => Ok(()),
            Some(cause) => Err(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn asks_every_so_many_units() {
        let asked = AtomicUsize::new(0);
        let question = || (asked.fetch_add(1, Relaxed) == 1).then_some(Interrupt::Cancelled);
        let watch = Watch::new(Some(&question));
        let stopped = (0..1000).position(|_| watch.check().is_err());
        assert_eq!(stopped, Some(2 * UNITS as usize - 1));
        assert_eq!(Watch::default().ask(), Ok(()));
    }
}
