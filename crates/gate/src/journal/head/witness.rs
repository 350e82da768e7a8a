//! A witness: somebody else who is given each head, so that what was once stated cannot be taken back by whoever holds the key.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Largest file that a [`FileWitness`] writes, in bytes; beyond it the file has to be moved away.
pub const WITNESS_BYTES_MAX: u64 = 1 << 30;

/// Takes heads for safekeeping.
pub trait Witness: Send + Sync {
    /// Takes one signed head, a line with its end. Called from a thread of its own, so it may wait.
    ///
    /// # Errors
    /// Whatever keeps it from taking the head; the next one is offered again.
    fn take(&self, head: &[u8]) -> io::Result<()>;

    /// What people call it.
    fn name(&self) -> String;
}

/// A file that heads are added to, best on another volume and append-only (`chattr +a`).
#[derive(Debug)]
pub struct FileWitness {
    path: PathBuf,
}

impl FileWitness {
    /// A witness that adds to this file; it is made, `0600`, where it is missing.
    #[must_use]
    pub fn new(path: &Path) -> FileWitness {
        FileWitness {
            path: path.to_path_buf(),
        }
    }
}

impl Witness for FileWitness {
    fn take(&self, head: &[u8]) -> io::Result<()> {
        // Opened each time: the volume may have been mounted anew, the file been moved away.
        let options = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .clone();
        let mut file = options.open(&self.path)?;
        let length = file.metadata()?.len();
        if length.saturating_add(head.len() as u64) > WITNESS_BYTES_MAX {
            return Err(io::Error::other(format!(
                "it holds {length} bytes, the most it may; move it away"
            )));
        }
        file.write_all(head)?;
        file.sync_data()
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}
