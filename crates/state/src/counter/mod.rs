//! Exact budgets: what may be used within a window is reserved before and settled after.
//!
//! A reservation is on all of its accounts or on none, so that a key's budget inside a user's inside a team's
//! is one step. What is reserved counts as used until it is settled: however many callers there are at once,
//! they never use more than the budget where none uses more than it has reserved. A reservation that is
//! dropped gives everything back.

mod file;
mod ledger;

use std::fmt;
use std::sync::Arc;

pub use file::{CounterError, FileCounter};
pub use ledger::MemoryCounter;

/// Most accounts that are kept. Beyond it, those whose window is over go; where none is, nothing is reserved.
pub const ACCOUNTS_MAX: usize = 65_536;
/// Longest name of an account, in bytes.
pub const ACCOUNT_BYTES_MAX: usize = 512;

/// What may be used of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The account.
    pub account: Arc<str>,
    /// How much may be used within a window.
    pub most: u64,
    /// The length of a window, in milliseconds; windows begin at its multiples since 1970. 0: there is one
    /// window, which never ends.
    pub window_ms: u64,
}

impl Budget {
    /// The number of the window at a time.
    pub(crate) fn window(&self, now_ms: i64) -> i64 {
        match i64::try_from(self.window_ms) {
            Ok(0) | Err(_) => 0,
            Ok(length) => now_ms.div_euclid(length),
        }
    }

    /// How long the window at a time still lasts, in milliseconds; `None` where it never ends.
    #[must_use]
    pub fn ends_in_ms(&self, now_ms: i64) -> Option<u64> {
        let length = i64::try_from(self.window_ms)
            .ok()
            .filter(|length| *length > 0)?;
        u64::try_from(length - now_ms.rem_euclid(length)).ok()
    }
}

/// Why nothing was reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// An account has less left than was asked for.
    Spent {
        /// The account.
        account: Arc<str>,
        /// What is left of it.
        left: u64,
        /// When its window ends, in milliseconds from now.
        ends_in_ms: Option<u64>,
    },
    /// There are as many accounts as there may be, or a name is longer than it may be.
    Full,
    /// What was used could not be written down: nothing is reserved any more.
    Failed,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spent { account, left, .. } => write!(f, "{left} are left of {account}"),
            Self::Full => f.write_str("there are too many accounts"),
            Self::Failed => f.write_str("what was used could not be written down"),
        }
    }
}

impl std::error::Error for Stop {}

/// What is left of the budget that has the least left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// The whole budget.
    pub most: u64,
    /// What is left, this reservation aside.
    pub left: u64,
    /// When the window ends, in milliseconds.
    pub ends_in_ms: Option<u64>,
}

/// Keeps count.
pub trait Counter: Send + Sync {
    /// Reserves `cost` on every one of these accounts, or on none.
    ///
    /// # Errors
    /// [`Stop`]; nothing is reserved then.
    fn reserve(&self, budgets: &[Budget], cost: u64, now_ms: i64) -> Result<Reservation, Stop>;

    /// What is used of an account in the window at a time, reservations included.
    fn used(&self, budget: &Budget, now_ms: i64) -> u64;
}

/// One account of a reservation: its name and the window.
pub(crate) type Held = (Arc<str>, i64);

/// Settles reservations.
pub(crate) trait Settle: Send + Sync {
    /// Gives `cost` back to the accounts and puts `used` in its place.
    fn settle(&self, held: &[Held], cost: u64, used: u64);
}

/// A reservation. Dropped without being settled, it gives everything back.
#[must_use = "a reservation that is dropped gives everything back"]
pub struct Reservation {
    counter: Arc<dyn Settle>,
    held: Vec<Held>,
    cost: u64,
    left: Option<Left>,
}

impl Reservation {
    pub(crate) fn new(
        counter: Arc<dyn Settle>,
        held: Vec<Held>,
        cost: u64,
        left: Option<Left>,
    ) -> Self {
        Self {
            counter,
            held,
            cost,
            left,
        }
    }

    /// What was left when it was made; `None` where it is on no account.
    #[must_use]
    pub fn left(&self) -> Option<Left> {
        self.left
    }

    /// Puts what was used in its place: less gives the rest back, more counts as well.
    pub fn settle(mut self, used: u64) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.counter.settle(&held, self.cost, used);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            self.counter.settle(&self.held, self.cost, 0);
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("held", &self.held)
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}
