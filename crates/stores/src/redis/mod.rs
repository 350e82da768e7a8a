//! Stores on a Redis server, version 6 or later, or one that speaks its protocol and runs its scripts.
//!
//! Keys are `{PREFIX}:fleet`, `{PREFIX}:account:WINDOW:NAME` for each account, `{PREFIX}:cache:DIGEST`,
//! `{PREFIX}:lease:NAME` and `{PREFIX}:token`. The braces put all of them on one
//! node of a cluster: the epoch and the accounts that it protects are lost together or not at all.

mod cache;
mod lease;
mod link;
mod operator;
mod quota;

pub use cache::RedisCache;
pub use lease::RedisLeases;
pub use link::{ConnectFault, RedisOptions, RedisServer, StoreFacts};
pub use operator::{
    ACCOUNTS_SHOWN_MAX, FleetReplica, OwnerClaim, ReleaseOutcome, SharedAccount, SharedBudgets,
};
