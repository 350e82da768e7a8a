//! Medium of a log, narrow enough that a test can make it fail.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, SeekFrom, Stat, flock, fstat, seek, stat};
use rustix::io::Errno;

use super::LogError;

/// Time for which a path is assumed to still name the file, while the file itself has not changed. Removing, replacing or
/// renaming the file changes it, so that is seen at once, except for writes within [`STAMPED_FOR`]; moving a directory above
/// it is not.
const NAMED_FOR: Duration = Duration::from_millis(1);

/// Time after a write with a known time of change in which the time of further writes is not queried.
const STAMPED_FOR: Duration = Duration::from_millis(1);

/// Time of change while that of our last write is not known.
const UNKNOWN: i64 = i64::MIN;

/// File that the path of a log names at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// Nothing.
    Nothing,
    /// A file, but not the one that was opened.
    Another,
    /// The file that was opened, with its length in bytes.
    Ours {
        /// Length in bytes.
        len_bytes: u64,
        /// Time of change, if it is known to differ from that of our last write: another process wrote to the file, or changed
        /// its mode, links or times.
        touched: Option<Stamp>,
    },
}

/// Time of change of a file, in nanoseconds since 1970. No process can set it; every write and every change of the inode
/// updates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(i64);

/// The things that a log does to its file.
pub trait Medium: Send + Sync {
    /// Inspects the file that the path names now.
    ///
    /// # Errors
    /// The error of the operating system, except that the path names nothing.
    fn inspect_path(&self) -> io::Result<Named>;

    /// Accepts a time of change: the change was inspected and is harmless.
    fn accept(&self, stamp: Stamp);

    /// Records the time of change of our last write, so that the next inspection shows whether another process touched
    /// the file. Of writes that come close behind one another only the first is remembered before this is called.
    fn settle(&self) {}

    /// Writes at the end, once; may take less than it was given.
    ///
    /// # Errors
    /// The error of the operating system.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Cuts the file to a length in bytes.
    ///
    /// # Errors
    /// The error of the operating system.
    fn truncate(&self, len_bytes: u64) -> io::Result<()>;

    /// Returns once all written bytes have reached the disk.
    ///
    /// # Errors
    /// The error of the operating system.
    fn sync(&self) -> io::Result<()>;
}

/// A real file, held under an exclusive lock for as long as it is open.
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    /// Absolute, and ready for the system call that every append makes.
    path: CString,
    device: u64,
    inode: u64,
    /// The time of change that our last write left, or [`UNKNOWN`].
    stamp: AtomicI64,
    /// Until then a write leaves it unknown, in nanoseconds since the log was opened.
    stamped_until: AtomicU64,
    /// Time of the last inspection, in nanoseconds since the log was opened.
    looked: AtomicU64,
    /// Time until which the path is not inspected, in nanoseconds since the log was opened.
    named_until: AtomicU64,
    opened: Instant,
}

fn stamp(status: &Stat) -> i64 {
    let (seconds, nanos) = (status.st_ctime, status.st_ctime_nsec as i64);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

impl FileMedium {
    /// Creates a file that must not exist yet, `0600`, and locks it.
    ///
    /// # Errors
    /// [`LogError::Io`] when it exists or cannot be created, [`LogError::Full`] when there is no room.
    pub fn create(path: &Path) -> Result<FileMedium, LogError> {
        FileMedium::with(
            path,
            OpenOptions::new().append(true).create_new(true).mode(0o600),
        )
    }

    /// Opens an existing file for appending and locks it.
    ///
    /// # Errors
    /// [`LogError::Locked`] when another process writes it, [`LogError::Io`] otherwise.
    pub fn open(path: &Path) -> Result<FileMedium, LogError> {
        FileMedium::with(path, OpenOptions::new().append(true))
    }

    fn with(path: &Path, options: &OpenOptions) -> Result<FileMedium, LogError> {
        // An absolute path keeps its meaning when the working directory changes.
        let path =
            std::path::absolute(path).map_err(|error| LogError::from_io("locate", &error))?;
        let file = options
            .open(&path)
            .map_err(|error| LogError::from_io("open", &error))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            Errno::WOULDBLOCK => LogError::Locked,
            other => LogError::from_io("lock", &other.into()),
        })?;
        let status = fstat(&file).map_err(|errno| LogError::from_io("inspect", &errno.into()))?;
        let path = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| LogError::from_io("locate", &io::ErrorKind::InvalidFilename.into()))?;
        Ok(FileMedium {
            file,
            path,
            device: status.st_dev,
            inode: status.st_ino,
            stamp: AtomicI64::new(stamp(&status)),
            stamped_until: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            named_until: AtomicU64::new(0),
            opened: Instant::now(),
        })
    }

    /// Records the time of change after a change by this process. If it cannot be read, the next inspection finds the file
    /// touched.
    fn record_change(&self) {
        if let Ok(status) = fstat(&self.file) {
            self.stamp.store(stamp(&status), Ordering::Relaxed);
        }
    }

    /// The same for a write, unless one was looked up right before.
    fn record_write(&self) {
        let looked = self.looked.load(Ordering::Relaxed);
        if looked < self.stamped_until.load(Ordering::Relaxed) {
            self.stamp.store(UNKNOWN, Ordering::Relaxed);
            return;
        }
        let until = looked.saturating_add(nanos(STAMPED_FOR));
        self.stamped_until.store(until, Ordering::Relaxed);
        self.record_change();
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl FileMedium {
    fn ours(&self, status: &Stat) -> Named {
        let found = stamp(status);
        let known = self.stamp.load(Ordering::Relaxed);
        if known == UNKNOWN {
            self.stamp.store(found, Ordering::Relaxed);
        }
        let is_known = known == UNKNOWN || found == known;
        Named::Ours {
            len_bytes: u64::try_from(status.st_size).unwrap_or(0),
            touched: (!is_known).then_some(Stamp(found)),
        }
    }

    /// Inspects the file without its path, in a third of the time; returns `None` if the path has to be inspected.
    fn look_at_file(&self) -> Option<Named> {
        if self.stamp.load(Ordering::Relaxed) == UNKNOWN {
            return self.look_at_length();
        }
        let status = fstat(&self.file).ok()?;
        let is_linked = status.st_nlink > 0;
        let named = self.ours(&status);
        let is_ours = matches!(named, Named::Ours { touched: None, .. });
        (is_linked && is_ours).then_some(named)
    }

    /// Returns the length alone, when there is no time of change to compare with: a third of the cost of the whole status. Also,
    /// once a file system has reported the time of change, its next write updates that to the nanosecond and takes 1.5 times
    /// as long.
    fn look_at_length(&self) -> Option<Named> {
        let len_bytes = seek(&self.file, SeekFrom::End(0)).ok()?;
        Some(Named::Ours {
            len_bytes,
            touched: None,
        })
    }
}

impl Medium for FileMedium {
    fn inspect_path(&self) -> io::Result<Named> {
        let now = nanos(self.opened.elapsed());
        self.looked.store(now, Ordering::Relaxed);
        if now < self.named_until.load(Ordering::Relaxed)
            && let Some(named) = self.look_at_file()
        {
            return Ok(named);
        }
        match stat(self.path.as_c_str()) {
            Ok(status) if status.st_dev == self.device && status.st_ino == self.inode => {
                let until = now.saturating_add(nanos(NAMED_FOR));
                self.named_until.store(until, Ordering::Relaxed);
                Ok(self.ours(&status))
            }
            Ok(_) => Ok(Named::Another),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Named::Nothing),
            Err(errno) => Err(errno.into()),
        }
    }

    fn accept(&self, stamp: Stamp) {
        self.stamp.store(stamp.0, Ordering::Relaxed);
    }

    fn settle(&self) {
        if self.stamp.load(Ordering::Relaxed) == UNKNOWN {
            self.record_change();
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        // A signal that arrives before the first byte is the only failure after which trying again is sound.
        loop {
            match rustix::io::write(&self.file, bytes) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(written) => {
                    self.record_write();
                    return Ok(written);
                }
            }
        }
    }

    fn truncate(&self, len_bytes: u64) -> io::Result<()> {
        self.file.set_len(len_bytes)?;
        self.record_change();
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
