//! Byte budget of request bodies that are being read: a share of it for each caller. A body in one piece needs none.
//!
//! A body may take long to arrive. If its caller's key is revoked meanwhile, the body is rejected.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use share::{ShareLimits, SharePermit, SharePool};

/// Most bytes of all bodies that are being read of one caller. A longer one is read alone.
pub const BODIES_OF_CALLER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Most bytes of all bodies that are being read.
pub const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Smallest reservation, in bytes.
const RESERVED_BYTES_MIN: usize = 1024;
/// Most bodies that wait for bytes: as many as there are connections by default.
const BODIES_WAITING_MAX: usize = 10_240;
/// How many callers are remembered that were expelled; whoever began to send before the oldest of these counts as one.
const EXPELLED_MAX: usize = 1_024;

/// The room.
#[derive(Debug)]
pub struct Bodies {
    bytes: SharePool,
    /// How many callers were expelled so far, and the last of them.
    expulsions: AtomicU64,
    expelled: Mutex<VecDeque<Arc<str>>>,
}

/// A moment between expulsions.
#[derive(Debug, Clone, Copy)]
pub struct Moment(u64);

impl Default for Bodies {
    fn default() -> Self {
        let limits = ShareLimits::of_caller(BODIES_OF_CALLER_BYTES_MAX, BODIES_BYTES_MAX);
        Self {
            bytes: SharePool::new(limits.with_queue(BODIES_WAITING_MAX, BODIES_WAITING_MAX)),
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

/// Bytes that are reserved for one body, until it is dropped.
#[derive(Debug)]
pub(super) struct BodyPermit(SharePermit);

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

    fn permit(&self, caller: &Arc<str>) -> BodyPermit {
        BodyPermit(self.bytes.permit(Some(caller)))
    }
}

impl Share {
    /// Whether its caller is still welcome.
    pub(super) fn is_welcome(&self) -> bool {
        self.bodies.is_welcome(&self.caller, self.since)
    }

    /// Returns a permit for one more body, with nothing reserved yet.
    pub(super) fn permit(&self) -> BodyPermit {
        self.bodies.permit(&self.caller)
    }
}

impl BodyPermit {
    /// Reserves `bytes` in all, waiting until the caller's share and the budget have them; `None` if they never can. A body of
    /// unknown length reserves ahead, so that it seldom waits again.
    pub async fn reserve(&mut self, bytes: usize) -> Option<()> {
        let reserved = self.0.weight();
        if bytes <= reserved {
            return Some(());
        }
        let ahead = reserved.saturating_mul(2).max(RESERVED_BYTES_MIN);
        let wanted = bytes.max(ahead.min(BODIES_OF_CALLER_BYTES_MAX));
        self.0.grow(wanted).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// Returns whether the bytes are reserved at once.
    fn finds(permit: &mut BodyPermit, bytes: usize) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        matches!(
            pin!(permit.reserve(bytes)).poll(&mut cx),
            Poll::Ready(Some(()))
        )
    }

    #[test]
    fn what_one_caller_holds_is_not_taken_from_another() {
        let bodies = Arc::new(Bodies::default());
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let half = BODIES_OF_CALLER_BYTES_MAX / 2;
        let mut held = [bodies.permit(&one), bodies.permit(&one)];
        assert!(held.iter_mut().all(|room| finds(room, half)));
        assert!(!finds(&mut bodies.permit(&one), 1));
        assert!(finds(&mut bodies.permit(&other), half));
        drop(held);
        assert!(finds(&mut bodies.permit(&one), half));
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
            let mut room = bodies.permit(&number.to_string().into());
            assert!(finds(&mut room, BODIES_OF_CALLER_BYTES_MAX), "{number}");
            held.push(room);
        }
        assert!(!finds(&mut bodies.permit(&"late".into()), 1));
    }

    #[test]
    fn a_body_of_unknown_length_grows_within_the_bound() {
        let bodies = Arc::new(Bodies::default());
        let mut room = bodies.permit(&"one".into());
        for bytes in [
            1,
            RESERVED_BYTES_MIN,
            RESERVED_BYTES_MIN + 1,
            1_000_000,
            BODIES_OF_CALLER_BYTES_MAX,
        ] {
            assert!(finds(&mut room, bytes), "{bytes}");
        }
        // Nobody else of this caller finds room beside it.
        assert!(!finds(&mut bodies.permit(&"one".into()), 1));
        drop(room);
        assert_eq!((bodies.bytes.held(), bodies.bytes.callers()), (0, 0));
    }

    #[test]
    fn a_body_beyond_its_callers_share_is_read_alone() {
        let bodies = Arc::new(Bodies::default());
        let one: Arc<str> = "one".into();
        let mut beside = bodies.permit(&one);
        assert!(finds(&mut beside, RESERVED_BYTES_MIN));
        let mut long = bodies.permit(&one);
        assert!(!finds(&mut long, 3 * BODIES_OF_CALLER_BYTES_MAX));
        drop((beside, long));
        let mut long = bodies.permit(&one);
        assert!(finds(&mut long, 3 * BODIES_OF_CALLER_BYTES_MAX));
        assert!(finds(&mut long, 5 * BODIES_OF_CALLER_BYTES_MAX));
        assert!(!finds(&mut bodies.permit(&one), 1));
        let mut other = bodies.permit(&"other".into());
        assert!(finds(&mut other, BODIES_OF_CALLER_BYTES_MAX));
        // What all take together stays within the bound.
        assert!(!finds(&mut long, BODIES_BYTES_MAX));
        let mut late = bodies.permit(&"late".into());
        assert!(!finds(&mut late, BODIES_BYTES_MAX + 1));
    }
}
