//! Files that are there as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use gate::journal::format_utc;

/// Permissions of a file that is new: its owner's alone.
pub const PRIVATE_MODE: u32 = 0o600;

/// Treatment of a file that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the write is refused with [`io::ErrorKind::AlreadyExists`].
    Keep,
    /// The new one takes its place and its permissions.
    Replace,
}

/// Writes `bytes` beside `path`, forces them to the disk, then gives them the name. A reader sees the old file or the new
/// one. A link at `path` is followed, not replaced.
///
/// # Errors
/// An error of the operating system; the file at `path` is then unchanged.
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    let path = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
        Err(error) => return Err(error),
    };
    let mode = match (fs::metadata(&path), existing) {
        (Ok(_), Existing::Keep) => return Err(io::ErrorKind::AlreadyExists.into()),
        (Ok(found), Existing::Replace) => found.permissions().mode() & 0o777,
        (Err(_), _) => PRIVATE_MODE,
    };
    let beside = beside(&path)?;
    let written = fill(&beside, bytes, mode).and_then(|()| match existing {
        Existing::Replace => fs::rename(&beside, &path),
        // Unlike a rename, a link does not take the place of what another has put there meanwhile.
        Existing::Keep => fs::hard_link(&beside, &path),
    });
    if written.is_err() || existing == Existing::Keep {
        drop(fs::remove_file(&beside));
    }
    written?;
    File::open(folder(&path))?.sync_all()
}

/// Writes a copy beside the file, as private as the file, named after the time.
///
/// # Errors
/// An error of the operating system.
pub fn backup(file: &Path, text: &str, now_ms: i64) -> io::Result<PathBuf> {
    let stamp: String = format_utc(now_ms)
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .collect();
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".bak-{stamp}"));
    let copy = PathBuf::from(name);
    write(&copy, text.as_bytes(), Existing::Keep)?;
    fs::set_permissions(&copy, fs::metadata(file)?.permissions())?;
    Ok(copy)
}

fn fill(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE_MODE)
        .open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Returns a name in the same folder that no other process picks.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", std::process::id()));
    Ok(folder(path).join(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_new_kept_or_replaced() {
        let folder = std::env::temp_dir().join(format!("durward-atomic-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("f");
        write(&path, b"one", Existing::Keep).unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), PRIVATE_MODE);
        let refused = write(&path, b"two", Existing::Keep).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let link = folder.join("l");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, b"three", Existing::Replace).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            (fs::read(&path).unwrap(), mode()),
            (b"three".to_vec(), 0o640)
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::remove_dir_all(folder).unwrap();
    }
}
