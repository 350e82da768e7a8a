//! Byte budget of request bodies that are being read: a share of it for each caller. A body in one piece needs none.
//!
//! A body may take long to arrive. If its caller's key is revoked meanwhile, the body is rejected.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use share::{ShareLimits, SharePermit, SharePool};

/// Most bytes of all bodies that are being read of one caller. A longer one is read alone.
pub const BODIES_OF_CALLER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Most bytes of all bodies that are being read.
pub const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Smallest reservation, in bytes.
const RESERVED_BYTES_MIN: usize = 1024;
/// Most bodies that wait for bytes: as many as there are connections by default.
const BODIES_WAITING_MAX: usize = 10_240;

/// Bytes of all bodies that are being read.
#[derive(Debug, Clone)]
pub struct BodyBudget(SharePool);

impl Default for BodyBudget {
    fn default() -> Self {
        let limits = ShareLimits::of_caller(BODIES_OF_CALLER_BYTES_MAX, BODIES_BYTES_MAX);
        Self(SharePool::new(
            limits.with_queue(BODIES_WAITING_MAX, BODIES_WAITING_MAX),
        ))
    }
}

/// Resolves when a credential is revoked.
pub(super) type Revoked = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// A caller's share of the budget, and the end of its credential.
pub struct BodyShare {
    budget: BodyBudget,
    caller: Arc<str>,
    revoked: Option<Revoked>,
}

/// Bytes that are reserved for one body, until it is dropped.
#[derive(Debug)]
pub(super) struct BodyPermit(SharePermit);

impl BodyBudget {
    /// Returns the share of a caller.
    #[must_use]
    pub fn share_of(&self, caller: &Arc<str>) -> BodyShare {
        BodyShare {
            budget: self.clone(),
            caller: Arc::clone(caller),
            revoked: None,
        }
    }

    fn permit(&self, caller: &Arc<str>) -> BodyPermit {
        BodyPermit(self.0.permit(Some(caller)))
    }
}

impl BodyShare {
    /// Rejects a body that has not arrived when `revoked` resolves.
    #[must_use]
    pub fn until(self, revoked: impl Future<Output = ()> + Send + Sync + 'static) -> Self {
        Self {
            revoked: Some(Box::pin(revoked)),
            ..self
        }
    }

    pub(super) fn take_revoked(&mut self) -> Option<Revoked> {
        self.revoked.take()
    }

    /// Returns a permit for one more body, with nothing reserved yet.
    pub(super) fn permit(&self) -> BodyPermit {
        self.budget.permit(&self.caller)
    }
}

impl fmt::Debug for BodyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyShare")
            .field("caller", &self.caller)
            .finish_non_exhaustive()
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
    fn a_caller_holds_its_share_and_leaves_the_rest_to_others() {
        let budget = BodyBudget::default();
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let half = BODIES_OF_CALLER_BYTES_MAX / 2;
        let mut held = [budget.permit(&one), budget.permit(&one)];
        assert!(held.iter_mut().all(|permit| finds(permit, half)));
        assert!(!finds(&mut budget.permit(&one), 1));
        assert!(finds(&mut budget.permit(&other), half));
        drop(held);
        assert!(finds(&mut budget.permit(&one), half));
    }

    #[test]
    fn all_callers_together_have_a_bound() {
        let budget = BodyBudget::default();
        let mut held = Vec::new();
        for number in 0..BODIES_BYTES_MAX / BODIES_OF_CALLER_BYTES_MAX {
            let mut permit = budget.permit(&number.to_string().into());
            assert!(finds(&mut permit, BODIES_OF_CALLER_BYTES_MAX), "{number}");
            held.push(permit);
        }
        assert!(!finds(&mut budget.permit(&"late".into()), 1));
    }

    #[test]
    fn a_body_of_unknown_length_grows_within_the_bound() {
        let budget = BodyBudget::default();
        let mut permit = budget.permit(&"one".into());
        for bytes in [
            1,
            RESERVED_BYTES_MIN,
            RESERVED_BYTES_MIN + 1,
            1_000_000,
            BODIES_OF_CALLER_BYTES_MAX,
        ] {
            assert!(finds(&mut permit, bytes), "{bytes}");
        }
        // No other body of this caller finds a byte beside it.
        assert!(!finds(&mut budget.permit(&"one".into()), 1));
        drop(permit);
        assert_eq!((budget.0.held(), budget.0.callers()), (0, 0));
    }

    #[test]
    fn a_body_beyond_its_callers_share_is_read_alone() {
        let budget = BodyBudget::default();
        let one: Arc<str> = "one".into();
        let mut beside = budget.permit(&one);
        assert!(finds(&mut beside, RESERVED_BYTES_MIN));
        let mut long = budget.permit(&one);
        assert!(!finds(&mut long, 3 * BODIES_OF_CALLER_BYTES_MAX));
        drop((beside, long));
        let mut long = budget.permit(&one);
        assert!(finds(&mut long, 3 * BODIES_OF_CALLER_BYTES_MAX));
        assert!(finds(&mut long, 5 * BODIES_OF_CALLER_BYTES_MAX));
        assert!(!finds(&mut budget.permit(&one), 1));
        let mut other = budget.permit(&"other".into());
        assert!(finds(&mut other, BODIES_OF_CALLER_BYTES_MAX));
        // All together stay within the bound.
        assert!(!finds(&mut long, BODIES_BYTES_MAX));
        let mut late = budget.permit(&"late".into());
        assert!(!finds(&mut late, BODIES_BYTES_MAX + 1));
    }

    #[test]
    fn every_byte_is_shared_and_comes_back() {
        const BYTES: usize = BODIES_OF_CALLER_BYTES_MAX / 4;
        let budget = BodyBudget::default();
        let acquire = |caller: &Arc<str>| {
            let mut permit = budget.permit(caller);
            let reserve = async move { permit.reserve(BYTES).await.map(|()| permit) };
            Box::pin(reserve) as _
        };
        assert_eq!(
            share::contract::check_user(&budget.0, BYTES, acquire),
            Ok(())
        );
    }

    #[test]
    fn bodies_beyond_those_that_may_wait_are_refused_and_the_first_go_on() {
        let budget = BodyBudget::default();
        let callers = BODIES_BYTES_MAX / BODIES_OF_CALLER_BYTES_MAX;
        let mut held: Vec<_> = (0..callers)
            .map(|number| budget.permit(&number.to_string().into()))
            .collect();
        assert!(
            held.iter_mut()
                .all(|permit| finds(permit, BODIES_OF_CALLER_BYTES_MAX))
        );
        let mut cx = Context::from_waker(Waker::noop());
        let late: Arc<str> = "late".into();
        // Each is a future that waits in the queue, as that of a body does.
        let mut wait = || {
            let mut permit = budget.permit(&late);
            let mut waiting = Box::pin(async move { permit.reserve(1).await.map(|()| permit) });
            let first = waiting.as_mut().poll(&mut cx);
            (waiting, first)
        };
        let mut waiting = Vec::new();
        for number in 0..BODIES_WAITING_MAX {
            let (body, first) = wait();
            assert!(first.is_pending(), "{number}");
            waiting.push(body);
        }
        let (_, refused) = wait();
        assert!(
            matches!(refused, Poll::Ready(None)),
            "one more than may wait"
        );
        assert_eq!(budget.0.waiting(), BODIES_WAITING_MAX);
        drop(held.pop());
        let mut cx = Context::from_waker(Waker::noop());
        let mut served = 0;
        for body in &mut waiting {
            if let Poll::Ready(permit) = body.as_mut().poll(&mut cx) {
                assert!(permit.is_some());
                served += 1;
            }
        }
        // Each permit is dropped with its result, and the next waiter has its bytes.
        assert_eq!(served, BODIES_WAITING_MAX);
        drop((waiting, held));
        assert_eq!(
            (budget.0.held(), budget.0.waiting(), budget.0.callers()),
            (0, 0, 0)
        );
    }
}
