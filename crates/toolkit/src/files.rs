//! Files that say what may be done: who else decides what stands in them.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

/// Whether nobody but this user, or root, decides what is in a file.
///
/// # Errors
/// A sentence that does not name the file; `could` says what others could do by it.
pub fn is_ours(found: &Metadata, could: &str) -> Result<(), String> {
    let mine = rustix::process::getuid().as_raw();
    if found.uid() != mine && found.uid() != 0 {
        return Err(format!(
            "the file belongs to user {}, who {could}; it has to be yours",
            found.uid()
        ));
    }
    if found.mode() & 0o002 != 0 {
        return Err(format!(
            "everybody may write to this file, and {could}; run chmod o-w on it"
        ));
    }
    Ok(())
}
