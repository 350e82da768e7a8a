//! Where state lives: the traits that the rest of the house stores things behind, and their embedded implementation.
//!
//! [`Log`] is an append-only file that would rather stop than lose or tear a record; [`Kv`] keeps tables in one
//! file with transactions; [`Counter`] keeps exact budgets; [`Spool`] keeps one output of any length as it grows;
//! [`Underway`] keeps notes of work that a kill may cut.
//!
//! Invariants, stated as absences:
//! - nothing here knows what a record means: a log, a table and a spool hold bytes;
//! - no clock and no environment is read; a wait is bounded and its bound has a name;
//! - after a failed append there is no further append: a log that has failed stays failed;
//! - no half-written record is left behind by a write that the operating system reported as short;
//! - no file here is readable by another user: files are created `0600`, directories `0700`.

pub mod counter;
pub mod directory;
pub mod kv;
pub mod log;
pub mod spool;
pub mod underway;

pub use counter::{Counter, FileCounter, MemoryCounter, Reservation};
pub use directory::{DirectoryError, DirectoryLock};
pub use kv::{Kv, KvError};
pub use log::{Composed, FileLog, Log, LogError, SyncPolicy};
pub use spool::{Spool, SpoolError};
pub use underway::Underway;
