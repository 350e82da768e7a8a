//! Exact budgets: a call reserves the most that it may use, and settles the amount that it has used.
//!
//! [`CounterStore`] is the seam. [`MemoryCounter`] and [`FileCounter`] are the embedded implementations; a store in
//! another crate implements the same trait and runs [`crate::contract::counter`] in its tests.
//!
//! A reservation covers all of its accounts or none, so the budget of a key inside that of a user inside that of a
//! team is one step. A reserved amount counts as used until it is settled: concurrent callers never exceed a budget
//! unless one of them uses more than it has reserved. A dropped reservation is released.

mod budget;
mod file;
mod ledger;
mod reservation;

pub use budget::{
    AccountBudget, AccountQuota, AccountUsage, BudgetUnit, RemainingBudget, RemainingBudgets,
    ReserveError, SpendAmount,
};
pub use file::{CounterFileError, FileCounter};
pub use ledger::MemoryCounter;
pub use reservation::{Reservation, ReservationId, ReservationRecord, ReservedAccount};

use crate::store::{BoxFuture, StoreUnavailable};

/// Maximum number of accounts. Above it, accounts of ended windows are removed; if there are none, nothing is reserved.
pub const ACCOUNTS_MAX: usize = 262_144;
/// Maximum length of an account name, in bytes.
pub const ACCOUNT_BYTES_MAX: usize = 512;
/// Maximum number of open reservations.
pub const RESERVATIONS_MAX: usize = 262_144;
/// Maximum number of settled or expired reservations that are remembered to recognise a late or repeated settlement.
pub const CLOSED_MAX: usize = 16_384;

/// Request for a reservation.
#[derive(Debug, Clone, Copy)]
pub struct ReserveRequest<'a> {
    /// Budgets to reserve on: all of them, or none.
    pub budgets: &'a [AccountBudget],
    /// Amount to reserve.
    pub cost: SpendAmount,
    /// Current time, in milliseconds since 1970. A store with a clock of its own uses that clock instead.
    pub now_ms: i64,
    /// Time at which an unsettled reservation is released, in milliseconds since 1970; `None` if it never is.
    pub expires_ms: Option<i64>,
}

impl<'a> ReserveRequest<'a> {
    /// Returns a request for a reservation that never expires.
    #[must_use]
    pub fn new(budgets: &'a [AccountBudget], cost: SpendAmount, now_ms: i64) -> Self {
        Self {
            budgets,
            cost,
            now_ms,
            expires_ms: None,
        }
    }
}

/// Result of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleOutcome {
    /// The used amount replaces the reserved one.
    Settled,
    /// The reservation had expired, or belongs to an earlier process; the used amount is counted all the same.
    Late,
    /// The reservation was settled before. Nothing changes.
    Repeated,
    /// The settlement is queued: the store applies it once, and its result is not reported.
    Queued,
}

/// The part of a store that a [`Reservation`] keeps, and by which it settles itself.
pub trait SettleStore: Send + Sync {
    /// Replaces the reserved amount by `used`, once per reservation. Never waits and never fails: a store that
    /// settles elsewhere queues the settlement, and retries it until it is confirmed.
    ///
    /// Settling is idempotent by [`ReservationRecord::id`]. A record of an earlier process is counted as well, so
    /// that work which a kill has cut can be settled at the next start.
    fn settle(&self, record: &ReservationRecord, used: SpendAmount) -> SettleOutcome;
}

/// Store of exact budgets.
///
/// An implementation may keep its accounts elsewhere. It then holds a quota of each account here, serves
/// [`CounterStore::try_local`] from it, and has [`CounterStore::reserve`] raise it to an absolute target. Absolute
/// amounts, of quota and of use, make a message that is lost or repeated harmless; increments do not.
pub trait CounterStore: SettleStore {
    /// Reserves without waiting. Returns `None` if only [`CounterStore::reserve`] can decide.
    fn try_local(&self, request: &ReserveRequest<'_>) -> Option<Result<Reservation, ReserveError>>;

    /// Reserves `cost` on every budget, or on none. Dropping the future leaves nothing reserved.
    fn reserve<'a>(
        &'a self,
        request: ReserveRequest<'a>,
    ) -> BoxFuture<'a, Result<Reservation, ReserveError>>;

    /// Returns the use of a budget in the window at `now_ms`, reservations included, as far as that is known
    /// without waiting; `None` if it is not.
    fn local_usage(&self, budget: &AccountBudget, now_ms: i64) -> Option<u64>;

    /// Returns the use of a budget in the window at `now_ms`, reservations included.
    fn usage<'a>(
        &'a self,
        budget: &'a AccountBudget,
        now_ms: i64,
    ) -> BoxFuture<'a, Result<u64, StoreUnavailable>>;

    /// Resolves when every settlement made so far is confirmed.
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreUnavailable>>;
}

impl dyn CounterStore + '_ {
    /// Reserves, and waits only if the store has no local answer.
    ///
    /// # Errors
    /// [`ReserveError`]; nothing is reserved then.
    pub async fn acquire(&self, request: ReserveRequest<'_>) -> Result<Reservation, ReserveError> {
        match self.try_local(&request) {
            Some(result) => result,
            None => self.reserve(request).await,
        }
    }
}

#[cfg(test)]
mod contract_tests;
