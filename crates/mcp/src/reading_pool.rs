//! Threads for calls that take long to read: not those that serve everybody.
//!
//! An edge that serves many clients reads each call for a few steps. One that needs more is read by the threads of a
//! [`ReadingPool`], of which one caller has one at a time.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use share::{ShareLimits, SharePermit, SharePool};

/// Most calls that wait for a thread.
pub const WAITING_MAX: usize = 256;
/// Most of one caller's among them.
pub const WAITING_OF_CALLER_MAX: usize = 16;
/// How long a call waits for a thread, in milliseconds.
pub const WAIT_MS_MAX: u64 = 10_000;
/// Most threads.
const THREADS_MAX: usize = 4;

/// Threads that read long calls, for all callers of an edge.
pub(crate) struct ReadingPool(SharePool);

/// A thread that is reserved for one call, until the call is read.
pub(crate) struct ReadingPermit(SharePermit);

impl Default for ReadingPool {
    fn default() -> Self {
        // Half of the processors stay free for the serving threads.
        let processors = thread::available_parallelism().map_or(1, Into::into);
        Self::of_threads((processors / 2).clamp(1, THREADS_MAX))
    }
}

impl ReadingPool {
    fn of_threads(threads: usize) -> Self {
        let limits = ShareLimits::of_caller(1, threads);
        Self(SharePool::new(
            limits.with_queue(WAITING_MAX, WAITING_OF_CALLER_MAX),
        ))
    }

    /// Waits for a thread; `None` if too many calls wait already, or none becomes free in time.
    pub async fn enter(&self, caller: &Arc<str>) -> Option<ReadingPermit> {
        let mut permit = self.0.permit(Some(caller));
        let wait = Duration::from_millis(WAIT_MS_MAX);
        let granted = tokio::time::timeout(wait, permit.grow(1)).await;
        granted.ok()?.ok()?;
        Some(ReadingPermit(permit))
    }
}

impl ReadingPermit {
    /// Runs `read` on the thread. It runs to its end, and keeps the thread, even if its caller stops waiting.
    pub async fn run<T: Send + 'static>(
        self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let read = move || {
            let read = read();
            drop(self.0);
            read
        };
        tokio::task::spawn_blocking(read).await.ok()
    }
}

impl fmt::Debug for ReadingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadingPool")
            .field("busy", &self.0.held())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Arc<str> {
        name.into()
    }

    /// Whether a call waits still when everything that is ready has gone on.
    async fn waits(call: &mut (impl Future<Output = Option<ReadingPermit>> + Unpin)) -> bool {
        tokio::select! {
            biased;
            _ = call => false,
            () = std::future::ready(()) => true,
        }
    }

    #[tokio::test]
    async fn one_caller_has_one_thread_and_others_wait_for_none() {
        let pool = ReadingPool::of_threads(2);
        let (one, other) = (caller("a"), caller("b"));
        let first = pool.enter(&one).await.unwrap();
        let mut second = Box::pin(pool.enter(&one));
        assert!(waits(&mut second).await);
        assert!(pool.enter(&other).await.is_some());
        drop(first);
        assert!(second.await.is_some());
        assert_eq!((pool.0.held(), pool.0.callers()), (0, 0));
    }

    #[tokio::test]
    async fn a_caller_beyond_its_part_of_the_queue_is_refused_at_once() {
        let pool = ReadingPool::of_threads(1);
        let (one, other) = (caller("a"), caller("b"));
        let _read = pool.enter(&caller("c")).await.unwrap();
        let mut waiting: Vec<_> = (0..WAITING_OF_CALLER_MAX)
            .map(|_| Box::pin(pool.enter(&one)))
            .collect();
        for call in &mut waiting {
            assert!(waits(call).await);
        }
        assert!(pool.enter(&one).await.is_none());
        assert!(waits(&mut Box::pin(pool.enter(&other))).await);
    }

    #[tokio::test]
    async fn every_thread_is_shared_and_comes_back() {
        let pool = ReadingPool::of_threads(4);
        let enter = |caller: &Arc<str>| {
            let (pool, caller) = (ReadingPool(pool.0.clone()), Arc::clone(caller));
            Box::pin(async move { pool.enter(&caller).await }) as _
        };
        assert_eq!(share::contract::check_user(&pool.0, 1, enter), Ok(()));
    }
}
