//! The journal as the gate sees it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use state::{DirectoryLock, Log as _, directory};

use super::body;
use super::chain::{SegmentId, body_hash};
use super::segment::{Declined, Opening, Segment};
use super::{Digest, JournalError, JournalOptions, Keys, Record, retention, shelf};

/// Capacity that a thread's buffer may keep between records, in bytes.
const BUFFER_KEPT_BYTES_MAX: usize = 16 * 1024;

/// Segments that one append may find ended before it gives up; more means that the size is set absurdly small.
const ROTATIONS_MAX: usize = 64;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Where a record went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its position in the segment.
    pub sequence: u64,
    /// The segment.
    pub segment: SegmentId,
}

/// An open journal. Shared by all threads behind an `Arc`.
pub struct Journal {
    directory: PathBuf,
    keys: Keys,
    options: JournalOptions,
    instance: [u8; 16],
    slot: RwLock<Slot>,
    rotation: Mutex<Names>,
}

#[derive(Clone)]
enum Slot {
    Open(Arc<Segment>),
    Closed,
    Failed(Arc<str>),
}

/// Names for coming segments, drawn from one secret seed.
struct Names {
    seed: [u8; 32],
    drawn: u64,
}

impl Names {
    fn next(&mut self) -> SegmentId {
        self.drawn = self.drawn.saturating_add(1);
        let mut id = [0; 16];
        for (to, from) in id
            .iter_mut()
            .zip(blake3::keyed_hash(&self.seed, &self.drawn.to_be_bytes()).as_bytes())
        {
            *to = *from;
        }
        SegmentId(id)
    }
}

impl Journal {
    /// Opens a journal in `dir`, made `0700` where it is missing: starts a new segment, which continues the newest closed one
    /// that nobody continues yet, or else a chain of its own. `instance` names the running program, `now_ms` is milliseconds
    /// since 1970 (UTC), `random` fills its argument with uniform bytes.
    ///
    /// # Errors
    /// Any [`JournalError`]: nothing may be forwarded then.
    pub fn open(
        dir: &Path,
        keys: &Keys,
        opts: JournalOptions,
        instance: [u8; 16],
        now_ms: i64,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Journal, JournalError> {
        directory::create_private(dir)?;
        let mut names = Names {
            seed: [0; 32],
            drawn: 0,
        };
        random(&mut names.seed);
        let lock = DirectoryLock::acquire(dir)?;
        let continued = shelf::continuable(dir, keys.public())?;
        let opening = Opening {
            id: names.next(),
            instance,
            continues: continued.map(|(continues, _)| continues),
            after_ms: continued.and_then(|(_, named_ms)| named_ms),
        };
        let segment = Segment::create(dir, keys, opts, &opening, now_ms)?;
        if let Some(retain_bytes_max) = opts.retain_bytes_max {
            retention::retire(dir, keys, &segment, retain_bytes_max, now_ms)?;
        }
        drop(lock);
        Ok(Journal {
            directory: dir.to_path_buf(),
            keys: keys.clone(),
            options: opts,
            instance,
            slot: RwLock::new(Slot::Open(Arc::new(segment))),
            rotation: Mutex::new(names),
        })
    }

    /// Appends one record. When this returns, the record is in the file; under [`state::SyncPolicy::Every`], on the disk.
    /// Before anything but an operation, whether the path still names that file is looked at: an operation is over.
    ///
    /// # Errors
    /// Any [`JournalError`]: the record is not in the journal, so what it records must not happen. After an error that
    /// [`JournalError::is_fatal`] every later append fails too.
    pub fn append(&self, now_ms: i64, record: &Record<'_>) -> Result<Appended, JournalError> {
        // The buffer is taken out for the time of use, so that nothing breaks should an append ever happen within an append.
        let mut body = BUFFER.take();
        body.clear();
        let result = body::write(&mut body, now_ms, record).and_then(|()| {
            let afterwards = matches!(record, Record::Operation(_));
            self.append_body(now_ms, &body, afterwards)
        });
        body.shrink_to(BUFFER_KEPT_BYTES_MAX);
        BUFFER.set(body);
        result
    }

    fn append_body(
        &self,
        now_ms: i64,
        body: &[u8],
        afterwards: bool,
    ) -> Result<Appended, JournalError> {
        let hash = body_hash(body);
        for _ in 0..ROTATIONS_MAX {
            let segment = self.segment()?;
            match segment.append(&self.keys, now_ms, (body, &hash), afterwards) {
                Ok(sequence) => {
                    return Ok(Appended {
                        sequence,
                        segment: segment.id,
                    });
                }
                Err(Declined::Ended) => self.rotate(&segment, now_ms)?,
                Err(Declined::Refused(error)) => return Err(error),
            }
        }
        Err(JournalError::Failed {
            cause: "segments end faster than they are opened".to_owned(),
        })
    }

    /// The keyed digest of contents that must not be written.
    #[must_use]
    pub fn digest(&self, bytes: &[u8]) -> Digest {
        self.keys.digest(bytes)
    }

    /// To be called every second or so: writes the checkpoint that is due by time and looks whether the file is still ours, so
    /// that a quiet journal notices too.
    ///
    /// # Errors
    /// Any [`JournalError`]: the journal is over.
    pub fn tick(&self, now_ms: i64) -> Result<(), JournalError> {
        let segment = self.segment()?;
        match segment.checkpoint(&self.keys, now_ms, false) {
            // Another thread is opening the next segment, which looks for itself.
            Err(Declined::Ended) => Ok(()),
            Err(Declined::Refused(error)) => Err(error),
            Ok(()) => Ok(segment.log.check()?),
        }
    }

    /// Closes the segment with a signed record, syncs, and takes nothing more. Closing twice is harmless.
    ///
    /// # Errors
    /// Any [`JournalError`]; the segment then ends without its closing record, as after a crash.
    pub fn close(&self, now_ms: i64, reason: &str) -> Result<(), JournalError> {
        let turn = self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        let segment = match self.segment() {
            Err(JournalError::Closed) => return Ok(()),
            other => other?,
        };
        let result = segment.close(&self.keys, now_ms, reason);
        self.put(Slot::Closed);
        drop(turn);
        result?;
        Ok(segment.log.close()?)
    }

    /// Whether the journal still takes records, as far as is known without looking at the file.
    ///
    /// # Errors
    /// The [`JournalError`] that an append would meet.
    pub fn healthy(&self) -> Result<(), JournalError> {
        match self.segment()?.log.failure() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn segment(&self) -> Result<Arc<Segment>, JournalError> {
        match &*self.slot.read().unwrap_or_else(PoisonError::into_inner) {
            Slot::Open(segment) => Ok(Arc::clone(segment)),
            Slot::Closed => Err(JournalError::Closed),
            Slot::Failed(cause) => Err(JournalError::Failed {
                cause: cause.to_string(),
            }),
        }
    }

    fn put(&self, slot: Slot) {
        *self.slot.write().unwrap_or_else(PoisonError::into_inner) = slot;
    }

    /// Puts a new segment in the place of `ended`, unless another thread has done so meanwhile.
    fn rotate(&self, ended: &Arc<Segment>, now_ms: i64) -> Result<(), JournalError> {
        let mut names = self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.segment()?;
        if !Arc::ptr_eq(&current, ended) {
            return Ok(());
        }
        match self.succeed(&current, names.next(), now_ms) {
            Ok(next) => {
                self.put(Slot::Open(next));
                Ok(())
            }
            Err(error) => {
                self.put(Slot::Failed(error.to_string().into()));
                Err(error)
            }
        }
    }

    /// Closes `current` and opens its successor, under one lock, so that nobody else continues it.
    fn succeed(
        &self,
        current: &Segment,
        id: SegmentId,
        now_ms: i64,
    ) -> Result<Arc<Segment>, JournalError> {
        let lock = DirectoryLock::acquire(&self.directory)?;
        let continues = Some(current.close(&self.keys, now_ms, "rotated")?);
        current.log.close()?;
        let opening = Opening {
            id,
            instance: self.instance,
            continues,
            after_ms: Some(current.named_ms),
        };
        let next = Segment::create(&self.directory, &self.keys, self.options, &opening, now_ms)?;
        if let Some(retain_bytes_max) = self.options.retain_bytes_max {
            retention::retire(&self.directory, &self.keys, &next, retain_bytes_max, now_ms)?;
        }
        drop(lock);
        Ok(Arc::new(next))
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}
