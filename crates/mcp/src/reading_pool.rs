//! Threads for calls that take long to read: not those that serve everybody.
//!
//! An edge that serves many clients reads each call for a few steps. One that needs more is read by the threads of a
//! [`ReadingPool`], of which one caller has one at a time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most calls that wait for a thread.
pub const WAITING_MAX: usize = 256;
/// Most of one caller's among them.
pub const WAITING_OF_CALLER_MAX: usize = 16;
/// How long a call waits for a thread, in milliseconds.
pub const WAIT_MS_MAX: u64 = 10_000;
/// Most threads.
const THREADS_MAX: usize = 4;

/// Threads that read long calls, for all callers of an edge.
pub(crate) struct ReadingPool {
    threads: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    callers: Mutex<HashMap<Arc<str>, Arc<CallerShare>>>,
}

/// The part of one caller. It is forgotten when none of its calls is read or waits.
struct CallerShare {
    thread: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// A thread that is reserved for one call, until the call is read.
pub(crate) struct ReadingPermit {
    _thread: OwnedSemaphorePermit,
    _of_caller: OwnedSemaphorePermit,
}

impl Default for ReadingPool {
    fn default() -> Self {
        // Half of the processors stay free for the serving threads.
        let processors = thread::available_parallelism().map_or(1, Into::into);
        Self {
            threads: Arc::new(Semaphore::new((processors / 2).clamp(1, THREADS_MAX))),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            callers: Mutex::default(),
        }
    }
}

impl ReadingPool {
    fn callers(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<CallerShare>>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn share_of(&self, caller: &Arc<str>) -> Arc<CallerShare> {
        let mut callers = self.callers();
        // A share in use is also held by a waiting call or, through its semaphore, by a thread.
        callers.retain(|_, share| Arc::strong_count(share) > 1 || !share.is_idle());
        let share = callers.entry(Arc::clone(caller)).or_insert_with(|| {
            Arc::new(CallerShare {
                thread: Arc::new(Semaphore::new(1)),
                waiting: Arc::new(Semaphore::new(WAITING_OF_CALLER_MAX)),
            })
        });
        Arc::clone(share)
    }

    /// Waits for a thread; `None` if too many calls wait already, or none becomes free in time.
    pub async fn enter(&self, caller: &Arc<str>) -> Option<ReadingPermit> {
        let share = self.share_of(caller);
        let _of_caller = share.waiting.try_acquire().ok()?;
        let _waiting = self.waiting.try_acquire().ok()?;
        let permit = async {
            let of_caller = Arc::clone(&share.thread).acquire_owned().await.ok()?;
            let thread = Arc::clone(&self.threads).acquire_owned().await.ok()?;
            Some(ReadingPermit {
                _thread: thread,
                _of_caller: of_caller,
            })
        };
        let wait = Duration::from_millis(WAIT_MS_MAX);
        tokio::time::timeout(wait, permit).await.ok().flatten()
    }
}

impl CallerShare {
    fn is_idle(&self) -> bool {
        self.thread.available_permits() == 1
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
            drop(self);
            read
        };
        tokio::task::spawn_blocking(read).await.ok()
    }
}

impl fmt::Debug for ReadingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadingPool")
            .field("free", &self.threads.available_permits())
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
        let pool = ReadingPool {
            threads: Arc::new(Semaphore::new(2)),
            ..ReadingPool::default()
        };
        let (one, other) = (caller("a"), caller("b"));
        let first = pool.enter(&one).await.unwrap();
        let mut second = Box::pin(pool.enter(&one));
        assert!(waits(&mut second).await);
        assert!(pool.enter(&other).await.is_some());
        drop(first);
        assert!(second.await.is_some());
        // Callers that have gone are forgotten with the next one.
        drop(pool.share_of(&other));
        assert_eq!(pool.callers().len(), 1);
    }

    #[tokio::test]
    async fn a_caller_beyond_its_part_of_the_queue_is_refused_at_once() {
        let pool = ReadingPool {
            threads: Arc::new(Semaphore::new(0)),
            ..ReadingPool::default()
        };
        let (one, other) = (caller("a"), caller("b"));
        let mut waiting: Vec<_> = (0..WAITING_OF_CALLER_MAX)
            .map(|_| Box::pin(pool.enter(&one)))
            .collect();
        for call in &mut waiting {
            assert!(waits(call).await);
        }
        assert!(pool.enter(&one).await.is_none());
        assert!(waits(&mut Box::pin(pool.enter(&other))).await);
    }
}
