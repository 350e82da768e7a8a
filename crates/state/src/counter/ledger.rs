//! Accounts and open reservations in memory.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    ACCOUNTS_MAX, AccountBudget, AccountQuota, AccountUsage, CLOSED_MAX, CounterStore,
    RESERVATIONS_MAX, RemainingBudget, RemainingBudgets, Reservation, ReservationId,
    ReservationRecord, ReserveError, ReserveRequest, ReservedAccount, SettleOutcome, SettleStore,
    SpendAmount,
};
use crate::store::{BoxFuture, StoreUnavailable};

/// Bits of a reservation's number that are the index of its slot.
const INDEX_BITS: u32 = 32;

/// Use of one account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct AccountState {
    window: i64,
    used: u64,
    reserved: u64,
    /// End of the window, in milliseconds since 1970; `None` if it is not known, or the window never ends.
    ends_ms: Option<i64>,
}

impl AccountState {
    fn total(&self) -> u64 {
        self.used.saturating_add(self.reserved)
    }

    /// Returns the account in `window`: the use of another window does not count.
    fn in_window(&self, window: i64) -> Self {
        if self.window == window {
            return *self;
        }
        Self {
            window,
            ..Self::default()
        }
    }
}

/// Place of a reservation. Its generation changes with each reservation, so a number is used once.
#[derive(Debug, Default)]
struct ReservationSlot {
    generation: u32,
    open: Option<OpenReservation>,
}

#[derive(Debug)]
struct OpenReservation {
    record: Arc<ReservationRecord>,
    expires_ms: Option<i64>,
}

/// The latest closed reservations, at most [`CLOSED_MAX`].
#[derive(Debug, Default)]
struct ClosedReservations {
    ids: HashSet<ReservationId>,
    order: VecDeque<ReservationId>,
}

impl ClosedReservations {
    /// Returns false if the id was there before.
    fn insert(&mut self, id: ReservationId) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > CLOSED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

/// All accounts and open reservations of a store.
#[derive(Debug)]
pub(super) struct AccountLedger {
    epoch: u64,
    accounts: HashMap<Arc<str>, AccountState>,
    slots: Vec<ReservationSlot>,
    free: Vec<usize>,
    /// No open reservation expires before this time.
    earliest_expiry_ms: Option<i64>,
    /// Expired reservations that are not settled yet.
    expired: ClosedReservations,
    /// Reservations of other epochs that are settled.
    settled: ClosedReservations,
}

impl Default for AccountLedger {
    fn default() -> Self {
        Self {
            epoch: RandomState::new().build_hasher().finish(),
            accounts: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            earliest_expiry_ms: None,
            expired: ClosedReservations::default(),
            settled: ClosedReservations::default(),
        }
    }
}

impl AccountLedger {
    /// Reserves on all accounts or on none. Each budget has its quota at the same position; a budget without one is
    /// counted here alone.
    pub fn reserve(
        &mut self,
        request: &ReserveRequest<'_>,
        quotas: &[AccountQuota],
    ) -> Result<(Arc<ReservationRecord>, RemainingBudgets), ReserveError> {
        let ReserveRequest {
            budgets,
            cost,
            now_ms,
            expires_ms,
        } = *request;
        self.release_expired(now_ms);
        let remaining = self.check_budgets(budgets, quotas, cost, now_ms)?;
        if budgets.is_empty() {
            let record = ReservationRecord {
                id: None,
                accounts: Vec::new(),
                cost,
            };
            return Ok((Arc::new(record), remaining));
        }
        self.ensure_capacity(budgets, now_ms)?;
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() >= RESERVATIONS_MAX => return Err(ReserveError::StoreFull),
            None => {
                self.slots.push(ReservationSlot::default());
                self.slots.len() - 1
            }
        };
        let mut accounts = Vec::with_capacity(budgets.len());
        for budget in budgets {
            let window = budget.window_at(now_ms);
            let account = self
                .accounts
                .entry(Arc::clone(&budget.account))
                .or_default();
            *account = account.in_window(window);
            let ends_in = budget.ends_in_ms(now_ms);
            account.ends_ms = ends_in.map(|ms| now_ms.saturating_add_unsigned(ms));
            account.reserved = account.reserved.saturating_add(cost.of(budget.unit));
            accounts.push(ReservedAccount {
                account: Arc::clone(&budget.account),
                window,
                unit: budget.unit,
            });
        }
        let slot = self.slots.get_mut(index).ok_or(ReserveError::StoreFull)?;
        let number = u64::from(slot.generation) << INDEX_BITS | u64::try_from(index).unwrap_or(0);
        let record = Arc::new(ReservationRecord {
            id: Some(ReservationId {
                epoch: self.epoch,
                number,
            }),
            accounts,
            cost,
        });
        slot.open = Some(OpenReservation {
            record: Arc::clone(&record),
            expires_ms,
        });
        if let Some(at) = expires_ms {
            let earliest = self.earliest_expiry_ms.get_or_insert(at);
            *earliest = at.min(*earliest);
        }
        Ok((record, remaining))
    }

    /// Returns the use of a budget beside which the one at `position` is reserved. An account that is listed twice is
    /// charged twice.
    fn usage_beside(
        &self,
        budgets: &[AccountBudget],
        position: usize,
        budget: &AccountBudget,
        (cost, now_ms): (SpendAmount, i64),
    ) -> u64 {
        let same = budgets.iter().take(position);
        let same = same.filter(|other| other.account == budget.account);
        let before = same.map(|other| cost.of(other.unit));
        let before = before.fold(0_u64, u64::saturating_add);
        self.usage(budget, now_ms).saturating_add(before)
    }

    /// Returns whether the quota of every budget covers `cost`.
    pub fn is_within(&mut self, request: &ReserveRequest<'_>, quotas: &[AccountQuota]) -> bool {
        let ReserveRequest {
            budgets,
            cost,
            now_ms,
            ..
        } = *request;
        self.release_expired(now_ms);
        let mut pairs = budgets.iter().zip(quotas).enumerate();
        budgets.len() == quotas.len()
            && pairs.all(|(position, (budget, quota))| {
                let used = self.usage_beside(budgets, position, budget, (cost, now_ms));
                let left = quota.granted.checked_sub(used);
                left.is_some_and(|left| left >= cost.of(budget.unit))
            })
    }

    /// Returns the remaining budgets if all of them allow `cost`.
    fn check_budgets(
        &self,
        budgets: &[AccountBudget],
        quotas: &[AccountQuota],
        cost: SpendAmount,
        now_ms: i64,
    ) -> Result<RemainingBudgets, ReserveError> {
        let mut tightest = RemainingBudgets::default();
        for (position, budget) in budgets.iter().enumerate() {
            if !budget.has_valid_name() {
                return Err(ReserveError::InvalidAccount);
            }
            let others = quotas.get(position).map_or(0, |quota| quota.others);
            let taken = self.usage_beside(budgets, position, budget, (cost, now_ms));
            let taken = taken.saturating_add(others);
            let remaining = budget.limit.saturating_sub(taken);
            let ends_in_ms = budget.ends_in_ms(now_ms);
            let Some(rest) = remaining.checked_sub(cost.of(budget.unit)) else {
                return Err(ReserveError::Exhausted {
                    account: Arc::clone(&budget.account),
                    unit: budget.unit,
                    remaining,
                    ends_in_ms,
                });
            };
            let own = RemainingBudget {
                limit: budget.limit,
                remaining: rest,
                ends_in_ms,
            };
            tightest.include(budget.unit, own);
        }
        Ok(tightest)
    }

    /// Removes accounts of ended windows if the new ones would exceed [`ACCOUNTS_MAX`].
    fn ensure_capacity(
        &mut self,
        budgets: &[AccountBudget],
        now_ms: i64,
    ) -> Result<(), ReserveError> {
        let is_new = |budget: &&AccountBudget| !self.accounts.contains_key(&budget.account);
        let new = budgets.iter().filter(is_new).count();
        if self.accounts.len() + new <= ACCOUNTS_MAX {
            return Ok(());
        }
        let has_ended = |account: &AccountState| account.ends_ms.is_some_and(|end| end <= now_ms);
        self.accounts
            .retain(|_, account| account.reserved > 0 || !has_ended(account));
        if self.accounts.len() + new <= ACCOUNTS_MAX {
            Ok(())
        } else {
            Err(ReserveError::StoreFull)
        }
    }

    /// Releases reservations that have expired. Scans them only if one can have expired.
    pub fn release_expired(&mut self, now_ms: i64) {
        if self.earliest_expiry_ms.is_none_or(|at| now_ms < at) {
            return;
        }
        let (mut expired, mut earliest) = (Vec::new(), None::<i64>);
        for (index, slot) in self.slots.iter_mut().enumerate() {
            match slot.open.as_ref().and_then(|open| open.expires_ms) {
                Some(at) if at <= now_ms => {
                    slot.generation = slot.generation.wrapping_add(1);
                    expired.extend(slot.open.take());
                    self.free.push(index);
                }
                Some(at) => earliest = Some(earliest.map_or(at, |known| known.min(at))),
                None => {}
            }
        }
        self.earliest_expiry_ms = earliest;
        for OpenReservation { record, .. } in expired {
            self.apply(&record, SpendAmount::default());
            if let Some(id) = record.id {
                self.expired.insert(id);
            }
        }
    }

    /// Settles a reservation once.
    pub fn settle(&mut self, record: &ReservationRecord, used: SpendAmount) -> SettleOutcome {
        let Some(id) = record.id else {
            self.add_usage(record, used);
            return SettleOutcome::Late;
        };
        if id.epoch != self.epoch {
            if !self.settled.insert(id) {
                return SettleOutcome::Repeated;
            }
            self.add_usage(record, used);
            return SettleOutcome::Late;
        }
        if let Some(open) = self.close_slot(id.number) {
            self.apply(&open.record, used);
            return SettleOutcome::Settled;
        }
        if self.expired.ids.remove(&id) {
            self.expired.order.retain(|other| *other != id);
            self.add_usage(record, used);
            return SettleOutcome::Late;
        }
        SettleOutcome::Repeated
    }

    /// Closes the slot of an open reservation.
    fn close_slot(&mut self, number: u64) -> Option<OpenReservation> {
        let index = usize::try_from(number & u64::from(u32::MAX)).ok()?;
        let slot = self.slots.get_mut(index)?;
        if u64::from(slot.generation) != number >> INDEX_BITS {
            return None;
        }
        let open = slot.open.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        Some(open)
    }

    /// Replaces the reserved amount by `used`. Accounts that are in a later window by now do not change.
    fn apply(&mut self, record: &ReservationRecord, used: SpendAmount) {
        for own in &record.accounts {
            if let Some(account) = self.accounts.get_mut(&own.account)
                && account.window == own.window
            {
                let cost = record.cost.of(own.unit);
                account.reserved = account.reserved.saturating_sub(cost);
                account.used = account.used.saturating_add(used.of(own.unit));
            }
        }
    }

    /// Adds use without a reservation.
    fn add_usage(&mut self, record: &ReservationRecord, used: SpendAmount) {
        for own in &record.accounts {
            self.add(&own.account, own.window, used.of(own.unit));
        }
    }

    /// Adds use of one account in one window.
    pub fn add(&mut self, name: &str, window: i64, used: u64) {
        if self.accounts.len() >= ACCOUNTS_MAX && !self.accounts.contains_key(name) {
            return;
        }
        let account = self.accounts.entry(name.into()).or_default();
        if account.window <= window {
            *account = account.in_window(window);
            account.used = account.used.saturating_add(used);
        }
    }

    /// Returns the use of a budget, reservations included.
    pub fn usage(&self, budget: &AccountBudget, now_ms: i64) -> u64 {
        let window = budget.window_at(now_ms);
        let account = self.accounts.get(&budget.account);
        account.map_or(0, |account| account.in_window(window).total())
    }

    /// Returns the use of an account in one window.
    pub fn account_usage(&self, name: &str, window: i64) -> AccountUsage {
        let account = self.accounts.get(name);
        let account = account.map(|account| account.in_window(window));
        let account = account.unwrap_or_default();
        AccountUsage {
            settled: account.used,
            reserved: account.reserved,
        }
    }

    /// Returns the use of each account, reservations excluded.
    pub fn settled_usage(&self) -> impl Iterator<Item = (&str, i64, u64)> {
        let used = self.accounts.iter().filter(|(_, account)| account.used > 0);
        used.map(|(name, account)| (name.as_ref(), account.window, account.used))
    }
}

/// Counter in memory; it is empty at each start of the process.
#[derive(Debug, Default)]
pub struct MemoryCounter(Arc<MemoryAccounts>);

#[derive(Debug, Default)]
struct MemoryAccounts(Mutex<AccountLedger>);

impl MemoryAccounts {
    fn lock(&self) -> MutexGuard<'_, AccountLedger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryCounter {
    /// Reserves on every budget or on none. Never waits.
    ///
    /// # Errors
    /// [`ReserveError`]; nothing is reserved then.
    pub fn reserve_now(&self, request: &ReserveRequest<'_>) -> Result<Reservation, ReserveError> {
        let (record, remaining) = self.0.lock().reserve(request, &[])?;
        let store = Arc::clone(&self.0) as Arc<dyn SettleStore>;
        Ok(Reservation::new(store, record, remaining))
    }
}

impl SettleStore for MemoryAccounts {
    fn settle(&self, record: &ReservationRecord, used: SpendAmount) -> SettleOutcome {
        self.lock().settle(record, used)
    }
}

impl SettleStore for MemoryCounter {
    fn settle(&self, record: &ReservationRecord, used: SpendAmount) -> SettleOutcome {
        self.0.settle(record, used)
    }
}

impl CounterStore for MemoryCounter {
    fn try_local(&self, request: &ReserveRequest<'_>) -> Option<Result<Reservation, ReserveError>> {
        Some(self.reserve_now(request))
    }

    fn reserve<'a>(
        &'a self,
        request: ReserveRequest<'a>,
    ) -> BoxFuture<'a, Result<Reservation, ReserveError>> {
        Box::pin(async move { self.reserve_now(&request) })
    }

    fn local_usage(&self, budget: &AccountBudget, now_ms: i64) -> Option<u64> {
        let mut ledger = self.0.lock();
        ledger.release_expired(now_ms);
        Some(ledger.usage(budget, now_ms))
    }

    fn usage<'a>(
        &'a self,
        budget: &'a AccountBudget,
        now_ms: i64,
    ) -> BoxFuture<'a, Result<u64, StoreUnavailable>> {
        Box::pin(async move { Ok(self.local_usage(budget, now_ms).unwrap_or(0)) })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreUnavailable>> {
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::BudgetUnit;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn budget(account: &str, limit: u64, window_ms: u64) -> AccountBudget {
        AccountBudget {
            account: account.into(),
            unit: BudgetUnit::Tokens,
            limit,
            window_ms,
        }
    }

    fn reserve(
        counter: &MemoryCounter,
        budgets: &[AccountBudget],
        tokens: u64,
        now_ms: i64,
    ) -> Result<Reservation, ReserveError> {
        let cost = SpendAmount::tokens(tokens);
        counter.reserve_now(&ReserveRequest::new(budgets, cost, now_ms))
    }

    fn usage(counter: &MemoryCounter, budget: &AccountBudget, now_ms: i64) -> u64 {
        counter.local_usage(budget, now_ms).unwrap()
    }

    #[test]
    fn a_reservation_is_settled_or_released() {
        let counter = MemoryCounter::default();
        let own = [budget("a", 100, 0)];
        let first = reserve(&counter, &own, 60, 0).unwrap();
        assert_eq!(first.remaining().tokens.unwrap().remaining, 40);
        let error = reserve(&counter, &own, 41, 0).unwrap_err();
        assert!(
            matches!(error, ReserveError::Exhausted { remaining: 40, .. }),
            "{error:?}"
        );
        drop(reserve(&counter, &own, 40, 0).unwrap());
        let after = first.remaining_after(SpendAmount::tokens(10)).tokens;
        assert_eq!(after.map(|own| own.remaining), Some(90));
        first.settle(SpendAmount::tokens(10));
        assert_eq!(usage(&counter, &own[0], 0), 10);
        let next = reserve(&counter, &own, 90, 0).unwrap();
        next.settle(SpendAmount::tokens(200));
        assert_eq!(
            usage(&counter, &own[0], 0),
            210,
            "use above the reservation counts in full"
        );
        assert!(reserve(&counter, &own, 1, 0).is_err());
        let unbounded = reserve(&counter, &[], 7, 0).unwrap();
        assert!(unbounded.remaining().tokens.is_none());
    }

    #[test]
    fn nested_budgets_are_reserved_together_or_not_at_all() {
        let counter = MemoryCounter::default();
        let both = [budget("key", 100, 0), budget("team", 50, 0)];
        let first = reserve(&counter, &both, 30, 0).unwrap();
        assert_eq!(
            first.remaining().tokens.unwrap(),
            RemainingBudget {
                limit: 50,
                remaining: 20,
                ends_in_ms: None
            }
        );
        assert!(reserve(&counter, &both, 30, 0).is_err());
        assert_eq!(both.each_ref().map(|own| usage(&counter, own, 0)), [30, 30]);
        first.settle(SpendAmount::tokens(5));
        assert_eq!(both.each_ref().map(|own| usage(&counter, own, 0)), [5, 5]);
    }

    #[test]
    fn tokens_and_money_are_reserved_in_one_step_on_separate_accounts() {
        let counter = MemoryCounter::default();
        let money = AccountBudget {
            unit: BudgetUnit::Micros,
            ..budget("dollars", 100, 0)
        };
        let both = [budget("tokens", 50, 0), money];
        let cost = SpendAmount {
            tokens: 10,
            micros: 90,
            requests: 0,
        };
        let request = ReserveRequest::new(&both, cost, 0);
        let first = counter.reserve_now(&request).unwrap();
        assert_eq!(
            first.remaining().tokens.unwrap().remaining,
            40,
            "headers report tokens"
        );
        let error = counter.reserve_now(&request).unwrap_err();
        assert!(
            matches!(error, ReserveError::Exhausted { remaining: 10, .. }),
            "the money is short: {error:?}"
        );
        assert_eq!(usage(&counter, &both[0], 0), 10, "no token was reserved");
        first.settle(SpendAmount {
            tokens: 3,
            micros: 7,
            requests: 0,
        });
        assert_eq!(both.each_ref().map(|own| usage(&counter, own, 0)), [3, 7]);
    }

    #[test]
    fn an_account_that_is_listed_twice_is_charged_twice() {
        let counter = MemoryCounter::default();
        let twice = [budget("a", 10, 0), budget("a", 10, 0)];
        assert!(reserve(&counter, &twice, 6, 0).is_err());
        let held = reserve(&counter, &twice, 5, 0).unwrap();
        assert_eq!(usage(&counter, &twice[0], 0), 10);
        drop(held);
        assert_eq!(usage(&counter, &twice[0], 0), 0);
    }

    #[test]
    fn an_ended_window_is_removed_and_a_late_settlement_with_it() {
        let counter = MemoryCounter::default();
        let own = [budget("a", 100, 1_000)];
        let late = reserve(&counter, &own, 100, 999).unwrap();
        let error = reserve(&counter, &own, 1, 999).unwrap_err();
        let ends = match error {
            ReserveError::Exhausted { ends_in_ms, .. } => ends_in_ms,
            other => panic!("{other:?}"),
        };
        assert_eq!(ends, Some(1));
        let next = reserve(&counter, &own, 100, 1_000).unwrap();
        late.settle(SpendAmount::tokens(100));
        assert_eq!(usage(&counter, &own[0], 1_000), 100);
        next.settle(SpendAmount::tokens(1));
        assert_eq!(usage(&counter, &own[0], 1_000), 1);
        assert_eq!(usage(&counter, &own[0], -1), 0);
    }

    #[test]
    fn the_use_of_a_budget_without_end_is_never_removed() {
        let counter = MemoryCounter::default();
        let (forever, day) = (budget("forever", 10, 0), budget("day", 10, 86_400_000));
        let now = 1_000 * 86_400_000;
        for own in [&forever, &day] {
            let held = reserve(&counter, std::slice::from_ref(own), 7, now);
            held.unwrap().settle(SpendAmount::tokens(7));
        }
        for n in 0..ACCOUNTS_MAX - 2 {
            let own = [budget(&format!("minute {n}"), 10, 60_000)];
            drop(reserve(&counter, &own, 1, now).unwrap());
        }
        let one_more = [budget("one more", 10, 60_000)];
        let full = reserve(&counter, &one_more, 1, now);
        assert_eq!(full.map(drop), Err(ReserveError::StoreFull));
        // A minute later the windows of a minute have ended.
        drop(reserve(&counter, &one_more, 1, now + 60_000).unwrap());
        let used = [&forever, &day].map(|own| usage(&counter, own, now + 60_000));
        assert_eq!(used, [7, 7]);
    }

    #[test]
    fn open_reservations_are_bounded_and_expired_ones_make_way() {
        let counter = MemoryCounter::default();
        let own = [budget("a", u64::MAX, 0)];
        let request = |now_ms, expires_ms| ReserveRequest {
            expires_ms,
            ..ReserveRequest::new(&own, SpendAmount::tokens(1), now_ms)
        };
        let first = counter.reserve_now(&request(0, Some(10))).unwrap();
        let open: Vec<_> = (1..RESERVATIONS_MAX)
            .map(|_| counter.reserve_now(&request(0, None)).unwrap())
            .collect();
        let full = counter.reserve_now(&request(9, None));
        assert_eq!(full.map(drop), Err(ReserveError::StoreFull));
        let next = counter.reserve_now(&request(10, None)).unwrap();
        assert_eq!(
            counter.settle(first.record(), SpendAmount::default()),
            SettleOutcome::Late
        );
        drop((first, next, open));
        assert_eq!(usage(&counter, &own[0], 10), 0);
    }

    #[test]
    fn sixty_four_threads_never_exceed_one_budget() {
        let counter = Arc::new(MemoryCounter::default());
        let own = [budget("a", 1_000, 0)];
        let (used, peak) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..64_u64 {
                let (counter, own, used, peak) = (&counter, &own, &used, &peak);
                scope.spawn(move || {
                    for call in 0..200 {
                        let Ok(held) = reserve(counter, own, 20, 0) else {
                            continue;
                        };
                        peak.fetch_max(usage(counter, &own[0], 0), Ordering::SeqCst);
                        let amount = (thread + call) % 7;
                        used.fetch_add(amount, Ordering::SeqCst);
                        held.settle(SpendAmount::tokens(amount));
                    }
                });
            }
        });
        let (used, peak) = (used.into_inner(), peak.into_inner());
        assert_eq!(
            usage(&counter, &own[0], 0),
            used,
            "nothing is lost and nothing counted twice"
        );
        assert!(used <= 1_000 && peak <= 1_000);
        assert!(used > 900, "the budget can be used up: {used}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_account_holds_what_is_settled_and_what_is_open(steps in prop::collection::vec((0..4_u8, 0..60_u64, 0..60_u64), 1..80)) {
            let counter = MemoryCounter::default();
            let own = [budget("a", 200, 0), budget("b", 300, 0)];
            let (mut open, mut settled): (Vec<(Reservation, u64)>, u64) = (Vec::new(), 0);
            for (step, cost, amount) in steps {
                if step > 0 {
                    let room = 200 - settled - open.iter().map(|(_, cost)| cost).sum::<u64>();
                    let reserved = reserve(&counter, &own, cost, 0);
                    prop_assert_eq!(reserved.is_ok(), cost <= room);
                    open.extend(reserved.ok().map(|held| (held, cost)));
                } else if let Some((held, cost)) = open.pop() {
                    settled += amount.min(cost);
                    held.settle(SpendAmount::tokens(amount.min(cost)));
                }
                let taken = settled + open.iter().map(|(_, cost)| cost).sum::<u64>();
                prop_assert_eq!(usage(&counter, &own[0], 0), taken);
                prop_assert_eq!(usage(&counter, &own[1], 0), taken);
            }
        }
    }
}
