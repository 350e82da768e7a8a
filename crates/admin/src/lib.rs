//! Operations on an installation – calls, approvals, spend and what else an operator asks about – that return data.
//!
//! The command line prints the data; an API and a console read the same. The crate prints nothing, reads no environment
//! and no configuration, and judges no call: it reads the state directory and asks running instances.

pub mod approvals;
pub mod calls;
pub mod control;
mod error;
pub mod spend;

pub use error::{AdminError, ErrorKind};
