//! Directories of rules and settings, which stay open from the first reading of a file on: a later reading takes the file
//! from the same directory, whatever is found under its name by then.
//!
//! Whoever may rename a directory above such a file could put another one in its place, with rules of their own. What
//! lies in the directory itself may change: that is a reload. A link in it may lead elsewhere than before, too (volumes
//! of Kubernetes are updated so), as long as the file belongs to the same user.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{CWD, Mode, OFlags, openat};
use toolkit::files::unreadable;

/// Most directories that are kept open.
const DIRECTORIES_MAX: usize = 256;

/// The directories, by the paths that they are named by.
#[derive(Debug, Default)]
pub struct OpenDirectories(Mutex<BTreeMap<PathBuf, OpenDirectory>>);

#[derive(Debug)]
struct OpenDirectory {
    directory: File,
    /// The user that each file belonged to when it was first read.
    owners: BTreeMap<OsString, u32>,
}

impl OpenDirectories {
    /// Opens a file for reading, in the directory in which it was first opened.
    ///
    /// # Errors
    /// A sentence that does not name the file: also where its path leads to another directory by now, or it belongs to
    /// another user.
    pub fn open(&self, path: &Path) -> Result<(File, Metadata), String> {
        let failed = |error: io::Error| unreadable(&error);
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let name = path.file_name().ok_or("it names no file")?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(folder) {
            if all.len() >= DIRECTORIES_MAX {
                return Err(format!(
                    "files of more than {DIRECTORIES_MAX} directories are read; keep them in fewer"
                ));
            }
            all.insert(
                folder.to_owned(),
                OpenDirectory::open(folder).map_err(failed)?,
            );
        }
        let Some(open) = all.get_mut(folder) else {
            return Err("its directory is not open".into());
        };
        open.check(folder)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = openat(&open.directory, name, flags, Mode::empty());
        let file = File::from(file.map_err(|error| failed(error.into()))?);
        let found = file.metadata().map_err(failed)?;
        let owner = *open.owners.entry(name.to_owned()).or_insert(found.uid());
        if owner != found.uid() {
            return Err(format!(
                "it belongs to another user (uid {}) than when it was first read (uid {owner}); restart Durward if that is meant",
                found.uid()
            ));
        }
        Ok((file, found))
    }
}

impl OpenDirectory {
    fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = File::from(openat(CWD, folder, flags, Mode::empty())?);
        Ok(Self {
            directory,
            owners: BTreeMap::new(),
        })
    }

    /// Rejects a path that leads to another directory than this one.
    fn check(&self, folder: &Path) -> Result<(), String> {
        let is_same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let now = std::fs::metadata(folder);
        let then = self.directory.metadata();
        match (now, then) {
            (Ok(now), Ok(then)) if is_same(&now, &then) => Ok(()),
            _ => Err(format!(
                "{} is another directory than when the file was first read; restart Durward if that is meant",
                folder.display()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    fn text(directories: &OpenDirectories, path: &Path) -> Result<String, String> {
        let (mut file, _) = directories.open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        Ok(text)
    }

    #[test]
    fn a_file_is_read_from_the_directory_in_which_it_was_first_read() {
        let top = std::env::temp_dir().join(format!("open-directories-{}", std::process::id()));
        let folder = top.join("config/durward");
        for version in ["v1", "v2"] {
            fs::create_dir_all(folder.join(version)).unwrap();
            fs::write(folder.join(version).join("rules"), version).unwrap();
        }
        symlink("v1", folder.join("..data")).unwrap();
        symlink("..data/rules", folder.join("rules")).unwrap();
        let directories = OpenDirectories::default();
        let rules = folder.join("rules");
        assert_eq!(text(&directories, &rules).unwrap(), "v1");
        // A volume of Kubernetes is updated by a link that is replaced.
        symlink("v2", folder.join("new")).unwrap();
        fs::rename(folder.join("new"), folder.join("..data")).unwrap();
        assert_eq!(text(&directories, &rules).unwrap(), "v2");
        // A file is replaced by its editor.
        fs::write(folder.join("new"), "v3").unwrap();
        fs::rename(folder.join("new"), &rules).unwrap();
        assert_eq!(text(&directories, &rules).unwrap(), "v3");
        // A directory above is moved away and made again.
        fs::rename(top.join("config"), top.join("old")).unwrap();
        let why = text(&directories, &rules).unwrap_err();
        assert!(why.contains("is another directory"), "{why}");
        fs::create_dir_all(&folder).unwrap();
        fs::write(&rules, "forged").unwrap();
        let why = text(&directories, &rules).unwrap_err();
        assert!(why.contains("is another directory"), "{why}");
        // A link to it is no better.
        fs::remove_dir_all(top.join("config")).unwrap();
        fs::rename(top.join("old"), top.join("config")).unwrap();
        assert_eq!(text(&directories, &rules).unwrap(), "v3");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&rules, Some(12_345), None).unwrap();
            let why = text(&directories, &rules).unwrap_err();
            assert!(why.contains("another user"), "{why}");
        }
        fs::remove_dir_all(top).unwrap();
    }
}
