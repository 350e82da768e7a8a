//! Finding and opening the file.
//!
//! The file names programs that will be started: one that others can write is refused, and none is
//! ever picked up from the current directory.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toolkit::files::unreadable;

use super::node::CONFIG_BYTES_MAX;
use crate::directories::OpenDirectories;

/// The file's name below the configuration directory.
pub const NAME: &str = "durward.yaml";

/// What was read.
pub struct Opened {
    pub text: String,
    /// Others in its group may write it.
    pub group_writable: bool,
    /// Everybody may read it.
    pub world_readable: bool,
}

/// The file where nobody names another, if it is there.
pub fn default(directory: &Path) -> Option<PathBuf> {
    let file = directory.join(NAME);
    // A link that leads nowhere is a mistake to be told, not an absent file.
    std::fs::symlink_metadata(&file).is_ok().then_some(file)
}

/// Reads the file, if it can be trusted.
///
/// # Errors
/// A sentence that does not name the file.
pub fn open(path: &Path, directories: &OpenDirectories) -> Result<Opened, String> {
    // Opening a pipe would wait for its writer.
    let kind = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !kind.is_file() {
        return Err(no_file(path, kind.is_dir()));
    }
    let (file, found) = directories.open(path)?;
    toolkit::files::is_ours(&found, "could make it start any program")?;
    let mut bytes = Vec::new();
    file.take(CONFIG_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    if bytes.len() > CONFIG_BYTES_MAX {
        return Err("the file is longer than 1 MiB".into());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("byte {at} is not UTF-8; save the file as UTF-8")
    })?;
    Ok(Opened {
        text,
        group_writable: found.mode() & 0o020 != 0,
        world_readable: found.mode() & 0o004 != 0,
    })
}

/// What is said of something that is no file.
fn no_file(path: &Path, is_directory: bool) -> String {
    let inside = path.join(NAME);
    match is_directory {
        true if inside.is_file() => {
            format!(
                "this is a directory; name the file in it: --config {}",
                inside.display()
            )
        }
        true => format!("this is a directory; name a file: `durward init` writes one, {NAME}"),
        false => "this is not a regular file; name one".into(),
    }
}
