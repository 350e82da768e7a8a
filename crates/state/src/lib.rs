//! State: the traits of stores, and their embedded implementations.
//!
//! [`Log`] is an append-only file that stops rather than lose or tear a record; [`Kv`] keeps tables in one file with
//! transactions; [`CounterStore`] keeps exact budgets, [`RateStore`] rate limits,
//! [`CacheStore`] values that expire, [`LeaseStore`] ownership; [`Spool`] keeps one output of any length as it grows;
//! [`Underway`] keeps notes of work that a kill may cut.
//!
//! Invariants, stated as absences:
//! - nothing here knows what a record means: a log, a table and a spool hold bytes;
//! - no clock and no environment is read; a wait is bounded and its bound has a name;
//! - after a failed append there is no further append: a log that has failed stays failed;
//! - no half-written record is left behind by a write that the operating system reported as short;
//! - no file here is readable by another user: files are created `0600`, directories `0700`.

pub mod cache;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
pub mod counter;
pub mod directory;
pub mod kv;
pub mod lease;
pub mod log;
pub mod rate;
pub mod spool;
pub mod store;
pub mod underway;

pub use cache::{CacheStore, MemoryCache};
pub use counter::{CounterStore, FileCounter, MemoryCounter, Reservation};
pub use directory::{DirectoryError, DirectoryLock};
pub use kv::{Kv, KvError};
pub use lease::{LeaseStore, MemoryLeases};
pub use log::{Composed, FileLog, Log, LogError, SyncPolicy};
pub use rate::{MemoryRates, RateStore};
pub use spool::{Spool, SpoolError};
pub use store::{BoxFuture, StoreUnavailable};
pub use underway::Underway;
