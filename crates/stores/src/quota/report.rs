//! Reports use to the server, and returns quota that is not needed or that another replica needs.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use state::StoreUnavailable;

use super::counter::QuotaLeases;
use super::server::QuotaOperation;

/// Time between two signs of life, in milliseconds.
const BEAT_MS: u64 = 1_000;
/// Time between two removals of ended windows.
const PRUNE: Duration = Duration::from_secs(60);

/// Reports until the counter is dropped.
pub(super) async fn run(leases: Weak<QuotaLeases>) {
    let (mut beat_at, mut prune_at) = (Instant::now(), Instant::now() + PRUNE);
    let mut is_lost = false;
    loop {
        let Some(leases) = leases.upgrade() else {
            return;
        };
        if leases.is_closed() {
            return;
        }
        let result = round(&leases, &mut beat_at).await;
        match result {
            Err(error) if !is_lost => {
                is_lost = true;
                tracing::warn!("budgets: {error}; calls use the quota that this replica holds");
            }
            Ok(()) if is_lost => {
                is_lost = false;
                tracing::info!("budgets: the store answers again");
            }
            Ok(()) | Err(_) => {}
        }
        if Instant::now() >= prune_at {
            prune_at = Instant::now() + PRUNE;
            let now_ms = leases.latest_time();
            leases.lock_table().remove_ended(now_ms);
        }
        let wait = Duration::from_millis(leases.options.report_ms);
        drop(leases);
        tokio::time::sleep(wait).await;
    }
}

async fn round(leases: &QuotaLeases, beat_at: &mut Instant) -> Result<(), StoreUnavailable> {
    if Instant::now() >= *beat_at {
        leases.synchronise().await?;
        *beat_at = Instant::now() + Duration::from_millis(BEAT_MS);
    }
    let idle = Duration::from_millis(leases.options.idle_ms);
    for due in due_accounts(leases, idle) {
        let DueAccount {
            account,
            window,
            is_idle,
        } = due;
        let answer = leases
            .exchange(&account, window, |_, _| match is_idle {
                true => QuotaOperation::Return,
                false => QuotaOperation::Report,
            })
            .await?;
        if !is_idle && answer.is_some_and(|answer| answer.is_wanted) {
            leases
                .exchange(&account, window, |_, _| QuotaOperation::Return)
                .await?;
        }
    }
    Ok(())
}

/// Account with use to report, or with unused quota.
struct DueAccount {
    account: Arc<str>,
    window: i64,
    is_idle: bool,
}

fn due_accounts(leases: &QuotaLeases, idle: Duration) -> Vec<DueAccount> {
    let mut due = Vec::new();
    leases.lock_table().retain_active(|account, lease| {
        let usage = leases.ledger.account_usage(account, lease.window);
        let is_unused = lease.granted > usage.total();
        let is_due = is_unused || lease.reported != Some(usage.settled);
        let is_idle = lease.waiting == 0 && lease.touched.elapsed() >= idle;
        if is_due {
            due.push(DueAccount {
                account: Arc::clone(account),
                window: lease.window,
                is_idle: is_unused && is_idle,
            });
        }
        is_idle && !is_due && usage.reserved == 0
    });
    due
}
