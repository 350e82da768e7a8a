//! One table of what clients and servers receive and what the journal records: every scenario over both edges,
//! both eras and every kind of upstream.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    dead_code,
    missing_docs,
    unreachable_pub
)]

#[path = "support/guarded.rs"]
mod guarded;
#[path = "scenarios/mod.rs"]
mod table;
