//! Futures polled in an order that a seed determines, and a small executor.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Pseudo-random numbers of a seed (SplitMix64). Not for secrets.
#[derive(Debug, Clone)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// Creates the sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).checked_rem(bound).unwrap_or(0)
    }
}

/// Task of a [`SeededTasks`].
type BoxedTask<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Future that polls its tasks in an order that a seed determines, and completes when all of them have.
pub struct SeededTasks<'a> {
    tasks: Vec<BoxedTask<'a>>,
    random: SeededRandom,
}

impl<'a> SeededTasks<'a> {
    /// Creates the future of these tasks.
    #[must_use]
    pub fn new(tasks: Vec<BoxedTask<'a>>, seed: u64) -> Self {
        Self {
            tasks,
            random: SeededRandom::new(seed),
        }
    }
}

impl Future for SeededTasks<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut waiting = Vec::with_capacity(this.tasks.len());
        while !this.tasks.is_empty() {
            let count = u64::try_from(this.tasks.len()).unwrap_or(1);
            let index = usize::try_from(this.random.below(count)).unwrap_or(0);
            let mut task = this.tasks.swap_remove(index);
            if task.as_mut().poll(context).is_pending() {
                waiting.push(task);
            }
        }
        this.tasks = waiting;
        match this.tasks.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to completion on this thread. A store that needs a reactor has it on another thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Polls a future at most `polls` times, then drops it. Returns its output if it completed.
pub(crate) async fn cancel_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Yields once, so that other tasks run between a reservation and its settlement.
pub(crate) async fn yield_now() {
    let mut is_first = true;
    std::future::poll_fn(move |context| {
        if std::mem::take(&mut is_first) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}
