//! The lab as a process, measuring mocks.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p lab audit_latency::` runs one of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails where its helpers do"
)]

mod audit_latency;
mod black_box;
mod load_honest;
mod load_http;
mod over_http;
mod profiles;
mod scaling;
mod ssh_target;
mod summaries;
mod support;
mod torn_runs;
