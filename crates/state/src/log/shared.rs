//! State that the threads of a file log share, and how one of them writes for all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};

use super::medium::Stamp;
use super::queue::Queue;
use super::{LogError, Medium, Named};

/// Capacity that an emptied batch may keep, in bytes.
const BATCH_KEPT_BYTES_MAX: usize = 1 << 18;

/// Check that the file of a log still holds its records. Called only when another process has touched the file, so it may
/// read the whole file.
pub trait Contents: Send + Sync {
    /// Returns whether the first `len_bytes` bytes of the file are as they were written. `next` is about to be written behind
    /// them, and may be empty. Returns `None` if that is unknown at this moment.
    fn hold(&self, len_bytes: u64, next: &[u8]) -> Option<bool>;
}

pub(super) struct Shared {
    pub(super) queue: Mutex<Queue>,
    /// Copy of `Queue::settled`, read without the lock.
    pub(super) settled: AtomicU64,
    pub(super) turns: [Condvar; 2],
    pub(super) helper: Condvar,
    pub(super) synced: Condvar,
    pub(super) medium: Box<dyn Medium>,
    /// Whether a helper thread settles the medium when no record comes.
    pub(super) has_helper: bool,
    pub(super) contents: OnceLock<Box<dyn Contents>>,
}

impl Shared {
    pub(super) fn new(queue: Queue, medium: Box<dyn Medium>, has_helper: bool) -> Shared {
        Shared {
            queue: Mutex::new(queue),
            settled: AtomicU64::new(0),
            turns: [Condvar::new(), Condvar::new()],
            helper: Condvar::new(),
            synced: Condvar::new(),
            medium,
            has_helper,
            contents: OnceLock::new(),
        }
    }

    pub(super) fn lock(&self) -> Result<MutexGuard<'_, Queue>, LogError> {
        self.queue.lock().map_err(|_| poisoned_lock())
    }

    /// Writes the records that wait for the next append, unless a write is under way, after which an appender behind it writes
    /// them. Returns the length of the written file.
    ///
    /// # Errors
    /// The failure that ended the log, now or before.
    pub(super) fn write_pending(&self) -> Result<u64, LogError> {
        let queue = self.lock()?;
        if let Some(error) = queue.rejection() {
            return Err(error);
        }
        if !queue.waits_alone() {
            return Ok(queue.written_bytes);
        }
        self.lead(queue)?;
        Ok(self.lock()?.written_bytes)
    }

    /// Writes the batch collected so far, this thread's record in it, and wakes those who wait for it.
    pub(super) fn lead(&self, mut queue: MutexGuard<'_, Queue>) -> Result<(), LogError> {
        let id = queue.collecting;
        if queue.failure.is_some() {
            queue.abandon();
            let outcome = queue.outcome(id);
            self.wake(queue, id);
            return outcome;
        }
        queue.leading = true;
        queue.crowded = std::mem::take(&mut queue.at_once) > 1;
        queue.members = 0;
        queue.collecting = id.saturating_add(1);
        let look = std::mem::take(&mut queue.look);
        let spare = std::mem::take(&mut queue.spare);
        let mut batch = std::mem::replace(&mut queue.batch, spare);
        let start_bytes = queue.written_bytes;
        drop(queue);
        let result = self.write(&batch, start_bytes, look);
        let written = batch.len() as u64;
        batch.clear();
        batch.shrink_to(BATCH_KEPT_BYTES_MAX);
        let mut queue = self.lock()?;
        queue.spare = batch;
        queue.leading = false;
        queue.settled = id.saturating_add(1);
        match result.clone() {
            Ok(()) => queue.written_bytes = start_bytes.saturating_add(written),
            Err(error) => queue.end(error, id),
        }
        self.wake(queue, id);
        result
    }

    /// Wakes the settled batch, one leader for the next, and the helper if it sleeps.
    fn wake(&self, mut queue: MutexGuard<'_, Queue>, settled: u64) {
        self.settled.store(queue.settled, Ordering::Release);
        let failed = queue.failure.is_some();
        let on_done = *queue.waiting(settled);
        let on_next = *queue.waiting(settled.saturating_add(1));
        let helper = std::mem::take(&mut queue.helper_idle);
        drop(queue);
        let [even, odd] = &self.turns;
        let (done, next) = if settled.is_multiple_of(2) {
            (even, odd)
        } else {
            (odd, even)
        };
        if on_done > 0 {
            done.notify_all();
        }
        if failed {
            next.notify_all();
            self.synced.notify_all();
        } else if on_next > 0 {
            next.notify_one();
        }
        if helper {
            self.helper.notify_all();
        }
    }

    /// Inspects the path if a record needs it, then writes once; a partial write is cut off again.
    fn write(&self, batch: &[u8], start_bytes: u64, look: bool) -> Result<(), LogError> {
        if look {
            self.inspect_path(start_bytes, batch)?;
        }
        let cause = match self.medium.write(batch) {
            Ok(written) if written == batch.len() => {
                if !self.has_helper {
                    self.medium.settle();
                }
                return Ok(());
            }
            Ok(_) => LogError::Full,
            Err(error) => LogError::from_io("write", &error),
        };
        match self.medium.truncate(start_bytes) {
            Ok(()) => Err(cause),
            Err(_) => Err(LogError::Torn {
                cause: Arc::new(cause),
            }),
        }
    }

    /// Records on the medium the state after our last write, unless one is under way.
    pub(super) fn settle(&self, queue: &Queue) {
        if !queue.leading {
            self.medium.settle();
        }
    }

    pub(super) fn inspect_path(&self, expected_bytes: u64, next: &[u8]) -> Result<(), LogError> {
        let named = self.medium.inspect_path();
        match named.map_err(|error| LogError::from_io("inspect", &error))? {
            Named::Ours { len_bytes, touched } if len_bytes == expected_bytes => match touched {
                Some(stamp) => self.check_touched(stamp, expected_bytes, next),
                None => Ok(()),
            },
            Named::Ours { len_bytes, .. } if len_bytes < expected_bytes => {
                Err(LogError::Truncated {
                    expected_bytes,
                    found_bytes: len_bytes,
                })
            }
            Named::Ours { len_bytes, .. } => Err(LogError::Grown {
                expected_bytes,
                found_bytes: len_bytes,
            }),
            Named::Nothing => Err(LogError::Unlinked),
            Named::Another => Err(LogError::Replaced),
        }
    }

    /// Handles a file that another process has touched: an edit ends the log, a new link or mode is ignored.
    fn check_touched(&self, stamp: Stamp, len_bytes: u64, next: &[u8]) -> Result<(), LogError> {
        let Some(contents) = self.contents.get() else {
            return Ok(());
        };
        match contents.hold(len_bytes, next) {
            Some(true) => {
                self.medium.accept(stamp);
                Ok(())
            }
            Some(false) => Err(LogError::Edited),
            None => Ok(()),
        }
    }
}

pub(super) fn poisoned_lock() -> LogError {
    LogError::Io {
        action: "go on with",
        kind: std::io::ErrorKind::Other,
        code: None,
    }
}
