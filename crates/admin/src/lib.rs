//! Operations on an installation – calls, approvals, spend and what else an operator asks about – that return data.
//!
//! The command line prints the data; an API and a console read the same. The crate prints nothing, reads no environment
//! and no configuration, and judges no call: it reads the state directory and asks running instances.

pub mod approvals;
pub mod atomic;
pub mod calls;
pub mod control;
pub mod document;
mod error;
pub mod journal;
pub mod keys;
pub mod limits;
pub mod models;
pub mod pins;
pub mod policy;
mod progress;
pub mod reload;
mod server_edits;
pub mod servers;
pub mod spend;
mod state_paths;
pub mod status;
pub mod tools;

pub use error::{AdminError, ErrorKind};
pub use progress::{OperationProgress, OperationWatch};
pub use state_paths::StatePaths;
