//! Files that say what may be done, and who else decides what stands in them; files that are opened where they were
//! found.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Files that no call may touch or change, because the configuration names or runs them. Directories stand for all below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardedFiles {
    /// Secrets, rules and records: neither read nor changed.
    pub closed: Vec<PathBuf>,
    /// Programs, public keys and the like: may be read, not changed.
    pub read_only: Vec<PathBuf>,
}

impl GuardedFiles {
    /// Adds those of another set that are not in this one.
    pub fn merge(&mut self, other: Self) {
        let lists = [
            (&mut self.closed, other.closed),
            (&mut self.read_only, other.read_only),
        ];
        for (known, more) in lists {
            for file in more {
                if !known.contains(&file) {
                    known.push(file);
                }
            }
        }
    }
}

/// Opens a plain file for reading at the place that a path names once its links are resolved. A link that has come into
/// the path since then is not followed, and a pipe in its place is not waited for.
///
/// # Errors
/// What the system says; also where a link is on the way, or what is there is no plain file.
pub fn open_in_place(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    let file = match opened {
        Ok(opened) => File::from(opened),
        Err(Errno::LOOP) => return Err(moved()),
        // A system without this call, or one that allows no call that it does not know.
        Err(Errno::NOSYS | Errno::PERM) => opened_at(path, flags)?,
        Err(error) => return Err(error.into()),
    };
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a plain file"))
    }
}

/// The same where the system says afterwards where an open file lies.
fn opened_at(path: &Path, flags: OFlags) -> io::Result<File> {
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let place = format!("/proc/self/fd/{}", file.as_raw_fd());
    if std::fs::read_link(place)? == path {
        Ok(file)
    } else {
        Err(moved())
    }
}

fn moved() -> io::Error {
    io::Error::other("a link has come into its path; try again")
}

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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_opened_at_its_own_place_only() {
        let name = format!("durward-in-place-{}", std::process::id());
        let root = std::env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir_all(root.join("folder")).unwrap();
        let file = root.join("folder/file");
        fs::write(&file, "text").unwrap();
        symlink(root.join("folder"), root.join("way")).unwrap();
        symlink(&file, root.join("link")).unwrap();
        let pipe = root.join("pipe");
        rustix::fs::mknodat(
            CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        assert!(open_in_place(&file).is_ok() && opened_at(&file, flags).is_ok());
        for link in ["way/file", "link"] {
            let link = root.join(link);
            for opened in [open_in_place(&link), opened_at(&link, flags)] {
                let wrong = opened.unwrap_err().to_string();
                assert!(wrong.contains("a link has come"), "{wrong}");
            }
        }
        for other in [pipe, root.join("folder")] {
            let wrong = open_in_place(&other).unwrap_err().to_string();
            assert_eq!(wrong, "it is not a plain file");
        }
        fs::remove_dir_all(root).unwrap();
    }
}
