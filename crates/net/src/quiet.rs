//! Wakers that say nothing of what their own task does.
//!
//! A connection and whoever uses it are one task here. Hyper's two halves tell each other of each step by waking that
//! task, which is running and sees the step anyway: it would be polled once more for nothing.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

thread_local! {
    /// What was woken within [`quietly`]; absent outside of it.
    static HEARD: RefCell<Option<Option<Woken>>> = const { RefCell::new(None) };
}

/// A waker that wakes a task, but for what happens within [`quietly`] on the same thread.
#[derive(Debug)]
pub(crate) struct Quiet {
    target: Arc<Target>,
    waker: Waker,
    /// What the target has.
    task: Waker,
}

#[derive(Debug)]
struct Target {
    task: Mutex<Waker>,
}

/// One that was woken within [`quietly`]. Dropped, it stays asleep.
#[derive(Debug)]
#[must_use = "the task is not woken"]
pub(crate) struct Woken(Arc<Target>);

impl Default for Quiet {
    fn default() -> Self {
        let task = Waker::noop().clone();
        let target = Arc::new(Target {
            task: Mutex::new(task.clone()),
        });
        Self {
            waker: Waker::from(Arc::clone(&target)),
            target,
            task,
        }
    }
}

impl Quiet {
    /// The waker, which wakes the task of `cx` from now on.
    pub fn of(&mut self, cx: &Context<'_>) -> &Waker {
        if !self.task.will_wake(cx.waker()) {
            self.task.clone_from(cx.waker());
            *self.target.lock() = self.task.clone();
        }
        &self.waker
    }
}

impl Woken {
    /// Wakes the task.
    pub fn wake(self) {
        self.0.wake_task();
    }
}

impl Target {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_task(&self) {
        self.lock().wake_by_ref();
    }
}

impl Wake for Target {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A thread that ends has no such place, and nothing runs quietly on it.
        let is_kept = HEARD.try_with(|heard| match &mut *heard.borrow_mut() {
            Some(Some(Woken(other))) => Arc::ptr_eq(other, self),
            Some(none) => {
                *none = Some(Woken(Arc::clone(self)));
                true
            }
            None => false,
        });
        if !is_kept.unwrap_or(false) {
            self.wake_task();
        }
    }
}

/// Restores what was there before, also where a test panics.
struct Restored(Option<Option<Woken>>);

impl Drop for Restored {
    fn drop(&mut self) {
        HEARD.set(self.0.take());
    }
}

/// Does something. A [`Quiet`] that this wakes on this thread wakes nobody, and is given.
pub(crate) fn quietly<T>(does: impl FnOnce() -> T) -> (T, Option<Woken>) {
    let before = Restored(HEARD.replace(Some(None)));
    let done = does();
    let woken = HEARD.take().flatten();
    drop(before);
    (done, woken)
}

#[cfg(test)]
mod tests;
