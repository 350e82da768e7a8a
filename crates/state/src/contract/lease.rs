//! Contract of [`LeaseStore`].

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::tasks::{cancel_after, yield_now};
use super::{
    CheckResult, ContractReport, ContractViolation, SeededRandom, SeededTasks, expect, expect_eq,
};
use crate::lease::{LEASE_NAME_BYTES_MAX, LeaseError, LeaseRequest, LeaseStore, OwnershipLease};

/// Time at which the checks begin, in milliseconds since 1970.
const START_MS: i64 = 1_700_000_000_000;
/// Duration of the leases, in milliseconds.
const TTL_MS: u64 = 1_000;
/// Concurrent owners of a check.
const TASKS: u64 = 64;

/// Runs all checks against stores that `make` creates.
///
/// # Errors
/// The first violation.
pub async fn check_lease_store(
    make: impl Fn() -> Arc<dyn LeaseStore>,
    seed: u64,
) -> Result<ContractReport, ContractViolation> {
    let mut report = ContractReport::default();
    report.record(
        "a name has one owner until its lease ends",
        excludes(&*make()).await,
    )?;
    report.record(
        "tokens rise with every lease of a name",
        fences(&*make()).await,
    )?;
    report.record(
        "a lost lease is neither renewed nor released",
        loses(&*make()).await,
    )?;
    report.record(
        "concurrent tasks own a name one at a time",
        stays_exclusive(&*make(), seed).await,
    )?;
    report.record(
        "a cancelled request blocks a name until the lease expires at most",
        survives_cancellation(&make).await,
    )?;
    report.record("invalid names are rejected", rejects(&*make()).await)?;
    Ok(report)
}

async fn acquire(
    store: &dyn LeaseStore,
    owner: &str,
    now_ms: i64,
) -> Result<OwnershipLease, LeaseError> {
    let request = LeaseRequest {
        name: "leader",
        owner,
        now_ms,
        ttl_ms: TTL_MS,
    };
    store.acquire(request).await
}

/// Acquires a name that the check expects to be free.
async fn own(store: &dyn LeaseStore, owner: &str, now_ms: i64) -> Result<OwnershipLease, String> {
    let lease = acquire(store, owner, now_ms).await;
    lease.map_err(|error| format!("{owner} at {now_ms}: {error}"))
}

fn held_by(owner: &str, ends_in_ms: u64) -> Result<OwnershipLease, LeaseError> {
    Err(LeaseError::Held {
        owner: owner.to_owned(),
        ends_in_ms,
    })
}

async fn excludes(store: &dyn LeaseStore) -> CheckResult {
    let lease = own(store, "a", START_MS).await?;
    expect_eq(lease.expires_ms, START_MS + 1_000, "the end of the lease")?;
    let early = acquire(store, "b", START_MS + 999).await;
    expect_eq(early, held_by("a", 1), "before the lease ends")?;
    let lease = store.renew(&lease, START_MS + 999, TTL_MS).await;
    let lease = lease.map_err(|error| error.to_string())?;
    let early = acquire(store, "b", START_MS + 1_998).await;
    expect_eq(early, held_by("a", 1), "before the renewed lease ends")?;
    let other = store.acquire(LeaseRequest {
        name: "other",
        owner: "b",
        now_ms: START_MS,
        ttl_ms: TTL_MS,
    });
    expect(other.await.is_ok(), || "another name is not free".into())?;
    store
        .release(&lease)
        .await
        .map_err(|error| error.to_string())?;
    own(store, "b", START_MS + 1_998).await?;
    own(store, "c", START_MS + 2_998).await.map(drop)
}

async fn fences(store: &dyn LeaseStore) -> CheckResult {
    let mut latest = 0;
    let mut now_ms = START_MS;
    for owner in ["a", "a", "b", "c", "a"] {
        let lease = own(store, owner, now_ms).await?;
        expect(lease.token > latest, || {
            format!("token {} follows {latest}", lease.token)
        })?;
        let renewed = store.renew(&lease, now_ms, TTL_MS).await;
        let renewed = renewed.map_err(|error| error.to_string())?;
        expect_eq(renewed.token, lease.token, "the token of a renewed lease")?;
        latest = lease.token;
        if owner == "b" {
            store
                .release(&renewed)
                .await
                .map_err(|error| error.to_string())?;
        }
        now_ms += 1_000;
    }
    Ok(())
}

async fn loses(store: &dyn LeaseStore) -> CheckResult {
    let first = own(store, "a", START_MS).await?;
    let late = store.renew(&first, START_MS + 1_000, TTL_MS).await;
    expect_eq(late, Err(LeaseError::Lost), "renewal of an expired lease")?;
    let second = own(store, "b", START_MS + 1_000).await?;
    let _ = store.release(&first).await;
    let other = acquire(store, "c", START_MS + 1_001).await;
    expect_eq(
        other,
        held_by("b", 999),
        "after the earlier owner has released",
    )?;
    let again = own(store, "b", START_MS + 1_001).await?;
    let stale = store.renew(&second, START_MS + 1_002, TTL_MS).await;
    expect_eq(
        stale,
        Err(LeaseError::Lost),
        "renewal with an earlier token",
    )?;
    store
        .release(&again)
        .await
        .map_err(|error| error.to_string())?;
    let released = store.renew(&again, START_MS + 1_002, TTL_MS).await;
    expect_eq(
        released,
        Err(LeaseError::Lost),
        "renewal of a released lease",
    )
}

async fn stays_exclusive(store: &dyn LeaseStore, seed: u64) -> CheckResult {
    let (owner, granted) = (Cell::new(None), Cell::new(0_u64));
    let failures = RefCell::new(Vec::new());
    let tasks = (0..TASKS).map(|task| {
        let (owner, granted, failures) = (&owner, &granted, &failures);
        let mut random = SeededRandom::new(seed ^ (task << 32));
        let run = async move {
            for _ in 0..20 {
                let Ok(lease) = acquire(store, &format!("task-{task}"), START_MS).await else {
                    yield_now().await;
                    continue;
                };
                granted.set(granted.get() + 1);
                if let Some(other) = owner.replace(Some(task)) {
                    failures.borrow_mut().push((other, task));
                }
                for _ in 0..random.below(3) {
                    yield_now().await;
                }
                owner.set(None);
                let _ = store.release(&lease).await;
            }
        };
        Box::pin(run) as std::pin::Pin<Box<dyn Future<Output = ()>>>
    });
    SeededTasks::new(tasks.collect(), seed).await;
    expect_eq(failures.into_inner(), Vec::new(), "owners at the same time")?;
    expect(granted.get() > 0, || "no task has owned the name".into())
}

async fn survives_cancellation(make: &impl Fn() -> Arc<dyn LeaseStore>) -> CheckResult {
    for polls in 0..64 {
        let store = make();
        let outcome = cancel_after(polls, acquire(&*store, "a", START_MS)).await;
        own(&*store, "a", START_MS).await?;
        own(&*store, "b", START_MS + 1_000).await?;
        if outcome.is_some() {
            return Ok(());
        }
    }
    Err("a lease needs more than 64 polls".into())
}

async fn rejects(store: &dyn LeaseStore) -> CheckResult {
    let long = "x".repeat(LEASE_NAME_BYTES_MAX + 1);
    for (name, owner) in [("", "a"), ("a", ""), (&long, "a"), ("a", &long)] {
        let request = LeaseRequest {
            name,
            owner,
            now_ms: START_MS,
            ttl_ms: TTL_MS,
        };
        let result = store.acquire(request).await;
        expect_eq(result, Err(LeaseError::InvalidName), "invalid name")?;
    }
    let forever = LeaseRequest {
        name: "forever",
        owner: "a",
        now_ms: i64::MAX,
        ttl_ms: u64::MAX,
    };
    store
        .acquire(forever)
        .await
        .map(drop)
        .map_err(|error| error.to_string())
}
