//! Places of a connection for channels, and how many of them the server has shown that it gives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// As many channels as nearly every server gives: fewer are believed only after some refusals in a row.
const USUAL: usize = 2;
/// Refusals in a row after which so many are not believed in any more.
const DOUBTS_MAX: usize = 3;

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
    /// Refusals since [`USUAL`] were given at one time.
    doubts: AtomicUsize,
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

    /// Gives up a place for which the server had no channel; tells how many are left. `None`: the server may not have put away
    /// yet what was closed just now, so the place is free again.
    pub fn give_up(&self, mut place: Place) -> Option<usize> {
        // A connection that has no channel at all is full of what an earlier command left.
        if self.count() <= self.free().saturating_add(1) {
            return None;
        }
        if self.count() <= USUAL
            && self.given.doubts.fetch_add(1, Ordering::AcqRel) + 1 < DOUBTS_MAX
        {
            return None;
        }
        let less = |count: usize| count.checked_sub(1).filter(|left| *left > 0);
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
            let others = self.given.now.fetch_add(1, Ordering::AcqRel);
            if others.saturating_add(1) >= USUAL {
                self.given.doubts.store(0, Ordering::Release);
            }
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

    /// A place for which the server gives a channel.
    fn given(places: &Places) -> Place {
        let mut place = places.take().unwrap();
        place.was_given();
        place
    }

    fn refused(places: &Places) -> Option<usize> {
        places.give_up(places.take().unwrap())
    }

    #[test]
    fn two_are_kept_where_the_server_gives_two() {
        let places = Places::new(10);
        let (first, mut second) = (given(&places), Some(given(&places)));
        for left in (2..10).rev() {
            assert_eq!(refused(&places), Some(left));
        }
        assert!(places.take().is_none());
        for _ in 0..10 {
            // The server says no although one of its two is closed: it has not put that away yet.
            second = None;
            assert_eq!(refused(&places), None);
            second.get_or_insert_with(|| given(&places));
            assert_eq!(places.count(), 2);
        }
        drop((first, second));
        assert_eq!(refused(&places), None, "none is open");
        assert_eq!(places.free(), 2);
    }

    #[test]
    fn one_is_left_where_the_server_never_gives_two() {
        let places = Places::new(3);
        let _only = given(&places);
        let told: Vec<Option<usize>> = (0..4).map(|_| refused(&places)).collect();
        assert_eq!(told, [Some(2), None, None, Some(1)]);
        assert!(places.take().is_none());
    }
}
