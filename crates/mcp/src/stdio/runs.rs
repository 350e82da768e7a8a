//! What is under way on the edge's one task: a bounded set of futures, each polled when it was woken,
//! in the order in which they were.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::coop;

use crate::call::Work;

/// Most that go on at once: calls, requests of the server that wait, and what looks after the session.
pub(super) const RUNS_MAX: usize = 2_048;
/// Most polls before the edge looks at its streams again.
const POLLS_MAX: usize = 1_024;

/// A bounded set of futures.
#[derive(Default)]
pub(crate) struct Runs {
    places: Vec<Option<Place>>,
    free: Vec<usize>,
    woken: Arc<Woken>,
}

struct Place {
    work: Work,
    rope: Arc<Rope>,
    waker: Waker,
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

impl Runs {
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
        if !self.has_room() {
            return false;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        let rope = Arc::new(Rope {
            place,
            is_queued: AtomicBool::new(true),
            woken: Arc::clone(&self.woken),
        });
        let waker = Waker::from(Arc::clone(&rope));
        if let Some(free) = self.places.get_mut(place) {
            *free = Some(Place { work, rope, waker });
        }
        self.woken.queue().places.push_back(place);
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
            let Some(Some(place)) = self.places.get_mut(at) else {
                continue;
            };
            place.rope.is_queued.store(false, Ordering::Release);
            let mut cx = Context::from_waker(&place.waker);
            let ended = if all {
                pin!(coop::unconstrained(place.work.as_mut()))
                    .poll(&mut cx)
                    .is_ready()
            } else {
                place.work.as_mut().poll(&mut cx).is_ready()
            };
            if ended {
                if let Some(place) = self.places.get_mut(at) {
                    *place = None;
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
        self.places.clear();
        self.free.clear();
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
        let mut runs = Runs::default();
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
    fn the_set_is_bounded() {
        let mut runs = Runs::default();
        let dropped = Arc::new(AtomicUsize::new(0));
        struct Count(Arc<AtomicUsize>);
        impl Drop for Count {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let add = |runs: &mut Runs| {
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
