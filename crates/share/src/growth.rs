//! A permit that waits for more weight.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{SharePermit, Shortage, shortage, wake};

/// Resolves when a permit has the weight that was requested. Dropped earlier, it leaves the permit as it was.
#[derive(Debug)]
#[must_use = "a growth does nothing unless it is polled"]
pub struct Growth<'p> {
    permit: &'p mut SharePermit,
    to: usize,
    ticket: Option<u64>,
}

impl<'p> Growth<'p> {
    pub(super) fn new(permit: &'p mut SharePermit, to: usize) -> Self {
        Self {
            permit,
            to,
            ticket: None,
        }
    }

    /// Returns what is short now, or `None` if nothing is or an earlier waiter has it.
    #[must_use]
    pub fn shortage(&self) -> Option<Shortage> {
        let state = self.permit.pool.lock();
        let request = self.permit.request(self.to);
        shortage(&state.limits, state.held, &state.callers, &request)
    }
}

impl Future for Growth<'_> {
    type Output = Result<(), Shortage>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let to = self.to;
        if to <= self.permit.weight {
            return Poll::Ready(Ok(()));
        }
        let mut state = self.permit.pool.lock();
        let outcome = match self.ticket {
            None => {
                let request = self.permit.request(to);
                match state.take_now(&request) {
                    Ok(()) => Ok(()),
                    Err(Shortage::TooMuch) => Err(Shortage::TooMuch),
                    Err(_) => match state.join_queue(request, cx.waker()) {
                        Ok(ticket) => {
                            drop(state);
                            self.ticket = Some(ticket);
                            return Poll::Pending;
                        }
                        Err(full) => Err(full),
                    },
                }
            }
            Some(ticket) => {
                if let Some(waiter) = state.waiter(ticket)
                    && !waiter.is_granted
                {
                    waiter.waker.clone_from(cx.waker());
                    return Poll::Pending;
                }
                state.leave_queue(ticket);
                Ok(())
            }
        };
        drop(state);
        self.ticket = None;
        if outcome.is_ok() {
            self.permit.weight = to;
        }
        Poll::Ready(outcome)
    }
}

impl Drop for Growth<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        let mut state = self.permit.pool.lock();
        if state.leave_queue(ticket) {
            let more = self.to.saturating_sub(self.permit.weight);
            state.give_back(self.permit.caller.as_ref(), more);
        }
        // Later waiters may have waited for this one only.
        wake(state.grant(), state);
    }
}
