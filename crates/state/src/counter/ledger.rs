//! Accounts in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    ACCOUNT_BYTES_MAX, ACCOUNTS_MAX, Budget, Counter, Held, Left, Lefts, Reservation, Settle,
    Spend, Stop,
};

/// One account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Account {
    window: i64,
    used: u64,
    reserved: u64,
    /// When its window ends, in milliseconds since 1970; absent where that is not known, or it never ends.
    ends_ms: Option<i64>,
}

impl Account {
    fn taken(&self) -> u64 {
        self.used.saturating_add(self.reserved)
    }

    /// The account as it is in a window: what was in an earlier one is over.
    fn at(&self, window: i64) -> Self {
        if self.window == window {
            return *self;
        }
        Self {
            window,
            ..Self::default()
        }
    }
}

/// All accounts.
#[derive(Debug, Default)]
pub(super) struct Ledger(HashMap<Arc<str>, Account>);

impl Ledger {
    /// Reserves on all accounts or on none.
    pub fn reserve(
        &mut self,
        budgets: &[Budget],
        cost: Spend,
        now_ms: i64,
    ) -> Result<(Vec<Held>, Lefts), Stop> {
        let mut least = Lefts::default();
        for budget in budgets {
            if budget.account.len() > ACCOUNT_BYTES_MAX || budget.account.contains(['\n', '\t']) {
                return Err(Stop::Full);
            }
            let taken = self.taken(budget, now_ms);
            let left = budget.most.saturating_sub(taken);
            let ends_in_ms = budget.ends_in_ms(now_ms);
            let Some(rest) = left.checked_sub(cost.of(budget.unit)) else {
                return Err(Stop::Spent {
                    account: Arc::clone(&budget.account),
                    unit: budget.unit,
                    left,
                    ends_in_ms,
                });
            };
            let left = Left {
                most: budget.most,
                left: rest,
                ends_in_ms,
            };
            least.see(budget.unit, left);
        }
        self.make_room(budgets, now_ms)?;
        let mut held = Vec::with_capacity(budgets.len());
        for budget in budgets {
            let window = budget.window(now_ms);
            let account = self.0.entry(Arc::clone(&budget.account)).or_default();
            *account = account.at(window);
            let ends_in = budget.ends_in_ms(now_ms);
            account.ends_ms = ends_in.map(|ms| now_ms.saturating_add_unsigned(ms));
            account.reserved = account.reserved.saturating_add(cost.of(budget.unit));
            held.push((Arc::clone(&budget.account), window, budget.unit));
        }
        Ok((held, least))
    }

    fn make_room(&mut self, budgets: &[Budget], now_ms: i64) -> Result<(), Stop> {
        let is_new = |budget: &&Budget| !self.0.contains_key(&budget.account);
        let new = budgets.iter().filter(is_new).count();
        if self.0.len() + new <= ACCOUNTS_MAX {
            return Ok(());
        }
        let is_over = |account: &Account| account.ends_ms.is_some_and(|end| end <= now_ms);
        self.0
            .retain(|_, account| account.reserved > 0 || !is_over(account));
        if self.0.len() + new <= ACCOUNTS_MAX {
            Ok(())
        } else {
            Err(Stop::Full)
        }
    }

    /// Puts what was used in the place of what was reserved. A window that is over keeps its own.
    pub fn settle(&mut self, held: &[Held], cost: Spend, used: Spend) {
        for (name, window, unit) in held {
            if let Some(account) = self.0.get_mut(name)
                && account.window == *window
            {
                account.reserved = account.reserved.saturating_sub(cost.of(*unit));
                account.used = account.used.saturating_add(used.of(*unit));
            }
        }
    }

    /// Adds what was used before.
    pub fn add(&mut self, name: &str, window: i64, used: u64) {
        if self.0.len() >= ACCOUNTS_MAX && !self.0.contains_key(name) {
            return;
        }
        let account = self.0.entry(name.into()).or_default();
        if account.window <= window {
            *account = account.at(window);
            account.used = account.used.saturating_add(used);
        }
    }

    /// Adds what was used without a reservation.
    pub fn charge(&mut self, held: &[Held], used: Spend) {
        for (name, window, unit) in held {
            self.add(name, *window, used.of(*unit));
        }
    }

    pub fn taken(&self, budget: &Budget, now_ms: i64) -> u64 {
        let window = budget.window(now_ms);
        let account = self.0.get(&budget.account);
        account.map_or(0, |account| account.at(window).taken())
    }

    /// What is used of each account, reservations aside.
    pub fn used(&self) -> impl Iterator<Item = (&str, i64, u64)> {
        let used = self.0.iter().filter(|(_, account)| account.used > 0);
        used.map(|(name, account)| (name.as_ref(), account.window, account.used))
    }
}

/// A counter that forgets everything at the end of the process.
#[derive(Debug, Default)]
pub struct MemoryCounter(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared(Mutex<Ledger>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Settle for Shared {
    fn settle(&self, held: &[Held], cost: Spend, used: Spend) {
        self.lock().settle(held, cost, used);
    }
}

impl Counter for MemoryCounter {
    fn reserve(&self, budgets: &[Budget], cost: Spend, now_ms: i64) -> Result<Reservation, Stop> {
        let (held, left) = self.0.lock().reserve(budgets, cost, now_ms)?;
        let settle = Arc::clone(&self.0) as Arc<dyn Settle>;
        Ok(Reservation::new(settle, held, cost, left))
    }

    fn charge(&self, held: &[Held], used: Spend) {
        self.0.lock().charge(held, used);
    }

    fn used(&self, budget: &Budget, now_ms: i64) -> u64 {
        self.0.lock().taken(budget, now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::Unit;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn budget(account: &str, most: u64, window_ms: u64) -> Budget {
        Budget {
            account: account.into(),
            unit: Unit::Tokens,
            most,
            window_ms,
        }
    }

    #[test]
    fn what_is_reserved_is_settled_or_given_back() {
        let counter = MemoryCounter::default();
        let own = budget("a", 100, 0);
        let first = counter
            .reserve(std::slice::from_ref(&own), Spend::tokens(60), 0)
            .unwrap();
        assert_eq!(first.left().tokens.unwrap().left, 40);
        let stop = counter
            .reserve(std::slice::from_ref(&own), Spend::tokens(41), 0)
            .unwrap_err();
        assert!(matches!(stop, Stop::Spent { left: 40, .. }), "{stop:?}");
        drop(
            counter
                .reserve(std::slice::from_ref(&own), Spend::tokens(40), 0)
                .unwrap(),
        );
        let after = first.left_after(Spend::tokens(10)).tokens;
        assert_eq!(
            after.map(|own| own.left),
            Some(90),
            "the reservation is given back"
        );
        first.settle(Spend::tokens(10));
        assert_eq!(counter.used(&own, 0), 10);
        counter
            .reserve(std::slice::from_ref(&own), Spend::tokens(90), 0)
            .unwrap()
            .settle(Spend::tokens(200));
        assert_eq!(
            counter.used(&own, 0),
            210,
            "more than was reserved counts as well"
        );
        assert!(
            counter
                .reserve(std::slice::from_ref(&own), Spend::tokens(1), 0)
                .is_err()
        );
        assert!(
            counter
                .reserve(&[], Spend::tokens(7), 0)
                .unwrap()
                .left()
                .tokens
                .is_none()
        );
    }

    #[test]
    fn nested_budgets_are_reserved_together_or_not_at_all() {
        let counter = MemoryCounter::default();
        let (key, team) = (budget("key", 100, 0), budget("team", 50, 0));
        let both = [key.clone(), team.clone()];
        let held = counter.reserve(&both, Spend::tokens(30), 0).unwrap();
        assert_eq!(
            held.left().tokens.unwrap(),
            Left {
                most: 50,
                left: 20,
                ends_in_ms: None
            }
        );
        assert!(counter.reserve(&both, Spend::tokens(30), 0).is_err());
        assert_eq!((counter.used(&key, 0), counter.used(&team, 0)), (30, 30));
        held.settle(Spend::tokens(5));
        assert_eq!((counter.used(&key, 0), counter.used(&team, 0)), (5, 5));
    }

    #[test]
    fn tokens_and_money_are_reserved_in_one_step_each_on_its_own_accounts() {
        let counter = MemoryCounter::default();
        let money = Budget {
            unit: Unit::Micros,
            ..budget("dollars", 100, 0)
        };
        let both = [budget("tokens", 50, 0), money.clone()];
        let cost = Spend {
            tokens: 10,
            micros: 90,
            requests: 0,
        };
        let held = counter.reserve(&both, cost, 0).unwrap();
        assert_eq!(
            held.left().tokens.unwrap().left,
            40,
            "headers tell of tokens"
        );
        let stop = counter.reserve(&both, cost, 0).unwrap_err();
        assert!(
            matches!(stop, Stop::Spent { left: 10, .. }),
            "the money is short: {stop:?}"
        );
        assert_eq!(counter.used(&both[0], 0), 10, "and no token was reserved");
        held.settle(Spend {
            tokens: 3,
            micros: 7,
            requests: 0,
        });
        assert_eq!((counter.used(&both[0], 0), counter.used(&money, 0)), (3, 7));
    }

    #[test]
    fn a_window_that_is_over_is_forgotten_and_late_settlements_with_it() {
        let counter = MemoryCounter::default();
        let own = [budget("a", 100, 1_000)];
        let late = counter.reserve(&own, Spend::tokens(100), 999).unwrap();
        let stop = counter.reserve(&own, Spend::tokens(1), 999).unwrap_err();
        assert!(
            matches!(
                stop,
                Stop::Spent {
                    ends_in_ms: Some(1),
                    ..
                }
            ),
            "{stop:?}"
        );
        let next = counter.reserve(&own, Spend::tokens(100), 1_000).unwrap();
        late.settle(Spend::tokens(100));
        assert_eq!(counter.used(&own[0], 1_000), 100);
        next.settle(Spend::tokens(1));
        assert_eq!(counter.used(&own[0], 1_000), 1);
        assert_eq!(counter.used(&own[0], -1), 0);
    }

    #[test]
    fn what_a_never_ending_budget_has_used_is_not_forgotten_to_make_room() {
        let counter = MemoryCounter::default();
        let (forever, day) = (budget("forever", 10, 0), budget("day", 10, 86_400_000));
        let now = 1_000 * 86_400_000;
        for own in [&forever, &day] {
            let held = counter.reserve(std::slice::from_ref(own), Spend::tokens(7), now);
            held.unwrap().settle(Spend::tokens(7));
        }
        for n in 0..ACCOUNTS_MAX - 2 {
            let own = [budget(&format!("minute {n}"), 10, 60_000)];
            drop(counter.reserve(&own, Spend::tokens(1), now).unwrap());
        }
        let one_more = [budget("one more", 10, 60_000)];
        assert_eq!(
            counter.reserve(&one_more, Spend::tokens(1), now).map(drop),
            Err(Stop::Full)
        );
        // A minute later the minutes are over, and nothing else is.
        drop(
            counter
                .reserve(&one_more, Spend::tokens(1), now + 60_000)
                .unwrap(),
        );
        let used = [&forever, &day].map(|own| counter.used(own, now + 60_000));
        assert_eq!(used, [7, 7]);
    }

    #[test]
    fn sixty_four_callers_never_exceed_one_budget() {
        let counter = Arc::new(MemoryCounter::default());
        let own = budget("a", 1_000, 0);
        let (used, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let callers: Vec<_> = (0..64_u64)
            .map(|caller| {
                let (counter, own) = (Arc::clone(&counter), own.clone());
                let (used, most) = (Arc::clone(&used), Arc::clone(&most));
                std::thread::spawn(move || {
                    for call in 0..200 {
                        let Ok(held) =
                            counter.reserve(std::slice::from_ref(&own), Spend::tokens(20), 0)
                        else {
                            continue;
                        };
                        most.fetch_max(counter.used(&own, 0), Ordering::SeqCst);
                        let spends = (caller + call) % 7;
                        used.fetch_add(spends, Ordering::SeqCst);
                        held.settle(Spend::tokens(spends));
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.join().unwrap();
        }
        let used = used.load(Ordering::SeqCst);
        assert_eq!(
            counter.used(&own, 0),
            used,
            "nothing is lost and nothing counted twice"
        );
        assert!(used <= 1_000 && most.load(Ordering::SeqCst) <= 1_000);
        assert!(used > 900, "the budget can be used up: {used}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn accounts_hold_what_was_settled_and_what_is_open(steps in prop::collection::vec((0..4_u8, 0..60_u64, 0..60_u64), 1..80)) {
            let counter = MemoryCounter::default();
            let own = [budget("a", 200, 0), budget("b", 300, 0)];
            let (mut open, mut settled): (Vec<(Reservation, u64)>, u64) = (Vec::new(), 0);
            for (what, cost, spends) in steps {
                if what > 0 {
                    let room = 200 - settled - open.iter().map(|(_, cost)| cost).sum::<u64>();
                    let reserved = counter.reserve(&own, Spend::tokens(cost), 0);
                    prop_assert_eq!(reserved.is_ok(), cost <= room);
                    open.extend(reserved.ok().map(|held| (held, cost)));
                } else if let Some((held, cost)) = open.pop() {
                    settled += spends.min(cost);
                    held.settle(Spend::tokens(spends.min(cost)));
                }
                let taken = settled + open.iter().map(|(_, cost)| cost).sum::<u64>();
                prop_assert_eq!(counter.used(&own[0], 0), taken);
                prop_assert_eq!(counter.used(&own[1], 0), taken);
            }
        }
    }
}
