//! Ownership of a name by one process at a time, with fencing tokens.
//!
//! [`LeaseStore`] is the seam, [`MemoryLeases`] the embedded implementation. An owner that stops for longer than its
//! lease may wake up and believe that it still owns the name. Every write that the lease protects therefore carries the
//! token, and its receiver rejects a token below the highest that it has seen.

mod memory;

pub use memory::{LEASES_MAX, MemoryLeases};

use std::fmt;

use crate::store::{BoxFuture, StoreUnavailable};

/// Maximum length of the name of a lease or an owner, in bytes.
pub const LEASE_NAME_BYTES_MAX: usize = 512;

/// Ownership of a name until it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnershipLease {
    /// Owned name.
    pub name: String,
    /// Owner: distinguishes processes and their restarts.
    pub owner: String,
    /// Fencing token: higher than that of every earlier lease of the name.
    pub token: u64,
    /// Time at which the lease ends unless it is renewed, in milliseconds since 1970.
    pub expires_ms: i64,
}

/// Request for a lease.
#[derive(Debug, Clone, Copy)]
pub struct LeaseRequest<'a> {
    /// Name to own.
    pub name: &'a str,
    /// Owner.
    pub owner: &'a str,
    /// Current time, in milliseconds since 1970. A store with a clock of its own uses that clock instead.
    pub now_ms: i64,
    /// Duration of the lease, in milliseconds.
    pub ttl_ms: u64,
}

/// Reason why a lease was not granted or not renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseError {
    /// Another owner has the name.
    Held {
        /// Owner of the name.
        owner: String,
        /// Time until its lease ends, in milliseconds.
        ends_in_ms: u64,
    },
    /// The lease has ended: it expired, was released, or another owner has the name.
    Lost,
    /// The name of the lease or the owner is empty or too long.
    InvalidName,
    /// The store holds as many leases as it may.
    StoreFull,
    /// The store cannot answer. The lease may have been granted or renewed all the same.
    Unavailable(StoreUnavailable),
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { owner, ends_in_ms } => {
                write!(f, "{owner} holds the lease for another {ends_in_ms} ms")
            }
            Self::Lost => f.write_str("the lease has ended"),
            Self::InvalidName => write!(
                f,
                "the name of a lease or an owner is empty or longer than {LEASE_NAME_BYTES_MAX} bytes"
            ),
            Self::StoreFull => f.write_str("there are too many leases"),
            Self::Unavailable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LeaseError {}

/// Store of ownership.
pub trait LeaseStore: Send + Sync {
    /// Acquires a name. The owner that has it already gets it again, with a new token: an answer that was lost does no
    /// harm. Dropping the future may leave the name owned until the lease expires.
    fn acquire<'a>(
        &'a self,
        request: LeaseRequest<'a>,
    ) -> BoxFuture<'a, Result<OwnershipLease, LeaseError>>;

    /// Extends a lease from `now_ms` on, under the same token.
    fn renew<'a>(
        &'a self,
        lease: &'a OwnershipLease,
        now_ms: i64,
        ttl_ms: u64,
    ) -> BoxFuture<'a, Result<OwnershipLease, LeaseError>>;

    /// Ends a lease. A lease that is lost already stays lost; the name of another owner is not touched.
    fn release<'a>(&'a self, lease: &'a OwnershipLease) -> BoxFuture<'a, Result<(), LeaseError>>;
}
