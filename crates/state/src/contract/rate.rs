//! Contract of [`RateStore`].

use std::cell::Cell;
use std::sync::Arc;

use super::tasks::{cancel_after, yield_now};
use super::{
    CheckResult, ContractReport, ContractViolation, SeededRandom, SeededTasks, expect, expect_eq,
};
use crate::rate::{
    BucketLimit, CallRate, RateDecision, RateKey, RateRequest, RateStore, WindowLimit,
};

const SECOND: u64 = 1_000_000_000;
/// Concurrent callers of a check.
const TASKS: u64 = 64;
/// Calls of each caller.
const CALLS: u64 = 32;

/// Runs all checks against stores that `make` creates.
///
/// # Errors
/// The first violation.
pub async fn check_rate_store(
    make: impl Fn() -> Arc<dyn RateStore>,
    seed: u64,
) -> Result<ContractReport, ContractViolation> {
    let mut report = ContractReport::default();
    report.record("a burst, then the rate", follows_rate(&*make()).await)?;
    report.record(
        "a window admits its maximum, and a call expires on time",
        slides(&*make()).await,
    )?;
    report.record(
        "an empty bucket leaves the window as it is",
        counts_bucket_first(&*make()).await,
    )?;
    report.record("keys are independent", separates_keys(&*make()).await)?;
    report.record(
        "a clock that is set back neither refunds nor blocks",
        ignores_set_back(&*make()).await,
    )?;
    report.record(
        "a restarted window counts one call",
        restarts(&*make()).await,
    )?;
    report.record(
        "concurrent tasks get exactly the limit",
        stays_exact(&*make(), seed).await,
    )?;
    report.record(
        "a cancelled call is counted at most once",
        survives_cancellation(&make).await,
    )?;
    report.record(
        "extreme times and limits do not overflow",
        does_not_overflow(&*make()).await,
    )?;
    Ok(report)
}

/// Calls of one caller to one tool.
struct TestCaller<'a> {
    store: &'a dyn RateStore,
    bucket: (RateKey, BucketLimit),
    window: Option<(RateKey, WindowLimit)>,
}

impl<'a> TestCaller<'a> {
    fn new(store: &'a dyn RateStore, name: &str, tool: Option<&str>) -> Self {
        let bucket = BucketLimit {
            rate: CallRate::per_second(10),
            burst: 50,
        };
        let window = WindowLimit {
            calls_max: 30,
            window_ms: 60_000,
        };
        Self {
            store,
            bucket: (store.key(&[name]), bucket),
            window: tool.map(|tool| (store.key(&[name, tool]), window)),
        }
    }

    fn request(&self, now_ns: u64) -> RateRequest {
        RateRequest {
            bucket: self.bucket,
            window: self.window,
            now_ns,
        }
    }

    async fn call(&self, now_ns: u64) -> Result<RateDecision, String> {
        let decision = self.store.acquire(self.request(now_ns)).await;
        decision.map_err(|error| error.to_string())
    }

    /// Makes calls, and returns how many were allowed.
    async fn count(&self, calls: u64, now_ns: u64) -> Result<u64, String> {
        let mut allowed = 0;
        for _ in 0..calls {
            allowed += u64::from(self.call(now_ns).await? == RateDecision::Allowed);
        }
        Ok(allowed)
    }
}

async fn follows_rate(store: &dyn RateStore) -> CheckResult {
    let caller = TestCaller::new(store, "a", None);
    expect_eq(caller.count(60, SECOND).await?, 50, "calls of a burst")?;
    let wait_ns = SECOND / 10;
    let empty = RateDecision::BucketEmpty { wait_ns };
    expect_eq(caller.call(SECOND).await?, empty, "an empty bucket")?;
    let early = caller.call(SECOND + wait_ns - 1).await?;
    expect_eq(early, RateDecision::BucketEmpty { wait_ns: 1 }, "too early")?;
    let on_time = caller.count(2, SECOND + wait_ns).await?;
    expect_eq(on_time, 1, "calls after the wait")?;
    let later = caller.count(60, 3_600 * SECOND).await?;
    expect_eq(later, 50, "calls an hour later")
}

async fn slides(store: &dyn RateStore) -> CheckResult {
    let caller = TestCaller::new(store, "a", Some("tool"));
    for second in 0..30 {
        let decision = caller.call(second * SECOND).await?;
        expect_eq(decision, RateDecision::Allowed, "within the window")?;
    }
    for (now_ns, wait_ns) in [(30 * SECOND, 30 * SECOND), (60 * SECOND - 1, 1)] {
        let decision = caller.call(now_ns).await?;
        expect_eq(
            decision,
            RateDecision::WindowFull { wait_ns },
            "a full window",
        )?;
    }
    let allowed = caller.count(2, 60 * SECOND).await?;
    expect_eq(allowed, 1, "calls after the first has expired")
}

async fn counts_bucket_first(store: &dyn RateStore) -> CheckResult {
    let mut caller = TestCaller::new(store, "a", Some("tool"));
    caller.bucket.1.burst = 10;
    expect_eq(caller.count(20, SECOND).await?, 10, "calls of the burst")?;
    caller.bucket.1.burst = 100;
    let rest = caller.count(40, SECOND).await?;
    expect_eq(rest, 20, "calls that the window still admits")
}

async fn separates_keys(store: &dyn RateStore) -> CheckResult {
    for name in ["a", "b"] {
        for tool in ["read", "write"] {
            let mut caller = TestCaller::new(store, name, Some(tool));
            caller.bucket.1.burst = 100;
            let allowed = caller.count(31, SECOND).await?;
            expect_eq(allowed, 30, &format!("calls of {name} to {tool}"))?;
        }
        let mut caller = TestCaller::new(store, name, None);
        for number in 1..3 {
            caller.bucket.0 = store.key(&[name]).lane(number);
            let allowed = caller.count(60, SECOND).await?;
            expect_eq(allowed, 50, &format!("calls of {name} in lane {number}"))?;
        }
    }
    expect(store.key(&["a", "b"]) != store.key(&["ab"]), || {
        "the parts of a name are joined".into()
    })
}

async fn ignores_set_back(store: &dyn RateStore) -> CheckResult {
    let caller = TestCaller::new(store, "a", Some("tool"));
    let hour = 3_600 * SECOND;
    for (now_ns, expected) in [(hour, 30), (0, 0), (SECOND, 0), (61 * SECOND, 30)] {
        let allowed = caller.count(60, now_ns).await?;
        expect_eq(allowed, expected, &format!("calls at {now_ns} ns"))?;
    }
    Ok(())
}

async fn restarts(store: &dyn RateStore) -> CheckResult {
    let mut caller = TestCaller::new(store, "a", Some("tool"));
    caller.bucket.1.burst = 200;
    expect_eq(caller.count(40, SECOND).await?, 30, "calls of a window")?;
    if let Some((key, limit)) = caller.window {
        store.restart_window(key, limit, SECOND);
    }
    let again = caller.count(40, SECOND).await?;
    expect_eq(again, 29, "calls beside the one that restarted the window")
}

async fn stays_exact(store: &dyn RateStore, seed: u64) -> CheckResult {
    let mut caller = TestCaller::new(store, "a", Some("tool"));
    caller.bucket.1 = BucketLimit {
        rate: CallRate::per_minute(1),
        burst: 1_000,
    };
    if let Some((_, limit)) = &mut caller.window {
        limit.calls_max = 500;
    }
    let (counts, failed) = ([const { Cell::new(0_u64) }; 3], Cell::new(false));
    let tasks = (0..TASKS).map(|task| {
        let (caller, counts, failed) = (&caller, &counts, &failed);
        let mut random = SeededRandom::new(seed ^ (task << 32));
        let calls = async move {
            for _ in 0..CALLS {
                let count = match caller.call(10 * SECOND + random.below(1_000)).await {
                    Ok(RateDecision::Allowed) => counts.first(),
                    Ok(RateDecision::WindowFull { .. }) => counts.get(1),
                    Ok(RateDecision::BucketEmpty { .. }) => counts.get(2),
                    Err(_) => {
                        failed.set(true);
                        None
                    }
                };
                if let Some(count) = count {
                    count.set(count.get() + 1);
                }
                yield_now().await;
            }
        };
        Box::pin(calls) as std::pin::Pin<Box<dyn Future<Output = ()>>>
    });
    SeededTasks::new(tasks.collect(), seed).await;
    expect(!failed.get(), || "the store became unavailable".into())?;
    let counts = counts.map(|count| count.get());
    let expected = [500, 500, TASKS * CALLS - 1_000];
    expect_eq(
        counts,
        expected,
        "allowed, beyond the window, beyond the bucket",
    )
}

async fn survives_cancellation(make: &impl Fn() -> Arc<dyn RateStore>) -> CheckResult {
    for polls in 0..64 {
        let store = make();
        let caller = TestCaller::new(&*store, "a", Some("tool"));
        let outcome = cancel_after(polls, store.take(caller.request(SECOND))).await;
        let allowed = caller.count(60, SECOND).await?;
        expect((29..=30).contains(&allowed), || {
            format!("{allowed} calls after one was cancelled at poll {polls}")
        })?;
        if outcome.is_some() {
            return Ok(());
        }
    }
    Err("a decision needs more than 64 polls".into())
}

async fn does_not_overflow(store: &dyn RateStore) -> CheckResult {
    let mut caller = TestCaller::new(store, "a", Some("tool"));
    caller.bucket.1 = BucketLimit {
        rate: CallRate::per_second(u64::MAX),
        burst: u32::MAX,
    };
    caller.window = caller.window.map(|(key, _)| {
        let limit = WindowLimit {
            calls_max: u32::MAX,
            window_ms: u64::MAX,
        };
        (key, limit)
    });
    for now_ns in [0, u64::MAX, u64::MAX] {
        let decision = caller.call(now_ns).await?;
        expect_eq(decision, RateDecision::Allowed, "far below the limit")?;
    }
    Ok(())
}
