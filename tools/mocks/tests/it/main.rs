//! The mocks as processes, driven by the raw client.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p mocks bare::` runs one of them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails where its helpers do; it has to know whether CI asks for every component"
)]

mod bare;
mod common;
mod conformance;
mod echo;
mod envelope;
mod eras;
mod files;
mod hostile;
mod http;
mod readers;
mod relay;
