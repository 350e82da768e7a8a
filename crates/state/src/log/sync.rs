//! When what was written is forced to the disk, and the thread that does it.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::LogError;
use super::queue::Queue;
use super::shared::Shared;

/// Interval of [`SyncPolicy::default`], in milliseconds.
pub const INTERVAL_MS_DEFAULT: u64 = 1_000;

/// When a log is forced to the disk. All three survive the death of the process; they differ in what a loss of power takes.
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

/// Longest time that a record of what has happened already waits for the next append, in milliseconds.
pub const LATER_MS: u64 = 8;

/// The body of the helper thread: syncs what is written and writes what waits, until told to stop.
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
    /// What was accepted when it last looked.
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

    /// Sleeps, for so long at most. While others append it looks every now and then whether something waits, so that they
    /// need not wake it.
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
        // Whoever waits for a sync waits for this thread to wake.
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

    /// Writes what waits for the next append.
    fn write(&self, queue: MutexGuard<'s, Queue>) -> MutexGuard<'s, Queue> {
        if !queue.waits_alone() {
            return queue;
        }
        // Its failure is the log's, and is met by whoever comes next.
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
            // What a failed sync dropped is not written again by the next one, so this log ends here.
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
