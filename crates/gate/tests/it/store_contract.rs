//! Contracts of the stores, from another crate: a counter behind messages keeps its contract, and stores that are
//! slightly wrong break theirs.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use state::cache::{CacheEntry, CacheKey};
use state::contract::block_on;
use state::contract::cache::check_cache_store;
use state::contract::counter::{CounterFixture, check_counter_store, check_counter_threads};
use state::contract::lease::check_lease_store;
use state::contract::rate::check_rate_store;
use state::counter::{
    ACCOUNT_BYTES_MAX, AccountBudget, CounterStore, RemainingBudget, RemainingBudgets, Reservation,
    ReservationId, ReservationRecord, ReserveError, ReserveRequest, ReservedAccount, SettleOutcome,
    SettleStore, SpendAmount,
};
use state::lease::{LeaseError, LeaseRequest, OwnershipLease};
use state::rate::{RateDecision, RateKey, RateRequest, WindowLimit};
use state::{
    BoxFuture, CacheStore, LeaseStore, MemoryCache, MemoryLeases, MemoryRates, RateStore,
    StoreUnavailable,
};

/// The far side: all accounts, shared by the processes that connect one after the other.
#[derive(Default)]
struct RemoteServer {
    used: HashMap<(Arc<str>, i64), u64>,
    open: HashMap<ReservationId, (Arc<ReservationRecord>, Option<i64>)>,
    /// Reservations that expired, by their identity; the value says whether they were settled since.
    expired: HashMap<ReservationId, bool>,
    settled: HashSet<ReservationId>,
}

impl RemoteServer {
    fn usage(&self, account: &Arc<str>, window: i64) -> u64 {
        let used = self.used.get(&(Arc::clone(account), window));
        let records = self.open.values().map(|(record, _)| record);
        let open = records.flat_map(|record| {
            let accounts = record.accounts.iter();
            let own = accounts.filter(|own| own.account == *account && own.window == window);
            own.map(|own| record.cost.of(own.unit))
        });
        open.fold(used.copied().unwrap_or(0), u64::saturating_add)
    }

    fn reserve(
        &mut self,
        request: &ReserveRequest<'_>,
        id: ReservationId,
    ) -> Result<(Arc<ReservationRecord>, RemainingBudgets), ReserveError> {
        let now_ms = request.now_ms;
        let has_expired = |at: &Option<i64>| at.is_some_and(|at| at <= now_ms);
        let expired: Vec<_> = self
            .open
            .iter()
            .filter(|(_, (_, at))| has_expired(at))
            .collect();
        let expired: Vec<_> = expired.into_iter().map(|(id, _)| *id).collect();
        for id in expired {
            self.open.remove(&id);
            self.expired.insert(id, false);
        }
        let (mut accounts, mut tightest) = (Vec::new(), RemainingBudgets::default());
        for budget in request.budgets {
            if budget.account.len() > ACCOUNT_BYTES_MAX || budget.account.contains(['\n', '\t']) {
                return Err(ReserveError::InvalidAccount);
            }
            let window = budget.window_at(now_ms);
            let remaining = budget
                .limit
                .saturating_sub(self.usage(&budget.account, window));
            let ends_in_ms = budget.ends_in_ms(now_ms);
            let Some(rest) = remaining.checked_sub(request.cost.of(budget.unit)) else {
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
            accounts.push(ReservedAccount {
                account: Arc::clone(&budget.account),
                window,
                unit: budget.unit,
            });
        }
        let record = Arc::new(ReservationRecord {
            id: Some(id),
            accounts,
            cost: request.cost,
        });
        let entry = (Arc::clone(&record), request.expires_ms);
        self.open.insert(id, entry);
        Ok((record, tightest))
    }

    fn settle(&mut self, record: &ReservationRecord, used: SpendAmount) {
        let id = record.id.unwrap();
        let is_first = match (self.open.remove(&id), self.expired.get_mut(&id)) {
            (Some(_), _) => self.settled.insert(id),
            (None, Some(is_settled)) => !std::mem::replace(is_settled, true),
            (None, None) => false,
        };
        for own in record.accounts.iter().filter(|_| is_first) {
            let total = self
                .used
                .entry((Arc::clone(&own.account), own.window))
                .or_default();
            *total = total.saturating_add(used.of(own.unit));
        }
    }
}

/// The near side: every reservation is a message with an answer, settlements are queued.
struct RemoteCounter(Arc<RemoteConnection>);

struct RemoteConnection {
    server: Arc<Mutex<RemoteServer>>,
    queue: Mutex<Vec<(ReservationRecord, SpendAmount)>>,
    is_down: Arc<AtomicBool>,
    epoch: u64,
    next: AtomicU64,
    /// Releases the reservation of a cancelled request. Without it the contract is broken.
    releases_cancelled: bool,
}

impl RemoteConnection {
    fn open(server: Arc<Mutex<RemoteServer>>, epoch: u64, releases_cancelled: bool) -> Self {
        Self {
            server,
            queue: Mutex::default(),
            is_down: Arc::default(),
            epoch,
            next: AtomicU64::new(0),
            releases_cancelled,
        }
    }

    fn send_queue(&self) -> Result<MutexGuard<'_, RemoteServer>, StoreUnavailable> {
        if self.is_down.load(Ordering::Relaxed) {
            return Err(StoreUnavailable::new("the server does not answer"));
        }
        let mut server = self.server.lock().unwrap();
        for (record, used) in self.queue.lock().unwrap().drain(..) {
            server.settle(&record, used);
        }
        Ok(server)
    }
}

/// One way of a message.
async fn travel() {
    let mut left = 2;
    std::future::poll_fn(move |context| {
        left -= 1;
        context.waker().wake_by_ref();
        match left {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })
    .await;
}

impl SettleStore for RemoteConnection {
    fn settle(&self, record: &ReservationRecord, used: SpendAmount) -> SettleOutcome {
        self.queue.lock().unwrap().push((record.clone(), used));
        SettleOutcome::Queued
    }
}

impl SettleStore for RemoteCounter {
    fn settle(&self, record: &ReservationRecord, used: SpendAmount) -> SettleOutcome {
        self.0.settle(record, used)
    }
}

impl CounterStore for RemoteCounter {
    fn try_local(&self, _: &ReserveRequest<'_>) -> Option<Result<Reservation, ReserveError>> {
        None
    }

    fn reserve<'a>(
        &'a self,
        request: ReserveRequest<'a>,
    ) -> BoxFuture<'a, Result<Reservation, ReserveError>> {
        Box::pin(async move {
            travel().await;
            let id = ReservationId {
                epoch: self.0.epoch,
                number: self.0.next.fetch_add(1, Ordering::Relaxed),
            };
            let reserved = match self.0.send_queue() {
                Ok(mut server) => server.reserve(&request, id),
                Err(error) => Err(ReserveError::Unavailable(error)),
            };
            let store = Arc::clone(&self.0) as Arc<dyn SettleStore>;
            let guard = |(record, remaining)| Reservation::new(store, record, remaining);
            if self.0.releases_cancelled {
                let reserved = reserved.map(guard);
                travel().await;
                return reserved;
            }
            travel().await;
            reserved.map(guard)
        })
    }

    fn local_usage(&self, _: &AccountBudget, _: i64) -> Option<u64> {
        None
    }

    fn usage<'a>(
        &'a self,
        budget: &'a AccountBudget,
        now_ms: i64,
    ) -> BoxFuture<'a, Result<u64, StoreUnavailable>> {
        Box::pin(async move {
            travel().await;
            let server = self.0.send_queue()?;
            Ok(server.usage(&budget.account, budget.window_at(now_ms)))
        })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreUnavailable>> {
        Box::pin(async move {
            travel().await;
            self.0.send_queue().map(drop)
        })
    }
}

fn fixture(releases_cancelled: bool) -> CounterFixture {
    let server = Arc::new(Mutex::new(RemoteServer::default()));
    let open = move |epoch| RemoteConnection::open(Arc::clone(&server), epoch, releases_cancelled);
    let connection = Arc::new(open(1));
    let is_down = Arc::clone(&connection.is_down);
    CounterFixture {
        store: Arc::new(RemoteCounter(connection)),
        fail: Some(Box::new(move || is_down.store(true, Ordering::Relaxed))),
        restart: Some(Box::new(move || {
            Arc::new(RemoteCounter(Arc::new(open(2)))) as Arc<dyn CounterStore>
        })),
    }
}

#[test]
fn a_counter_outside_of_state_keeps_the_contract() {
    for seed in 0..16 {
        let report = block_on(check_counter_store(|| fixture(true), seed));
        let report = report.unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        assert_eq!(report.skipped, [], "{report:?}");
    }
    check_counter_threads(&*fixture(true).store).unwrap_or_else(|violation| panic!("{violation}"));
}

#[test]
fn a_counter_that_keeps_cancelled_reservations_breaks_the_contract() {
    let violation = block_on(check_counter_store(|| fixture(false), 1)).unwrap_err();
    assert_eq!(
        violation.check,
        "a cancelled reservation leaves nothing reserved"
    );
}

/// Rates behind messages: every decision travels. With `counts_twice`, an answer that is lost is asked for again.
#[derive(Default)]
struct RemoteRates {
    rates: MemoryRates,
    counts_twice: bool,
}

impl RateStore for RemoteRates {
    fn key(&self, parts: &[&str]) -> RateKey {
        self.rates.key(parts)
    }

    fn try_local(&self, _: &RateRequest) -> Option<RateDecision> {
        None
    }

    fn take(&self, request: RateRequest) -> BoxFuture<'_, Result<RateDecision, StoreUnavailable>> {
        Box::pin(async move {
            travel().await;
            let decision = self.rates.take(request).await;
            if self.counts_twice {
                let _ = self.rates.take(request).await;
            }
            travel().await;
            decision
        })
    }

    fn restart_window(&self, key: RateKey, limit: WindowLimit, now_ns: u64) {
        self.rates.restart_window(key, limit, now_ns);
    }
}

#[test]
fn rates_behind_messages_keep_the_contract_and_double_counts_break_it() {
    let make = |counts_twice| {
        Arc::new(RemoteRates {
            counts_twice,
            ..RemoteRates::default()
        }) as Arc<dyn RateStore>
    };
    let report = block_on(check_rate_store(|| make(false), 3));
    report.unwrap_or_else(|violation| panic!("{violation}"));
    let violation = block_on(check_rate_store(|| make(true), 3)).unwrap_err();
    assert_eq!(violation.check, "a burst, then the rate");
}

/// Cache behind messages. With `ignores_expiry`, it returns entries that have expired.
struct RemoteCache {
    cache: MemoryCache,
    ignores_expiry: bool,
}

impl CacheStore for RemoteCache {
    fn try_local(&self, _: &CacheKey, _: i64) -> Option<Option<CacheEntry>> {
        None
    }

    fn get<'a>(
        &'a self,
        key: &'a CacheKey,
        now_ms: i64,
    ) -> BoxFuture<'a, Result<Option<CacheEntry>, StoreUnavailable>> {
        let now_ms = if self.ignores_expiry {
            i64::MIN
        } else {
            now_ms
        };
        Box::pin(async move {
            travel().await;
            let found = self.cache.get(key, now_ms).await;
            travel().await;
            found
        })
    }

    fn insert(&self, key: CacheKey, entry: CacheEntry) {
        self.cache.insert(key, entry);
    }

    fn remove_expired(&self, now_ms: i64) {
        self.cache.remove_expired(now_ms);
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreUnavailable>> {
        self.cache.flush()
    }
}

#[test]
fn a_cache_behind_messages_keeps_the_contract_and_stale_entries_break_it() {
    let make = |ignores_expiry| {
        Arc::new(RemoteCache {
            cache: MemoryCache::new(4 * 1024 * 1024),
            ignores_expiry,
        }) as Arc<dyn CacheStore>
    };
    let report = block_on(check_cache_store(|| make(false), 3));
    report.unwrap_or_else(|violation| panic!("{violation}"));
    let violation = block_on(check_cache_store(|| make(true), 3)).unwrap_err();
    assert_eq!(
        violation.check,
        "an entry is returned as it was stored, until it expires"
    );
}

/// Leases behind messages. With `repeats_tokens`, every lease has the same token.
#[derive(Default)]
struct RemoteLeases {
    leases: MemoryLeases,
    repeats_tokens: bool,
    tokens: Mutex<HashMap<String, u64>>,
}

impl RemoteLeases {
    /// Hides the tokens from the client if they are repeated.
    fn answer(&self, lease: OwnershipLease) -> OwnershipLease {
        if !self.repeats_tokens {
            return lease;
        }
        let mut tokens = self.tokens.lock().unwrap();
        tokens.insert(lease.name.clone(), lease.token);
        OwnershipLease { token: 1, ..lease }
    }

    fn known(&self, lease: &OwnershipLease) -> OwnershipLease {
        let tokens = self.tokens.lock().unwrap();
        let token = tokens.get(&lease.name).copied();
        OwnershipLease {
            token: token.unwrap_or(lease.token),
            ..lease.clone()
        }
    }
}

impl LeaseStore for RemoteLeases {
    fn acquire<'a>(
        &'a self,
        request: LeaseRequest<'a>,
    ) -> BoxFuture<'a, Result<OwnershipLease, LeaseError>> {
        Box::pin(async move {
            travel().await;
            let lease = self.leases.acquire(request).await;
            travel().await;
            lease.map(|lease| self.answer(lease))
        })
    }

    fn renew<'a>(
        &'a self,
        lease: &'a OwnershipLease,
        now_ms: i64,
        ttl_ms: u64,
    ) -> BoxFuture<'a, Result<OwnershipLease, LeaseError>> {
        Box::pin(async move {
            travel().await;
            let renewed = self.leases.renew(&self.known(lease), now_ms, ttl_ms).await;
            renewed.map(|lease| self.answer(lease))
        })
    }

    fn release<'a>(&'a self, lease: &'a OwnershipLease) -> BoxFuture<'a, Result<(), LeaseError>> {
        Box::pin(async move {
            travel().await;
            self.leases.release(&self.known(lease)).await
        })
    }
}

#[test]
fn leases_behind_messages_keep_the_contract_and_repeated_tokens_break_it() {
    let make = |repeats_tokens| {
        Arc::new(RemoteLeases {
            repeats_tokens,
            ..RemoteLeases::default()
        }) as Arc<dyn LeaseStore>
    };
    for seed in 0..16 {
        let report = block_on(check_lease_store(|| make(false), seed));
        report.unwrap_or_else(|violation| panic!("{violation}"));
    }
    let violation = block_on(check_lease_store(|| make(true), 3)).unwrap_err();
    assert_eq!(violation.check, "tokens rise with every lease of a name");
}
