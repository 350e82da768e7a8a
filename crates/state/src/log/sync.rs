//! Policy of forcing records to the disk, and the thread that does it.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::LogError;
use super::queue::Queue;
use super::shared::Shared;

/// Interval of [`SyncPolicy::default`], in milliseconds.
pub const INTERVAL_MS_DEFAULT: u64 = 1_000;

/// Policy of forcing a log to the disk. Under all three, records survive the end of the process; they differ in the records
/// that a loss of power may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// On a helper thread, this many milliseconds after the first unforced append: a loss of power takes at most that much.
    Interval {
        /// Milliseconds from the first unforced append to the sync.
        interval_ms: u64,
    },
    /// An append returns only after a sync that covers it; appends that wait together share one.
    Every,
    /// The operating system decides.
    Never,
}

impl Default for SyncPolicy {
    fn default() -> Self {
        SyncPolicy::Interval {
            interval_ms: INTERVAL_MS_DEFAULT,
        }
    }
}

/// Longest time that a record of a past event waits for the next append, in milliseconds.
pub const LATER_MS: u64 = 8;

/// Body of the helper thread: syncs written records and writes waiting ones, until the log stops.
pub(super) fn run(shared: &Shared, pause: Duration) {
    let mut helper = Helper {
        shared,
        pause,
        unsynced_since: None,
        seen_bytes: 0,
    };
    let mut queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
    while !queue.stopping {
        queue = helper.turn(queue);
    }
    queue = helper.write(queue);
    drop(helper.sync(queue));
}

struct Helper<'s> {
    shared: &'s Shared,
    /// From the first append that is not synced to its sync.
    pause: Duration,
    unsynced_since: Option<Instant>,
    /// Accepted bytes at its last check.
    seen_bytes: u64,
}

impl<'s> Helper<'s> {
    fn turn(&mut self, queue: MutexGuard<'s, Queue>) -> MutexGuard<'s, Queue> {
        if queue.failure.is_some() || queue.synced_bytes >= queue.written_bytes {
            self.unsynced_since = None;
            return self.sleep(queue, None);
        }
        let since = *self.unsynced_since.get_or_insert_with(Instant::now);
        let left = self.pause.saturating_sub(since.elapsed());
        if left.is_zero() {
            self.unsynced_since = None;
            return self.sync(queue);
        }
        self.sleep(queue, Some(left))
    }

    /// Sleeps, at most for `longest`. While others append, it wakes regularly to check for waiting records, so that they need
    /// not wake it.
    fn sleep(
        &mut self,
        mut queue: MutexGuard<'s, Queue>,
        longest: Option<Duration>,
    ) -> MutexGuard<'s, Queue> {
        let is_quiet = queue.batch.is_empty() && queue.accepted_bytes == self.seen_bytes;
        self.seen_bytes = queue.accepted_bytes;
        if is_quiet {
            self.shared.settle(&queue);
        }
        // A thread that waits for a sync waits for this one to wake.
        queue.helper_idle = is_quiet || self.pause.is_zero();
        let later = Duration::from_millis(LATER_MS);
        let step = match longest {
            None if is_quiet => None,
            None => Some(later),
            Some(longest) if is_quiet => Some(longest),
            Some(longest) => Some(longest.min(later)),
        };
        let helper = &self.shared.helper;
        let Some(step) = step else {
            let mut queue = helper.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.helper_idle = false;
            return queue;
        };
        let woken = helper.wait_timeout(queue, step);
        let (mut queue, waited) = woken.unwrap_or_else(PoisonError::into_inner);
        queue.helper_idle = false;
        if waited.timed_out() {
            queue = self.write(queue);
        }
        queue
    }

    /// Writes the records that wait for the next append.
    fn write(&self, queue: MutexGuard<'s, Queue>) -> MutexGuard<'s, Queue> {
        if !queue.waits_alone() {
            return queue;
        }
        // A failure ends the log, and the next append reports it.
        let _ = self.shared.lead(queue);
        self.relock()
    }

    fn sync(&self, queue: MutexGuard<'s, Queue>) -> MutexGuard<'s, Queue> {
        let target = queue.written_bytes;
        if queue.failure.is_some() || queue.synced_bytes >= target {
            drop(queue);
            self.shared.synced.notify_all();
            return self.relock();
        }
        drop(queue);
        let result = self.shared.medium.sync();
        let mut queue = self.relock();
        match result {
            Ok(()) => queue.synced_bytes = queue.synced_bytes.max(target),
            // Data dropped by a failed sync is not written again by the next one, so this log ends here.
            Err(error) => queue.fail(LogError::from_io("sync", &error)),
        }
        self.shared.synced.notify_all();
        queue
    }

    fn relock(&self) -> MutexGuard<'s, Queue> {
        let queue = self.shared.queue.lock();
        queue.unwrap_or_else(PoisonError::into_inner)
    }
}
