//! Model files: their folders, and their compiled form.

mod folders;
mod library;

pub use folders::{EXTENSIONS, FoundModel, ModelFolders};
pub use library::{ModelLibrary, ModelRef, QuantitySelection, ReadModel, version};
pub(crate) use library::{digest, hex, uuid};
