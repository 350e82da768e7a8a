//! Claims of this replica, one for each account in its latest window.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use state::counter::{ACCOUNTS_MAX, AccountBudget, AccountQuota, ReserveError};
use tokio::sync::Mutex as AsyncMutex;

use super::server::{QuotaAnswer, QuotaExpiry};

/// Time that an account is kept after its window has ended, in milliseconds.
const GRACE_MS: u64 = 60 * 60 * 1_000;

/// Claim on one account.
#[derive(Debug)]
pub(super) struct AccountLease {
    pub window: i64,
    /// Length of the window, in milliseconds; `None` if only the ledger has the account.
    pub window_ms: Option<u64>,
    /// Limit of the latest request; `None` if only the ledger has the account.
    pub limit: Option<u64>,
    /// End of the window, in milliseconds since 1970; `None` if it never ends or is not known.
    pub ends_ms: Option<i64>,
    /// Use that this replica may reach.
    pub granted: u64,
    /// Claims of all others, and their settled use.
    pub others: u64,
    pub others_settled: u64,
    /// Settled use that the server has confirmed; `None` before its first answer.
    pub reported: Option<u64>,
    /// Number of the latest message.
    pub sent: u64,
    /// Costs of the calls that wait for quota.
    pub waiting: u64,
    pub touched: Instant,
    /// It is in the list of active accounts.
    pub is_active: bool,
    /// Held during an exchange, so that waiting calls share one.
    pub turn: Arc<AsyncMutex<()>>,
}

impl AccountLease {
    pub fn new(window: i64) -> Self {
        Self {
            window,
            window_ms: None,
            limit: None,
            ends_ms: None,
            granted: 0,
            others: 0,
            others_settled: 0,
            reported: None,
            sent: 0,
            waiting: 0,
            touched: Instant::now(),
            is_active: false,
            turn: Arc::default(),
        }
    }

    pub fn quota(&self, limit: u64) -> AccountQuota {
        AccountQuota {
            granted: self.granted.min(limit.saturating_sub(self.others)),
            others: self.others,
        }
    }

    pub fn expiry(&self, now_ms: i64) -> QuotaExpiry {
        match self.ends_ms {
            Some(end) => {
                let left = u64::try_from(end.saturating_sub(now_ms)).unwrap_or(0);
                QuotaExpiry::In(left.saturating_add(GRACE_MS))
            }
            None if self.window == 0 => QuotaExpiry::Never,
            None => QuotaExpiry::Unknown,
        }
    }

    pub fn apply(&mut self, answer: QuotaAnswer, settled: u64) {
        self.granted = answer.granted;
        self.others = answer.others;
        self.others_settled = answer.others_settled;
        self.reported = Some(settled);
    }
}

/// All claims.
#[derive(Debug, Default)]
pub(super) struct LeaseTable {
    pub accounts: HashMap<Arc<str>, AccountLease>,
    /// Accounts that can have something to report: reports look through these alone.
    active: Vec<Arc<str>>,
}

impl LeaseTable {
    /// Returns the claim on an account in the window at `now_ms`, if there is one.
    pub fn get(&mut self, budget: &AccountBudget, now_ms: i64) -> Option<&mut AccountLease> {
        let lease = self.accounts.get_mut(&budget.account)?;
        mark_active(lease, &mut self.active, &budget.account);
        (lease.window == budget.window_at(now_ms)).then_some(lease)
    }

    /// Adds an account that only the ledger has, unless it is there.
    pub fn add_settled(&mut self, account: &Arc<str>, window: i64, settled: u64) {
        if self.accounts.len() >= ACCOUNTS_MAX && !self.accounts.contains_key(account) {
            return;
        }
        let lease = self.accounts.entry(Arc::clone(account));
        let lease = lease.or_insert_with(|| AccountLease {
            granted: settled,
            ..AccountLease::new(window)
        });
        mark_active(lease, &mut self.active, account);
    }

    /// Visits the active accounts. Those for which `is_quiet` returns true are inactive until their next use.
    pub fn retain_active(&mut self, mut is_quiet: impl FnMut(&Arc<str>, &AccountLease) -> bool) {
        let accounts = &mut self.accounts;
        self.active.retain(|account| {
            let Some(lease) = accounts.get_mut(account) else {
                return false;
            };
            lease.is_active = !is_quiet(account, lease);
            lease.is_active
        });
    }

    /// Returns the claim on an account in the window at `now_ms`, or in a later one; a claim on an earlier window is
    /// forgotten.
    pub fn open(
        &mut self,
        budget: &AccountBudget,
        now_ms: i64,
    ) -> Result<&mut AccountLease, ReserveError> {
        let window = budget.window_at(now_ms);
        if self.accounts.len() >= ACCOUNTS_MAX && !self.accounts.contains_key(&budget.account) {
            self.remove_ended(now_ms);
            if self.accounts.len() >= ACCOUNTS_MAX {
                return Err(ReserveError::StoreFull);
            }
        }
        let lease = self.accounts.entry(Arc::clone(&budget.account));
        let lease = lease.or_insert_with(|| AccountLease::new(window));
        mark_active(lease, &mut self.active, &budget.account);
        // A late request does not bring an ended window back; another length of the windows begins anew.
        let is_same_length = lease.window_ms.is_none_or(|ms| ms == budget.window_ms);
        if lease.window > window && is_same_length && lease.window_ms.is_some() {
            return Ok(lease);
        }
        if lease.window != window || !is_same_length {
            *lease = AccountLease {
                waiting: lease.waiting,
                is_active: lease.is_active,
                turn: Arc::clone(&lease.turn),
                ..AccountLease::new(window)
            };
        }
        lease.limit = Some(budget.limit);
        lease.window_ms = Some(budget.window_ms);
        let ends_in = budget.ends_in_ms(now_ms);
        lease.ends_ms = ends_in.map(|ms| now_ms.saturating_add_unsigned(ms));
        lease.touched = Instant::now();
        Ok(lease)
    }

    /// Removes claims on windows that have ended.
    pub fn remove_ended(&mut self, now_ms: i64) {
        let is_open = |lease: &AccountLease| lease.ends_ms.is_none_or(|end| now_ms < end);
        self.accounts
            .retain(|_, lease| is_open(lease) || lease.waiting > 0);
    }
}

fn mark_active(lease: &mut AccountLease, active: &mut Vec<Arc<str>>, account: &Arc<str>) {
    if !lease.is_active {
        lease.is_active = true;
        active.push(Arc::clone(account));
    }
}
