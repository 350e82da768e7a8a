//! Contract of [`CounterStore`].

use std::cell::Cell;
use std::sync::Arc;

use super::tasks::{cancel_after, yield_now};
use super::{
    CheckResult, ContractReport, ContractViolation, SeededRandom, SeededTasks, block_on, expect,
    expect_eq,
};
use crate::counter::{
    ACCOUNT_BYTES_MAX, AccountBudget, BudgetUnit, CounterStore, Reservation, ReserveError,
    ReserveRequest, SettleOutcome, SpendAmount,
};
use crate::store::StoreUnavailable;

/// Concurrent callers of a check.
const TASKS: u64 = 64;
/// Calls of each caller.
const CALLS: u64 = 40;
/// Awaits of one reservation at which it is cancelled, at most.
const CANCEL_POINTS_MAX: usize = 64;
/// Time at which the checks begin, in milliseconds since 1970; a multiple of [`WINDOW_MS`].
const START_MS: i64 = 1_700_000_000_000;
/// Length of the window of the checks that have one, in milliseconds.
const WINDOW_MS: u64 = 1_000;

/// Store under test.
pub struct CounterFixture {
    /// Fresh, empty store.
    pub store: Arc<dyn CounterStore>,
    /// Makes the store unavailable from then on; `None` if that is impossible.
    pub fail: Option<Box<dyn Fn()>>,
    /// Ends the process of the store like a kill, and returns its successor, which knows all settled use;
    /// `None` if the store does not outlive its process.
    pub restart: Option<Box<dyn Fn() -> Arc<dyn CounterStore>>>,
}

impl CounterFixture {
    /// Returns a fixture without failures and restarts.
    #[must_use]
    pub fn new(store: Arc<dyn CounterStore>) -> Self {
        Self {
            store,
            fail: None,
            restart: None,
        }
    }
}

/// Runs all checks against stores that `make` creates.
///
/// # Errors
/// The first violation.
pub async fn check_counter_store(
    make: impl Fn() -> CounterFixture,
    seed: u64,
) -> Result<ContractReport, ContractViolation> {
    let mut report = ContractReport::default();
    let store = || make().store;
    report.record(
        "a reservation counts until it is settled or dropped",
        settles_and_releases(&*store()).await,
    )?;
    report.record(
        "budgets are reserved together or not at all",
        nests(&*store()).await,
    )?;
    report.record(
        "concurrent tasks never exceed a budget and lose nothing",
        stays_exact(&*store(), seed).await,
    )?;
    report.record(
        "a reservation is settled once",
        settles_once(&*store()).await,
    )?;
    report.record(
        "an expired reservation is released and its late settlement counted once",
        expires(&*store()).await,
    )?;
    report.record(
        "a settlement belongs to the window of its reservation",
        keeps_windows(&*store()).await,
    )?;
    report.record(
        "amounts near the maximum neither wrap nor exceed a budget",
        does_not_overflow(&*store()).await,
    )?;
    report.record(
        "a cancelled reservation leaves nothing reserved",
        survives_cancellation(&store).await,
    )?;
    report.record("invalid accounts are rejected", rejects(&*store()).await)?;
    let check = "an unavailable store reserves nothing and says so";
    let CounterFixture { store, fail, .. } = make();
    match fail {
        Some(fail) => report.record(check, reports_failure(&*store, &*fail).await)?,
        None => report.skipped.push((check, "the store cannot fail")),
    }
    let check = "a later process settles what a killed one has reserved, once";
    let CounterFixture { store, restart, .. } = make();
    match restart {
        Some(restart) => report.record(check, survives_kill(store, &*restart).await)?,
        None => {
            let reason = "the store does not outlive its process";
            report.skipped.push((check, reason));
        }
    }
    Ok(report)
}

/// Checks that callers on [`TASKS`] threads never exceed a budget. Blocks; a store that needs a reactor has it on
/// threads of its own.
///
/// # Errors
/// The violation.
pub fn check_counter_threads(store: &dyn CounterStore) -> Result<(), ContractViolation> {
    let budgets = [budget("threads", 1_000, 0)];
    let used: u64 = std::thread::scope(|scope| {
        let spawn = |thread: u64| {
            let budgets = &budgets;
            scope.spawn(move || block_on(spend(store, budgets, SeededRandom::new(thread))))
        };
        let threads: Vec<_> = (0..TASKS).map(spawn).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|used| used.unwrap_or(u64::MAX / TASKS)).sum()
    });
    let result = block_on(check_total(store, &budgets, &[used]));
    ContractReport::default().record("threads never exceed a budget", result)
}

fn budget(account: &str, limit: u64, window_ms: u64) -> AccountBudget {
    AccountBudget {
        account: account.into(),
        unit: BudgetUnit::Tokens,
        limit,
        window_ms,
    }
}

async fn reserve(
    store: &dyn CounterStore,
    budgets: &[AccountBudget],
    tokens: u64,
    now_ms: i64,
) -> Result<Reservation, ReserveError> {
    let cost = SpendAmount::tokens(tokens);
    store
        .acquire(ReserveRequest::new(budgets, cost, now_ms))
        .await
}

/// Reserves an amount that the check expects to be available.
async fn take(
    store: &dyn CounterStore,
    budgets: &[AccountBudget],
    tokens: u64,
    now_ms: i64,
) -> Result<Reservation, String> {
    let reserved = reserve(store, budgets, tokens, now_ms).await;
    reserved.map_err(|error| format!("reserving {tokens}: {error}"))
}

/// Returns the use of a budget once all settlements are confirmed.
async fn usage(
    store: &dyn CounterStore,
    budget: &AccountBudget,
    now_ms: i64,
) -> Result<u64, String> {
    let text = |error: StoreUnavailable| error.to_string();
    store.flush().await.map_err(text)?;
    store.usage(budget, now_ms).await.map_err(text)
}

async fn expect_usage(
    store: &dyn CounterStore,
    budget: &AccountBudget,
    now_ms: i64,
    expected: u64,
) -> CheckResult {
    let actual = usage(store, budget, now_ms).await?;
    expect_eq(
        actual,
        expected,
        &format!("use of {} at {now_ms}", budget.account),
    )
}

/// Expects an outcome; a store that queues settlements does not know it.
fn expect_outcome(actual: SettleOutcome, expected: SettleOutcome, subject: &str) -> CheckResult {
    match actual {
        SettleOutcome::Queued => Ok(()),
        _ => expect_eq(actual, expected, subject),
    }
}

/// Expects that a reservation fails because an account has too little remaining.
fn expect_exhausted(result: Result<Reservation, ReserveError>, subject: &str) -> CheckResult {
    match result {
        Err(ReserveError::Exhausted { .. }) => Ok(()),
        Err(other) => Err(format!("{subject}: expected Exhausted, got {other:?}")),
        Ok(_) => Err(format!("{subject}: expected Exhausted, got a reservation")),
    }
}

async fn settles_and_releases(store: &dyn CounterStore) -> CheckResult {
    let own = [budget("a", 100, 0)];
    let first = take(store, &own, 60, START_MS).await?;
    let remaining = first.remaining().tokens.map(|own| own.remaining);
    expect_eq(remaining, Some(40), "remaining beside the reservation")?;
    expect_usage(store, &own[0], START_MS, 60).await?;
    expect_exhausted(
        reserve(store, &own, 41, START_MS).await,
        "more than remains",
    )?;
    drop(take(store, &own, 40, START_MS).await?);
    expect_usage(store, &own[0], START_MS, 60).await?;
    first.settle(SpendAmount::tokens(10));
    expect_usage(store, &own[0], START_MS, 10).await?;
    let all = take(store, &own, 90, START_MS).await?;
    all.settle(SpendAmount::tokens(200));
    expect_usage(store, &own[0], START_MS, 210).await?;
    expect_exhausted(reserve(store, &own, 1, START_MS).await, "after overuse")
}

async fn nests(store: &dyn CounterStore) -> CheckResult {
    let money = AccountBudget {
        unit: BudgetUnit::Micros,
        ..budget("money", 100, 0)
    };
    let all = [budget("key", 100, 0), budget("team", 50, 0), money];
    let cost = SpendAmount {
        tokens: 30,
        micros: 10,
        requests: 1,
    };
    let first = store.acquire(ReserveRequest::new(&all, cost, START_MS));
    let first = first.await.map_err(|error| error.to_string())?;
    let second = store
        .acquire(ReserveRequest::new(&all, cost, START_MS))
        .await;
    expect_exhausted(
        second,
        "the inner budget allows what the outer one does not",
    )?;
    for (own, expected) in all.iter().zip([30, 30, 10]) {
        expect_usage(store, own, START_MS, expected).await?;
    }
    first.settle(SpendAmount {
        tokens: 5,
        micros: 7,
        requests: 1,
    });
    for (own, expected) in all.iter().zip([5, 5, 7]) {
        expect_usage(store, own, START_MS, expected).await?;
    }
    Ok(())
}

/// Makes calls of random cost, and returns what they have used.
async fn spend(
    store: &dyn CounterStore,
    budgets: &[AccountBudget],
    mut random: SeededRandom,
) -> u64 {
    let mut total = 0;
    for _ in 0..CALLS {
        let cost = 1 + random.below(20);
        let Ok(held) = reserve(store, budgets, cost, START_MS).await else {
            continue;
        };
        yield_now().await;
        match random.below(4) {
            0 => drop(held),
            _ => {
                let used = random.below(cost + 1);
                total += used;
                held.settle(SpendAmount::tokens(used));
            }
        }
    }
    total
}

/// Checks that the store counts exactly the use of the callers, within the limit, and that the rest can be used.
async fn check_total(
    store: &dyn CounterStore,
    budgets: &[AccountBudget],
    used: &[u64],
) -> CheckResult {
    let total: u64 = used.iter().sum();
    for own in budgets {
        expect_usage(store, own, START_MS, total).await?;
        expect(total <= own.limit, || {
            format!("{total} were used of {}", own.limit)
        })?;
    }
    let tightest = budgets.iter().map(|own| own.limit).min().unwrap_or(0);
    let rest = take(store, budgets, tightest.saturating_sub(total), START_MS).await?;
    expect_exhausted(
        reserve(store, budgets, 1, START_MS).await,
        "beside a reservation of all that remains",
    )?;
    drop(rest);
    Ok(())
}

async fn stays_exact(store: &dyn CounterStore, seed: u64) -> CheckResult {
    let budgets = [budget("inner", 5_000, 0), budget("outer", 8_000, 0)];
    let used: Vec<Cell<u64>> = (0..TASKS).map(|_| Cell::new(0)).collect();
    let tasks = used.iter().zip(0_u64..).map(|(total, task)| {
        let random = SeededRandom::new(seed ^ (task << 32));
        let budgets = &budgets;
        let task = async move { total.set(spend(store, budgets, random).await) };
        Box::pin(task) as std::pin::Pin<Box<dyn Future<Output = ()>>>
    });
    SeededTasks::new(tasks.collect(), seed).await;
    let used: Vec<u64> = used.iter().map(Cell::get).collect();
    check_total(store, &budgets, &used).await
}

async fn settles_once(store: &dyn CounterStore) -> CheckResult {
    let own = [budget("a", 100, 0)];
    let held = take(store, &own, 50, START_MS).await?;
    let record = Arc::clone(held.record());
    held.settle(SpendAmount::tokens(20));
    // The next reservation must not be mistaken for the settled one.
    let other = take(store, &own, 30, START_MS).await?;
    for used in [20, 90, 0] {
        let outcome = store.settle(&record, SpendAmount::tokens(used));
        expect_outcome(outcome, SettleOutcome::Repeated, "second settlement")?;
    }
    expect_usage(store, &own[0], START_MS, 50).await?;
    drop(other);
    expect_usage(store, &own[0], START_MS, 20).await
}

async fn expires(store: &dyn CounterStore) -> CheckResult {
    let own = [budget("a", 100, 0)];
    let request = ReserveRequest {
        expires_ms: Some(START_MS + 500),
        ..ReserveRequest::new(&own, SpendAmount::tokens(80), START_MS)
    };
    let lost = store.acquire(request).await;
    let lost = lost.map_err(|error| error.to_string())?;
    let record = Arc::clone(lost.record());
    // As a crash leaves it: neither settled nor dropped.
    std::mem::forget(lost);
    let early = reserve(store, &own, 30, START_MS + 499).await;
    expect_exhausted(early, "before the reservation expires")?;
    let next = take(store, &own, 30, START_MS + 500).await?;
    expect_usage(store, &own[0], START_MS + 500, 30).await?;
    let late = store.settle(&record, SpendAmount::tokens(25));
    expect_outcome(late, SettleOutcome::Late, "settlement after the expiry")?;
    let again = store.settle(&record, SpendAmount::tokens(25));
    expect_outcome(again, SettleOutcome::Repeated, "second late settlement")?;
    expect_usage(store, &own[0], START_MS + 500, 55).await?;
    next.settle(SpendAmount::tokens(30));
    expect_usage(store, &own[0], START_MS + 500, 55).await
}

async fn keeps_windows(store: &dyn CounterStore) -> CheckResult {
    let own = [budget("a", 100, WINDOW_MS)];
    let last_ms = START_MS + 999;
    let late = take(store, &own, 100, last_ms).await?;
    match reserve(store, &own, 1, last_ms).await {
        Err(ReserveError::Exhausted { ends_in_ms, .. }) => {
            expect_eq(ends_in_ms, Some(1), "time to the end of the window")?;
        }
        other => return Err(format!("expected Exhausted, got {other:?}")),
    }
    let next = take(store, &own, 100, last_ms + 1).await?;
    late.settle(SpendAmount::tokens(100));
    expect_usage(store, &own[0], last_ms + 1, 100).await?;
    next.settle(SpendAmount::tokens(1));
    expect_usage(store, &own[0], last_ms + 1, 1).await?;
    expect_usage(store, &own[0], last_ms + 1_001, 0).await
}

async fn does_not_overflow(store: &dyn CounterStore) -> CheckResult {
    let own = [budget("a", u64::MAX, 0)];
    let all = take(store, &own, u64::MAX, START_MS).await?;
    expect_exhausted(reserve(store, &own, 1, START_MS).await, "beside all of it")?;
    all.settle(SpendAmount::tokens(u64::MAX));
    expect_usage(store, &own[0], START_MS, u64::MAX).await?;
    expect_exhausted(
        reserve(store, &own, 1, START_MS).await,
        "after all was used",
    )?;
    let other = [budget("b", 10, 0)];
    let held = take(store, &other, 10, START_MS).await?;
    held.settle(SpendAmount::tokens(u64::MAX));
    let over = reserve(store, &other, u64::MAX, START_MS).await;
    expect_exhausted(over, "beyond a budget that is exceeded")?;
    let end_of_time = [budget("c", 10, WINDOW_MS)];
    for now_ms in [i64::MAX, i64::MIN, -1, 0] {
        drop(take(store, &end_of_time, 10, now_ms).await?);
    }
    Ok(())
}

async fn survives_cancellation(make: &impl Fn() -> Arc<dyn CounterStore>) -> CheckResult {
    let own = [budget("a", 100, 0)];
    for polls in 0..CANCEL_POINTS_MAX {
        let store = make();
        let request = ReserveRequest::new(&own, SpendAmount::tokens(100), START_MS);
        let outcome = cancel_after(polls, store.reserve(request)).await;
        let is_complete = outcome.is_some();
        drop(outcome);
        expect_usage(&*store, &own[0], START_MS, 0).await?;
        drop(take(&*store, &own, 100, START_MS).await?);
        if is_complete {
            return Ok(());
        }
    }
    Err(format!(
        "a reservation needs more than {CANCEL_POINTS_MAX} polls"
    ))
}

async fn rejects(store: &dyn CounterStore) -> CheckResult {
    let long = "x".repeat(ACCOUNT_BYTES_MAX + 1);
    for name in [long.as_str(), "a\tb", "a\nb"] {
        let own = [budget("valid", 10, 0), budget(name, 10, 0)];
        let result = reserve(store, &own, 1, START_MS).await;
        let error = result.map(drop);
        expect_eq(error, Err(ReserveError::InvalidAccount), "invalid account")?;
        expect_usage(store, &own[0], START_MS, 0).await?;
    }
    let longest = [budget(long.get(1..).unwrap_or_default(), 10, 0)];
    take(store, &longest, 1, START_MS).await.map(drop)
}

async fn reports_failure(store: &dyn CounterStore, fail: &dyn Fn()) -> CheckResult {
    let own = [budget("a", 100, 0)];
    take(store, &own, 10, START_MS)
        .await?
        .settle(SpendAmount::tokens(10));
    store.flush().await.map_err(|error| error.to_string())?;
    let open = take(store, &own, 10, START_MS).await?;
    fail();
    // The failure is found at the latest by the next settlement.
    open.settle(SpendAmount::tokens(10));
    let flushed = store.flush().await;
    expect(flushed.is_err(), || {
        "a settlement is confirmed that cannot have been recorded".into()
    })?;
    match reserve(store, &own, 100, START_MS).await {
        Err(ReserveError::Unavailable(_)) => Ok(()),
        other => Err(format!("expected Unavailable, got {other:?}")),
    }
}

async fn survives_kill(
    store: Arc<dyn CounterStore>,
    restart: &dyn Fn() -> Arc<dyn CounterStore>,
) -> CheckResult {
    let own = [budget("a", 100, 0)];
    take(&*store, &own, 50, START_MS)
        .await?
        .settle(SpendAmount::tokens(30));
    store.flush().await.map_err(|error| error.to_string())?;
    let open = take(&*store, &own, 50, START_MS).await?;
    let record = Arc::clone(open.record());
    std::mem::forget(open);
    drop(store);
    let store = restart();
    let before = usage(&*store, &own[0], START_MS).await?;
    expect((30..=80).contains(&before), || {
        format!("use after a restart: expected 30 to 80, got {before}")
    })?;
    for expected in [SettleOutcome::Late, SettleOutcome::Repeated] {
        let outcome = store.settle(&record, SpendAmount::tokens(12));
        expect_outcome(outcome, expected, "settlement by the successor")?;
    }
    expect_usage(&*store, &own[0], START_MS, 42).await
}
