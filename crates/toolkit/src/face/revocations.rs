//! What callers have open that lasts, by caller: a key that is good no longer ends what was opened with it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};

/// What one thing that lasts watches. It has one watcher.
#[derive(Debug, Default)]
pub struct Revocation {
    revoked: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Revocation {
    /// Whether it has to end; else `waker` is woken when it has.
    pub fn is_revoked(&self, waker: &Waker) -> bool {
        let mut own = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !own.as_ref().is_some_and(|own| own.will_wake(waker)) {
            *own = Some(waker.clone());
        }
        drop(own);
        self.revoked.load(Ordering::Acquire)
    }

    /// Ready when it has to end.
    pub async fn revoked(&self) {
        poll_fn(|cx| match self.is_revoked(cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
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

/// All revocations, by caller. Those that nobody watches any more go when the caller opens another.
#[derive(Debug, Default)]
pub struct Revocations(Mutex<HashMap<Arc<str>, Vec<Weak<Revocation>>>>);

impl Revocations {
    /// A revocation for something of this caller.
    #[must_use]
    pub fn watch(&self, caller: &Arc<str>) -> Arc<Revocation> {
        let revocation = Arc::default();
        let mut all = self.lock();
        let own = all.entry(Arc::clone(caller)).or_default();
        own.retain(|revocation| revocation.strong_count() > 0);
        own.push(Arc::downgrade(&revocation));
        revocation
    }

    /// Ends what this caller has open.
    pub fn revoke(&self, caller: &Arc<str>) {
        let own = self.lock().remove(caller).unwrap_or_default();
        for revocation in own.iter().filter_map(Weak::upgrade) {
            revocation.revoke();
        }
    }

    /// Forgets callers who have nothing open.
    pub fn tidy(&self) {
        self.lock().retain(|_, own| {
            own.retain(|revocation| revocation.strong_count() > 0);
            !own.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Vec<Weak<Revocation>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_is_expelled_finds_its_doors_closed_and_no_others() {
        let (revocations, a, b): (Revocations, Arc<str>, Arc<str>) =
            (Revocations::default(), "a".into(), "b".into());
        let waker = Waker::noop();
        let (first, other) = (revocations.watch(&a), revocations.watch(&b));
        assert!(!first.is_revoked(waker) && !other.is_revoked(waker));
        revocations.revoke(&a);
        assert!(first.is_revoked(waker) && !other.is_revoked(waker));
        assert!(
            !revocations.watch(&a).is_revoked(waker),
            "what is opened later is judged anew"
        );
        drop(other);
        revocations.tidy();
        assert!(revocations.lock().is_empty());
    }
}
