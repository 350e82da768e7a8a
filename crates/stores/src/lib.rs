//! Stores outside of the process: budgets that many replicas share.
//!
//! [`LeasedCounter`] keeps exact budgets by quota leases of a [`QuotaServer`]; [`RedisServer`] is one on Redis.
//!
//! Invariants, stated as absences:
//! - no replica reserves beyond the quota that the server has confirmed to it;
//! - no message is an increment: quota and use are absolute, so a lost, late or repeated message changes nothing;
//! - no quota is granted while a replica of the fleet may hold some that the server does not know;
//! - no error and no debug text contains a password;
//! - no caller waits longer than the bounds of [`LeaseOptions`] and of the server's connection.

pub mod quota;
#[cfg(feature = "redis")]
pub mod redis;
mod thread;

pub use quota::{LeaseClock, LeaseOptions, LeasedCounter, OnLoss, OpenError, QuotaServer};
#[cfg(feature = "redis")]
pub use redis::{RedisOptions, RedisServer};
pub use thread::StoreThread;
