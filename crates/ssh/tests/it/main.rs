//! The server against a real OpenSSH.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails where its helpers do, and says why it skips"
)]

mod access;
mod commands;
mod load;
mod stopping;
mod target;
mod tools;
mod words;
