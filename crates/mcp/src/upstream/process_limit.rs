//! Limit of the processes of one server, or of the sessions with it: a share for each caller.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use share::{Growth, ShareLimits, SharePermit, SharePool, Shortage};

/// Most that wait for a process.
pub const QUEUE_MAX: usize = 256;
/// Most waiters of one caller that has to leave room for others.
pub const QUEUE_OF_CALLER_MAX: usize = QUEUE_MAX / 4;
/// How long they wait, in milliseconds.
pub const QUEUE_WAIT_MS_MAX: u64 = 10_000;

/// How often a waiter looks for an idle process to end, in milliseconds.
const GIVE_UP_EVERY_MS: u64 = 250;

/// Permits of processes, or of sessions. A caller has half of them at most; a quarter is reserved for callers without one.
#[derive(Debug)]
pub(crate) struct ProcessLimit(SharePool);

impl ProcessLimit {
    pub fn new(max: usize) -> Self {
        let limits = ShareLimits::half_each(max);
        Self(SharePool::new(
            limits.with_queue(QUEUE_MAX, QUEUE_OF_CALLER_MAX),
        ))
    }

    /// Returns how many permits are held.
    pub fn held(&self) -> usize {
        self.0.held()
    }

    /// Resolves when no permit is held.
    pub async fn all_free(&self) {
        poll_fn(|cx| self.0.poll_empty(cx)).await;
    }

    /// Returns a permit that counts for no caller if one is free now.
    pub fn try_acquire(&self) -> Option<SharePermit> {
        self.0.try_acquire(None, 1).ok()
    }

    /// Returns a permit for a `caller` that has to leave room for others, or for none in particular; `None` if the queue is full or
    /// the wait too long. While it waits, `make_room` is called every [`GIVE_UP_EVERY_MS`] until it has made room once for each
    /// [`Shortage`]: with the caller if its own share is short.
    pub async fn acquire(
        &self,
        caller: Option<&Arc<str>>,
        make_room: impl Fn(Option<&Arc<str>>) -> bool,
    ) -> Option<SharePermit> {
        let mut permit = self.0.permit(caller);
        if permit.try_grow(1).is_ok() {
            return Some(permit);
        }
        let make_room = |shortage| match shortage {
            Shortage::Caller => make_room(caller),
            Shortage::Reserve => make_room(caller) || make_room(None),
            Shortage::Pool => make_room(None),
            Shortage::Queue | Shortage::TooMuch => false,
        };
        let wait = Duration::from_millis(QUEUE_WAIT_MS_MAX);
        let grown = tokio::time::timeout(wait, grow(permit.grow(1), make_room));
        grown.await.is_ok_and(|grown| grown).then_some(permit)
    }
}

/// Waits for a permit, and makes room once for each shortage. Returns false if the queue is full.
async fn grow(mut growth: Growth<'_>, make_room: impl Fn(Shortage) -> bool) -> bool {
    let mut look = tokio::time::interval(Duration::from_millis(GIVE_UP_EVERY_MS));
    let mut made_for = Vec::new();
    loop {
        tokio::select! {
            biased;
            grown = &mut growth => return grown.is_ok(),
            _ = look.tick() => {
                if let Some(shortage) = growth.shortage()
                    && !made_for.contains(&shortage)
                    && make_room(shortage)
                {
                    made_for.push(shortage);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn taken(limit: &ProcessLimit, caller: Option<&Arc<str>>) -> Option<SharePermit> {
        let mut cx = Context::from_waker(Waker::noop());
        match pin!(limit.acquire(caller, |_| false)).poll(&mut cx) {
            Poll::Ready(place) => place,
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn no_caller_takes_what_the_others_need() {
        let limit = ProcessLimit::new(32);
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let held: Vec<SharePermit> = (0..40).filter_map(|_| taken(&limit, Some(&one))).collect();
        assert_eq!((held.len(), limit.held()), (16, 16));
        assert!(taken(&limit, Some(&other)).is_some());
        drop(held);
        assert_eq!(limit.held(), 0);
        // A caller alone has them all.
        let held: Vec<SharePermit> = (0..40).filter_map(|_| taken(&limit, None)).collect();
        assert_eq!(held.len(), 32);
    }

    #[tokio::test]
    async fn a_caller_with_a_process_waits_for_one_that_is_not_reserved() {
        let limit = ProcessLimit::new(4);
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let mut ones: Vec<_> = (0..3).filter_map(|_| taken(&limit, Some(&one))).collect();
        let others = taken(&limit, Some(&other));
        assert_eq!((ones.len(), others.is_some(), limit.held()), (2, true, 3));
        let mut cx = Context::from_waker(Waker::noop());
        let mut waiting = Box::pin(limit.acquire(Some(&other), |_| false));
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        drop(ones.pop());
        assert!(matches!(
            waiting.as_mut().poll(&mut cx),
            Poll::Ready(Some(_))
        ));
        // A caller without a process has a first one again.
        drop((ones, others));
        assert!(taken(&limit, Some(&one)).is_some());
    }

    #[tokio::test]
    async fn waiting_of_one_caller_leaves_room_in_the_queue() {
        let limit = ProcessLimit::new(2);
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let _one = taken(&limit, Some(&one)).unwrap();
        let _other = taken(&limit, Some(&other)).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut waiting = Vec::new();
        for number in 0..100 {
            let mut taking = Box::pin(limit.acquire(Some(&one), |_| false));
            match taking.as_mut().poll(&mut cx) {
                Poll::Ready(place) => assert!(place.is_none() && number >= QUEUE_OF_CALLER_MAX),
                Poll::Pending => waiting.push(taking),
            }
        }
        assert_eq!(waiting.len(), QUEUE_OF_CALLER_MAX);
        let mut late = Box::pin(limit.acquire(Some(&other), |_| false));
        assert!(late.as_mut().poll(&mut cx).is_pending());
        drop((waiting, late));
        assert_eq!(limit.0.waiting(), 0);
    }

    #[tokio::test]
    async fn one_more_than_may_wait_is_refused_at_once_and_the_first_gets_what_becomes_free() {
        let limit = ProcessLimit::new(1);
        let held = taken(&limit, None).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut waiting: Vec<_> = (0..QUEUE_MAX)
            .map(|_| Box::pin(limit.acquire(None, |_| false)))
            .collect();
        for one in &mut waiting {
            assert!(one.as_mut().poll(&mut cx).is_pending());
        }
        let one_more = pin!(limit.acquire(None, |_| false)).poll(&mut cx);
        assert!(matches!(one_more, Poll::Ready(None)));
        drop(held);
        let first = waiting[0].as_mut().poll(&mut cx);
        assert!(matches!(first, Poll::Ready(Some(_))));
        assert!(waiting[1].as_mut().poll(&mut cx).is_pending());
    }

    #[tokio::test]
    async fn a_caller_makes_room_among_its_own() {
        let limit = ProcessLimit::new(4);
        let one = Arc::from("one");
        let held = Mutex::new(vec![
            taken(&limit, Some(&one)).unwrap(),
            taken(&limit, Some(&one)).unwrap(),
        ]);
        let given_up = |caller: Option<&Arc<str>>| {
            assert_eq!(caller, Some(&one));
            held.lock().unwrap().pop().is_some()
        };
        assert!(limit.acquire(Some(&one), given_up).await.is_some());
        assert_eq!(held.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn every_process_is_shared_and_comes_back() {
        let limit = ProcessLimit::new(10);
        let acquire = |caller: &Arc<str>| {
            let (limit, caller) = (ProcessLimit(limit.0.clone()), Arc::clone(caller));
            Box::pin(async move { limit.acquire(Some(&caller), |_| false).await }) as _
        };
        assert_eq!(share::contract::check_user(&limit.0, 1, acquire), Ok(()));
    }
}
