//! Processes to test and to measure against: an echo server, a file server with ten tools, hostile
//! servers that break the protocol on purpose, the fixtures of the official conformance suite, bare
//! relays and a bare bridge; SSH servers; and frames that two readers may read in two ways.
//!
//! Invariants, stated as absences:
//! - nothing here knows the gate, a policy or a journal: a mock is a stranger to what it tests;
//! - the protocol logic ([`server`], `echo`, `files`, `hostile`) does no transport I/O and reads no
//!   clock: it turns a frame into [`MachineAction`]s, and only [`stdio`] and `http` perform them;
//! - no mock touches a file outside the roots it was given;
//! - no queue, frame or wait is without a bound.

pub mod ambiguous;
pub mod ports;
pub mod redis_server;
pub mod server;
mod server_args;
pub mod stdio;

mod args;
mod bare;
mod conformance;
mod count;
mod echo;
mod error;
mod files;
mod hostile;
mod http;
mod json;
mod record;
mod relay;
mod ssh;

pub use args::{BridgeArgs, ConformanceArgs, EchoArgs, FilesArgs, MockCommand, RelayArgs, run};
pub use error::MockError;
pub use hostile::{
    ClientQuestion, DuplicatePosition, HostileArgs, HostileBehaviour, RugPull, TextField,
};
pub use http::ReplyForm;
pub use net::blocking::{FRAME_BYTES_MAX, Line, Lines};
pub use server::{ChangeEvent, MachineAction, ProtocolMachine};
pub use server_args::ServerArgs;
pub use ssh::{
    BadLine, LineState, SshTargetArgs, bad_lines as ssh_bad_lines, name_of as ssh_target_name,
};
