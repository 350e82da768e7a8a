//! When what was written is forced to the disk, and the thread that does it.

use std::sync::Arc;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::LogError;
use super::file::Shared;

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

/// The body of the helper thread: syncs when there is something to sync, until told to stop.
pub(super) fn run(shared: &Arc<Shared>, pause: Duration) {
    let mut queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        while !queue.stopping
            && (queue.synced_bytes >= queue.written_bytes || queue.failure.is_some())
        {
            queue.helper_idle = true;
            queue = shared
                .helper
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        queue.helper_idle = false;
        let since = Instant::now();
        while !queue.stopping {
            let Some(left) = pause
                .checked_sub(since.elapsed())
                .filter(|left| !left.is_zero())
            else {
                break;
            };
            queue = shared
                .helper
                .wait_timeout(queue, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        let (target, stopping) = (queue.written_bytes, queue.stopping);
        if queue.failure.is_none() && queue.synced_bytes < target {
            drop(queue);
            let result = shared.medium.sync();
            queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
            match result {
                Ok(()) => queue.synced_bytes = queue.synced_bytes.max(target),
                // What a failed sync dropped is not written again by the next one, so this log ends here.
                Err(error) => queue.fail(LogError::from_io("sync", &error)),
            }
        }
        shared.synced.notify_all();
        if stopping {
            return;
        }
    }
}
