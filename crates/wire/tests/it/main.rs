//! Properties of the parsers, against independent readers.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p wire properties::` runs one of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails where its helpers do"
)]

mod canonical;
mod properties;
