//! Places of a connection for channels, and how many of them the server has shown that it gives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of one connection.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// Those that it was made with, less those that the server did not give.
    count: AtomicUsize,
    given: Arc<Given>,
}

/// Channels that the server has given.
#[derive(Debug, Default)]
struct Given {
    now: AtomicUsize,
    /// The most at one time: the server takes so many, whatever it says on a busy day.
    most: AtomicUsize,
}

/// A place for a channel. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    permit: Option<OwnedSemaphorePermit>,
    given: Arc<Given>,
    has_channel: bool,
}

impl Places {
    /// So many, all free.
    pub fn new(count: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(count)),
            count: AtomicUsize::new(count),
            given: Arc::default(),
        }
    }

    /// How many there are, taken ones included.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many are free.
    pub fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// One of them, where one is free.
    pub fn take(&self) -> Option<Place> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(Place {
            permit: Some(permit),
            given: Arc::clone(&self.given),
            has_channel: false,
        })
    }

    /// Gives up a place for which the server had no channel; tells how many are left. `None`: the server takes so many, and
    /// has not put away yet what was closed just before, so the place is free again.
    pub fn give_up(&self, mut place: Place) -> Option<usize> {
        // A connection that has no channel at all is full of what an earlier command left.
        if self.count() <= self.free().saturating_add(1) {
            return None;
        }
        let least = self.given.most.load(Ordering::Acquire).max(1);
        let less = |count: usize| count.checked_sub(1).filter(|left| *left >= least);
        let before = self
            .count
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less)
            .ok()?;
        if let Some(permit) = place.permit.take() {
            permit.forget();
        }
        Some(before.saturating_sub(1))
    }
}

impl Place {
    /// The server has given a channel for it.
    pub fn was_given(&mut self) {
        if !std::mem::replace(&mut self.has_channel, true) {
            let now = self.given.now.fetch_add(1, Ordering::AcqRel);
            self.given
                .most
                .fetch_max(now.saturating_add(1), Ordering::AcqRel);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.has_channel {
            self.given.now.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_given_up_than_the_server_has_shown_that_it_takes() {
        let places = Places::new(10);
        let mut first = places.take().unwrap();
        let mut second = places.take().unwrap();
        first.was_given();
        second.was_given();
        for left in (2..10).rev() {
            let third = places.take().unwrap();
            assert_eq!(places.give_up(third), Some(left));
        }
        assert!(places.take().is_none());
        // The server says no although one of its two is closed: it has not put that away yet.
        drop(first);
        let again = places.take().unwrap();
        assert_eq!(places.give_up(again), None);
        assert_eq!((places.count(), places.free()), (2, 1));
        drop(second);
        let only = places.take().unwrap();
        assert_eq!(places.give_up(only), None);
        assert_eq!(places.free(), 2);
    }
}
