//! Private directories and the files in them: creation, names that survive a crash, and a lock among processes.
//!
//! A directory that another user may write in is refused: its files could be exchanged, and so could its lock.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Longest wait for a directory lock, in milliseconds.
pub const LOCK_WAIT_MS_MAX: u64 = 10_000;

/// Wait for a directory lock after which it is reported, in milliseconds.
pub const LOCK_TOLD_MS: u64 = 1_000;

/// Permissions that no directory of ours may grant: writing for the group and for others.
const OPEN_MODE: u32 = 0o022;

/// Largest text that is read from a lock file, in bytes.
const HOLDER_BYTES_MAX: usize = 32;

/// Pause between two attempts at a lock, in milliseconds.
const LOCK_RETRY_MS: u64 = 2;

/// Name of the lock file inside a directory.
pub const LOCK_FILE: &str = ".lock";

/// Error of a directory or a file in it.
#[derive(Debug)]
#[non_exhaustive]
pub enum DirectoryError {
    /// Another process kept the lock for longer than [`LOCK_WAIT_MS_MAX`].
    Busy {
        /// The locked directory.
        directory: PathBuf,
        /// Number of the process that took the lock, if it left one.
        holder: Option<u32>,
    },
    /// Other users may write in the directory.
    Open {
        /// The directory.
        directory: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The directory belongs to another user.
    Foreign {
        /// The directory.
        directory: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// Our user id.
        user: u32,
    },
    /// The operating system reports an error.
    Io {
        /// Action that failed, as a verb.
        action: &'static str,
        /// Path of the action.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectoryError::Busy { directory, holder } => {
                let by = holder.map_or_else(
                    || "another process".to_owned(),
                    |pid| format!("process {pid}"),
                );
                write!(
                    f,
                    "{by} has held the lock {} for {LOCK_WAIT_MS_MAX} ms; end that process and try again",
                    directory.join(LOCK_FILE).display()
                )
            }
            DirectoryError::Open { directory, mode } => {
                let directory = directory.display();
                write!(
                    f,
                    "other users may write in {directory} (mode {mode:04o}); run chmod 700 {directory}"
                )
            }
            DirectoryError::Foreign {
                directory,
                owner,
                user,
            } => {
                let directory = directory.display();
                write!(
                    f,
                    "{directory} belongs to user {owner} and not to user {user}, who runs this; run chown {user} {directory}, or name another directory"
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
            DirectoryError::Busy { .. }
            | DirectoryError::Open { .. }
            | DirectoryError::Foreign { .. } => None,
            DirectoryError::Io { error, .. } => Some(error),
        }
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    move |error| DirectoryError::Io {
        action,
        path: path.to_path_buf(),
        error,
    }
}

/// Creates a directory and its missing parents, each `0700`. An existing directory is checked and not changed.
///
/// # Errors
/// [`DirectoryError::Io`], and as [`check_private`].
pub fn create_private(directory: &Path) -> Result<(), DirectoryError> {
    if directory.is_dir() {
        return check_private(directory);
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(io_error("create", directory))?;
    match directory
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        Some(parent) => sync(parent).map_err(io_error("sync", parent)),
        None => Ok(()),
    }
}

/// Checks that a directory belongs to the user who runs this, and that only that user may write in it.
///
/// # Errors
/// [`DirectoryError::Foreign`], [`DirectoryError::Open`], and [`DirectoryError::Io`] if it cannot be inspected.
pub fn check_private(directory: &Path) -> Result<(), DirectoryError> {
    let found = fs::metadata(directory).map_err(io_error("inspect", directory))?;
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        return Err(DirectoryError::Foreign {
            directory: directory.to_path_buf(),
            owner: found.uid(),
            user,
        });
    }
    let mode = found.mode() & 0o7777;
    if mode & OPEN_MODE != 0 {
        return Err(DirectoryError::Open {
            directory: directory.to_path_buf(),
            mode,
        });
    }
    Ok(())
}

/// Forces the names inside a directory to the disk: a file that was created, renamed or removed stays so after a loss of power.
///
/// # Errors
/// The error of the operating system.
pub fn sync(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    File::open(directory)?.sync_all()
}

/// Creates a `0600` file with these contents, whole or not at all, and forces it to the disk. An existing file of that name is
/// replaced. The caller holds the lock of the directory if two processes might do this at once.
///
/// # Errors
/// [`DirectoryError::Io`].
pub fn write_private(path: &Path, contents: &[u8]) -> Result<(), DirectoryError> {
    replace_private(path, contents, true)
}

/// [`write_private`], which leaves it to the system when the file reaches the disk unless `durable` is asked for.
///
/// # Errors
/// [`DirectoryError::Io`].
pub fn replace_private(path: &Path, contents: &[u8], durable: bool) -> Result<(), DirectoryError> {
    let partial = path.with_extension("partial");
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io_error("remove", &partial)(error));
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
        if durable { file.sync_all() } else { Ok(()) }
    });
    let written = written.map_err(io_error("write", &partial));
    let placed =
        written.and_then(|()| fs::rename(&partial, path).map_err(io_error("create", path)));
    if placed.is_err() {
        // Half a file is useless, and may be half of a secret.
        drop(fs::remove_file(&partial));
    }
    placed?;
    if !durable {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(Path::new("."));
    sync(parent).map_err(io_error("sync", parent))
}

/// An exclusive lock on a directory among cooperating processes; released when dropped, and by the end of the process.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

/// Reports waits for locks that the waiting caller does not report.
static TELL: OnceLock<fn(&Held<'_>)> = OnceLock::new();

/// Sets the function that reports every wait for a lock longer than [`LOCK_TOLD_MS`]. Called once, by the program.
pub fn tell_of_waits(tell: fn(&Held<'_>)) {
    // A second call has no effect.
    let _ = TELL.set(tell);
}

/// Function that reports a wait; called once, [`LOCK_TOLD_MS`] after the wait began.
pub type Waiting<'a> = dyn FnMut(&Held<'_>) + 'a;

/// A lock that another process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held<'a> {
    /// The locked directory.
    pub directory: &'a Path,
    /// Number of the process that took the lock, if it left one.
    pub holder: Option<u32>,
}

impl fmt::Display for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "waiting for the lock {}",
            self.directory.join(LOCK_FILE).display()
        )?;
        if let Some(pid) = self.holder {
            write!(f, ", which process {pid} holds")?;
        }
        write!(f, "; giving up after {} s", LOCK_WAIT_MS_MAX / 1_000)
    }
}

impl DirectoryLock {
    /// Acquires the lock, waiting at most [`LOCK_WAIT_MS_MAX`] for another holder. [`tell_of_waits`] sets how a wait is reported.
    ///
    /// # Errors
    /// [`DirectoryError::Busy`] after that wait, [`DirectoryError::Io`] when the lock file cannot be made.
    pub fn acquire(directory: &Path) -> Result<DirectoryLock, DirectoryError> {
        DirectoryLock::acquire_telling(directory, &mut |held| {
            if let Some(tell) = TELL.get() {
                tell(held);
            }
        })
    }

    /// Acquires the lock as [`DirectoryLock::acquire`] does, and reports a long wait to `waiting`.
    ///
    /// # Errors
    /// As [`DirectoryLock::acquire`].
    pub fn acquire_telling(
        directory: &Path,
        waiting: &mut Waiting<'_>,
    ) -> Result<DirectoryLock, DirectoryError> {
        let spans = (
            Duration::from_millis(LOCK_TOLD_MS),
            Duration::from_millis(LOCK_WAIT_MS_MAX),
        );
        DirectoryLock::acquire_within(directory, spans, waiting)
    }

    /// Acquires the lock without waiting; returns `None` if it is held.
    ///
    /// # Errors
    /// [`DirectoryError::Io`] when the lock file cannot be made.
    pub fn try_acquire(directory: &Path) -> Result<Option<DirectoryLock>, DirectoryError> {
        match DirectoryLock::acquire_within(directory, (Duration::MAX, Duration::ZERO), &mut |_| {})
        {
            Ok(lock) => Ok(Some(lock)),
            Err(DirectoryError::Busy { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn acquire_within(
        directory: &Path,
        (tell_after, wait): (Duration, Duration),
        waiting: &mut Waiting<'_>,
    ) -> Result<DirectoryLock, DirectoryError> {
        let path = directory.join(LOCK_FILE);
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .clone();
        let file = options.open(&path).map_err(io_error("open", &path))?;
        let since = Instant::now();
        let mut told = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    sign(&file);
                    return Ok(DirectoryLock { _file: file });
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) if since.elapsed() < wait => {
                    if !told && since.elapsed() >= tell_after {
                        told = true;
                        waiting(&Held {
                            directory,
                            holder: holder(&file),
                        });
                    }
                    std::thread::park_timeout(Duration::from_millis(LOCK_RETRY_MS));
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(DirectoryError::Busy {
                        directory: directory.to_path_buf(),
                        holder: holder(&file),
                    });
                }
                Err(errno) => return Err(io_error("lock", &path)(errno.into())),
            }
        }
    }
}

/// Writes our number to a lock file, for those that wait. Nothing depends on it, so a full disk is ignored.
fn sign(file: &File) {
    let text = format!("{}\n", std::process::id());
    if file.write_all_at(text.as_bytes(), 0).is_ok() {
        let _ = file.set_len(text.len() as u64);
    }
}

/// The process that took the lock, as it says itself.
fn holder(file: &File) -> Option<u32> {
    let mut text = [0; HOLDER_BYTES_MAX];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_could_not_be_placed_leaves_nothing_behind() {
        let directory = std::env::temp_dir().join(format!("state-placed-{}", std::process::id()));
        create_private(&directory).unwrap();
        let taken = directory.join("keys.json");
        fs::create_dir_all(taken.join("inside")).unwrap();
        assert!(write_private(&taken, b"{}").is_err());
        let names = fs::read_dir(&directory).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["keys.json"]);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_lock_that_is_held_is_reported_as_busy() {
        let directory = std::env::temp_dir().join(format!("state-lock-{}", std::process::id()));
        create_private(&directory).unwrap();
        let held = DirectoryLock::acquire(&directory).unwrap();
        let spans = (Duration::from_millis(1), Duration::from_millis(20));
        let mut told = Vec::new();
        let second = DirectoryLock::acquire_within(&directory, spans, &mut |held| {
            told.push(held.to_string())
        });
        let Err(error @ DirectoryError::Busy { holder, .. }) = second else {
            panic!("{second:?}");
        };
        assert_eq!(holder, Some(std::process::id()));
        assert!(error.to_string().contains("has held the lock"), "{error}");
        assert_eq!(told.len(), 1, "{told:?}");
        let pid = format!("which process {} holds", std::process::id());
        assert!(told[0].contains(&pid), "{told:?}");
        assert!(DirectoryLock::try_acquire(&directory).unwrap().is_none());
        drop(held);
        drop(DirectoryLock::acquire_within(&directory, spans, &mut |_| {}).unwrap());
        assert!(DirectoryLock::try_acquire(&directory).unwrap().is_some());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_directory_that_others_may_write_in_is_refused_with_its_mode() {
        let directory = std::env::temp_dir().join(format!("state-open-{}", std::process::id()));
        create_private(&directory).unwrap();
        for (mode, refused) in [
            (0o777, true),
            (0o1777, true),
            (0o720, true),
            (0o702, true),
            (0o755, false),
            (0o700, false),
        ] {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
            let checked = create_private(&directory);
            match &checked {
                Err(error @ DirectoryError::Open { mode: found, .. }) if refused => {
                    assert_eq!(*found, mode);
                    let text = error.to_string();
                    let shown = format!("(mode {mode:04o}); run chmod 700 ");
                    assert!(text.contains(&shown), "{text}");
                }
                Ok(()) if !refused => {}
                _ => panic!("{mode:o}: {checked:?}"),
            }
        }
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let directory = std::env::temp_dir().join(format!("state-foreign-{}", std::process::id()));
        create_private(&directory).unwrap();
        // Only root can change the owner of a directory; other users inspect one of root.
        let foreign = match std::os::unix::fs::chown(&directory, Some(65_534), None) {
            Ok(()) => directory.clone(),
            Err(_) => PathBuf::from("/usr"),
        };
        let error = create_private(&foreign).unwrap_err();
        assert!(
            matches!(error, DirectoryError::Foreign { .. })
                && error.to_string().contains("run chown "),
            "{error}"
        );
        fs::remove_dir_all(&directory).unwrap();
    }
}
