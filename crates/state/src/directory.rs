//! Private directories and the files in them: creation, names that survive a crash, and a lock among processes.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Longest wait for a directory lock, in milliseconds.
pub const LOCK_WAIT_MS_MAX: u64 = 10_000;

/// Pause between two attempts at a lock, in milliseconds.
const LOCK_RETRY_MS: u64 = 2;

/// Name of the lock file inside a directory.
pub const LOCK_FILE: &str = ".lock";

/// What went wrong with a directory or a file in it.
#[derive(Debug)]
#[non_exhaustive]
pub enum DirectoryError {
    /// Another process kept the lock for longer than [`LOCK_WAIT_MS_MAX`].
    Busy {
        /// The locked directory.
        directory: PathBuf,
    },
    /// The operating system refused.
    Io {
        /// What was being done.
        action: &'static str,
        /// With which path.
        path: PathBuf,
        /// The refusal.
        error: io::Error,
    },
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectoryError::Busy { directory } => {
                write!(
                    f,
                    "another process has held {} for {LOCK_WAIT_MS_MAX} ms",
                    directory.display()
                )
            }
            DirectoryError::Io {
                action,
                path,
                error,
            } => write!(f, "cannot {action} {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for DirectoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DirectoryError::Busy { .. } => None,
            DirectoryError::Io { error, .. } => Some(error),
        }
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    move |error| DirectoryError::Io {
        action,
        path: path.to_path_buf(),
        error,
    }
}

/// Creates a directory and its missing parents, each `0700`. A directory that exists is left as it is.
///
/// # Errors
/// [`DirectoryError::Io`].
pub fn create_private(directory: &Path) -> Result<(), DirectoryError> {
    if directory.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed("create", directory))?;
    match directory
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        Some(parent) => sync(parent).map_err(failed("sync", parent)),
        None => Ok(()),
    }
}

/// Forces the names inside a directory to the disk: a file that was created, renamed or removed stays so after a loss of power.
///
/// # Errors
/// Whatever the operating system reports.
pub fn sync(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    File::open(directory)?.sync_all()
}

/// Creates a `0600` file with these contents, whole or not at all, and forces it to the disk. An existing file of that name is
/// replaced. The caller holds the directory's lock where two processes might do this at once.
///
/// # Errors
/// [`DirectoryError::Io`].
pub fn write_private(path: &Path, contents: &[u8]) -> Result<(), DirectoryError> {
    let partial = path.with_extension("partial");
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("remove", &partial)(error));
        }
        _ => {}
    }
    let options = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .clone();
    let written = options.open(&partial).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    written.map_err(failed("write", &partial))?;
    fs::rename(&partial, path).map_err(failed("create", path))?;
    let parent = path.parent().unwrap_or(Path::new("."));
    sync(parent).map_err(failed("sync", parent))
}

/// An exclusive lock on a directory among cooperating processes; released when dropped, and by the end of the process.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Takes the lock, waiting at most [`LOCK_WAIT_MS_MAX`] for another holder.
    ///
    /// # Errors
    /// [`DirectoryError::Busy`] after that wait, [`DirectoryError::Io`] when the lock file cannot be made.
    pub fn acquire(directory: &Path) -> Result<DirectoryLock, DirectoryError> {
        DirectoryLock::acquire_within(directory, Duration::from_millis(LOCK_WAIT_MS_MAX))
    }

    fn acquire_within(directory: &Path, wait: Duration) -> Result<DirectoryLock, DirectoryError> {
        let path = directory.join(LOCK_FILE);
        let options = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .clone();
        let file = options.open(&path).map_err(failed("open", &path))?;
        let since = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(DirectoryLock { _file: file }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if since.elapsed() < wait => {
                    std::thread::park_timeout(Duration::from_millis(LOCK_RETRY_MS));
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(DirectoryError::Busy {
                        directory: directory.to_path_buf(),
                    });
                }
                Err(errno) => return Err(failed("lock", &path)(errno.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_is_reported_as_busy() {
        let directory = std::env::temp_dir().join(format!("state-lock-{}", std::process::id()));
        create_private(&directory).unwrap();
        let held = DirectoryLock::acquire(&directory).unwrap();
        let second = DirectoryLock::acquire_within(&directory, Duration::from_millis(5));
        assert!(
            matches!(second, Err(DirectoryError::Busy { .. })),
            "{second:?}"
        );
        drop(held);
        DirectoryLock::acquire_within(&directory, Duration::from_millis(5)).unwrap();
        fs::remove_dir_all(&directory).unwrap();
    }
}
