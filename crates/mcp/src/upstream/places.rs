//! Room for the processes of one server, or the sessions with it: a part of it for each caller, all of it for all.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
    max: usize,
    queued: AtomicUsize,
    callers: Mutex<HashMap<Arc<str>, Arc<Own>>>,
}

/// What one caller may have.
#[derive(Debug)]
struct Own {
    places: Arc<Semaphore>,
    queued: AtomicUsize,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _all: OwnedSemaphorePermit,
    _own: Option<(Arc<Own>, OwnedSemaphorePermit)>,
}

impl Places {
    pub fn new(max: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(max)),
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
            let all = in_time(free(&self.all, || make_room(None))).await?;
            return Some(Place {
                _all: all,
                _own: None,
            });
        };
        let own = self.own(caller);
        let first = Arc::clone(&own.places).try_acquire_owned().ok();
        let both = first.and_then(|own| Some((self.take_free()?, own)));
        if let Some((place, permit)) = both {
            return Some(Place {
                _own: Some((own, permit)),
                ..place
            });
        }
        let _own_queued = Queued::join(&own.queued, QUEUE_OF_CALLER_MAX)?;
        let _queued = Queued::join(&self.queued, QUEUE_MAX)?;
        // The caller's own first: who has none left takes nothing of the others'.
        let waiting = async {
            let permit = free(&own.places, || make_room(Some(caller))).await?;
            Some((free(&self.all, || make_room(None)).await?, permit))
        };
        let (all, permit) = in_time(waiting).await?;
        Some(Place {
            _all: all,
            _own: Some((Arc::clone(&own), permit)),
        })
    }
}

async fn in_time<T>(waiting: impl Future<Output = Option<T>>) -> Option<T> {
    let wait = Duration::from_millis(QUEUE_WAIT_MS_MAX);
    tokio::time::timeout(wait, waiting).await.ok().flatten()
}

/// A permit as soon as one is free. Who waits makes room once, as soon as there is room to be made.
async fn free(
    places: &Arc<Semaphore>,
    make_room: impl Fn() -> bool,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(places).try_acquire_owned() {
        return Some(permit);
    }
    let mut free = pin!(Arc::clone(places).acquire_owned());
    let mut look = tokio::time::interval(Duration::from_millis(GIVE_UP_EVERY_MS));
    let mut has_made_room = false;
    loop {
        tokio::select! {
            permit = &mut free => return permit.ok(),
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
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn now(places: &Places, caller: Option<&Arc<str>>) -> Option<Place> {
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
        let held: Vec<Place> = (0..40).filter_map(|_| now(&places, Some(&one))).collect();
        assert_eq!((held.len(), places.taken()), (16, 16));
        assert!(now(&places, Some(&other)).is_some());
        drop(held);
        assert_eq!(places.taken(), 0);
        // Who is alone has them all.
        let held: Vec<Place> = (0..40).filter_map(|_| now(&places, None)).collect();
        assert_eq!(held.len(), 32);
    }

    #[tokio::test]
    async fn waiting_of_one_caller_leaves_room_in_the_queue() {
        let places = Places::new(2);
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let _one = now(&places, Some(&one)).unwrap();
        let _other = now(&places, Some(&other)).unwrap();
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
    async fn a_caller_makes_room_among_its_own() {
        let places = Places::new(4);
        let one = Arc::from("one");
        let held = Mutex::new(vec![
            now(&places, Some(&one)).unwrap(),
            now(&places, Some(&one)).unwrap(),
        ]);
        let given_up = |caller: Option<&Arc<str>>| {
            assert_eq!(caller, Some(&one));
            held.lock().unwrap().pop().is_some()
        };
        assert!(places.take(Some(&one), given_up).await.is_some());
        assert_eq!(held.lock().unwrap().len(), 1);
    }
}
