//! What the types of this crate allow, and what they refuse.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p mcp no_way_around_the_gate::` runs one of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails where its helpers do"
)]

mod corpus;
mod no_way_around_the_gate;
