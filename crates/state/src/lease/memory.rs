//! Ownership in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{LEASE_NAME_BYTES_MAX, LeaseError, LeaseRequest, LeaseStore, OwnershipLease};
use crate::store::BoxFuture;

/// Maximum number of leases. Above it, expired ones are removed.
pub const LEASES_MAX: usize = 65_536;

/// Ownership among the tasks of one process. Tokens rise over all names, so that a removed name never repeats one.
#[derive(Debug, Default)]
pub struct MemoryLeases(Mutex<LeaseTable>);

#[derive(Debug, Default)]
struct LeaseTable {
    leases: HashMap<String, OwnershipLease>,
    latest_token: u64,
}

impl MemoryLeases {
    fn lock(&self) -> MutexGuard<'_, LeaseTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseTable {
    fn acquire(&mut self, request: LeaseRequest<'_>) -> Result<OwnershipLease, LeaseError> {
        let LeaseRequest {
            name,
            owner,
            now_ms,
            ttl_ms,
        } = request;
        let is_valid = |text: &str| !text.is_empty() && text.len() <= LEASE_NAME_BYTES_MAX;
        if !is_valid(name) || !is_valid(owner) {
            return Err(LeaseError::InvalidName);
        }
        match self.leases.get(name) {
            Some(held) if held.owner != owner && held.expires_ms > now_ms => {
                return Err(LeaseError::Held {
                    owner: held.owner.clone(),
                    ends_in_ms: held.expires_ms.abs_diff(now_ms),
                });
            }
            Some(_) => {}
            None if self.leases.len() >= LEASES_MAX => {
                self.leases.retain(|_, lease| lease.expires_ms > now_ms);
                if self.leases.len() >= LEASES_MAX {
                    return Err(LeaseError::StoreFull);
                }
            }
            None => {}
        }
        self.latest_token += 1;
        let lease = OwnershipLease {
            name: name.to_owned(),
            owner: owner.to_owned(),
            token: self.latest_token,
            expires_ms: now_ms.saturating_add_unsigned(ttl_ms),
        };
        self.leases.insert(name.to_owned(), lease.clone());
        Ok(lease)
    }

    fn renew(
        &mut self,
        lease: &OwnershipLease,
        now_ms: i64,
        ttl_ms: u64,
    ) -> Result<OwnershipLease, LeaseError> {
        let held = self.leases.get_mut(&lease.name);
        let held = held.filter(|held| held.token == lease.token && held.expires_ms > now_ms);
        let held = held.ok_or(LeaseError::Lost)?;
        held.expires_ms = now_ms.saturating_add_unsigned(ttl_ms);
        Ok(held.clone())
    }

    fn release(&mut self, lease: &OwnershipLease) {
        let held = self.leases.get(&lease.name);
        if held.is_some_and(|held| held.token == lease.token) {
            self.leases.remove(&lease.name);
        }
    }
}

impl LeaseStore for MemoryLeases {
    fn acquire<'a>(
        &'a self,
        request: LeaseRequest<'a>,
    ) -> BoxFuture<'a, Result<OwnershipLease, LeaseError>> {
        Box::pin(async move { self.lock().acquire(request) })
    }

    fn renew<'a>(
        &'a self,
        lease: &'a OwnershipLease,
        now_ms: i64,
        ttl_ms: u64,
    ) -> BoxFuture<'a, Result<OwnershipLease, LeaseError>> {
        Box::pin(async move { self.lock().renew(lease, now_ms, ttl_ms) })
    }

    fn release<'a>(&'a self, lease: &'a OwnershipLease) -> BoxFuture<'a, Result<(), LeaseError>> {
        Box::pin(async move {
            self.lock().release(lease);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_bounded_and_expired_ones_make_way() {
        let leases = MemoryLeases::default();
        let acquire = |name: &str, now_ms, ttl_ms| {
            leases.lock().acquire(LeaseRequest {
                name,
                owner: "a",
                now_ms,
                ttl_ms,
            })
        };
        for number in 0..LEASES_MAX {
            let ttl_ms = if number == 0 { 10 } else { 1_000 };
            acquire(&number.to_string(), 0, ttl_ms).unwrap();
        }
        assert_eq!(acquire("more", 9, 10), Err(LeaseError::StoreFull));
        assert!(acquire("1", 9, 1_000).is_ok(), "one that is there already");
        assert!(acquire("more", 10, 10).is_ok());
    }

    #[test]
    fn the_leases_in_memory_keep_the_contract() {
        use crate::contract::{block_on, lease::check_lease_store};
        let make =
            || std::sync::Arc::new(MemoryLeases::default()) as std::sync::Arc<dyn LeaseStore>;
        for seed in 0..8 {
            let report = block_on(check_lease_store(make, seed)).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(report.skipped, []);
        }
    }
}
