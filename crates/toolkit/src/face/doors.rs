//! What callers have open that lasts, by caller: a key that is good no longer ends what was opened with it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};

/// What one thing that lasts watches. It has one watcher.
#[derive(Debug, Default)]
pub struct Door {
    closed: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Door {
    /// Whether it has to end; else `waker` is woken when it has.
    pub fn is_closed(&self, waker: &Waker) -> bool {
        let mut own = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !own.as_ref().is_some_and(|own| own.will_wake(waker)) {
            *own = Some(waker.clone());
        }
        drop(own);
        self.closed.load(Ordering::Acquire)
    }

    /// Ready when it has to end.
    pub async fn closed(&self) {
        poll_fn(|cx| match self.is_closed(cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let waker = self
            .waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// All doors, by caller. Those that nobody watches any more go when the caller opens another.
#[derive(Debug, Default)]
pub struct Doors(Mutex<HashMap<Arc<str>, Vec<Weak<Door>>>>);

impl Doors {
    /// A door for something of this caller.
    #[must_use]
    pub fn open(&self, caller: &Arc<str>) -> Arc<Door> {
        let door = Arc::default();
        let mut open = self.lock();
        let own = open.entry(Arc::clone(caller)).or_default();
        own.retain(|door| door.strong_count() > 0);
        own.push(Arc::downgrade(&door));
        door
    }

    /// Ends what this caller has open.
    pub fn close(&self, caller: &Arc<str>) {
        let own = self.lock().remove(caller).unwrap_or_default();
        for door in own.iter().filter_map(Weak::upgrade) {
            door.close();
        }
    }

    /// Forgets callers who have nothing open.
    pub fn tidy(&self) {
        self.lock().retain(|_, own| {
            own.retain(|door| door.strong_count() > 0);
            !own.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Vec<Weak<Door>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_is_expelled_finds_its_doors_closed_and_no_others() {
        let (doors, a, b): (Doors, Arc<str>, Arc<str>) = (Doors::default(), "a".into(), "b".into());
        let waker = Waker::noop();
        let (first, other) = (doors.open(&a), doors.open(&b));
        assert!(!first.is_closed(waker) && !other.is_closed(waker));
        doors.close(&a);
        assert!(first.is_closed(waker) && !other.is_closed(waker));
        assert!(
            !doors.open(&a).is_closed(waker),
            "what is opened later is judged anew"
        );
        drop(other);
        doors.tidy();
        assert!(doors.lock().is_empty());
    }
}
