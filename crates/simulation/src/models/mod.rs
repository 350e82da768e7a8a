//! Model files: where they may lie, and what they become.

mod folders;
mod library;

pub use folders::{EXTENSIONS, Folders, Found};
pub use library::{Library, ModelRef, Read, Selection, version};
pub(crate) use library::{digest, hex, uuid};
