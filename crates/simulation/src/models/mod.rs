//! Model files: where they may lie, and what they become.

mod folders;
mod library;

pub use folders::{EXTENSIONS, Folders, Found};
pub(crate) use library::hex;
pub use library::{Library, ModelRef, Read, Selection, version};
