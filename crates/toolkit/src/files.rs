//! Files that say what may be done: who else decides what stands in them.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;

/// Why a file that a person has named cannot be read, without its name.
#[must_use]
pub fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::PermissionDenied => "this file may not be read".into(),
        io::ErrorKind::IsADirectory => "this is a directory; name a file".into(),
        io::ErrorKind::InvalidData => "this is not text in UTF-8; name another file".into(),
        _ => error.to_string(),
    }
}

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
