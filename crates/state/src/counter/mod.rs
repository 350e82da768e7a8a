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
pub const ACCOUNTS_MAX: usize = 262_144;
/// Longest name of an account, in bytes.
pub const ACCOUNT_BYTES_MAX: usize = 512;

/// What an account counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Tokens of a model.
    #[default]
    Tokens,
    /// Millionths of a dollar.
    Micros,
    /// Requests.
    Requests,
}

/// How much is used, in each unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spend {
    /// Tokens of a model.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub micros: u64,
    /// Requests.
    pub requests: u64,
}

impl Spend {
    /// So many tokens, and nothing else.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self {
            tokens,
            ..Self::default()
        }
    }

    /// How much of a unit.
    #[must_use]
    pub fn of(self, unit: Unit) -> u64 {
        match unit {
            Unit::Tokens => self.tokens,
            Unit::Micros => self.micros,
            Unit::Requests => self.requests,
        }
    }
}

/// What may be used of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The account.
    pub account: Arc<str>,
    /// What it counts.
    pub unit: Unit,
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
        /// What it counts.
        unit: Unit,
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

/// What is left of the narrowest budgets of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lefts {
    /// Of those that count tokens, the one with the least left.
    pub tokens: Option<Left>,
    /// Of those that count requests, the one with the least left.
    pub requests: Option<Left>,
}

impl Lefts {
    /// Takes in what is left of one more budget.
    fn see(&mut self, unit: Unit, left: Left) {
        let least = match unit {
            Unit::Tokens => &mut self.tokens,
            Unit::Requests => &mut self.requests,
            Unit::Micros => return,
        };
        if least.is_none_or(|least| left.left < least.left) {
            *least = Some(left);
        }
    }
}

/// What is left of one budget.
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
    fn reserve(&self, budgets: &[Budget], cost: Spend, now_ms: i64) -> Result<Reservation, Stop>;

    /// Adds what was used without a reservation: by a process that has ended before it could settle its own.
    fn charge(&self, held: &[Held], used: Spend);

    /// What is used of an account in the window at a time, reservations included.
    fn used(&self, budget: &Budget, now_ms: i64) -> u64;
}

/// One account of a reservation: its name, the window, and what it counts.
pub type Held = (Arc<str>, i64, Unit);

/// Settles reservations.
pub(crate) trait Settle: Send + Sync {
    /// Gives `cost` back to the accounts and puts `used` in its place.
    fn settle(&self, held: &[Held], cost: Spend, used: Spend);
}

/// A reservation. Dropped without being settled, it gives everything back.
#[must_use = "a reservation that is dropped gives everything back"]
pub struct Reservation {
    counter: Arc<dyn Settle>,
    held: Vec<Held>,
    cost: Spend,
    left: Lefts,
}

impl Reservation {
    pub(crate) fn new(counter: Arc<dyn Settle>, held: Vec<Held>, cost: Spend, left: Lefts) -> Self {
        Self {
            counter,
            held,
            cost,
            left,
        }
    }

    /// What was left when it was made.
    #[must_use]
    pub fn left(&self) -> Lefts {
        self.left
    }

    /// Returns what is left once `used` stands in its place.
    #[must_use]
    pub fn left_after(&self, used: Spend) -> Lefts {
        let settled = |left: Option<Left>, unit: Unit| {
            left.map(|own| Left {
                left: own
                    .left
                    .saturating_add(self.cost.of(unit))
                    .saturating_sub(used.of(unit))
                    .min(own.most),
                ..own
            })
        };
        Lefts {
            tokens: settled(self.left.tokens, Unit::Tokens),
            requests: settled(self.left.requests, Unit::Requests),
        }
    }

    /// What it is on.
    #[must_use]
    pub fn held(&self) -> &[Held] {
        &self.held
    }

    /// Puts what was used in its place: less gives the rest back, more counts as well.
    pub fn settle(mut self, used: Spend) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.counter.settle(&held, self.cost, used);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            self.counter.settle(&self.held, self.cost, Spend::default());
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
