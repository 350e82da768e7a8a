//! Blocking I/O for programs that make one exchange at a time: lines of a pipe, polls with a limit, and one HTTP connection.
//!
//! Every wait has a limit and every buffer a bound. Nothing here needs a runtime.

mod connection;
mod error;
mod lines;
mod poll;

pub use connection::{Connection, split_url};
pub use error::{ExchangeError, excerpt};
pub use lines::{FRAME_BYTES_MAX, Line, Lines};
pub use poll::{pause, poll_one, timespec};
