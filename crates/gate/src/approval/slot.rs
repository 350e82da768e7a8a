//! Where the outcome of one question is left for whoever asked.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::answer::Outcome;

/// Filled once.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first outcome stays. Gives whom to wake.
    pub fn settle(&self, outcome: Outcome) -> Option<Waker> {
        let mut state = self.lock();
        if state.outcome.is_some() {
            return None;
        }
        state.outcome = Some(outcome);
        state.waker.take()
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.lock().outcome.clone()
    }

    pub fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.outcome.is_some() {
            return Poll::Ready(());
        }
        match &state.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => state.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}
