//! Room for request bodies that are being read: a part of it for each caller, all of it for all of them.
//! A body that comes in one piece needs none.
//!
//! A body may take long to come. Whose key is taken back meanwhile is no longer who the request was taken for: what is
//! being read of theirs then comes to nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of all bodies that are being read of one caller. A longer one is read alone.
pub const BODIES_OF_CALLER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Most bytes of all bodies that are being read.
pub const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// What room is counted in, in bytes.
const UNIT_BYTES: usize = 1024;
/// Callers beyond this number are forgotten where they read nothing.
const CALLERS_MAX: usize = 1_024;
/// How many callers are remembered that were expelled; whoever began to send before the oldest of these counts as one.
const EXPELLED_MAX: usize = 1_024;

/// The room.
#[derive(Debug)]
pub struct Bodies {
    all: Arc<Semaphore>,
    callers: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    /// How many callers were expelled so far, and the last of them.
    expulsions: AtomicU64,
    expelled: Mutex<VecDeque<Arc<str>>>,
}

/// A moment between expulsions.
#[derive(Debug, Clone, Copy)]
pub struct Moment(u64);

impl Default for Bodies {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(BODIES_BYTES_MAX / UNIT_BYTES)),
            callers: Mutex::default(),
            expulsions: AtomicU64::new(0),
            expelled: Mutex::default(),
        }
    }
}

/// Where a caller's bodies find room.
#[derive(Debug, Clone)]
pub struct Share {
    bodies: Arc<Bodies>,
    caller: Arc<str>,
    since: Moment,
}

/// What one body takes of it, until it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
    taken: Vec<OwnedSemaphorePermit>,
    bytes: usize,
}

impl Bodies {
    /// The present moment: to be taken before anybody looks who has sent a request.
    #[must_use]
    pub fn moment(&self) -> Moment {
        Moment(self.expulsions.load(Ordering::Acquire))
    }

    /// The share of a caller who was welcome then.
    #[must_use]
    pub fn of(self: &Arc<Self>, caller: &Arc<str>, since: Moment) -> Share {
        Share {
            bodies: Arc::clone(self),
            caller: Arc::clone(caller),
            since,
        }
    }

    /// A caller is no longer welcome: bodies that are being read of this caller's are not taken.
    pub fn expel(&self, caller: &Arc<str>) {
        let mut expelled = self.expelled.lock().unwrap_or_else(PoisonError::into_inner);
        if expelled.len() >= EXPELLED_MAX {
            expelled.pop_front();
        }
        expelled.push_back(Arc::clone(caller));
        self.expulsions.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether a caller who was welcome then still is.
    fn is_welcome(&self, caller: &str, since: Moment) -> bool {
        if self.moment().0 == since.0 {
            return true;
        }
        let expelled = self.expelled.lock().unwrap_or_else(PoisonError::into_inner);
        let meanwhile = self.moment().0.saturating_sub(since.0);
        let Ok(meanwhile) = usize::try_from(meanwhile) else {
            return false;
        };
        meanwhile <= expelled.len()
            && !expelled
                .iter()
                .rev()
                .take(meanwhile)
                .any(|own| **own == *caller)
    }

    fn room(&self, caller: &Arc<str>) -> Room {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= CALLERS_MAX {
            callers.retain(|_, own| Arc::strong_count(own) > 1);
        }
        let fresh = || Arc::new(Semaphore::new(BODIES_OF_CALLER_BYTES_MAX / UNIT_BYTES));
        let own = callers.entry(Arc::clone(caller)).or_insert_with(fresh);
        Room {
            own: Arc::clone(own),
            all: Arc::clone(&self.all),
            taken: Vec::new(),
            bytes: 0,
        }
    }
}

impl Share {
    /// Whether its caller is still welcome.
    pub(super) fn is_welcome(&self) -> bool {
        self.bodies.is_welcome(&self.caller, self.since)
    }

    /// Room for one more body, none of which is taken yet.
    pub(super) fn room(&self) -> Room {
        self.bodies.room(&self.caller)
    }
}

impl Room {
    /// Waits until there is room for so many bytes in all; `None` where there can never be. Of a body whose
    /// length nobody knows more is taken than is needed now.
    pub async fn for_bytes(&mut self, bytes: usize) -> Option<()> {
        if bytes <= self.bytes {
            return Some(());
        }
        if bytes > BODIES_BYTES_MAX {
            return None;
        }
        let wanted = bytes.max(self.bytes.saturating_mul(2));
        let wanted = wanted.next_multiple_of(UNIT_BYTES);
        let wanted = wanted.min(BODIES_OF_CALLER_BYTES_MAX.max(bytes.next_multiple_of(UNIT_BYTES)));
        // The caller's own first: who has none left takes nothing of the others'.
        let rooms = [
            (&self.own, BODIES_OF_CALLER_BYTES_MAX),
            (&self.all, BODIES_BYTES_MAX),
        ];
        for (room, bytes_max) in rooms {
            let more = wanted.min(bytes_max) - self.bytes.min(bytes_max);
            let units = u32::try_from(more.div_ceil(UNIT_BYTES)).ok()?;
            let taken = Arc::clone(room).acquire_many_owned(units).await;
            self.taken.push(taken.ok()?);
        }
        self.bytes = wanted;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// Whether there is room now.
    fn finds(room: &mut Room, bytes: usize) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        matches!(
            pin!(room.for_bytes(bytes)).poll(&mut cx),
            Poll::Ready(Some(()))
        )
    }

    #[test]
    fn what_one_caller_holds_is_not_taken_from_another() {
        let bodies = Arc::new(Bodies::default());
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let half = BODIES_OF_CALLER_BYTES_MAX / 2;
        let mut held = [bodies.room(&one), bodies.room(&one)];
        assert!(held.iter_mut().all(|room| finds(room, half)));
        assert!(!finds(&mut bodies.room(&one), 1));
        assert!(finds(&mut bodies.room(&other), half));
        drop(held);
        assert!(finds(&mut bodies.room(&one), half));
    }

    #[test]
    fn who_was_expelled_meanwhile_is_not_welcome_and_who_comes_later_is() {
        let bodies = Arc::new(Bodies::default());
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let (of_one, of_other) = (
            bodies.of(&one, bodies.moment()),
            bodies.of(&other, bodies.moment()),
        );
        assert!(of_one.is_welcome() && of_other.is_welcome());
        bodies.expel(&one);
        assert!(!of_one.is_welcome() && of_other.is_welcome());
        assert!(bodies.of(&one, bodies.moment()).is_welcome());
        for number in 0..EXPELLED_MAX {
            bodies.expel(&number.to_string().into());
        }
        assert!(!of_other.is_welcome(), "nobody knows any more");
    }

    #[test]
    fn all_together_have_a_bound() {
        let bodies = Arc::new(Bodies::default());
        let mut held = Vec::new();
        for number in 0..BODIES_BYTES_MAX / BODIES_OF_CALLER_BYTES_MAX {
            let mut room = bodies.room(&number.to_string().into());
            assert!(finds(&mut room, BODIES_OF_CALLER_BYTES_MAX), "{number}");
            held.push(room);
        }
        assert!(!finds(&mut bodies.room(&"late".into()), 1));
    }

    #[test]
    fn a_body_of_unknown_length_grows_within_the_bound() {
        let bodies = Arc::new(Bodies::default());
        let mut room = bodies.room(&"one".into());
        for bytes in [
            1,
            UNIT_BYTES,
            UNIT_BYTES + 1,
            1_000_000,
            BODIES_OF_CALLER_BYTES_MAX,
        ] {
            assert!(finds(&mut room, bytes), "{bytes}");
        }
        // Nobody else of this caller finds room beside it.
        assert!(!finds(&mut bodies.room(&"one".into()), 1));
        drop(room);
        let own = bodies.room(&"one".into()).own;
        assert_eq!(
            own.available_permits(),
            BODIES_OF_CALLER_BYTES_MAX / UNIT_BYTES
        );
    }

    #[test]
    fn a_body_beyond_its_callers_share_is_read_alone() {
        let bodies = Arc::new(Bodies::default());
        let one: Arc<str> = "one".into();
        let mut beside = bodies.room(&one);
        assert!(finds(&mut beside, UNIT_BYTES));
        let mut long = bodies.room(&one);
        assert!(!finds(&mut long, 3 * BODIES_OF_CALLER_BYTES_MAX));
        drop((beside, long));
        let mut long = bodies.room(&one);
        assert!(finds(&mut long, 3 * BODIES_OF_CALLER_BYTES_MAX));
        assert!(finds(&mut long, 5 * BODIES_OF_CALLER_BYTES_MAX));
        assert!(!finds(&mut bodies.room(&one), 1));
        let mut other = bodies.room(&"other".into());
        assert!(finds(&mut other, BODIES_OF_CALLER_BYTES_MAX));
        // What all take together stays within the bound.
        assert!(!finds(&mut long, BODIES_BYTES_MAX));
        let mut late = bodies.room(&"late".into());
        assert!(!finds(&mut late, BODIES_BYTES_MAX + 1));
    }
}
