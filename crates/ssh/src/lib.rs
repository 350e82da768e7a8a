//! SSH hosts as tools: commands are judged as argument vectors and run over pooled connections.
//!
//! - A command is read into words before anything else; what the remote program gets is exactly what was
//!   judged (`command`).
//! - A call names a host of the operator's file and nothing more: credentials never pass through a model
//!   (`hosts`), and a secret has no text that could be printed.
//! - An unknown, changed or revoked host key fails (`trust`).
//! - A command that is to end is killed at the other end, and what is not known of its end is said
//!   (`upstream`). Only `upstream` names the SSH library.

pub mod command;
pub mod config;
mod edits;
mod end;
mod environment;
mod files;
mod forwards;
pub mod hosts;
mod jobs;
mod metrics;
mod outputs;
mod paths;
mod pool;
mod processes;
mod random;
pub mod recording;
pub mod rules;
mod server;
mod sessions;
mod size;
mod sudo;
mod terminals;
mod tools;
mod transfers;
mod trust;
mod upstream;

pub use environment::Environment;
#[doc(hidden)]
pub use paths::guarded;
pub use server::{OPTIONS, Ssh};
#[doc(hidden)]
pub use trust::known_key;
