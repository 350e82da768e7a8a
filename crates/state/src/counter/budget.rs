//! Budgets, the amounts that they count, and the reasons why nothing is reserved.

use std::fmt;
use std::sync::Arc;

use crate::store::StoreUnavailable;

/// Unit that an account counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BudgetUnit {
    /// Tokens of a model.
    #[default]
    Tokens,
    /// Millionths of a dollar.
    Micros,
    /// Requests.
    Requests,
}

/// Amount in each unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpendAmount {
    /// Tokens of a model.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub micros: u64,
    /// Requests.
    pub requests: u64,
}

impl SpendAmount {
    /// Returns an amount of tokens.
    #[must_use]
    pub fn tokens(tokens: u64) -> Self {
        Self {
            tokens,
            ..Self::default()
        }
    }

    /// Returns the amount in one unit.
    #[must_use]
    pub fn of(self, unit: BudgetUnit) -> u64 {
        match unit {
            BudgetUnit::Tokens => self.tokens,
            BudgetUnit::Micros => self.micros,
            BudgetUnit::Requests => self.requests,
        }
    }
}

/// Budget of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountBudget {
    /// Name of the account.
    pub account: Arc<str>,
    /// Unit that the account counts.
    pub unit: BudgetUnit,
    /// Maximum use within a window.
    pub limit: u64,
    /// Length of a window, in milliseconds; windows begin at its multiples since 1970. 0 is one window that never
    /// ends.
    pub window_ms: u64,
}

impl AccountBudget {
    /// Returns whether the name of the account is short enough, and without tab and line break.
    #[must_use]
    pub fn has_valid_name(&self) -> bool {
        self.account.len() <= super::ACCOUNT_BYTES_MAX && !self.account.contains(['\n', '\t'])
    }

    /// Returns the number of the window at `now_ms`.
    #[must_use]
    pub fn window_at(&self, now_ms: i64) -> i64 {
        match i64::try_from(self.window_ms) {
            Ok(0) | Err(_) => 0,
            Ok(length) => now_ms.div_euclid(length),
        }
    }

    /// Returns the time until the window at `now_ms` ends, in milliseconds; `None` if it never does.
    #[must_use]
    pub fn ends_in_ms(&self, now_ms: i64) -> Option<u64> {
        let length = i64::try_from(self.window_ms)
            .ok()
            .filter(|length| *length > 0)?;
        u64::try_from(length - now_ms.rem_euclid(length)).ok()
    }
}

/// Part of a budget that a store elsewhere grants to this process, in the window of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountQuota {
    /// Use that this process may reach within the window, reservations included.
    pub granted: u64,
    /// Amount that other processes hold.
    pub others: u64,
}

/// Use of an account within one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountUsage {
    /// Settled use.
    pub settled: u64,
    /// Amount of open reservations.
    pub reserved: u64,
}

impl AccountUsage {
    /// Returns settled use and open reservations together.
    #[must_use]
    pub fn total(self) -> u64 {
        self.settled.saturating_add(self.reserved)
    }
}

/// Reason why nothing was reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReserveError {
    /// An account has less remaining than the request costs.
    Exhausted {
        /// Name of the account.
        account: Arc<str>,
        /// Unit that the account counts.
        unit: BudgetUnit,
        /// Amount that remains.
        remaining: u64,
        /// Time until the window ends, in milliseconds.
        ends_in_ms: Option<u64>,
    },
    /// The name of an account is too long, or contains a tab or a line break.
    InvalidAccount,
    /// The store holds as many accounts or reservations as it may.
    StoreFull,
    /// The store can neither reserve nor reject: it cannot record use, or cannot be reached.
    Unavailable(StoreUnavailable),
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted {
                account, remaining, ..
            } => write!(f, "{remaining} remaining of {account}"),
            Self::InvalidAccount => {
                f.write_str("an account name is too long or contains a tab or a line break")
            }
            Self::StoreFull => f.write_str("there are too many accounts or open reservations"),
            Self::Unavailable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReserveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unavailable(error) => Some(error),
            Self::Exhausted { .. } | Self::InvalidAccount | Self::StoreFull => None,
        }
    }
}

/// Remaining amount of one budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingBudget {
    /// Maximum use within the window.
    pub limit: u64,
    /// Amount that remains beside the reservation.
    pub remaining: u64,
    /// Time until the window ends, in milliseconds.
    pub ends_in_ms: Option<u64>,
}

/// Tightest budgets of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemainingBudgets {
    /// Budget of tokens with the least remaining.
    pub tokens: Option<RemainingBudget>,
    /// Budget of requests with the least remaining.
    pub requests: Option<RemainingBudget>,
}

impl RemainingBudgets {
    /// Includes a further budget.
    pub fn include(&mut self, unit: BudgetUnit, budget: RemainingBudget) {
        let tightest = match unit {
            BudgetUnit::Tokens => &mut self.tokens,
            BudgetUnit::Requests => &mut self.requests,
            BudgetUnit::Micros => return,
        };
        if tightest.is_none_or(|known| budget.remaining < known.remaining) {
            *tightest = Some(budget);
        }
    }

    /// Returns the same budgets after a reservation of `cost` was replaced by `used`.
    #[must_use]
    pub fn after_settlement(self, cost: SpendAmount, used: SpendAmount) -> Self {
        let settled = |budget: Option<RemainingBudget>, unit: BudgetUnit| {
            budget.map(|own| RemainingBudget {
                remaining: own
                    .remaining
                    .saturating_add(cost.of(unit))
                    .saturating_sub(used.of(unit))
                    .min(own.limit),
                ..own
            })
        };
        Self {
            tokens: settled(self.tokens, BudgetUnit::Tokens),
            requests: settled(self.requests, BudgetUnit::Requests),
        }
    }
}
