//! What judging one call may cost.

use std::cell::Cell;

/// Steps that reading a call may take for each byte of its strings.
pub const STEPS_PER_BYTE: u64 = 24;
/// Steps that any call may take beside those.
pub const STEPS_BASE: u64 = 2 * 1024 * 1024;
/// Most steps of any call: what takes more cannot be looked through.
pub const STEPS_MAX: u64 = 16 * 1024 * 1024;
/// Steps that looking up one name in the file system counts as: a call of the system costs as much as so many bytes.
pub const STEPS_PER_LOOKUP: u64 = 512;

/// The steps that are left for reading one call. A step is about one byte that is read once. The bound is linear in the
/// size of the call, so a small call cannot keep a thread busy, and bounded at all; whatever exceeds it is undecidable and
/// refused.
#[derive(Debug)]
pub struct StepBudget {
    total: u64,
    left: Cell<u64>,
    is_exceeded: Cell<bool>,
}

impl StepBudget {
    /// Returns the budget of a call whose strings have so many bytes.
    #[must_use]
    pub fn for_input(bytes: usize) -> Self {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let total = bytes
            .saturating_mul(STEPS_PER_BYTE)
            .saturating_add(STEPS_BASE)
            .min(STEPS_MAX);
        Self {
            total,
            left: Cell::new(total),
            is_exceeded: Cell::new(false),
        }
    }

    /// The same, of not more than `most` steps.
    #[must_use]
    pub fn at_most(self, most: u64) -> Self {
        let total = self.total.min(most);
        Self {
            total,
            left: Cell::new(total),
            ..self
        }
    }

    /// Takes `steps`; returns false, and nothing more is left, if there are not so many.
    pub fn spend(&self, steps: u64) -> bool {
        if let Some(left) = self.left.get().checked_sub(steps) {
            self.left.set(left);
            return true;
        }
        self.left.set(0);
        self.is_exceeded.set(true);
        false
    }

    /// Returns the steps taken so far.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.total - self.left.get()
    }

    /// Whether more steps were wanted than there were.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }
}
