//! Reservations, and the records by which they are settled.

use std::fmt;
use std::sync::Arc;

use super::{BudgetUnit, RemainingBudgets, SettleStore, SpendAmount};

/// Identity of a reservation within a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReservationId {
    /// Fencing token: distinguishes the processes that have opened a store one after the other.
    pub epoch: u64,
    /// Number within the epoch, used once.
    pub number: u64,
}

/// One account of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedAccount {
    /// Name of the account.
    pub account: Arc<str>,
    /// Number of the window that the reservation belongs to.
    pub window: i64,
    /// Unit that the account counts.
    pub unit: BudgetUnit,
}

/// All that a store needs to settle a reservation. It can be written down, and settled by a later process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationRecord {
    /// Identity; `None` if it is not known, and a repeated settlement cannot be recognised.
    pub id: Option<ReservationId>,
    /// Accounts that are reserved on.
    pub accounts: Vec<ReservedAccount>,
    /// Reserved amount.
    pub cost: SpendAmount,
}

/// Amount reserved on a set of accounts. Dropping it releases the whole amount.
#[must_use = "a dropped reservation is released"]
pub struct Reservation {
    store: Arc<dyn SettleStore>,
    record: Arc<ReservationRecord>,
    remaining: RemainingBudgets,
    is_open: bool,
}

impl Reservation {
    /// Creates the guard of a reservation that `store` has made. For implementations of a store.
    pub fn new(
        store: Arc<dyn SettleStore>,
        record: Arc<ReservationRecord>,
        remaining: RemainingBudgets,
    ) -> Self {
        Self {
            store,
            is_open: !record.accounts.is_empty(),
            record,
            remaining,
        }
    }

    /// Returns the budgets as they were after reserving.
    #[must_use]
    pub fn remaining(&self) -> RemainingBudgets {
        self.remaining
    }

    /// Returns the budgets as they will be once `used` replaces the reserved amount.
    #[must_use]
    pub fn remaining_after(&self, used: SpendAmount) -> RemainingBudgets {
        self.remaining.after_settlement(self.record.cost, used)
    }

    /// Returns the record, by which a later process can settle this reservation.
    #[must_use]
    pub fn record(&self) -> &Arc<ReservationRecord> {
        &self.record
    }

    /// Replaces the reserved amount by `used`. An amount above the reserved one is counted in full.
    pub fn settle(mut self, used: SpendAmount) {
        self.close(used);
    }

    fn close(&mut self, used: SpendAmount) {
        if std::mem::take(&mut self.is_open) {
            self.store.settle(&self.record, used);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.close(SpendAmount::default());
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}
