//! Threads that serve connections, each for itself.
//!
//! A connection stays with the thread that it was given to, and so does all that its requests begin: nothing goes from
//! thread to thread on the way of a call, and a thread without work sleeps until one of its own connections has some.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Most threads for work that blocks, of all serving threads together.
const BLOCKING_THREADS_MAX: usize = 512;

/// Threads that serve connections. They end when the last handle to them is dropped, and what they were at is dropped then.
#[derive(Debug, Clone)]
pub struct Threads(Arc<[Thread]>);

#[derive(Debug)]
struct Thread {
    runtime: Handle,
    /// Connections that it has at this moment.
    open: Arc<AtomicUsize>,
    /// Dropped to end it.
    _end: oneshot::Sender<()>,
}

/// A connection's place at a thread.
#[derive(Debug)]
pub(super) struct Seat {
    pub runtime: Handle,
    open: Arc<AtomicUsize>,
}

impl Threads {
    /// Starts so many threads, at least one.
    ///
    /// # Errors
    /// Where one cannot be started.
    pub fn start(count: usize) -> io::Result<Self> {
        let count = count.max(1);
        let threads: io::Result<Vec<Thread>> = (0..count)
            .map(|number| Thread::start(number, (BLOCKING_THREADS_MAX / count).max(1)))
            .collect();
        threads.map(|threads| Self(threads.into()))
    }

    /// A place at the thread with the fewest connections.
    pub(super) fn seat(&self) -> Option<Seat> {
        let open = |thread: &&Thread| thread.open.load(Ordering::Relaxed);
        let thread = self.0.iter().min_by_key(open)?;
        thread.open.fetch_add(1, Ordering::Relaxed);
        Some(Seat {
            runtime: thread.runtime.clone(),
            open: Arc::clone(&thread.open),
        })
    }
}

impl Thread {
    fn start(number: usize, blocking_threads_max: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(blocking_threads_max)
            .build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new()
            .name(format!("serve-{number}"))
            .spawn(move || {
                // Nothing is sent: the end is that nobody could any more.
                drop(runtime.block_on(ended));
                runtime.shutdown_background();
            })?;
        Ok(Self {
            runtime: handle,
            open: Arc::default(),
            _end: end,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_over_the_threads() {
        let threads = Threads::start(3).unwrap();
        let mut seats: Vec<Seat> = (0..6).filter_map(|_| threads.seat()).collect();
        let open = || {
            let of = |thread: &Thread| thread.open.load(Ordering::Relaxed);
            threads.0.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(open(), [2, 2, 2]);
        let first = seats.remove(0);
        let its = first.runtime.id();
        drop(first);
        let next = threads.seat().unwrap();
        assert_eq!(next.runtime.id(), its, "where there is room");
        seats.clear();
        drop(next);
        assert_eq!(open(), [0, 0, 0]);
    }

    #[test]
    fn they_end_with_the_last_handle_and_drop_what_they_were_at() {
        let threads = Threads::start(1).unwrap();
        let (held, dropped) = std::sync::mpsc::channel::<()>();
        let seat = threads.seat().unwrap();
        seat.runtime.spawn(async move {
            std::future::pending::<()>().await;
            drop(held);
        });
        drop(threads.clone());
        assert!(dropped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty));
        drop((threads, seat));
        // Ready once the task is gone, which held the other end.
        assert!(dropped.recv().is_err());
    }
}
