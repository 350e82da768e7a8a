//! The file of one server's pins: read whole, checked, written whole or not at all.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use state::directory::{DirectoryLock, create_private, write_private};

use super::{Book, PinError};

/// Largest file, in bytes.
pub const FILE_BYTES_MAX: usize = 8 * 1_024 * 1_024;
/// What the file says it is.
const FORMAT: &str = "dwp1";
/// Ending of the files' names.
const ENDING: &str = ".json";

/// One server's pins on the disk.
#[derive(Debug, Clone)]
pub struct PinFile {
    directory: PathBuf,
    server: String,
    path: PathBuf,
}

/// Tells one version of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<B> {
    format: String,
    server: String,
    book: B,
}

impl PinFile {
    /// The pins of a server in a directory.
    ///
    /// # Errors
    /// [`PinError::Name`] where the server's name is not one for a file.
    pub fn new(directory: &Path, server: &str) -> Result<Self, PinError> {
        let plain = !server.is_empty()
            && server.len() <= 200
            && server
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !plain {
            return Err(PinError::Name {
                server: server.to_owned(),
            });
        }
        Ok(Self {
            directory: directory.to_path_buf(),
            server: server.to_owned(),
            path: directory.join(format!("{server}{ENDING}")),
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the book; none where there is no file.
    ///
    /// # Errors
    /// [`PinError::Read`], [`PinError::Corrupt`].
    pub fn read(&self) -> Result<Option<Book>, PinError> {
        let read_error = |error| PinError::Read {
            path: self.path.clone(),
            error,
        };
        let corrupt = |what: String| PinError::Corrupt {
            path: self.path.clone(),
            what,
        };
        let file = match fs::File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(read_error)?,
        };
        let mut text = String::new();
        let read = file
            .take(FILE_BYTES_MAX as u64 + 1)
            .read_to_string(&mut text);
        match read {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(corrupt("it is not text".to_owned()));
            }
            other => other.map_err(read_error)?,
        };
        if text.len() > FILE_BYTES_MAX {
            return Err(corrupt(format!("it is longer than {FILE_BYTES_MAX} bytes")));
        }
        let written: Written<Book> =
            serde_json::from_str(&text).map_err(|error| corrupt(error.to_string()))?;
        if written.format != FORMAT {
            return Err(corrupt(format!("its format is not {FORMAT}")));
        }
        if written.server != self.server {
            return Err(corrupt("it is of another server".to_owned()));
        }
        match written.book.fault() {
            Some(fault) => Err(corrupt(fault)),
            None => Ok(Some(written.book)),
        }
    }

    /// Changes the book under the directory's lock, so that nothing of another process is lost.
    /// `change` gets what stands there now.
    ///
    /// # Errors
    /// What reading or writing says; the file is then as it was.
    pub fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> Result<T, PinError> {
        self.change_stamped(change).map(|(_, _, outcome)| outcome)
    }

    /// As [`PinFile::change`]; also gives what stands there now, and its stamp.
    pub(super) fn change_stamped<T>(
        &self,
        change: impl FnOnce(&mut Book) -> T,
    ) -> Result<(Book, Option<Stamp>, T), PinError> {
        create_private(&self.directory)?;
        let _lock = DirectoryLock::acquire(&self.directory)?;
        let mut book = self.read()?.unwrap_or_default();
        let before = book.clone();
        let outcome = change(&mut book);
        if book != before || !self.path.exists() {
            let written = Written {
                format: FORMAT.to_owned(),
                server: self.server.clone(),
                book: &book,
            };
            // A map of strings and numbers always has a text.
            let text = serde_json::to_vec(&written).unwrap_or_default();
            write_private(&self.path, &text)?;
        }
        Ok((book, self.stamp(), outcome))
    }

    /// Removes the file; gives whether there was one.
    ///
    /// # Errors
    /// [`PinError::Write`].
    pub fn forget(&self) -> Result<bool, PinError> {
        if !self.directory.is_dir() {
            return Ok(false);
        }
        let _lock = DirectoryLock::acquire(&self.directory)?;
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(PinError::Write(state::DirectoryError::Io {
                action: "remove",
                path: self.path.clone(),
                error,
            })),
        }
    }

    /// What the file is now; none where there is none.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let found = fs::metadata(&self.path).ok()?;
        Some(Stamp {
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }
}

/// The servers that have pins in a directory, by name.
///
/// # Errors
/// What the operating system says; a directory that is not there holds none.
pub fn servers(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let server = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        names.extend(server.filter(|s| !s.is_empty()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
