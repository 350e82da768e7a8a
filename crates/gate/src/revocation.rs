//! Revocation of credentials: one flag for all that was identified as one caller, and a future that resolves when it is set.
//!
//! Whatever outlasts one step of a caller (a stream, a wait for a person, a body on its way) holds the flag of its
//! `Caller` and waits for [`RevocationFlag::revoked`] beside its own work.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Whether the credential of a caller is revoked. Clones are the same flag.
#[derive(Clone, Default)]
pub struct RevocationFlag(Arc<FlagState>);

#[derive(Default)]
struct FlagState {
    is_revoked: AtomicBool,
    wakers: Mutex<WakerTable>,
}

/// Wakers of the futures that wait, by number. Each is removed with its future.
#[derive(Default)]
struct WakerTable {
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

/// Future of [`RevocationFlag::revoked`]. It may be polled again after it has resolved.
pub struct Revoked {
    flag: RevocationFlag,
    /// Its number in the table, and the waker there.
    registered: Option<(u64, Waker)>,
}

impl RevocationFlag {
    /// Sets the flag and wakes all that wait for it. It is never cleared.
    pub fn revoke(&self) {
        self.0.is_revoked.store(true, Ordering::Release);
        let wakers = std::mem::take(&mut self.wakers().wakers);
        for waker in wakers.into_values() {
            waker.wake();
        }
    }

    /// Returns whether the credential is revoked.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.0.is_revoked.load(Ordering::Acquire)
    }

    /// Resolves when the credential is revoked.
    #[must_use]
    pub fn revoked(&self) -> Revoked {
        Revoked {
            flag: self.clone(),
            registered: None,
        }
    }

    /// Returns whether this is the last clone.
    pub(crate) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn wakers(&self) -> MutexGuard<'_, WakerTable> {
        self.0.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RevocationFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RevocationFlag")
            .field(&self.is_revoked())
            .finish()
    }
}

impl Future for Revoked {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.flag.is_revoked() {
            return Poll::Ready(());
        }
        let known = self.registered.as_ref();
        if known.is_some_and(|(_, waker)| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        let known = known.map(|(number, _)| *number);
        let mut table = self.flag.wakers();
        let number = known.unwrap_or_else(|| {
            table.next += 1;
            table.next
        });
        table.wakers.insert(number, cx.waker().clone());
        drop(table);
        self.registered = Some((number, cx.waker().clone()));
        // Set between the first check and the insertion: nobody wakes this waker.
        match self.flag.is_revoked() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl Drop for Revoked {
    fn drop(&mut self) {
        if let Some((number, _)) = self.registered.take() {
            self.flag.wakers().wakers.remove(&number);
        }
    }
}

impl fmt::Debug for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Revoked").field(&self.flag).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn poll(future: &mut Revoked, count: &Arc<WakeCount>) -> Poll<()> {
        let waker = Waker::from(Arc::clone(count));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }

    #[test]
    fn every_future_of_a_flag_is_woken_once_and_resolves() {
        let (flag, count) = (RevocationFlag::default(), Arc::new(WakeCount::default()));
        let mut all = [flag.revoked(), flag.clone().revoked()];
        for future in &mut all {
            assert!(poll(future, &count).is_pending() && poll(future, &count).is_pending());
        }
        assert!(!flag.is_revoked());
        flag.clone().revoke();
        flag.revoke();
        assert_eq!(count.0.load(Ordering::Acquire), 2);
        for future in &mut all {
            assert!(poll(future, &count).is_ready() && poll(future, &count).is_ready());
        }
        assert!(
            poll(&mut flag.revoked(), &count).is_ready(),
            "one that begins late"
        );
    }

    #[test]
    fn a_future_that_moves_to_another_task_wakes_that_one_and_leaves_nothing() {
        let flag = RevocationFlag::default();
        let [one, other] = [(); 2].map(|()| Arc::new(WakeCount::default()));
        let mut moved = flag.revoked();
        let mut dropped = flag.revoked();
        assert!(poll(&mut moved, &one).is_pending() && poll(&mut moved, &other).is_pending());
        assert!(poll(&mut dropped, &one).is_pending());
        assert_eq!(flag.wakers().wakers.len(), 2);
        drop(dropped);
        assert_eq!(flag.wakers().wakers.len(), 1);
        flag.revoke();
        let woken = [&one, &other].map(|count| count.0.load(Ordering::Acquire));
        assert_eq!(woken, [0, 1]);
        drop(moved);
        assert!(flag.wakers().wakers.is_empty());
    }
}
