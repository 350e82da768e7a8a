//! Contract of [`CacheStore`].

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;

use super::tasks::{cancel_after, yield_now};
use super::{
    CheckResult, ContractReport, ContractViolation, SeededRandom, SeededTasks, expect, expect_eq,
};
use crate::cache::{CacheEntry, CacheKey, CacheStore, VALUE_BYTES_MAX};

/// Time at which the checks begin, in milliseconds since 1970.
const START_MS: i64 = 1_700_000_000_000;
/// Concurrent callers of a check.
const TASKS: u64 = 64;

/// Runs all checks against stores that `make` creates; each holds at least 3 MiB.
///
/// # Errors
/// The first violation.
pub async fn check_cache_store(
    make: impl Fn() -> Arc<dyn CacheStore>,
    seed: u64,
) -> Result<ContractReport, ContractViolation> {
    let mut report = ContractReport::default();
    report.record(
        "an entry is returned as it was stored, until it expires",
        expires(&*make()).await,
    )?;
    report.record(
        "a later entry replaces an earlier one",
        replaces(&*make()).await,
    )?;
    report.record(
        "a value that is too long is not stored",
        is_bounded(&*make()).await,
    )?;
    report.record(
        "concurrent tasks never read the value of another key, or a mixed one",
        separates_keys(&*make(), seed).await,
    )?;
    report.record(
        "a lookup can be cancelled",
        survives_cancellation(&*make()).await,
    )?;
    Ok(report)
}

fn entry(value: impl Into<Bytes>, source: &str, expires_ms: i64) -> CacheEntry {
    CacheEntry {
        value: value.into(),
        source: source.to_owned(),
        expires_ms,
    }
}

async fn insert(store: &dyn CacheStore, key: u8, entry: CacheEntry) -> CheckResult {
    store.insert(CacheKey([key; 32]), entry);
    store.flush().await.map_err(|error| error.to_string())
}

/// Returns the entry of a key, through both ways of a lookup.
async fn find(store: &dyn CacheStore, key: u8, now_ms: i64) -> Result<Option<CacheEntry>, String> {
    let key = CacheKey([key; 32]);
    let found = store.get(&key, now_ms).await;
    let found = found.map_err(|error| error.to_string())?;
    if let Some(local) = store.try_local(&key, now_ms) {
        expect_eq(&local, &found, "the local answer")?;
    }
    Ok(found)
}

async fn expires(store: &dyn CacheStore) -> CheckResult {
    let stored = entry("first", "a/b", START_MS + 1_000);
    expect_eq(find(store, 1, START_MS).await?, None, "an empty cache")?;
    insert(store, 1, stored.clone()).await?;
    for now_ms in [START_MS, START_MS + 999] {
        let found = find(store, 1, now_ms).await?;
        expect_eq(found.as_ref(), Some(&stored), "before it expires")?;
        expect_eq(find(store, 2, now_ms).await?, None, "another key")?;
    }
    for now_ms in [START_MS + 1_000, i64::MAX] {
        expect_eq(find(store, 1, now_ms).await?, None, "once it has expired")?;
    }
    store.remove_expired(START_MS + 999);
    let found = find(store, 1, START_MS + 999).await?;
    expect_eq(found.as_ref(), Some(&stored), "after others were removed")?;
    store.remove_expired(START_MS + 1_000);
    let found = find(store, 1, START_MS + 1_000).await?;
    expect_eq(found, None, "after it was removed")
}

async fn replaces(store: &dyn CacheStore) -> CheckResult {
    for (value, expires_ms) in [("long", 9_000), ("short", 10), ("again", 2_000)] {
        let stored = entry(value, value, START_MS + expires_ms);
        insert(store, 1, stored.clone()).await?;
        let found = find(store, 1, START_MS).await?;
        expect_eq(found.as_ref(), Some(&stored), "the latest entry")?;
    }
    let found = find(store, 1, START_MS + 2_000).await?;
    expect_eq(found, None, "an earlier entry that would still be valid")
}

async fn is_bounded(store: &dyn CacheStore) -> CheckResult {
    let longest = entry(vec![7; VALUE_BYTES_MAX], "a", START_MS + 1_000);
    insert(store, 1, longest.clone()).await?;
    let found = find(store, 1, START_MS).await?;
    expect(found.as_ref() == Some(&longest), || {
        format!("a value of {VALUE_BYTES_MAX} bytes is not returned as it was stored")
    })?;
    let too_long = entry(vec![7; VALUE_BYTES_MAX + 1], "a", START_MS + 1_000);
    insert(store, 2, too_long).await?;
    expect(find(store, 2, START_MS).await?.is_none(), || {
        "a value above the maximum was stored".into()
    })?;
    for key in 0..=u8::MAX {
        let value = vec![key; 64 * 1024];
        insert(store, key, entry(value, "a", START_MS + 1_000)).await?;
    }
    let youngest = find(store, u8::MAX, START_MS).await?;
    expect(youngest.is_some(), || {
        "the youngest entry was removed first".into()
    })
}

async fn separates_keys(store: &dyn CacheStore, seed: u64) -> CheckResult {
    let failures = RefCell::new(Vec::new());
    let tasks = (0..TASKS).map(|task| {
        let (failures, mut random) = (&failures, SeededRandom::new(seed ^ (task << 32)));
        let run = async move {
            for _ in 0..32 {
                let number = u8::try_from(random.below(16)).unwrap_or(0);
                let key = CacheKey([number; 32]);
                if random.below(2) == 0 {
                    let length = usize::try_from(random.below(200)).unwrap_or(0);
                    let source = format!("{number} {length}");
                    store.insert(key, entry(vec![number; length], &source, START_MS + 1_000));
                } else if let Some(found) = store.find(&key, START_MS).await {
                    let expected = format!("{number} {}", found.value.len());
                    let is_own = found.value.iter().all(|byte| *byte == number);
                    if !is_own || found.source != expected {
                        failures.borrow_mut().push((number, found));
                    }
                }
                yield_now().await;
            }
        };
        Box::pin(run) as std::pin::Pin<Box<dyn Future<Output = ()>>>
    });
    SeededTasks::new(tasks.collect(), seed).await;
    expect_eq(failures.into_inner(), Vec::new(), "wrong entries")
}

async fn survives_cancellation(store: &dyn CacheStore) -> CheckResult {
    let stored = entry("value", "a", START_MS + 1_000);
    insert(store, 1, stored.clone()).await?;
    let key = CacheKey([1; 32]);
    for polls in 0..64 {
        let outcome = cancel_after(polls, store.get(&key, START_MS)).await;
        let found = find(store, 1, START_MS).await?;
        expect_eq(found.as_ref(), Some(&stored), "after a cancelled lookup")?;
        if outcome.is_some() {
            return Ok(());
        }
    }
    Err("a lookup needs more than 64 polls".into())
}
