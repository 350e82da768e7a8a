//! The embedded log: one file, many appenders, one write at a time.
//!
//! Appenders add their record to a shared batch in a short critical section. An appender that finds no write under way
//! leads: it takes the batch, inspects the path, writes once, and wakes the others of its batch. Records that arrive meanwhile form the next.
//! Two batches exist at any moment (one being written, one being collected), so two condition variables, taken in turn, wake
//! exactly those concerned. A record of a past event waits in the batch for the next append, and the helper thread
//! writes it if none comes in time. A batch is bounded by the number of appending threads times [`RECORD_BYTES_MAX`].

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::queue::Queue;
use super::shared::{Contents, Shared, poisoned_lock};
use super::{FileMedium, Log, LogError, Medium, Named, SyncPolicy, sync};

/// Largest record that [`Log::append`] takes, in bytes.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// Most bytes that wait for the next append.
pub const LATER_BYTES_MAX: usize = 1 << 16;

/// Times that a waiting appender gives the processor away before it sleeps.
const YIELDS_MAX: usize = 8;

/// A record that is in a batch and not known to be written yet.
#[derive(Debug, Clone, Copy)]
#[must_use = "what is composed is to be finished"]
pub struct Composed {
    batch: u64,
    /// The offset behind it.
    end_bytes: u64,
}

/// A file that is only ever appended to. Shared behind a reference by any number of threads.
pub struct FileLog {
    shared: Arc<Shared>,
    policy: SyncPolicy,
    helper: Mutex<Option<JoinHandle<()>>>,
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
        FileLog::on_medium(Box::new(medium), policy)
    }

    /// Opens an existing file under a lock, to continue behind its last byte. Whether that byte ends a record is the caller's
    /// knowledge.
    ///
    /// # Errors
    /// [`LogError::Locked`] when another process writes it; any other [`LogError`] of opening.
    pub fn open(path: &Path, policy: SyncPolicy) -> Result<FileLog, LogError> {
        FileLog::on_medium(Box::new(FileMedium::open(path)?), policy)
    }

    /// A log on any medium; tests give one that fails.
    ///
    /// # Errors
    /// [`LogError`] if the medium cannot be inspected or the helper thread cannot be started.
    pub fn on_medium(medium: Box<dyn Medium>, policy: SyncPolicy) -> Result<FileLog, LogError> {
        let len_bytes = match medium
            .inspect_path()
            .map_err(|error| LogError::from_io("inspect", &error))?
        {
            Named::Ours { len_bytes, .. } => len_bytes,
            Named::Nothing => return Err(LogError::Unlinked),
            Named::Another => return Err(LogError::Replaced),
        };
        let queue = Queue::starting_at(len_bytes);
        let shared = Arc::new(Shared::new(queue, medium, policy != SyncPolicy::Never));
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
        })
    }

    /// Adds a check of the contents for when another process has touched the file; without it only the length is checked.
    #[must_use]
    pub fn with_contents(self, contents: Box<dyn Contents>) -> FileLog {
        // Set once: a log is given its contents before it is shared.
        let _ = self.shared.contents.set(contents);
        self
    }

    /// Bytes that have been written, and of those the ones that a sync has covered.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let queue = self.shared.queue.lock();
        let queue = queue.unwrap_or_else(PoisonError::into_inner);
        (queue.written_bytes, queue.synced_bytes)
    }

    /// Appends what `compose` adds to the buffer, in the order in which `compose` is called; it runs inside the critical
    /// section, so it must be short and must not touch this log. If it fails, its additions are dropped and nothing else
    /// changes. Returns its value once the record is written (and, under [`SyncPolicy::Every`], synced).
    ///
    /// # Errors
    /// The error of `compose`, or any [`LogError`] that is final for the log.
    pub fn append_with<T, E, F>(&self, compose: F) -> Result<T, E>
    where
        E: From<LogError>,
        F: FnOnce(&mut Vec<u8>) -> Result<T, E>,
    {
        self.enqueue(compose).map(|(value, _)| value)
    }

    /// Appends a record of a past event without waiting: it is written with the next record, at the latest [`LATER_MS`]
    /// milliseconds later. The next append that waits, or [`Log::check`], reports a failure. Under [`SyncPolicy::Never`] the
    /// log has no helper thread, so the record is written at once, without inspecting the path.
    ///
    /// # Errors
    /// The error of `compose`, or that the log has failed before.
    pub fn append_later_with<T, E, F>(&self, compose: F) -> Result<T, E>
    where
        E: From<LogError>,
        F: FnOnce(&mut Vec<u8>) -> Result<T, E>,
    {
        let mut queue = self.shared.lock()?;
        let value = self.compose(&mut queue, compose)?;
        if self.policy == SyncPolicy::Never {
            queue.members = queue.members.saturating_add(1);
            let mine = queue.collecting;
            self.settle(queue, mine)?;
        } else if queue.batch.len() > LATER_BYTES_MAX && !queue.leading {
            // Whether it could be written is for the next one to find out.
            let _ = self.shared.lead(queue);
        } else if std::mem::take(&mut queue.helper_idle) {
            drop(queue);
            self.shared.helper.notify_all();
        }
        Ok(value)
    }

    /// Adds a record to the batch that is being collected.
    fn compose<T, E, F>(&self, queue: &mut Queue, compose: F) -> Result<T, E>
    where
        E: From<LogError>,
        F: FnOnce(&mut Vec<u8>) -> Result<T, E>,
    {
        if let Some(error) = queue.rejection() {
            return Err(error.into());
        }
        let before = queue.batch.len();
        let value = compose(&mut queue.batch).inspect_err(|_| queue.batch.truncate(before))?;
        let added = queue.batch.len().saturating_sub(before);
        queue.accepted_bytes = queue.accepted_bytes.saturating_add(added as u64);
        Ok(value)
    }

    /// [`FileLog::append_with`] in two steps, so that one write serves several records of one thread: a composed record leaves
    /// with the next write, and [`FileLog::finish`] sees to that. It must be called for each, or records that only wait for the
    /// next append wait for longer.
    ///
    /// # Errors
    /// The error of `compose`, or that the log has failed before.
    pub fn begin_with<T, E, F>(&self, compose: F) -> Result<(T, Composed), E>
    where
        E: From<LogError>,
        F: FnOnce(&mut Vec<u8>) -> Result<T, E>,
    {
        let mut queue = self.shared.lock()?;
        let value = self.compose(&mut queue, compose)?;
        Ok((value, Self::join_batch(&mut queue)))
    }

    /// Returns once the composed record is written (and, under [`SyncPolicy::Every`], synced), by another thread or now.
    ///
    /// # Errors
    /// Any [`LogError`] that is final for the log.
    pub fn finish(&self, composed: Composed) -> Result<(), LogError> {
        let queue = self.shared.lock()?;
        self.await_batch(queue, composed.batch)?;
        self.await_sync(composed.end_bytes)
    }

    fn join_batch(queue: &mut Queue) -> Composed {
        queue.members = queue.members.saturating_add(1);
        queue.look = true;
        Composed {
            batch: queue.collecting,
            end_bytes: queue.accepted_bytes,
        }
    }

    /// Appends as [`FileLog::append_with`] does, and also returns the offset behind the record.
    fn enqueue<T, E, F>(&self, compose: F) -> Result<(T, u64), E>
    where
        E: From<LogError>,
        F: FnOnce(&mut Vec<u8>) -> Result<T, E>,
    {
        let mut queue = self.shared.lock()?;
        let value = self.compose(&mut queue, compose)?;
        let Composed { batch, end_bytes } = Self::join_batch(&mut queue);
        queue.at_once = queue.at_once.saturating_add(1);
        self.settle(queue, batch)?;
        self.await_sync(end_bytes)?;
        Ok((value, end_bytes))
    }

    /// Returns once the batch `mine` is settled, written by this thread or by another.
    fn settle<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, mine: u64) -> Result<(), LogError> {
        if !queue.leading {
            if !queue.crowded {
                return self.shared.lead(queue);
            }
            // Others are about to append: the first to come back leads for all of them.
            drop(queue);
            std::thread::yield_now();
            queue = self.shared.lock()?;
            if queue.settled > mine {
                return queue.outcome(mine);
            }
            if !queue.leading {
                return self.shared.lead(queue);
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
        self.await_batch(self.shared.lock()?, mine)
    }

    /// Returns once the batch `mine` is settled: writes it if no thread does, else sleeps.
    fn await_batch<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        mine: u64,
    ) -> Result<(), LogError> {
        while queue.settled <= mine {
            if !queue.leading {
                return self.shared.lead(queue);
            }
            queue = self.sleep_for_batch(queue, mine)?;
        }
        queue.outcome(mine)
    }

    /// Sleeps until the batch `mine` is settled or it is this thread's turn to write it.
    fn sleep_for_batch<'a>(
        &self,
        mut queue: MutexGuard<'a, Queue>,
        mine: u64,
    ) -> Result<MutexGuard<'a, Queue>, LogError> {
        let [even, odd] = &self.shared.turns;
        let turn = if mine.is_multiple_of(2) { even } else { odd };
        *queue.waiting(mine) += 1;
        let mut queue = turn.wait(queue).map_err(|_| poisoned_lock())?;
        *queue.waiting(mine) -= 1;
        Ok(queue)
    }

    /// Under [`SyncPolicy::Every`], waits for a sync that covers `end_bytes`.
    fn await_sync(&self, end_bytes: u64) -> Result<(), LogError> {
        if self.policy != SyncPolicy::Every {
            return Ok(());
        }
        let mut queue = self.shared.lock()?;
        while queue.synced_bytes < end_bytes {
            if let Some(error) = &queue.failure {
                return Err(error.clone());
            }
            queue = self
                .shared
                .synced
                .wait(queue)
                .map_err(|_| poisoned_lock())?;
        }
        Ok(())
    }

    /// Returns the error that an append would meet because of an earlier failure, without inspecting the file.
    #[must_use]
    pub fn failure(&self) -> Option<LogError> {
        match self.shared.lock() {
            Ok(queue) => queue.rejection(),
            Err(error) => Some(error),
        }
    }

    /// Syncs, stops the helper thread and lets nothing more in. Closing twice is harmless.
    ///
    /// # Errors
    /// The error of the last sync, or an earlier failure.
    pub fn close(&self) -> Result<(), LogError> {
        let synced = match self.policy {
            SyncPolicy::Never => Ok(()),
            SyncPolicy::Every | SyncPolicy::Interval { .. } => self.sync(),
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
}

impl Log for FileLog {
    fn append(&self, record: &[u8]) -> Result<u64, LogError> {
        if record.len() > RECORD_BYTES_MAX {
            return Err(LogError::TooLarge {
                record_bytes: record.len(),
                record_bytes_max: RECORD_BYTES_MAX,
            });
        }
        let appended = self.enqueue(|batch| {
            batch.extend_from_slice(record);
            Ok::<_, LogError>(())
        });
        appended.map(|((), end_bytes)| end_bytes)
    }

    fn check(&self) -> Result<(), LogError> {
        let mut queue = self.shared.lock()?;
        if let Some(error) = queue.rejection() {
            return Err(error);
        }
        // While a write is under way the length is in flux, and that write looks for itself.
        if queue.leading {
            return Ok(());
        }
        let looked = self.shared.inspect_path(queue.written_bytes, &queue.batch);
        looked.inspect_err(|error| queue.fail(error.clone()))
    }

    fn sync(&self) -> Result<(), LogError> {
        let target = self.shared.write_pending()?;
        let result = self
            .shared
            .medium
            .sync()
            .map_err(|error| LogError::from_io("sync", &error));
        let mut queue = self.shared.lock()?;
        match result {
            Ok(()) => {
                queue.synced_bytes = queue.synced_bytes.max(target);
                self.shared.settle(&queue);
            }
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
