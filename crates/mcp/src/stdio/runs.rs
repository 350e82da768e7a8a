//! What is under way on the edge's one task: a bounded set of futures, each polled when it was woken,
//! in the order in which they were.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::coop;

use crate::call::Work;

/// Most that go on at once: calls, requests of the server that wait, and what looks after the session.
pub(super) const RUNS_MAX: usize = 2_048;
/// Most polls before the edge looks at its streams again.
const POLLS_MAX: usize = 1_024;

/// Most rooms of ended calls that are kept for later ones.
const SPARE_MAX: usize = 32;

/// A bounded set of futures. Those that are made of a `T` are many and large, and come one after the other: they use each
/// other's room again.
pub(crate) struct Runs<T = ()> {
    places: Vec<Place<T>>,
    free: Vec<usize>,
    spare: Vec<Box<dyn Room<T>>>,
    woken: Arc<Woken>,
}

struct Place<T> {
    work: Option<Running<T>>,
    rope: Arc<Rope>,
    waker: Waker,
}

enum Running<T> {
    Once(Work),
    Again(Box<dyn Room<T>>),
}

/// Room for one future at a time.
trait Room<T>: Future<Output = ()> + Send + Unpin {
    /// Begins; what was there before is dropped.
    fn begin(&mut self, with: T);
    /// Drops what is there.
    fn end(&mut self);
}

struct RoomFor<T, F> {
    make: fn(T) -> F,
    run: Pin<Box<Option<F>>>,
}

impl<T, F: Future<Output = ()>> Future for RoomFor<T, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.run.as_mut().as_pin_mut() {
            Some(run) => run.poll(cx),
            None => Poll::Ready(()),
        }
    }
}

impl<T, F: Future<Output = ()> + Send> Room<T> for RoomFor<T, F> {
    fn begin(&mut self, with: T) {
        self.run.set(Some((self.make)(with)));
    }

    fn end(&mut self) {
        self.run.set(None);
    }
}

/// Which have been woken, and who waits for one to be.
#[derive(Default)]
struct Woken(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    places: VecDeque<usize>,
    edge: Option<Waker>,
}

struct Rope {
    place: usize,
    is_queued: AtomicBool,
    woken: Arc<Woken>,
}

impl Woken {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Rope {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut queue = self.woken.queue();
        queue.places.push_back(self.place);
        let edge = queue.edge.take();
        drop(queue);
        if let Some(edge) = edge {
            edge.wake();
        }
    }
}

impl<T> Default for Runs<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            woken: Arc::default(),
        }
    }
}

impl<T: 'static> Runs<T> {
    /// Whether there is room for another.
    pub fn has_room(&self) -> bool {
        self.places.len() - self.free.len() < RUNS_MAX
    }

    /// Whether nothing goes on.
    pub fn is_empty(&self) -> bool {
        self.places.len() == self.free.len()
    }

    /// Adds one, to be polled next; `false` where there is no room, and it is dropped.
    pub fn add(&mut self, work: Work) -> bool {
        self.has_room() && self.run(Running::Once(work))
    }

    /// Adds the one that is made of this, in the room of one that has ended. `make` is the same in each call.
    pub fn carry<F>(&mut self, with: T, make: fn(T) -> F) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if !self.has_room() {
            return false;
        }
        let mut room = self.spare.pop().unwrap_or_else(|| {
            let run = Box::pin(None);
            Box::new(RoomFor { make, run })
        });
        room.begin(with);
        self.run(Running::Again(room))
    }

    fn run(&mut self, work: Running<T>) -> bool {
        let at = self.free.pop().unwrap_or_else(|| {
            let rope = Arc::new(Rope {
                place: self.places.len(),
                is_queued: AtomicBool::new(false),
                woken: Arc::clone(&self.woken),
            });
            self.places.push(Place {
                work: None,
                waker: Waker::from(Arc::clone(&rope)),
                rope,
            });
            self.places.len() - 1
        });
        let Some(place) = self.places.get_mut(at) else {
            return false;
        };
        place.work = Some(work);
        // A waker of what was here before may have queued it.
        if !place.rope.is_queued.swap(true, Ordering::AcqRel) {
            self.woken.queue().places.push_back(at);
        }
        true
    }

    /// Polls those that were woken, as far as the runtime's budget for one turn goes; with `all`, all of
    /// them, which is for what waits only for frames that were read.
    pub fn poll(&mut self, all: bool) {
        for _ in 0..POLLS_MAX {
            if !all && !coop::has_budget_remaining() {
                return;
            }
            let Some(at) = self.woken.queue().places.pop_front() else {
                return;
            };
            let Some(place) = self.places.get_mut(at) else {
                continue;
            };
            place.rope.is_queued.store(false, Ordering::Release);
            let work: Pin<&mut (dyn Future<Output = ()> + Send)> = match &mut place.work {
                Some(Running::Once(work)) => work.as_mut(),
                Some(Running::Again(room)) => {
                    let room: Pin<&mut dyn Room<T>> = Pin::new(&mut **room);
                    room
                }
                None => continue,
            };
            let mut cx = Context::from_waker(&place.waker);
            let ended = if all {
                pin!(coop::unconstrained(work)).poll(&mut cx).is_ready()
            } else {
                work.poll(&mut cx).is_ready()
            };
            if ended {
                if let Some(Running::Again(mut room)) = place.work.take()
                    && self.spare.len() < SPARE_MAX
                {
                    room.end();
                    self.spare.push(room);
                }
                self.free.push(at);
            }
        }
    }

    /// Waits until one has been woken. Cancel-safe.
    pub async fn woken(&self) {
        // Without this, those that wake themselves because the budget is used up would never get another.
        coop::consume_budget().await;
        poll_fn(|cx| {
            let mut queue = self.woken.queue();
            if queue.places.is_empty() {
                queue.edge = Some(cx.waker().clone());
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    /// Nobody waits for one to be woken: those that are woken meanwhile are polled in any case.
    pub fn attend(&self) {
        self.woken.queue().edge = None;
    }

    /// Drops all of them.
    pub fn clear(&mut self) {
        // A place that is woken after this is not there any more.
        self.places.clear();
        self.free.clear();
        self.spare.clear();
        self.woken.queue().places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn what_is_woken_is_polled_in_order_and_what_has_ended_makes_room() {
        let mut runs = Runs::<()>::default();
        let (first, second) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let order = Arc::new(Mutex::new(Vec::new()));
        for (name, bell) in [("first", &first), ("second", &second)] {
            let (order, bell) = (Arc::clone(&order), Arc::clone(bell));
            assert!(runs.add(Box::pin(async move {
                bell.notified().await;
                order.lock().unwrap().push(name);
            })));
        }
        runs.poll(true);
        assert!(order.lock().unwrap().is_empty());
        second.notify_one();
        first.notify_one();
        runs.woken().await;
        runs.poll(true);
        assert_eq!(*order.lock().unwrap(), ["second", "first"]);
        assert_eq!(runs.places.len() - runs.free.len(), 0);
    }

    #[test]
    fn what_is_made_of_the_same_uses_the_room_of_what_has_ended() {
        async fn count(counted: (Arc<AtomicUsize>, bool)) {
            counted.0.fetch_add(1, Ordering::Relaxed);
            if counted.1 {
                std::future::pending::<()>().await;
            }
        }
        let counted = Arc::new(AtomicUsize::new(0));
        let mut runs = Runs::default();
        for round in 1..=3 {
            for _ in 0..2 * SPARE_MAX {
                assert!(runs.carry((Arc::clone(&counted), false), count));
            }
            runs.poll(true);
            assert!(runs.is_empty());
            assert_eq!(runs.spare.len(), SPARE_MAX);
            assert_eq!(counted.load(Ordering::Relaxed), round * 2 * SPARE_MAX);
        }
        // What has ended holds nothing any more; what goes on is held until it is dropped.
        assert_eq!(Arc::strong_count(&counted), 1);
        assert!(runs.carry((Arc::clone(&counted), true), count));
        runs.poll(true);
        assert!(!runs.is_empty());
        assert_eq!(Arc::strong_count(&counted), 2);
        runs.clear();
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn the_set_is_bounded() {
        let mut runs = Runs::<()>::default();
        let dropped = Arc::new(AtomicUsize::new(0));
        struct Count(Arc<AtomicUsize>);
        impl Drop for Count {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let add = |runs: &mut Runs<()>| {
            let count = Count(Arc::clone(&dropped));
            runs.add(Box::pin(async move {
                std::future::pending::<()>().await;
                drop(count);
            }))
        };
        for _ in 0..RUNS_MAX {
            assert!(add(&mut runs));
        }
        assert!(!add(&mut runs));
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
        runs.clear();
        assert_eq!(dropped.load(Ordering::Relaxed), RUNS_MAX + 1);
        assert!(add(&mut runs));
    }
}
