//! Ways to a result that is fetched later or in parts: handles, cursors and byte ranges.

mod cursor;
mod handle;
mod range;

pub use cursor::{CURSOR_CHARS_MAX, CursorFault, Cursors, POSITION_BYTES_MAX};
pub use handle::{Expired, HandleBounds, HandleError, Handles, TARGET_BYTES_MAX, Target};
pub use range::{ByteRange, RANGES_MAX, Ranges};
