//! Bytes to messages and back, without I/O.
//!
//! Invariants, as absences: this crate opens no socket and no file, reads no clock and no
//! environment, logs nothing, and never changes a byte that it was given: what it hands out are
//! slices of the frame as it came, or a frame written anew ([`canonical`]) that means the same to
//! every reader. It never recurses, so depth costs memory that is bounded by [`Bounds::depth_max`],
//! not stack.

pub mod canonical;
pub mod error;
pub mod eventstream;
pub mod fold;
pub mod frame;
pub mod header;
pub mod id;
pub mod jsonrpc;
pub mod lenient;
pub mod members;
pub mod revision;
pub mod scan;
pub mod sse;
pub mod text;

pub use canonical::Canonical;
pub use error::{Ambiguity, WireError, WireErrorKind};
pub use frame::{FrameEvent, LineFramer};
pub use id::Id;
pub use jsonrpc::{Envelope, Kind};
pub use revision::{Era, Revision};
pub use scan::{Bounds, Leaf, Scan, scan_reply, scan_request};
pub use sse::{SseEvent, SseFault, SseParser};
