//! An append-only log of bytes.
//!
//! [`Log`] is the interface of a writer; [`FileLog`] is the embedded implementation: one file, one write per append (concurrent
//! appends share one), and an inspection of the path before every write, so that a file which was unlinked, replaced, cut or
//! written by another process is noticed before anything is added to it. An edit that keeps the length is found if the
//! log has a check of its contents ([`Contents`]).

mod error;
mod file;
mod medium;
mod queue;
mod shared;
mod sync;

pub use error::LogError;
pub use file::{Composed, FileLog, LATER_BYTES_MAX, RECORD_BYTES_MAX};
pub use medium::{FileMedium, Medium, Named, Stamp};
pub use shared::Contents;
pub use sync::{INTERVAL_MS_DEFAULT, LATER_MS, SyncPolicy};

/// An append-only sequence of bytes, in which a record is either whole or absent.
pub trait Log: Send + Sync {
    /// Appends one record unchanged and returns the offset, in bytes, of the byte behind it.
    ///
    /// # Errors
    /// Any [`LogError`]: the record is then not in the log, and every later append fails too.
    fn append(&self, record: &[u8]) -> Result<u64, LogError>;

    /// Looks at the log without writing: is it still ours, whole and unfailed?
    ///
    /// # Errors
    /// The failure that an append would now meet; it is remembered.
    fn check(&self) -> Result<(), LogError>;

    /// Returns once everything appended so far has reached the medium.
    ///
    /// # Errors
    /// [`LogError::Io`] when the medium reports that it lost something, and what an earlier failure left.
    fn sync(&self) -> Result<(), LogError>;

    /// Bytes accepted so far.
    fn len_bytes(&self) -> u64;
}
