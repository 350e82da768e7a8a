//! The embedded log: one file, many appenders, one write at a time.
//!
//! Appenders add their record to a shared batch in a short critical section. Whoever finds no write under way leads: it takes
//! the batch, looks at the path, writes once, and wakes the others of its batch. Records that arrive meanwhile form the next.
//! Two batches exist at any moment (one being written, one being collected), so two condition variables, taken in turn, wake
//! exactly those concerned. A batch is bounded by the number of appending threads times [`RECORD_BYTES_MAX`].

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::medium::Stamp;
use super::queue::Queue;
use super::{FileMedium, Log, LogError, Medium, Named, SyncPolicy, sync};

/// Largest record that [`Log::append`] takes, in bytes.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// Capacity that an emptied batch may keep, in bytes.
const BATCH_KEPT_BYTES_MAX: usize = 1 << 18;

/// Times that a waiting appender gives the processor away before it sleeps.
const YIELDS_MAX: usize = 8;

/// Whether a log's file still holds what was written to it. Asked only when the file was touched by somebody, so it may read
/// the whole file.
pub trait Contents: Send + Sync {
    /// Whether the first `len_bytes` bytes of the file are what was written, given what is to be written behind them (empty
    /// where nothing is). `None`: that cannot be told at this moment.
    fn hold(&self, len_bytes: u64, next: &[u8]) -> Option<bool>;
}

/// A file that is only ever appended to. Shared behind a reference by any number of threads.
pub struct FileLog {
    shared: Arc<Shared>,
    policy: SyncPolicy,
    helper: Mutex<Option<JoinHandle<()>>>,
    contents: Option<Box<dyn Contents>>,
}

pub(super) struct Shared {
    pub(super) queue: Mutex<Queue>,
    /// `Queue::settled`, for a look without the lock.
    settled: AtomicU64,
    turns: [Condvar; 2],
    pub(super) helper: Condvar,
    pub(super) synced: Condvar,
    pub(super) medium: Box<dyn Medium>,
}

impl FileLog {
    /// Creates the file at `path`, which must not exist, `0600`, locked, and forces its name into the directory.
    ///
    /// # Errors
    /// Any [`LogError`] of creating, locking or syncing.
    pub fn create(path: &Path, policy: SyncPolicy) -> Result<FileLog, LogError> {
        let medium = FileMedium::create(path)?;
        if policy != SyncPolicy::Never
            && let Some(parent) = path.parent()
        {
            crate::directory::sync(parent)
                .map_err(|error| LogError::from_io("sync the directory of", &error))?;
        }
        FileLog::on(Box::new(medium), policy)
    }

    /// Opens an existing file under a lock, to continue behind its last byte. Whether that byte ends a record is the caller's
    /// knowledge.
    ///
    /// # Errors
    /// [`LogError::Locked`] when another process writes it; any other [`LogError`] of opening.
    pub fn open(path: &Path, policy: SyncPolicy) -> Result<FileLog, LogError> {
        FileLog::on(Box::new(FileMedium::open(path)?), policy)
    }

    /// A log on any medium; tests give one that fails.
    ///
    /// # Errors
    /// [`LogError`] when the medium cannot be looked at or the helper thread cannot be started.
    pub fn on(medium: Box<dyn Medium>, policy: SyncPolicy) -> Result<FileLog, LogError> {
        let len_bytes = match medium
            .look()
            .map_err(|error| LogError::from_io("inspect", &error))?
        {
            Named::Ours { len_bytes, .. } => len_bytes,
            Named::Nothing => return Err(LogError::Unlinked),
            Named::Another => return Err(LogError::Replaced),
        };
        let queue = Queue::starting_at(len_bytes);
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            settled: AtomicU64::new(0),
            turns: [Condvar::new(), Condvar::new()],
            helper: Condvar::new(),
            synced: Condvar::new(),
            medium,
        });
        let pause = match policy {
            SyncPolicy::Never => None,
            SyncPolicy::Every => Some(Duration::ZERO),
            SyncPolicy::Interval { interval_ms } => Some(Duration::from_millis(interval_ms)),
        };
        let helper = pause.map(|pause| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("log-sync".to_owned())
                .spawn(move || sync::run(&shared, pause))
        });
        let helper = helper
            .transpose()
            .map_err(|error| LogError::from_io("start the sync thread of", &error))?;
        Ok(FileLog {
            shared,
            policy,
            helper: Mutex::new(helper),
            contents: None,
        })
    }

    /// Has the contents looked into whenever the file was touched by somebody else; without this only its length is known.
    #[must_use]
    pub fn knowing(mut self, contents: Box<dyn Contents>) -> FileLog {
        self.contents = Some(contents);
        self
    }

    /// Bytes that have been written, and of those the ones that a sync has covered.
    #[must_use]
    pub fn reached(&self) -> (u64, u64) {
        let queue = self.shared.queue.lock();
        let queue = queue.unwrap_or_else(PoisonError::into_inner);
        (queue.written_bytes, queue.synced_bytes)
    }

    /// Appends what `compose` adds to the buffer, in the order in which `compose` is called; it runs inside the critical
    /// section, so it must be short and must not touch this log. When it fails, what it added is dropped and nothing else
    /// changes. Returns its value once the record is written (and, under [`SyncPolicy::Every`], synced).
    ///
    /// # Errors
    /// What `compose` returned, or any [`LogError`] that is final for the log.
    pub fn append_with<T, E, F>(&self, compose: F) -> Result<T, E>
    where
        E: From<LogError>,
        F: FnOnce(&mut Vec<u8>) -> Result<T, E>,
    {
        self.enqueue(true, compose).map(|(value, _)| value)
    }

    /// [`FileLog::append_with`] without a look at the path before the write, for a record of what has happened already:
    /// that the file is no longer ours is for the next one to find out that something depends on.
    ///
    /// # Errors
    /// As [`FileLog::append_with`], but for those of the look.
    pub fn append_after_with<T, E, F>(&self, compose: F) -> Result<T, E>
    where
        E: From<LogError>,
        F: FnOnce(&mut Vec<u8>) -> Result<T, E>,
    {
        self.enqueue(false, compose).map(|(value, _)| value)
    }

    /// [`FileLog::append_with`], which also tells the offset behind what was appended.
    fn enqueue<T, E, F>(&self, look: bool, compose: F) -> Result<(T, u64), E>
    where
        E: From<LogError>,
        F: FnOnce(&mut Vec<u8>) -> Result<T, E>,
    {
        let mut queue = self.lock()?;
        if let Some(error) = queue.refused() {
            return Err(error.into());
        }
        let before = queue.batch.len();
        let value = match compose(&mut queue.batch) {
            Ok(value) => value,
            Err(error) => {
                queue.batch.truncate(before);
                return Err(error);
            }
        };
        queue.members = queue.members.saturating_add(1);
        queue.look |= look;
        let added = queue.batch.len().saturating_sub(before);
        queue.accepted_bytes = queue.accepted_bytes.saturating_add(added as u64);
        let (mine, end_bytes) = (queue.collecting, queue.accepted_bytes);
        self.settle(queue, mine)?;
        self.covered(end_bytes)?;
        Ok((value, end_bytes))
    }

    /// Returns once the batch `mine` is settled, written by this thread or by another.
    fn settle<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, mine: u64) -> Result<(), LogError> {
        if !queue.leading {
            if !queue.crowded {
                return self.lead(queue);
            }
            // Others are about to append: whoever comes back first leads for all of them.
            drop(queue);
            std::thread::yield_now();
            queue = self.lock()?;
            if queue.settled > mine {
                return queue.outcome(mine);
            }
            if !queue.leading {
                return self.lead(queue);
            }
        }
        drop(queue);
        // A write is short: giving the processor away a few times is cheaper than sleeping and being woken.
        for _ in 0..YIELDS_MAX {
            std::thread::yield_now();
            if self.shared.settled.load(Ordering::Acquire) > mine {
                break;
            }
        }
        queue = self.lock()?;
        while queue.settled <= mine {
            if !queue.leading {
                return self.lead(queue);
            }
            queue = self.follow(queue, mine)?;
        }
        queue.outcome(mine)
    }

    /// Sleeps until the batch `mine` is settled or it is this thread's turn to write it.
    fn follow<'a>(
        &self,
        mut queue: MutexGuard<'a, Queue>,
        mine: u64,
    ) -> Result<MutexGuard<'a, Queue>, LogError> {
        let [even, odd] = &self.shared.turns;
        let turn = if mine.is_multiple_of(2) { even } else { odd };
        *queue.waiting(mine) += 1;
        let mut queue = turn.wait(queue).map_err(|_| panicked())?;
        *queue.waiting(mine) -= 1;
        Ok(queue)
    }

    /// Writes the batch collected so far, this thread's record in it, and wakes those who wait for it.
    fn lead(&self, mut queue: MutexGuard<'_, Queue>) -> Result<(), LogError> {
        let id = queue.collecting;
        if queue.failure.is_some() {
            queue.abandon();
            let outcome = queue.outcome(id);
            self.wake(queue, id);
            return outcome;
        }
        queue.leading = true;
        queue.crowded = std::mem::take(&mut queue.members) > 1;
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

    /// Wakes the batch that was settled, one leader for the next, and the helper where it sleeps.
    fn wake(&self, mut queue: MutexGuard<'_, Queue>, settled: u64) {
        self.shared.settled.store(queue.settled, Ordering::Release);
        let failed = queue.failure.is_some();
        let on_done = *queue.waiting(settled);
        let on_next = *queue.waiting(settled.saturating_add(1));
        let helper = std::mem::take(&mut queue.helper_idle);
        drop(queue);
        let [even, odd] = &self.shared.turns;
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
            self.shared.synced.notify_all();
        } else if on_next > 0 {
            next.notify_one();
        }
        if helper {
            self.shared.helper.notify_all();
        }
    }

    /// One look at the path where a record asks for it, one write; a part that was written is cut off again.
    fn write(&self, batch: &[u8], start_bytes: u64, look: bool) -> Result<(), LogError> {
        if look {
            self.look(start_bytes, batch)?;
        }
        let cause = match self.shared.medium.write(batch) {
            Ok(written) if written == batch.len() => return Ok(()),
            Ok(_) => LogError::Full,
            Err(error) => LogError::from_io("write", &error),
        };
        match self.shared.medium.truncate(start_bytes) {
            Ok(()) => Err(cause),
            Err(_) => Err(LogError::Torn {
                cause: Arc::new(cause),
            }),
        }
    }

    fn look(&self, expected_bytes: u64, next: &[u8]) -> Result<(), LogError> {
        let named = self.shared.medium.look();
        match named.map_err(|error| LogError::from_io("inspect", &error))? {
            Named::Ours { len_bytes, touched } if len_bytes == expected_bytes => match touched {
                Some(stamp) => self.touched(stamp, expected_bytes, next),
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

    /// Somebody touched the file: an edit ends the log, a new link or mode is let be.
    fn touched(&self, stamp: Stamp, len_bytes: u64, next: &[u8]) -> Result<(), LogError> {
        let Some(contents) = &self.contents else {
            return Ok(());
        };
        match contents.hold(len_bytes, next) {
            Some(true) => {
                self.shared.medium.accept(stamp);
                Ok(())
            }
            Some(false) => Err(LogError::Edited),
            None => Ok(()),
        }
    }

    /// Under [`SyncPolicy::Every`], waits for a sync that covers `end_bytes`.
    fn covered(&self, end_bytes: u64) -> Result<(), LogError> {
        if self.policy != SyncPolicy::Every {
            return Ok(());
        }
        let mut queue = self.lock()?;
        while queue.synced_bytes < end_bytes {
            if let Some(error) = &queue.failure {
                return Err(error.clone());
            }
            queue = self.shared.synced.wait(queue).map_err(|_| panicked())?;
        }
        Ok(())
    }

    /// The error that an append would meet because of an earlier failure, without looking at the file.
    #[must_use]
    pub fn failure(&self) -> Option<LogError> {
        match self.lock() {
            Ok(queue) => queue.refused(),
            Err(error) => Some(error),
        }
    }

    /// Syncs, stops the helper thread and lets nothing more in. Closing twice is harmless.
    ///
    /// # Errors
    /// What the last sync, or an earlier failure, reports.
    pub fn close(&self) -> Result<(), LogError> {
        let synced = if self.policy == SyncPolicy::Never {
            Ok(())
        } else {
            self.sync()
        };
        self.stop();
        synced
    }

    fn stop(&self) {
        self.shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stopping = true;
        self.shared.helper.notify_all();
        let helper = self
            .helper
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // The helper cannot panic; were it to, there is nothing left to stop.
        let _ = helper.map(JoinHandle::join);
    }

    fn lock(&self) -> Result<MutexGuard<'_, Queue>, LogError> {
        self.shared.queue.lock().map_err(|_| panicked())
    }
}

impl Log for FileLog {
    fn append(&self, record: &[u8]) -> Result<u64, LogError> {
        if record.len() > RECORD_BYTES_MAX {
            return Err(LogError::TooLarge {
                record_bytes: record.len(),
                record_bytes_max: RECORD_BYTES_MAX,
            });
        }
        let appended = self.enqueue(true, |batch| {
            batch.extend_from_slice(record);
            Ok::<_, LogError>(())
        });
        appended.map(|((), end_bytes)| end_bytes)
    }

    fn check(&self) -> Result<(), LogError> {
        let mut queue = self.lock()?;
        if let Some(error) = queue.refused() {
            return Err(error);
        }
        // While a write is under way the length is in flux, and that write looks for itself.
        if queue.leading {
            return Ok(());
        }
        self.look(queue.written_bytes, &[])
            .inspect_err(|error| queue.fail(error.clone()))
    }

    fn sync(&self) -> Result<(), LogError> {
        let (target, failure) = {
            let queue = self.lock()?;
            (queue.written_bytes, queue.refused())
        };
        if let Some(error) = failure {
            return Err(error);
        }
        let result = self
            .shared
            .medium
            .sync()
            .map_err(|error| LogError::from_io("sync", &error));
        let mut queue = self.lock()?;
        match result {
            Ok(()) => queue.synced_bytes = queue.synced_bytes.max(target),
            Err(error) => {
                queue.fail(error.clone());
                return Err(error);
            }
        }
        self.shared.synced.notify_all();
        Ok(())
    }

    fn len_bytes(&self) -> u64 {
        self.shared
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .accepted_bytes
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for FileLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileLog")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

fn panicked() -> LogError {
    LogError::Io {
        action: "go on with",
        kind: std::io::ErrorKind::Other,
        code: None,
    }
}
