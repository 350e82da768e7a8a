//! The order of calls that touch the same places. A call is judged by where its paths lead; a call that writes
//! may make a link there before the judged one arrives. So whoever goes to a place waits for the writing calls
//! at or above it that came earlier, and a writing call waits for whoever was on the way there. A call that has
//! waited is read again, and judged by what is found then.
//!
//! Calls that only read never wait for one another.

mod turn;
mod wait;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gate::facts::Touched;
use tokio::sync::Notify;
use tokio::time::Instant;

pub(super) use turn::Turn;
pub(super) use wait::Waited;

/// Longest time that a call waits for others, in milliseconds.
pub const WAIT_MS_MAX: u64 = 5_000;
/// How long a writing call counts as unsettled whose client or time has given it up: its server may go on with
/// it. In milliseconds.
pub const GIVEN_UP_MS: u64 = 5_000;
/// Most calls that wait; further ones are judged at once, and refused where they would have had to wait.
pub const WAITING_MAX: usize = 256;
/// Most writing calls that a caller has given up; further ones of theirs wait until there are fewer.
const GIVEN_UP_MAX: usize = 64;

/// The calls of one process that are not settled.
#[derive(Default)]
pub(crate) struct Order {
    calls: Mutex<Calls>,
    /// How many writing calls have been settled so far.
    settled: AtomicU64,
    /// How many calls wait.
    waiting: AtomicUsize,
    changed: Notify,
}

/// In the order in which they came.
#[derive(Default)]
struct Calls {
    last: u64,
    unsettled: Vec<Unsettled>,
    /// How many of them write.
    writing: usize,
    /// How many of them were given up.
    given_up: usize,
}

/// A call that is not settled.
struct Unsettled {
    number: u64,
    caller: Arc<str>,
    touched: Option<Touched>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for others.
    Waits,
    /// It is judged by what it has read, or has been sent.
    GoesOn,
    /// Nobody waits for its end any more; it is forgotten then.
    GivenUp(Instant),
}

impl Unsettled {
    fn writes(&self) -> bool {
        self.touched.as_ref().is_some_and(Touched::writes)
    }

    /// Whether this call has to be over before the other one may go on.
    fn holds_back(&self, other: &Self) -> bool {
        let comes_first = self.number < other.number || self.stage != Stage::Waits;
        let (Some(own), Some(others)) = (&self.touched, &other.touched) else {
            return false;
        };
        self.number != other.number && comes_first && own.overlaps(others)
    }
}

impl Calls {
    /// Where a call stands.
    fn at(&self, number: u64) -> Option<usize> {
        let numbered = |call: &Unsettled| call.number.cmp(&number);
        self.unsettled.binary_search_by(numbered).ok()
    }

    /// Whether a call may go on; else when there may be something new, where that is known.
    fn may_go_on(&self, call: &Unsettled) -> Result<(), Option<Instant>> {
        if self.writing == 0 {
            return Ok(());
        }
        let others = || self.unsettled.iter();
        let lapses = |other: &Unsettled| match other.stage {
            Stage::GivenUp(until) => Some(until),
            Stage::Waits | Stage::GoesOn => None,
        };
        let held = others().any(|other| other.holds_back(call));
        let own = |other: &&Unsettled| other.caller == call.caller && lapses(other).is_some();
        if held || (call.writes() && others().filter(own).count() >= GIVEN_UP_MAX) {
            return Err(others().filter_map(lapses).min());
        }
        Ok(())
    }

    fn take_out(&mut self, at: usize) -> Unsettled {
        let call = self.unsettled.remove(at);
        self.writing -= usize::from(call.writes());
        self.given_up -= usize::from(matches!(call.stage, Stage::GivenUp(_)));
        call
    }
}

impl Order {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the writing calls that have been settled. Where it is the same before a call was read and at its
    /// [`Order::enter`], what was read still holds.
    pub fn settled(&self) -> u64 {
        self.settled.load(Ordering::Acquire)
    }

    /// Takes a call into the order; whether it may go on as it was read, when [`Order::settled`] was `seen`.
    pub fn enter(self: &Arc<Self>, touched: Touched, caller: &Arc<str>, seen: u64) -> (Turn, bool) {
        let mut calls = self.calls();
        self.forget(&mut calls);
        calls.last += 1;
        let mut call = Unsettled {
            number: calls.last,
            caller: Arc::clone(caller),
            touched: Some(touched),
            stage: Stage::Waits,
        };
        calls.writing += usize::from(call.writes());
        let is_free = calls.may_go_on(&call).is_ok();
        if is_free {
            call.stage = Stage::GoesOn;
        }
        let turn = Turn::new(Arc::clone(self), call.number, self.settled());
        calls.unsettled.push(call);
        let is_fresh = turn.seen() == seen;
        drop(calls);
        (turn, is_free && is_fresh)
    }

    /// Forgets what was given up long enough ago.
    fn forget(&self, calls: &mut Calls) {
        if calls.given_up == 0 {
            return;
        }
        let now = Instant::now();
        let is_over =
            |call: &Unsettled| matches!(call.stage, Stage::GivenUp(until) if until <= now);
        while let Some(at) = calls.unsettled.iter().position(is_over) {
            drop(calls.take_out(at));
            self.settled.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// A call leaves: settled, given up while its server may go on with it, or before it was sent.
    fn leave(&self, number: u64, how: Left) {
        let mut calls = self.calls();
        let Some(at) = calls.at(number) else {
            return;
        };
        match (how, calls.unsettled.get_mut(at)) {
            (Left::GivenUp, Some(call)) if call.writes() => {
                call.stage = Stage::GivenUp(Instant::now() + Duration::from_millis(GIVEN_UP_MS));
                calls.given_up += 1;
            }
            _ => {
                let call = calls.take_out(at);
                if how != Left::Unsent && call.writes() {
                    self.settled.fetch_add(1, Ordering::AcqRel);
                }
            }
        }
        drop(calls);
        if self.waiting.load(Ordering::Acquire) > 0 {
            self.changed.notify_waiters();
        }
    }
}

/// How a call leaves the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Settled,
    GivenUp,
    Unsent,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Order")
            .field("unsettled", &self.calls().unsettled.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
