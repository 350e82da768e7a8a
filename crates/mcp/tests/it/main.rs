//! What the types of this crate allow, and what they refuse.
//!
//! One binary for the whole crate: a module is a subject, and `cargo test -p mcp no_way_around_the_gate::` runs one of them.

mod corpus;
mod no_way_around_the_gate;
