//! Stores on real servers, which `scripts/setup-tests` unpacks into `.cache`.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p stores redis_counter::` runs one of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails where its helpers do, and waits for real servers"
)]

mod redis_counter;
mod redis_stores;
mod server;
