//! Ends a child that keeps a call waiting too long, so that the driver may block in plain reads.

use crate::{interrupt, processes};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the guard looks.
const ROUND: Duration = Duration::from_millis(200);
/// How long a call may take once an end was asked for.
const PARTING: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
struct GuardState {
    /// Odd while a call is under way; every call adds two.
    turn: AtomicU64,
    fired: AtomicBool,
}

/// Watches one child.
#[derive(Debug)]
pub(crate) struct TimeoutGuard {
    shared: Arc<GuardState>,
    /// Dropped to end the thread.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// How long a call may take, in milliseconds.
    pub(super) limit_ms: u64,
}

impl TimeoutGuard {
    /// Watches the process `pid`, the leader of its own group.
    pub(super) fn start(pid: u32, limit_ms: u64) -> Self {
        let shared = Arc::new(GuardState::default());
        let (stop, stopped) = sync_channel(1);
        let seen = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let (mut last, mut since) = (0, Instant::now());
            while stopped.recv_timeout(ROUND) == Err(RecvTimeoutError::Timeout) {
                let now = seen.turn.load(Ordering::Acquire);
                if now != last || now % 2 == 0 {
                    (last, since) = (now, Instant::now());
                } else if since.elapsed() >= patience(limit_ms, interrupt::is_asked()) {
                    seen.fired.store(true, Ordering::Release);
                    processes::kill_tree(pid);
                    return;
                }
            }
        });
        Self {
            shared,
            stop: Some(stop),
            thread: Some(thread),
            limit_ms,
        }
    }

    /// A call begins.
    pub(super) fn begin(&self) {
        let turn = self.shared.turn.load(Ordering::Relaxed);
        self.shared.turn.store(turn | 1, Ordering::Release);
    }

    /// The call ended.
    pub(super) fn end(&self) {
        let turn = self.shared.turn.load(Ordering::Relaxed);
        self.shared.turn.store((turn | 1) + 1, Ordering::Release);
    }

    /// Returns whether it had to end the child.
    pub(super) fn has_fired(&self) -> bool {
        self.shared.fired.load(Ordering::Acquire)
    }
}

/// Returns how long a call may take.
fn patience(limit_ms: u64, parting: bool) -> Duration {
    let limit = Duration::from_millis(limit_ms);
    if parting { limit.min(PARTING) } else { limit }
}

impl Drop for TimeoutGuard {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A guard that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_asked_for_shortens_the_wait_and_never_lengthens_it() {
        for (limit_ms, parting, expect_ms) in [
            (10_000, false, 10_000),
            (10_000, true, 500),
            (100, true, 100),
        ] {
            assert_eq!(
                patience(limit_ms, parting),
                Duration::from_millis(expect_ms)
            );
        }
    }
}
