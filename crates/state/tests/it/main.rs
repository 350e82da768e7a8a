//! The log on real files, and on disks that fail.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p state log_faults::` runs one of them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails where its helpers do"
)]

mod log_faults;
mod log_later;
