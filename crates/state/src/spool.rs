//! One output as it grows: a private file that is written at its end and read anywhere.
//!
//! Appended bytes can be read at once, also by other holders of the same [`Spool`]; it survives the end of
//! the process, and a loss of power after [`Spool::sync`].

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes that one read gives.
pub const READ_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Error of the operating system.
#[derive(Debug)]
pub struct SpoolError {
    /// Action that failed, as a verb.
    pub action: &'static str,
    /// With which file.
    pub path: PathBuf,
    /// The refusal.
    pub error: io::Error,
}

impl fmt::Display for SpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} {}: {}",
            self.action,
            self.path.display(),
            self.error
        )
    }
}

impl std::error::Error for SpoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// A file that only grows.
#[derive(Debug)]
pub struct Spool {
    file: File,
    path: PathBuf,
    /// Bytes that may be read. Written under `writing` only.
    length: AtomicU64,
    writing: Mutex<()>,
}

impl Spool {
    /// Makes an empty spool (`0600`).
    ///
    /// # Errors
    /// [`SpoolError`] if the file exists or cannot be created.
    pub fn create(path: &Path) -> Result<Self, SpoolError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        Self::of(options.open(path), path, "create")
    }

    /// Opens a spool that an earlier process left.
    ///
    /// # Errors
    /// [`SpoolError`] if the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, SpoolError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        Self::of(file, path, "open")
    }

    fn of(file: io::Result<File>, path: &Path, action: &'static str) -> Result<Self, SpoolError> {
        let opened = file.and_then(|file| {
            let length = file.metadata()?.len();
            Ok((file, length))
        });
        let (file, length) = opened.map_err(|error| SpoolError {
            action,
            path: path.into(),
            error,
        })?;
        Ok(Self {
            file,
            path: path.into(),
            length: AtomicU64::new(length),
            writing: Mutex::new(()),
        })
    }

    /// Bytes in it.
    pub fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    /// Appends these bytes, all or none; gives the length afterwards.
    ///
    /// # Errors
    /// [`SpoolError`]; the contents do not change.
    pub fn append(&self, bytes: &[u8]) -> Result<u64, SpoolError> {
        let _writing = self.writing.lock();
        let before = self.length.load(Ordering::Acquire);
        if let Err(error) = self.file.write_all_at(bytes, before) {
            // A partial write lies behind the length, and is overwritten or cut off.
            let _ = self.file.set_len(before);
            return Err(self.io_error("write", error));
        }
        let after = before.saturating_add(bytes.len() as u64);
        self.length.store(after, Ordering::Release);
        Ok(after)
    }

    /// The bytes from `at` on, at most `bytes_max` and [`READ_BYTES_MAX`]; none at or behind the end.
    ///
    /// # Errors
    /// [`SpoolError`] if the file cannot be read.
    pub fn read(&self, at: u64, bytes_max: usize) -> Result<Vec<u8>, SpoolError> {
        let left = self.length().saturating_sub(at);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX);
        let mut bytes = vec![0; wanted.min(bytes_max).min(READ_BYTES_MAX)];
        self.file
            .read_exact_at(&mut bytes, at)
            .map_err(|error| self.io_error("read", error))?;
        Ok(bytes)
    }

    /// Forces everything to the disk.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn sync(&self) -> Result<(), SpoolError> {
        self.file
            .sync_data()
            .map_err(|error| self.io_error("sync", error))
    }

    fn io_error(&self, action: &'static str, error: io::Error) -> SpoolError {
        SpoolError {
            action,
            path: self.path.clone(),
            error,
        }
    }
}

/// Removes a spool's file. One that is not there counts as removed.
///
/// # Errors
/// [`SpoolError`].
pub fn remove(path: &Path) -> Result<(), SpoolError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(SpoolError {
            action: "remove",
            path: path.into(),
            error,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("spool-{name}-{}", std::process::id()));
        remove(&path).unwrap();
        path
    }

    #[test]
    fn what_was_appended_is_read_anywhere_and_after_reopening() {
        let path = place("reread");
        let spool = Spool::create(&path).unwrap();
        assert_eq!(spool.append(b"one\0").unwrap(), 4);
        assert_eq!(spool.append(&[0xff, 0xfe]).unwrap(), 6);
        assert_eq!(spool.read(3, 2).unwrap(), [0, 0xff]);
        assert!(spool.read(6, 10).unwrap().is_empty());
        assert!(spool.read(u64::MAX, 10).unwrap().is_empty());
        spool.sync().unwrap();
        drop(spool);
        assert!(Spool::create(&path).is_err(), "an output is never replaced");
        let spool = Spool::open(&path).unwrap();
        assert_eq!(spool.length(), 6);
        assert_eq!(spool.append(b"!").unwrap(), 7);
        assert_eq!(spool.read(0, 100).unwrap(), b"one\0\xff\xfe!");
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(Spool::open(&path).is_err());
    }

    #[test]
    fn a_full_disk_leaves_what_was_there() {
        // Every write to this device fails with "no space left".
        let spool = Spool::open(Path::new("/dev/full")).unwrap();
        let error = spool.append(b"x").unwrap_err();
        assert_eq!(error.error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(error.action, "write");
        assert_eq!(spool.length(), 0);
    }
}
