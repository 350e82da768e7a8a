//! A call's place in the order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gate::facts::Touched;
use tokio::time::{Instant, timeout_at};

use super::{Left, Order, Stage, WAIT_MS_MAX, WAITING_MAX};

/// A call that is not settled. Dropped before it was sent it is forgotten; dropped later, its server may go on
/// with it for a while.
#[derive(Debug)]
pub(crate) struct Turn {
    order: Arc<Order>,
    number: u64,
    /// What had been settled when the call could go on last.
    seen: u64,
    how: Left,
}

impl Turn {
    pub(super) fn new(order: Arc<Order>, number: u64, seen: u64) -> Self {
        Self {
            order,
            number,
            seen,
            how: Left::Unsent,
        }
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// The call has been sent.
    pub fn sent(&mut self) {
        self.how = Left::GivenUp;
    }

    /// Its server has answered it, or is gone.
    pub fn settled(mut self) {
        self.how = Left::Settled;
    }

    /// Waits until the call may go on, has it read again by `read`, and once more where that shows other
    /// places. Says whether it may go on judged by what was read last; `false` where the time is over or too
    /// many calls wait.
    pub async fn wait(&mut self, mut read: impl FnMut() -> Option<Touched>) -> bool {
        let until = Instant::now() + Duration::from_millis(WAIT_MS_MAX);
        loop {
            let is_free = self.free(until).await;
            let touched = read();
            if !is_free {
                return false;
            }
            if self.still_goes_on(touched) {
                return true;
            }
        }
    }

    /// Waits until nothing holds the call back; `false` where that takes too long.
    async fn free(&mut self, until: Instant) -> bool {
        let order = Arc::clone(&self.order);
        let Some(_room) = Room::of(&order) else {
            return self.goes_on().is_ok();
        };
        loop {
            let mut changed = std::pin::pin!(order.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            let Err(lapse) = self.goes_on() else {
                return true;
            };
            if Instant::now() >= until {
                return false;
            }
            let wake = lapse.map_or(until, |lapse| lapse.min(until));
            drop(timeout_at(wake, changed).await);
        }
    }

    /// The call goes on, where nothing holds it back; else when there may be something new.
    fn goes_on(&mut self) -> Result<(), Option<Instant>> {
        let mut calls = self.order.calls();
        self.order.forget(&mut calls);
        let Some(at) = calls.at(self.number) else {
            return Ok(());
        };
        if let Some(call) = calls.unsettled.get(at) {
            calls.may_go_on(call)?;
        }
        if let Some(call) = calls.unsettled.get_mut(at) {
            call.stage = Stage::GoesOn;
        }
        self.seen = self.order.settled();
        Ok(())
    }

    /// The call was read again while it went on, and touches this. Whether what was read holds; else it waits
    /// again.
    fn still_goes_on(&mut self, touched: Option<Touched>) -> bool {
        let mut calls = self.order.calls();
        let Some(at) = calls.at(self.number) else {
            return true;
        };
        let Some(call) = calls.unsettled.get_mut(at) else {
            return true;
        };
        let wrote = call.writes();
        call.touched = touched;
        let writes = call.writes();
        calls.writing = calls.writing + usize::from(writes) - usize::from(wrote);
        let is_free = calls
            .unsettled
            .get(at)
            .is_none_or(|call| calls.may_go_on(call).is_ok());
        let holds = is_free && self.order.settled() == self.seen;
        if !holds && let Some(call) = calls.unsettled.get_mut(at) {
            call.stage = Stage::Waits;
        }
        drop(calls);
        // It may hold back others than before.
        self.order.changed.notify_waiters();
        holds
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.order.leave(self.number, self.how);
    }
}

/// Room for one more call that waits.
struct Room<'o>(&'o Order);

impl<'o> Room<'o> {
    fn of(order: &'o Order) -> Option<Self> {
        let before = order.waiting.fetch_add(1, Ordering::AcqRel);
        let room = Self(order);
        // Dropped where there is none.
        (before < WAITING_MAX).then_some(room)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
