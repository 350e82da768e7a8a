//! Room for the processes of one server, or the sessions with it: a part of it for each caller, all of it for all.
//!
//! A quarter of all is kept for callers who have none: each of them finds one there, however much two others have taken.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most that wait for a place to become free.
pub const QUEUE_MAX: usize = 256;
/// Most of one caller's among them, where it has to leave room for others.
pub const QUEUE_OF_CALLER_MAX: usize = QUEUE_MAX / 4;
/// How long they wait, in milliseconds.
pub const QUEUE_WAIT_MS_MAX: u64 = 10_000;

/// How often whoever waits looks for a place that can be given up, in milliseconds.
const GIVE_UP_EVERY_MS: u64 = 250;
/// Callers beyond this number are forgotten where they have and wait for nothing.
const CALLERS_MAX: usize = 1_024;

/// The places.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    /// Those that are not kept for callers who have none.
    common: Arc<Semaphore>,
    max: usize,
    queued: AtomicUsize,
    callers: Mutex<HashMap<Arc<str>, Arc<Own>>>,
}

/// What one caller may have.
#[derive(Debug)]
struct Own {
    places: Arc<Semaphore>,
    /// The one place that a caller may have whoever else has how many.
    first: Arc<Semaphore>,
    queued: AtomicUsize,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _all: OwnedSemaphorePermit,
    _own: Option<Taken>,
}

/// What a place takes of its caller's part.
#[derive(Debug)]
struct Taken {
    _own: Arc<Own>,
    _place: OwnedSemaphorePermit,
    /// The caller's first, one of those that are kept for nobody, or both.
    _kinds: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
}

impl Places {
    pub fn new(max: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(max)),
            common: Arc::new(Semaphore::new(max - max.div_ceil(4))),
            max,
            queued: AtomicUsize::new(0),
            callers: Mutex::default(),
        }
    }

    /// How many one caller may have that has to leave room for others: half of them.
    fn of_caller_max(&self) -> usize {
        (self.max / 2).max(1)
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.max.saturating_sub(self.all.available_permits())
    }

    /// Ready when none is taken any more.
    pub async fn all_free(&self) {
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        drop(self.all.acquire_many(all).await);
    }

    fn own(&self, caller: &Arc<str>) -> Arc<Own> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= CALLERS_MAX {
            callers.retain(|_, own| Arc::strong_count(own) > 1);
        }
        let own = callers.entry(Arc::clone(caller)).or_insert_with(|| {
            Arc::new(Own {
                places: Arc::new(Semaphore::new(self.of_caller_max())),
                first: Arc::new(Semaphore::new(1)),
                queued: AtomicUsize::new(0),
            })
        });
        Arc::clone(own)
    }

    /// A place where one is free now.
    pub fn take_free(&self) -> Option<Place> {
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Place {
            _all: all,
            _own: None,
        })
    }

    /// A place for a `caller` that has to leave room for others, or for nobody in particular, waited for in a bounded
    /// queue. Whoever waits has `make_room` called now and then until it has: with the caller where it is the caller's
    /// own part that is full.
    pub async fn take(
        &self,
        caller: Option<&Arc<str>>,
        make_room: impl Fn(Option<&Arc<str>>) -> bool,
    ) -> Option<Place> {
        let Some(caller) = caller else {
            if let Some(place) = self.take_free() {
                return Some(place);
            }
            let _queued = Queued::join(&self.queued, QUEUE_MAX)?;
            let (_, all) = in_time(free(&[&self.all], || make_room(None))).await?;
            return Some(Place {
                _all: all,
                _own: None,
            });
        };
        let own = self.own(caller);
        let kinds = [&own.first, &self.common];
        let taken = |place, (which, kind)| {
            // A first place is one of those that are kept only where no other is free.
            let common = (which == 0).then(|| now(&[&self.common])).flatten();
            Taken {
                _own: Arc::clone(&own),
                _place: place,
                _kinds: (kind, common.map(|(_, common)| common)),
            }
        };
        let both = now(&[&own.places]).and_then(|(_, place)| Some(taken(place, now(&kinds)?)));
        if let Some((taken, place)) = both.and_then(|taken| Some((taken, self.take_free()?))) {
            return Some(Place {
                _own: Some(taken),
                ..place
            });
        }
        let _own_queued = Queued::join(&own.queued, QUEUE_OF_CALLER_MAX)?;
        let _queued = Queued::join(&self.queued, QUEUE_MAX)?;
        // The caller's own first: who has none left takes nothing of the others'.
        let waiting = async {
            let (_, place) = free(&[&own.places], || make_room(Some(caller))).await?;
            let kind = free(&kinds, || make_room(Some(caller)) || make_room(None)).await?;
            let (_, all) = free(&[&self.all], || make_room(None)).await?;
            Some(Place {
                _all: all,
                _own: Some(taken(place, kind)),
            })
        };
        in_time(waiting).await
    }
}

async fn in_time<T>(waiting: impl Future<Output = Option<T>>) -> Option<T> {
    let wait = Duration::from_millis(QUEUE_WAIT_MS_MAX);
    tokio::time::timeout(wait, waiting).await.ok().flatten()
}

/// Which of several a permit is of, and the permit.
type Found = (usize, OwnedSemaphorePermit);

/// A permit of any of these that is free now; of the first where several are.
fn now(places: &[&Arc<Semaphore>]) -> Option<Found> {
    let mut places = places.iter().enumerate();
    places.find_map(|(at, places)| Some((at, Arc::clone(places).try_acquire_owned().ok()?)))
}

/// A permit of any of these as soon as one is free. Who waits makes room once, as soon as there is room to be made.
async fn free(places: &[&Arc<Semaphore>], make_room: impl Fn() -> bool) -> Option<Found> {
    if let Some(found) = now(places) {
        return Some(found);
    }
    let mut waiting: Vec<_> = places
        .iter()
        .map(|places| Box::pin(Arc::clone(places).acquire_owned()))
        .collect();
    let mut any = pin!(poll_fn(|cx| {
        for (at, one) in waiting.iter_mut().enumerate() {
            if let Poll::Ready(permit) = one.as_mut().poll(cx) {
                return Poll::Ready(permit.ok().map(|permit| (at, permit)));
            }
        }
        Poll::Pending
    }));
    let mut look = tokio::time::interval(Duration::from_millis(GIVE_UP_EVERY_MS));
    let mut has_made_room = false;
    loop {
        tokio::select! {
            found = &mut any => return found,
            _ = look.tick(), if !has_made_room => has_made_room = make_room(),
        }
    }
}

/// One who waits.
struct Queued<'q>(&'q AtomicUsize);

impl<'q> Queued<'q> {
    fn join(queue: &'q AtomicUsize, most: usize) -> Option<Self> {
        let queued = Self(queue);
        // Counted before it is looked at: dropping it takes it back.
        (queue.fetch_add(1, Ordering::AcqRel) < most).then_some(queued)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    fn taken(places: &Places, caller: Option<&Arc<str>>) -> Option<Place> {
        let mut cx = Context::from_waker(Waker::noop());
        match pin!(places.take(caller, |_| false)).poll(&mut cx) {
            Poll::Ready(place) => place,
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn j18_no_caller_takes_what_the_others_need() {
        let places = Places::new(32);
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let held: Vec<Place> = (0..40).filter_map(|_| taken(&places, Some(&one))).collect();
        assert_eq!((held.len(), places.taken()), (16, 16));
        assert!(taken(&places, Some(&other)).is_some());
        drop(held);
        assert_eq!(places.taken(), 0);
        // Who is alone has them all.
        let held: Vec<Place> = (0..40).filter_map(|_| taken(&places, None)).collect();
        assert_eq!(held.len(), 32);
    }

    #[tokio::test]
    async fn j18_two_callers_that_take_all_they_may_leave_places_for_others() {
        for max in [4, 5, 8, 32] {
            let places = Places::new(max);
            let mut held = Vec::new();
            for caller in ["one", "other"] {
                let caller = Arc::from(caller);
                held.extend((0..2 * max).filter_map(|_| taken(&places, Some(&caller))));
            }
            assert!(places.taken() < max, "{max}");
            let late: Arc<str> = "late".into();
            let first = taken(&places, Some(&late));
            assert!(first.is_some(), "{max}");
            // Its second one is not kept for it.
            assert!(taken(&places, Some(&late)).is_none(), "{max}");
        }
    }

    #[tokio::test]
    async fn who_has_a_place_waits_for_what_is_kept_for_nobody() {
        let places = Places::new(4);
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let mut ones: Vec<_> = (0..3).filter_map(|_| taken(&places, Some(&one))).collect();
        let others = taken(&places, Some(&other));
        assert_eq!((ones.len(), others.is_some(), places.taken()), (2, true, 3));
        let mut cx = Context::from_waker(Waker::noop());
        let mut waiting = Box::pin(places.take(Some(&other), |_| false));
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        drop(ones.pop());
        assert!(matches!(
            waiting.as_mut().poll(&mut cx),
            Poll::Ready(Some(_))
        ));
        // Whoever has given up all has a first place again.
        drop((ones, others));
        assert!(taken(&places, Some(&one)).is_some());
    }

    #[tokio::test]
    async fn waiting_of_one_caller_leaves_room_in_the_queue() {
        let places = Places::new(2);
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let _one = taken(&places, Some(&one)).unwrap();
        let _other = taken(&places, Some(&other)).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut waiting = Vec::new();
        for number in 0..100 {
            let mut taking = Box::pin(places.take(Some(&one), |_| false));
            match taking.as_mut().poll(&mut cx) {
                Poll::Ready(place) => assert!(place.is_none() && number >= QUEUE_OF_CALLER_MAX),
                Poll::Pending => waiting.push(taking),
            }
        }
        assert_eq!(waiting.len(), QUEUE_OF_CALLER_MAX);
        let mut late = Box::pin(places.take(Some(&other), |_| false));
        assert!(late.as_mut().poll(&mut cx).is_pending());
        drop((waiting, late));
        assert_eq!(places.queued.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn one_more_than_may_wait_is_refused_at_once_and_the_first_gets_what_becomes_free() {
        let places = Places::new(1);
        let held = taken(&places, None).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut waiting: Vec<_> = (0..QUEUE_MAX)
            .map(|_| Box::pin(places.take(None, |_| false)))
            .collect();
        for one in &mut waiting {
            assert!(one.as_mut().poll(&mut cx).is_pending());
        }
        let one_more = pin!(places.take(None, |_| false)).poll(&mut cx);
        assert!(matches!(one_more, Poll::Ready(None)));
        drop(held);
        let first = waiting[0].as_mut().poll(&mut cx);
        assert!(matches!(first, Poll::Ready(Some(_))));
        assert!(waiting[1].as_mut().poll(&mut cx).is_pending());
    }

    #[tokio::test]
    async fn a_caller_makes_room_among_its_own() {
        let places = Places::new(4);
        let one = Arc::from("one");
        let held = Mutex::new(vec![
            taken(&places, Some(&one)).unwrap(),
            taken(&places, Some(&one)).unwrap(),
        ]);
        let given_up = |caller: Option<&Arc<str>>| {
            assert_eq!(caller, Some(&one));
            held.lock().unwrap().pop().is_some()
        };
        assert!(places.take(Some(&one), given_up).await.is_some());
        assert_eq!(held.lock().unwrap().len(), 1);
    }
}
