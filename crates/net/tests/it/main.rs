//! The parts of this crate over real sockets.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p net http_server::` runs one of them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails where its helpers do"
)]

mod http_server;
mod pieces;
