//! Who keeps the head: reads it, changes it, and puts the new one in its place, one process at a time.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use state::{DirectoryError, DirectoryLock, SyncPolicy, directory};

use super::{ENDS_MAX, HEAD_BYTES_MAX, HEAD_FILE, Head, NotAHead};
use crate::journal::{JournalError, Keys, SegmentId};

/// A moment at which the journal and its head have just changed on the disk, or are about to. What lies on the disk then is
/// what a crash would leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Step {
    /// The head names the segment that is about to be begun.
    Announced,
    /// The segment before has its closing record.
    Closed,
    /// The new segment has its header.
    Begun,
    /// Abandoned segments are named in the journal.
    Adopted,
    /// Retired segments are named in the journal, and still there.
    Retiring,
    /// Retired segments are gone from the head, and still there.
    Forgotten,
    /// Retired segments are gone.
    Retired,
    /// A new head is about to be put in the place of the old one.
    HeadReady,
    /// The new head is in place, and no witness has it.
    HeadInPlace,
}

/// Told of each [`Step`]; tests look at the disk then.
pub type Steps = Arc<dyn Fn(Step) + Send + Sync>;

/// Keeps the head of one installation, for one journal in this process.
pub(in crate::journal) struct Keeper {
    directory: PathBuf,
    keys: Keys,
    durable: bool,
    steps: Option<Steps>,
    /// Serial of the latest head that this process has seen, which no later one may fall below. Held during a change.
    seen: Mutex<u64>,
}

/// A head that was put in place.
pub(in crate::journal) struct Kept {
    pub(in crate::journal) head: Head,
    /// As it was written.
    pub(in crate::journal) line: Vec<u8>,
}

/// Puts the first head of a new key in place. The caller holds the key directory's lock.
pub(in crate::journal) fn first(keys: &Keys, directory: &Path) -> Result<(), DirectoryError> {
    // A key has no clock; the first journal that is opened under it states the time.
    let line = Head::first(0, false).write(|message| keys.sign(message));
    directory::write_private(&directory.join(HEAD_FILE), &line.unwrap_or_default())
}

impl Keeper {
    /// The keeper of the head beside these keys; `None` where they are not kept themselves.
    pub(in crate::journal) fn of(
        keys: &Keys,
        sync: SyncPolicy,
        steps: Option<Steps>,
    ) -> Option<Keeper> {
        Some(Keeper {
            directory: keys.home()?.to_path_buf(),
            keys: keys.clone(),
            durable: sync != SyncPolicy::Never,
            steps,
            seen: Mutex::new(0),
        })
    }

    /// Tells of a step.
    pub(in crate::journal) fn step(&self, step: Step) {
        if let Some(steps) = &self.steps {
            steps(step);
        }
    }

    /// Changes the head under its lock and puts the new one in place. `None`: `patient` is not asked for and another process
    /// holds the lock.
    pub(in crate::journal) fn change(
        &self,
        now_ms: i64,
        patient: bool,
        change: &mut dyn FnMut(&mut Head) -> Result<(), JournalError>,
    ) -> Result<Option<Kept>, JournalError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = if patient {
            Some(DirectoryLock::acquire(&self.directory)?)
        } else {
            DirectoryLock::try_acquire(&self.directory)?
        };
        let Some(lock) = lock else {
            return Ok(None);
        };
        let mut head = self.read(*seen, now_ms)?;
        change(&mut head)?;
        if head.ends.len() > ENDS_MAX {
            return Err(self.refused(format!("it would name more than {ENDS_MAX} ends")));
        }
        head.serial = head.serial.saturating_add(1);
        head.time_ms = now_ms;
        let line = head
            .write(|message| self.keys.sign(message))
            .ok_or(JournalError::Unwritable)?;
        self.step(Step::HeadReady);
        let path = self.path();
        directory::replace_private(&path, &line, self.durable)?;
        *seen = head.serial;
        drop(lock);
        self.step(Step::HeadInPlace);
        Ok(Some(Kept { head, line }))
    }

    pub(in crate::journal) fn keys(&self) -> &Keys {
        &self.keys
    }

    fn path(&self) -> PathBuf {
        self.directory.join(HEAD_FILE)
    }

    fn refused(&self, problem: impl Into<String>) -> JournalError {
        JournalError::Head {
            path: self.path(),
            problem: problem.into(),
        }
    }

    /// The head in place. One that this process has seen may be neither missing nor older.
    fn read(&self, seen: u64, now_ms: i64) -> Result<Head, JournalError> {
        let mut bytes = Vec::new();
        let read = File::open(self.path())
            .and_then(|file| file.take(HEAD_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound && seen == 0 => {
                // The key is older than the head: an older version left none, or somebody took it away.
                return Ok(Head::first(now_ms, true));
            }
            Err(error) => return Err(self.refused(format!("cannot be read: {error}"))),
            Ok(_) => {}
        }
        let mut head = match Head::read(&bytes, &[self.keys.public()]) {
            Ok(head) => head,
            Err(NotAHead::Malformed) => {
                return Err(self.refused(
                    "is damaged; keep a copy to investigate, and move it away to start a new one",
                ));
            }
            Err(NotAHead::Unsigned) => {
                return Err(self.refused("is not signed with the key beside it; keep copies of both to investigate, and move it away to start a new one"));
            }
        };
        if head.serial < seen {
            return Err(self.refused("was put back to an older state while it was being kept"));
        }
        if head.begun_ms == 0 {
            head.begun_ms = now_ms;
        }
        Ok(head)
    }

    /// The error for a segment of ours that the head no longer names.
    pub(in crate::journal) fn dropped(&self, segment: SegmentId) -> JournalError {
        self.refused(format!(
            "no longer names segment {segment}, which is being written"
        ))
    }
}
