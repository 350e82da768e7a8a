//! Server-sent events (WHATWG HTML, *event stream interpretation*), as Streamable HTTP uses them.

mod parser;
mod writer;

pub use parser::{SseEvent, SseFault, SseParser};
pub use writer::{push_comment, push_event, push_named_event, push_remark, push_retry};

/// Most bytes of one event's lines together, as of a frame: 16 MiB.
pub const EVENT_BYTES_MAX: usize = crate::frame::FRAME_BYTES_MAX;
/// Longest event id that is kept, in bytes; after a longer one the stream counts as without ids.
pub const EVENT_ID_BYTES_MAX: usize = 1_024;
