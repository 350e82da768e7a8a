//! Room for bytes that several share. A leaf: it imports nothing of ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many bytes at most.
#[derive(Debug)]
pub(crate) struct Room {
    taken: AtomicUsize,
    max: usize,
}

impl Room {
    /// Room for so many bytes.
    pub fn of(max: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: AtomicUsize::new(0),
            max,
        })
    }

    /// Takes room for so many bytes, where there is so much.
    pub fn takes(&self, bytes: usize) -> bool {
        let more = |all: usize| all.checked_add(bytes).filter(|all| *all <= self.max);
        let taken = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.is_ok()
    }

    /// Gives room back that was taken.
    pub fn gives_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// The same of something that gives its room back when it is dropped.
    pub fn held(self: &Arc<Self>, bytes: usize) -> Option<Held> {
        self.takes(bytes).then(|| Held {
            room: Arc::clone(self),
            bytes,
        })
    }

    /// How many bytes are taken.
    #[cfg(test)]
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }
}

/// Room that is taken, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    room: Arc<Room>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.gives_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is_and_what_is_dropped_is_given_back() {
        let room = Room::of(10);
        let held = room.held(6).unwrap();
        assert!(room.held(5).is_none() && room.takes(4) && !room.takes(1));
        drop(held);
        assert_eq!(room.taken(), 4);
        assert!(!room.takes(usize::MAX));
        room.gives_back(4);
        assert!(room.held(10).is_some());
        assert_eq!(room.taken(), 0);
    }
}
