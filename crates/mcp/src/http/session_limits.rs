//! How many sessions there may be: so many of each caller, so many in all. A seat is taken before a session is
//! opened, so that many that are being opened at once are not too many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gate::Caller;

/// The seats that are taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Seats(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// None is 0.
    callers: HashMap<Arc<str>, usize>,
}

/// A session's seat, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Seats,
    caller: Arc<str>,
}

impl Seats {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat where there is one. A caller without a key is alone and leaves no room for others.
    pub fn take(&self, caller: &Caller, of_caller_max: usize, max: usize) -> Option<Seat> {
        let mut taken = self.taken();
        let own = taken.callers.get(&caller.subject).copied().unwrap_or(0);
        let is_full = caller.has_to_share() && own >= of_caller_max;
        if is_full || taken.all >= max {
            return None;
        }
        taken.all += 1;
        *taken
            .callers
            .entry(Arc::clone(&caller.subject))
            .or_default() += 1;
        Some(Seat {
            seats: self.clone(),
            caller: Arc::clone(&caller.subject),
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        taken.all = taken.all.saturating_sub(1);
        let left = taken.callers.get_mut(&self.caller).map(|own| {
            *own = own.saturating_sub(1);
            *own
        });
        if left == Some(0) {
            taken.callers.remove(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use gate::identity::Proof;

    use super::*;

    fn caller(subject: &str, proof: Proof) -> Caller {
        Caller {
            subject: subject.into(),
            proof,
            ..Caller::default()
        }
    }

    #[test]
    fn sessions_have_a_bound_for_each_caller_and_one_for_all() {
        let seats = Seats::default();
        let take = |caller: &Caller, most: usize| -> Vec<Seat> {
            (0..most).filter_map(|_| seats.take(caller, 3, 5)).collect()
        };
        let (one, other) = (caller("one", Proof::ApiKey), caller("other", Proof::ApiKey));
        let held = take(&one, 10);
        assert_eq!(held.len(), 3);
        let others = take(&other, 10);
        assert_eq!(others.len(), 2, "five in all");
        drop(held);
        assert_eq!(take(&one, 10).len(), 3);
        drop(others);
        assert!(seats.taken().callers.is_empty());
        let alone = caller("ada", Proof::LocalUser);
        assert_eq!(take(&alone, 10).len(), 5);
        assert_eq!(seats.taken().all, 0);
    }
}
