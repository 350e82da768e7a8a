//! Where state lives: the traits that the rest of the house stores things behind, and their embedded implementation.
//!
//! Today that is one trait, [`Log`]: an append-only file that would rather stop than lose or tear a record.
//!
//! Invariants, stated as absences:
//! - nothing here knows what a record means: a log holds bytes;
//! - no clock and no environment is read; a wait is bounded and its bound has a name;
//! - after a failed append there is no further append: a log that has failed stays failed;
//! - no half-written record is left behind by a write that the operating system reported as short;
//! - no file here is readable by another user: files are created `0600`, directories `0700`.

pub mod directory;
pub mod log;

pub use directory::{DirectoryError, DirectoryLock};
pub use log::{FileLog, Log, LogError, SyncPolicy};
