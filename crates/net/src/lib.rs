//! The crate that opens sockets and spawns children.
//!
//! Invariants, as absences: it knows no policy, no journal and no protocol beyond framing; it never
//! reads the environment itself; what reaches a peer leaves through [`outbound`], which faces may
//! name only in their `upstream` modules. No child it starts outlives it, not even after `kill -9`.

mod alarm;
pub mod blocking;
pub mod certificate;
pub mod confine;
pub mod environment;
pub mod http;
pub mod outbound;
mod pieces;
mod quiet;
pub mod stdio;
pub mod timers;
pub mod watcher;
pub mod worker;
