//! Processes to test and to measure against: an echo server, a file server with ten tools, hostile
//! servers that break the protocol on purpose, a bare byte relay; and a raw client that drives any
//! MCP server over stdio.
//!
//! Invariants, stated as absences:
//! - nothing here knows the gate, a policy or a journal: a mock is a stranger to what it tests;
//! - the protocol logic ([`server`], `echo`, `files`, `hostile`) does no transport I/O and reads no
//!   clock: it turns a frame into [`Action`]s, and only [`stdio`] performs them;
//! - no mock touches a file outside the roots it was given;
//! - no queue, frame or wait is without a bound.

pub mod client;
pub mod server;
pub mod stdio;

mod args;
mod count;
mod echo;
mod error;
mod files;
mod frame;
mod hostile;
mod json;
mod relay;

pub use args::{Args, EchoArgs, FilesArgs, RelayArgs, ServerArgs, run};
pub use error::MockError;
pub use frame::{FRAME_BYTES_MAX, Line, Lines};
pub use hostile::{Ask, Behaviour, Field, HostileArgs, Place, Pull};
pub use server::{Action, Machine};
